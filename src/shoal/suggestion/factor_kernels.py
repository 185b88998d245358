# mypy: ignore-errors
"""Kernels: implicit-feedback matrix factorization by alternating least squares."""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel
from shoal.suggestion.ridge_kernels import solve_cholesky


@kernel
def sweep_half(ptr, indices, fixed, gram, unseen, penalty, steps, out):
    """One half of a sweep: a few conjugate-gradient steps for every row, from where ``out`` stands.

    Row u solves (unseen * gram + sum of v v' over its entries + penalty * (n + unseen * n_fixed) I) u = sum of v.
    """
    n_fixed, rank = fixed.shape
    residual, direction, product = np.zeros(rank, np.float32), np.zeros(rank, np.float32), np.zeros(rank, np.float32)
    for row in range(ptr.size - 1):
        entries = indices[ptr[row] : ptr[row + 1]]
        solution = out[row]
        if entries.size == 0:
            solution[:] = 0
            continue
        ridge = np.float32(penalty * (entries.size + unseen * n_fixed))
        product[:] = gram @ solution
        for k in range(rank):
            residual[k] = -unseen * product[k] - ridge * solution[k]
        for entry in entries:
            missing = np.float32(1) - np.dot(fixed[entry], solution)
            for k in range(rank):
                residual[k] += missing * fixed[entry, k]
        direction[:] = residual
        square = np.dot(residual, residual)
        for _ in range(steps):
            if square < 1e-12:
                break
            product[:] = gram @ direction
            for k in range(rank):
                product[k] = unseen * product[k] + ridge * direction[k]
            for entry in entries:
                along = np.dot(fixed[entry], direction)
                for k in range(rank):
                    product[k] += along * fixed[entry, k]
            step = square / np.dot(direction, product)
            for k in range(rank):
                solution[k] += step * direction[k]
                residual[k] -= step * product[k]
            now = np.dot(residual, residual)
            for k in range(rank):
                direction[k] = residual[k] + now / square * direction[k]
            square = now


@kernel
def fold_in(given_ptr, given, refused_ptr, refused, features, gram, unseen, penalty, out):
    """Factors of new rows, solved exactly: given features have target 1, refused ones 0, the rest weakly 0."""
    n_features, rank = features.shape
    A, y = np.zeros((rank, rank)), np.zeros(rank)
    for query in range(given_ptr.size - 1):
        asked = given[given_ptr[query] : given_ptr[query + 1]]
        A[:] = unseen * gram
        y[:] = 0
        for k in range(rank):
            A[k, k] += penalty * (asked.size + unseen * n_features)
        for feature in asked:
            add_outer(A, features[feature])
            y += features[feature]
        for feature in refused[refused_ptr[query] : refused_ptr[query + 1]]:
            add_outer(A, features[feature])
        solve_cholesky(A, y, rank)
        out[query] = y


@kernel
def add_outer(A, v):
    """A += v v', in the lower half."""
    for row in range(v.size):
        for column in range(row + 1):
            A[row, column] += v[row] * v[column]
