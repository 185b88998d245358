# mypy: ignore-errors
"""The two halves of an EM step, fused: responsibilities of each row and the sums they add to."""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel, sum_kernel

NEGLIGIBLE_LOG = -30.0  # a responsibility under e^-30 does not change a sum of ordinary ones in float64
LEAST_OWN = 1e-4  # share of a row that is worth taking out


@sum_kernel
def em_rows(indptr, indices, weights, log_odds, base, counts, mass):
    """Add all rows to ``counts`` (n_features, k) and ``mass`` (k,); return their log likelihood.

    ``log_odds`` (n_features, k) holds log(theta / (1 - theta)), feature by feature, so that one feature of a row is one
    straight run of k additions.
    """
    k = base.size
    scores, touched, shares = np.zeros(k), np.zeros(k, np.int64), np.zeros(k)
    log_likelihood = 0.0
    for row in range(indptr.size - 1):
        scores[:] = base
        for at in range(indptr[row], indptr[row + 1]):
            of_feature = log_odds[indices[at]]
            for cluster in range(k):
                scores[cluster] += of_feature[cluster]
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
            of_feature = counts[indices[at]]
            for number in range(n):
                of_feature[touched[number]] += shares[number]
    return log_likelihood


@sum_kernel
def unseen_scores(indptr, indices, weights, log_odds, base, counts, mass, background, strength, out):
    """Log likelihood of each row under clusters from which its own part has been taken out.

    Of a cluster with a share r of the row, h rows with a feature and m rows are h - r and m - r without it. A cluster
    with hardly any share stays as it is.
    """
    k = base.size
    scores, shares = np.zeros(k), np.zeros(k)
    for row in range(indptr.size - 1):
        scores[:] = base
        for at in range(indptr[row], indptr[row + 1]):
            of_feature = log_odds[indices[at]]
            for cluster in range(k):
                scores[cluster] += of_feature[cluster]
        best = scores[0]
        for cluster in range(1, k):
            best = max(best, scores[cluster])
        total = 0.0
        for cluster in range(k):
            shares[cluster] = np.exp(scores[cluster] - best)
            total += shares[cluster]
        for cluster in range(k):
            own = min(weights[row], 1.0) * shares[cluster] / total
            if own < LEAST_OWN:
                continue
            rest = max(mass[cluster] - own, 0.0)
            score = base[cluster] + np.log((rest + 1.0) / (mass[cluster] + 1.0))
            for at in range(indptr[row], indptr[row + 1]):
                feature = indices[at]
                hits = max(counts[feature, cluster] - own, 0.0)
                mean = (hits + strength * background[feature]) / (rest + strength)
                mean = min(max(mean, 1e-12), 1.0 - 1e-9)
                score += np.log(mean) - np.log1p(-mean)
            scores[cluster] = score
        best = scores[0]
        for cluster in range(1, k):
            best = max(best, scores[cluster])
        total = 0.0
        for cluster in range(k):
            total += np.exp(scores[cluster] - best)
        out[row] = best + np.log(total)


@kernel
def maximize_cells(counts, mass, background, strength, log_odds, base):
    """Posterior means of all cells as log-odds, and each cluster's sum of log(1 - mean) added to ``base``.

    A cell without counts needs no logarithm of its own: its mean is s b / (s + m), small where b is.
    """
    k = mass.size
    log_prior, log_rest = np.zeros(k), np.zeros(k)
    for cluster in range(k):
        log_prior[cluster] = np.log(strength / (strength + mass[cluster]))
    for feature in range(background.size):
        b = background[feature]
        log_b = np.log(b)
        for cluster in range(k):
            n = strength + mass[cluster]
            count = counts[feature, cluster]
            mean = (count + strength * b) / n
            if count < 1e-9 and mean < 1e-3:
                absent = -mean * (1.0 + mean * (0.5 + mean / 3.0))
                log_odds[feature, cluster] = log_b + log_prior[cluster] - absent
            else:
                mean = min(max(mean, 1e-12), 1.0 - 1e-9)
                absent = np.log1p(-mean)
                log_odds[feature, cluster] = np.log(mean) - absent
            log_rest[cluster] += absent
    for cluster in range(k):
        base[cluster] += log_rest[cluster]
