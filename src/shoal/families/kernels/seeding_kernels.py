"""k-means on dense rows, to start a Gaussian chain from: seeds far apart, then Lloyd's steps.

Plain loops on one thread: a process that forks afterwards inherits no pool of threads that is not there.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from shoal.families.kernels.random_kernels import below, uniform
from shoal.jit import kernel, sum_kernel


@sum_kernel
def squared_distance(one, two):
    total = 0.0
    for j in range(len(one)):
        gap = one[j] - two[j]
        total += gap * gap
    return total


@kernel
def seed_centers(X, state, centers):
    """k-means++: each seed is drawn by the squared distance to the seeds before it. Returns how many differ."""
    n, k = len(X), len(centers)
    apart = np.full(n, np.inf)
    chosen = below(state, n)
    for number in range(k):
        centers[number] = X[chosen]
        total = 0.0
        for row in range(n):
            apart[row] = min(apart[row], squared_distance(X[row], centers[number]))
            total += apart[row]
        if total <= 0.0:
            return number + 1  # every row is a seed already
        draw, chosen = uniform(state) * total, n - 1
        for row in range(n):
            draw -= apart[row]
            if draw < 0 and apart[row] > 0:
                chosen = row
                break
    return k


@kernel
def nearest_centers(X, centers, labels):
    """The nearest center of each row; how many rows changed theirs."""
    n_changed = 0
    for row in range(len(X)):
        best, least = 0, np.inf
        for cluster in range(len(centers)):
            apart = squared_distance(X[row], centers[cluster])
            if apart < least:
                best, least = cluster, apart
        n_changed += labels[row] != best
        labels[row] = best
    return n_changed


@kernel
def lloyd_steps(X, centers, labels, n_steps):
    """Move centers to the means of their rows, at most so many times; a center without rows stays."""
    total, size = np.zeros_like(centers), np.zeros(len(centers), np.int64)
    for _ in range(n_steps):
        if nearest_centers(X, centers, labels) == 0:
            break
        total[:] = 0.0
        size[:] = 0
        for row in range(len(X)):
            size[labels[row]] += 1
            for j in range(X.shape[1]):
                total[labels[row], j] += X[row, j]
        for cluster in range(len(centers)):
            if size[cluster] > 0:
                centers[cluster] = total[cluster] / size[cluster]
