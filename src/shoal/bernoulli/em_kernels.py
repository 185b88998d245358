# mypy: ignore-errors
"""The two halves of an EM step, fused: responsibilities of each row and the sums they add to."""

from __future__ import annotations

import numpy as np

from shoal.jit import sum_kernel

NEGLIGIBLE_LOG = -30.0  # a responsibility under e^-30 does not change a sum of ordinary ones in float64


@sum_kernel
def em_rows(indptr, indices, weights, log_odds, base, counts, mass, first, last):
    """Add the rows first..last to ``counts`` (n_features, k) and ``mass`` (k,); return their log likelihood.

    ``log_odds`` (n_features, k) holds log(theta / (1 - theta)), keyword by keyword, so that one keyword of an ad is one
    straight run of k additions.
    """
    k = base.size
    scores, touched, shares = np.zeros(k), np.zeros(k, np.int64), np.zeros(k)
    log_likelihood = 0.0
    for row in range(first, last):
        scores[:] = base
        for at in range(indptr[row], indptr[row + 1]):
            of_keyword = log_odds[indices[at]]
            for cluster in range(k):
                scores[cluster] += of_keyword[cluster]
        best = scores[0]
        for cluster in range(1, k):
            best = max(best, scores[cluster])
        n, total = 0, 0.0
        for cluster in range(k):
            below = scores[cluster] - best
            if below > NEGLIGIBLE_LOG:
                share = np.exp(below)
                touched[n], shares[n] = cluster, share
                total += share
                n += 1
        log_likelihood += weights[row] * (best + np.log(total))
        for number in range(n):
            share = weights[row] * shares[number] / total
            mass[touched[number]] += share
            shares[number] = share
        for at in range(indptr[row], indptr[row + 1]):
            of_keyword = counts[indices[at]]
            for number in range(n):
                of_keyword[touched[number]] += shares[number]
    return log_likelihood
