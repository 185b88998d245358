"""Scores of new rows under every cluster, through the columns of the clusters' counts."""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.families.kernels.scores_kernels import are_sets, cluster_term, is_length_given, log_gamma_ratio
from shoal.jit import kernel

N_POWERS, FEW = 8, 30.0  # a series of so many terms where the ratio is below 1 / FEW: its rest is below 1e-13 a feature
REACH = 45.0  # clusters so many nats below the best add nothing to a sum in double precision


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


class Columns(NamedTuple):
    """The clusters' counts feature by feature: who has seen a feature, how often, and what that adds to a score."""

    ptr: np.ndarray  # (d + 1,)
    clusters: np.ndarray  # (nnz,)
    counts: np.ndarray  # (nnz,)
    gains: np.ndarray  # (nnz,) of one occurrence in a row, over a cluster that has not seen the feature


@kernel
def fill_column_gains(prior, size, columns):
    for feature in range(len(columns.ptr) - 1):
        a = prior.shape[feature]
        for at in range(columns.ptr[feature], columns.ptr[feature + 1]):
            gain = math.log1p(columns.counts[at] / a)
            if are_sets(prior):
                gain -= math.log1p(-columns.counts[at] / (prior.rate - a + size[columns.clusters[at]]))
            columns.gains[at] = gain


@kernel
def add_unseen_sets(prior, size, features, powers, scores):
    """Bernoulli: scores[c] += sum over a row's features of log(a / (t - a + n_c)).

    Where n_c is large, log(t + n - a) = log(t + n) - x - x^2 / 2 - ..., x = a / (t + n), needs sums of powers only.
    """
    log_shapes, largest = 0.0, 0.0
    powers[:] = 0.0
    for feature in features:
        a = prior.shape[feature]
        log_shapes += math.log(a)
        largest = max(largest, a)
        power = a
        for at in range(len(powers)):
            powers[at] += power / (at + 1)
            power *= a
    for cluster in range(len(scores)):
        total = prior.rate + size[cluster]
        if largest * FEW < total:
            share, series = 1.0 / total, 0.0
            for at in range(len(powers) - 1, -1, -1):
                series = (series + powers[at]) * share
            scores[cluster] += log_shapes - len(features) * math.log(total) + series
        else:
            for feature in features:
                a = prior.shape[feature]
                scores[cluster] += math.log(a / (total - a))


@kernel
def fill_cluster_terms(prior, size, total, absent, log_weights, length, terms):
    """What a row's score under each cluster owes to the cluster and the row's length alone."""
    for cluster in range(len(size)):
        term = (
            prior.absent[size[cluster]] + absent[cluster]
            if are_sets(prior)
            else cluster_term(prior, size[cluster], total[cluster], length)
        )
        terms[cluster] = log_weights[cluster] + term


@kernel
def score_all(prior, size, columns, features, values, terms, powers, scores):
    """scores[c] = log weight + log p(row | the cluster's rows), log x! left out; returns that of an empty cluster."""
    base, length = 0.0, 0.0
    scores[:] = terms
    if are_sets(prior):
        add_unseen_sets(prior, size, features, powers, scores)
        for feature in features:
            base += math.log(prior.shape[feature] / (prior.rate - prior.shape[feature]))
    else:
        for at in range(len(features)):
            base += rising(prior.shape[features[at]], values[at])
            length += values[at]
        for cluster in range(len(scores)):
            scores[cluster] += base
    for at in range(len(features)):
        feature, value = features[at], values[at]
        first, last = columns.ptr[feature], columns.ptr[feature + 1]
        if value == 1.0:
            for place in range(first, last):
                scores[columns.clusters[place]] += columns.gains[place]
        else:
            a = prior.shape[feature]
            unseen = rising(a, value)
            for place in range(first, last):
                scores[columns.clusters[place]] += rising(a + columns.counts[place], value) - unseen
    return base + (prior.absent[0] if are_sets(prior) else cluster_term(prior, 0, 0.0, length))


@kernel
def row_length(values):
    total = 0.0
    for value in values:
        total += value
    return total


@kernel
def predict_rows(prior, size, total, absent, columns, log_weights, row_ptr, row_features, row_values, out):
    """out[row, cluster] = log weight + log p(row | cluster's rows), without log x! of the data."""
    terms, powers, before = np.empty(len(size)), np.empty(N_POWERS), -1.0
    for row in range(len(row_ptr) - 1):
        features, values = row_features[row_ptr[row] : row_ptr[row + 1]], row_values[row_ptr[row] : row_ptr[row + 1]]
        length = row_length(values)
        if length != before:
            fill_cluster_terms(prior, size, total, absent, log_weights, length, terms)
            before = length
        score_all(prior, size, columns, features, values, terms, powers, out[row])


@kernel
def keep_best(scores, clusters, best):
    """The best clusters of a row, best first and the earlier of equals, into `clusters` and `best`; the log of the sum
    over all of exp(score)."""
    most = len(best)
    best[:] = -np.inf
    clusters[:] = -1
    for cluster in range(len(scores)):
        score = scores[cluster]
        if score > best[most - 1]:
            at = most - 1
            while at > 0 and score > best[at - 1]:
                best[at], clusters[at] = best[at - 1], clusters[at - 1]
                at -= 1
            best[at], clusters[at] = score, cluster
    mass = 0.0
    for cluster in range(len(scores)):
        if scores[cluster] > best[0] - REACH:
            mass += math.exp(scores[cluster] - best[0])
    return best[0] + math.log(mass)


@kernel
def best_rows(scores, clusters, best, totals):
    for row in range(len(scores)):
        totals[row] = keep_best(scores[row], clusters[row], best[row])


@kernel
def top_rows(
    prior,
    size,
    total,
    absent,
    columns,
    log_weights,
    row_ptr,
    row_features,
    row_values,
    order,
    clusters,
    best,
    totals,
    fresh,
):
    """For each row its best clusters with their scores, the log of the sum over all clusters, and the log predictive of
    an empty one. Rows come by length in `order`, so that what depends on it is computed once."""
    scores, terms, powers, before = np.empty(len(size)), np.empty(len(size)), np.empty(N_POWERS), -1.0
    for row in order:
        features, values = row_features[row_ptr[row] : row_ptr[row + 1]], row_values[row_ptr[row] : row_ptr[row + 1]]
        length = row_length(values)
        if length != before and (before < 0 or not are_sets(prior)):
            fill_cluster_terms(prior, size, total, absent, log_weights, length, terms)
            before = length
        fresh[row] = score_all(prior, size, columns, features, values, terms, powers, scores)
        totals[row] = keep_best(scores, clusters[row], best[row])


@kernel
def marginals(prior, size, total, falling, ptr, features, counts, out):
    """For each cluster (a row of counts), the log probability of its rows, without log x! of the data."""
    for cluster in range(len(size)):
        n = size[cluster]
        if n == 0:
            out[cluster] = 0.0
            continue
        if are_sets(prior):
            value = falling[n]
        elif is_length_given(prior):
            value = -log_gamma_ratio(prior.shape_total, total[cluster])
        else:
            value = prior.shape_total * math.log(prior.rate)
            value -= (prior.shape_total + total[cluster]) * math.log(prior.rate + n)
        for at in range(ptr[cluster], ptr[cluster + 1]):
            a, seen = prior.shape[features[at]], counts[at]
            value += rising(a, np.float64(seen))
            if are_sets(prior):
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
def absent_without_row(prior, n, ptr, features, counts, cluster, row_features):
    """Bernoulli: what absent_sums would be of a cluster with n other rows, without the features of one of its rows."""
    total, at = 0.0, 0
    for place in range(ptr[cluster], ptr[cluster + 1]):
        while at < len(row_features) and row_features[at] < features[place]:
            at += 1
        if at < len(row_features) and row_features[at] == features[place]:
            continue
        total += math.log1p(-counts[place] / (prior.rate - prior.shape[features[place]] + n))
    return total


@kernel
def predict_left_out(prior, size, total, ptr, features, counts, labels, row_ptr, row_features, row_values, out):
    """out[row] = log p(row | the other rows of cluster labels[row], which counts it among its rows)."""
    for row in range(len(row_ptr) - 1):
        cluster = labels[row]
        n, length, score = size[cluster] - 1, 0.0, 0.0
        for at in range(row_ptr[row], row_ptr[row + 1]):
            a, value = prior.shape[row_features[at]], row_values[at]
            others = find_count(ptr, features, counts, cluster, row_features[at]) - value
            length += value
            score += math.log((a + others) / (prior.rate - a + n)) if are_sets(prior) else rising(a + others, value)
        if are_sets(prior):
            part = row_features[row_ptr[row] : row_ptr[row + 1]]
            score += prior.absent[n] + absent_without_row(prior, n, ptr, features, counts, cluster, part)
        else:
            score += cluster_term(prior, n, total[cluster] - length, length)
        out[row] = score


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
            if are_sets(prior):
                score += math.log((a + seen) / (prior.rate - a + n - seen))
            else:
                score += rising(a + seen, value)
        if are_sets(prior):
            score += prior.absent[n] + (absent[cluster] if cluster >= 0 else 0.0)
        else:
            score += cluster_term(prior, n, total[cluster] if cluster >= 0 else 0.0, length)
        out[row] = score
