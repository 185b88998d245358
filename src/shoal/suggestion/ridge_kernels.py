# mypy: ignore-errors
"""Kernels: ridge regression of one feature on the few others that explain most of it."""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel


@kernel
def solve_cholesky(A, y, size):
    """In place: the lower half of A (size x size, positive definite) becomes its factor, y the solution of A z = y."""
    for row in range(size):
        for column in range(row + 1):
            total = A[row, column]
            for k in range(column):
                total -= A[row, k] * A[column, k]
            if row == column:
                A[row, row] = np.sqrt(max(total, 1e-12))
            else:
                A[row, column] = total / A[column, column]
    for row in range(size):
        total = y[row]
        for k in range(row):
            total -= A[row, k] * y[k]
        y[row] = total / A[row, row]
    for row in range(size - 1, -1, -1):
        total = y[row]
        for k in range(row + 1, size):
            total -= A[k, row] * y[k]
        y[row] = total / A[row, row]


@kernel
def local_weights(targets, pair_ptr, pair_with, pair_count, count, penalty, sources, weights, n_sources):
    """Ridge weights towards each target, from the features with the largest c_jd^2 / (c_j + penalty) alone.

    That gain is what one feature explains of the target by itself. The gathered system is (width x width): the
    rows of ``pair_*`` are sorted by feature, and ``place`` finds the chosen ones in them.
    """
    width = sources.shape[1]
    place = np.full(count.size, -1)
    A, y = np.zeros((width, width)), np.zeros(width)
    for at in range(targets.size):
        target = targets[at]
        start, end = pair_ptr[target], pair_ptr[target + 1]
        gain = np.full(end - start, -1.0)
        for k in range(start, end):
            if pair_with[k] != target:
                gain[k - start] = pair_count[k] ** 2 / (count[pair_with[k]] + penalty)
        size = 0
        for k in np.argsort(-gain, kind="mergesort")[:width]:
            if gain[k] <= 0:
                break
            sources[at, size] = pair_with[start + k]
            y[size] = pair_count[start + k]
            place[sources[at, size]] = size
            size += 1
        A[:size, :size] = 0.0
        for row in range(size):
            feature = sources[at, row]
            for k in range(pair_ptr[feature], pair_ptr[feature + 1]):
                column = place[pair_with[k]]
                if 0 <= column <= row:
                    A[row, column] = pair_count[k]
            A[row, row] = count[feature] + penalty
        for k in range(size):
            place[sources[at, k]] = -1
        solve_cholesky(A, y, size)
        weights[at, :size] = y[:size]
        n_sources[at] = size
