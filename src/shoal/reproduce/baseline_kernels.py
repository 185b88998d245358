# mypy: ignore-errors
"""What the papers compare themselves with, compiled as well as what is compared."""

from __future__ import annotations

import math

import numpy as np

from shoal.jit import kernel
from shoal.kmeans.exact_kernels import add_lines, add_lists, largest


@kernel
def score_all(indptr, ranks, values, start, stop, hot, lengths, ptr, firsts, places, weights, k):
    """Every row against every center, no bounds: plain Lloyd through the same index."""
    sums, lines, line_values = np.empty(k, np.float32), np.empty(4096, np.int64), np.empty(4096, np.float32)
    total = 0
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        n_lines, _ = add_lists(ranks, values, first, last, ptr, firsts, places, weights, k, sums, lines, line_values)
        add_lines(lines, line_values, 0, n_lines, hot, k, sums)
        total += largest(sums, k)
    return total


@kernel
def label_rows(ptr, features, counts, log_shares, log_weights, draws, labels):
    """The slides' baseline: for every row, every cluster's dense log shares, cluster by cluster."""
    k = len(log_weights)
    scores = np.zeros(k)
    for row in range(len(draws)):
        for cluster in range(k):
            score = log_weights[cluster]
            for at in range(ptr[row], ptr[row + 1]):
                score += counts[at] * log_shares[cluster, features[at]]
            scores[cluster] = score
        best = scores.max()
        mass = 0.0
        for cluster in range(k):
            mass += math.exp(scores[cluster] - best)
        draw = draws[row] * mass
        for cluster in range(k):
            draw -= math.exp(scores[cluster] - best)
            if draw <= 0:
                labels[row] = cluster
                break
