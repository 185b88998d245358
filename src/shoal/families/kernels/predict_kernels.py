"""Scores of new rows under every cluster, through the columns of the clusters' counts."""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from shoal.families.kernels.scores_kernels import BERNOULLI, cluster_term, log_gamma_ratio
from shoal.jit import kernel


@kernel
def rising(a, x):
    """lnG(a + x) - lnG(a) for any x >= 0."""
    if x == 1.0:
        return math.log(a)
    return log_gamma_ratio(a, x)


@kernel
def absent_sums(prior, size, ptr, features, counts, out):
    """Bernoulli: for each cluster (a row of its counts), the log probability that its features are absent, beyond the
    prior's."""
    for cluster in range(len(size)):
        total = 0.0
        for at in range(ptr[cluster], ptr[cluster + 1]):
            total += math.log1p(-counts[at] / (prior.rate - prior.shape[features[at]] + size[cluster]))
        out[cluster] = total


@kernel
def predict_rows(prior, size, total, absent, ptr, clusters, counts, row_ptr, row_features, row_values, out):
    """out[row, cluster] = log p(row | cluster's rows), without log x! of the data.

    ptr, clusters, counts: for each feature, the clusters that hold it (the columns of the clusters' counts)."""
    n_clusters = len(size)
    for row in range(len(row_ptr) - 1):
        first, last = row_ptr[row], row_ptr[row + 1]
        length, base = 0.0, 0.0
        for at in range(first, last):
            length += row_values[at]
            if prior.kind != BERNOULLI:
                base += rising(prior.shape[row_features[at]], row_values[at])
        for cluster in range(n_clusters):
            n = size[cluster]
            score = base
            if prior.kind == BERNOULLI:
                score += prior.absent[n] + absent[cluster]
                for at in range(first, last):
                    a = prior.shape[row_features[at]]
                    score += math.log(a / (prior.rate - a + n))
            else:
                score += cluster_term(prior, n, total[cluster], length)
            out[row, cluster] = score
        for at in range(first, last):
            feature, value = row_features[at], row_values[at]
            a = prior.shape[feature]
            unseen = 0.0 if prior.kind == BERNOULLI else rising(a, value)
            for place in range(ptr[feature], ptr[feature + 1]):
                cluster, seen = clusters[place], counts[place]
                if prior.kind == BERNOULLI:
                    ceiling = prior.rate - a + size[cluster]
                    out[row, cluster] += math.log((a + seen) / a) - math.log1p(-seen / ceiling)
                else:
                    out[row, cluster] += rising(a + seen, value) - unseen


@kernel
def marginals(prior, size, total, falling, ptr, features, counts, out):
    """For each cluster (a row of counts), the log probability of its rows, without log x! of the data."""
    for cluster in range(len(size)):
        n = size[cluster]
        if n == 0:
            out[cluster] = 0.0
            continue
        if prior.kind == BERNOULLI:
            value = falling[n]
        elif prior.kind == 0:
            value = -log_gamma_ratio(prior.shape_total, total[cluster])
        else:
            value = prior.shape_total * math.log(prior.rate)
            value -= (prior.shape_total + total[cluster]) * math.log(prior.rate + n)
        for at in range(ptr[cluster], ptr[cluster + 1]):
            a, seen = prior.shape[features[at]], counts[at]
            value += rising(a, np.float64(seen))
            if prior.kind == BERNOULLI:
                value -= rising(prior.rate - a + n - seen, np.float64(seen))
        out[cluster] = value


@kernel
def find_count(ptr, features, counts, cluster, feature):
    """A cluster's sum of a feature, by bisection of its sorted row."""
    low, high = ptr[cluster], ptr[cluster + 1]
    while low < high:
        middle = (low + high) // 2
        if features[middle] < feature:
            low = middle + 1
        else:
            high = middle
    return counts[low] if low < ptr[cluster + 1] and features[low] == feature else 0.0


@kernel
def predict_pairs(prior, size, total, absent, ptr, features, counts, labels, row_ptr, row_features, row_values, out):
    """out[row] = log p(row | the rows of cluster labels[row]); a label of -1 means an empty cluster."""
    for row in range(len(row_ptr) - 1):
        cluster = labels[row]
        n = size[cluster] if cluster >= 0 else 0
        score, length = 0.0, 0.0
        for at in range(row_ptr[row], row_ptr[row + 1]):
            feature, value = row_features[at], row_values[at]
            a = prior.shape[feature]
            seen = find_count(ptr, features, counts, cluster, feature) if cluster >= 0 else 0.0
            length += value
            if prior.kind == BERNOULLI:
                score += math.log((a + seen) / (prior.rate - a + n - seen))
            else:
                score += rising(a + seen, value)
        if prior.kind == BERNOULLI:
            score += prior.absent[n] + (absent[cluster] if cluster >= 0 else 0.0)
        else:
            score += cluster_term(prior, n, total[cluster] if cluster >= 0 else 0.0, length)
        out[row] = score
