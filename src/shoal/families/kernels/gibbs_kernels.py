"""Collapsed Gibbs over all clusters, as fast as we can write it: the baseline every ratio refers to.

a_v + f_cv (Bernoulli: f_cv) is kept dense, feature-major, in single precision. A row's scores are products over its
features, for all clusters at once; the exponents are split off into whole numbers every few factors, so that no
logarithm is taken but for the clusters within reach of the best. The row's own cluster is scored apart, exactly, with
the row left out.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from shoal.families.kernels.counts_kernels import count_of, has_room
from shoal.families.kernels.metropolis_hastings_kernels import move_row, score_own
from shoal.families.kernels.random_kernels import below, uniform
from shoal.families.kernels.scores_kernels import (
    LOG_ZERO,
    are_sets,
    is_length_given,
    log_gamma_ratio,
    score_empty,
    score_row,
)
from shoal.jit import kernel, sum_kernel

LOG_2 = math.log(2.0)
REACH = 40.0  # clusters further below the best have no chance worth a logarithm


@kernel
def dense_base(prior, feature):
    """What the dense table holds of a feature that a cluster has not seen."""
    return 0.0 if are_sets(prior) else prior.shape[feature]


@kernel
def fill_dense(prior, clusters, dense):
    """dense[v, c] = a_v + f_cv; of sets f_cv alone, see times_odds"""
    for feature in range(dense.shape[0]):
        dense[feature, :] = dense_base(prior, feature)
    for cluster in range(dense.shape[1]):
        start = clusters.start[cluster]
        for at in range(start, start + (1 << clusters.bits[cluster])):
            feature = clusters.slots[at, 0]
            if feature >= 0:
                dense[feature, cluster] = dense_base(prior, feature) + clusters.slots[at, 1] * prior.unit


@kernel
def renew_dense(items, prior, clusters, row, cluster, dense):
    """Copy a cluster's counts of a row's features out of its table."""
    for at in range(items.ptr[row], items.ptr[row + 1]):
        feature = items.features[at]
        dense[feature, cluster] = dense_base(prior, feature) + count_of(clusters, cluster, feature) * prior.unit


@kernel
def split_exponents(bits, exponents):
    """Take the powers of two out of positive single-precision numbers, leaving them in [1, 2)."""
    for cluster in range(len(bits)):
        exponents[cluster] += (bits[cluster] >> 23) - 127
        bits[cluster] = (bits[cluster] & 0x7FFFFF) | 0x3F800000


@sum_kernel
def times(product, row):
    for cluster in range(len(product)):
        product[cluster] *= row[cluster]


@sum_kernel
def times_shifted(product, row, step):
    for cluster in range(len(product)):
        product[cluster] *= row[cluster] + step


@sum_kernel
def times_odds(product, seen, size, a, b):
    """size - seen is exact in single precision; (size + b) - (seen + a) loses b where all rows have the feature."""
    for cluster in range(len(product)):
        product[cluster] *= (seen[cluster] + a) / ((size[cluster] - seen[cluster]) + b)


@kernel
def multiply_features(items, prior, row, dense, sizes, per_split, product, bits, exponents, extra):
    """product * 2 ** exponents * exp(extra): the features' part of the row's predictive under every cluster."""
    product[:] = 1.0
    exponents[:] = 0
    pending, fractional = 0, False
    for at in range(items.ptr[row], items.ptr[row + 1]):
        feature, count = items.features[at], items.counts[at]
        if are_sets(prior):
            a = prior.shape[feature]
            times_odds(product, dense[feature], sizes, np.float32(a), np.float32(prior.rate - a))
            pending += 1
        elif prior.unit != 1.0 or count > 64:
            if not fractional:
                extra[:] = 0.0
                fractional = True
            for cluster in range(len(extra)):
                extra[cluster] += log_gamma_ratio(np.float64(dense[feature, cluster]), count * prior.unit)
        else:
            times(product, dense[feature])
            pending += 1
            for step in range(1, count):
                if pending >= per_split:
                    split_exponents(bits, exponents)
                    pending = 0
                times_shifted(product, dense[feature], np.float32(step))
                pending += 1
        if pending >= per_split:
            split_exponents(bits, exponents)
            pending = 0
    split_exponents(bits, exponents)
    return fractional


@kernel
def coarse_scores(items, prior, clusters, row, log_gamma, exponents, extra, fractional, scores):
    """Scores without the products' mantissas, which add less than log 2 each."""
    length = items.length[row]
    log_rate = math.log(prior.rate + 1)
    for cluster in range(len(scores)):
        score = clusters.weight[cluster] + exponents[cluster] * LOG_2
        total = clusters.total[cluster]
        if is_length_given(prior):
            if total + length < len(log_gamma):
                score += log_gamma[total] - log_gamma[total + length]
            else:
                score -= log_gamma_ratio(prior.shape_total + total * prior.unit, length * prior.unit)
        elif not are_sets(prior):
            score -= length * prior.unit * (clusters.slope[cluster] + log_rate)
        if fractional:
            score += extra[cluster]
        scores[cluster] = score if clusters.size[cluster] > 0 else LOG_ZERO


@kernel
def draw_cluster(items, prior, clusters, row, own, own_score, empty_score, n_empty, scores, product, state, work):
    """A draw from the exact conditional. `scores` come coarse and leave as probabilities."""
    n_clusters = len(scores)
    scores[own] = LOG_ZERO
    best = max(own_score, empty_score)
    for cluster in range(n_clusters):
        best = max(best, scores[cluster])
    mass = 0.0
    for cluster in range(n_clusters):
        if scores[cluster] > best - REACH:
            if are_sets(prior):
                scores[cluster] = math.exp(score_row(items, prior, clusters, row, cluster, False, work.marked) - best)
            else:
                scores[cluster] = math.exp(scores[cluster] - best) * product[cluster]
            mass += scores[cluster]
        else:
            scores[cluster] = 0.0
    if clusters.size[own] > 1:
        scores[own] = math.exp(own_score - best)
        mass += scores[own]
    mass_empty = math.exp(empty_score - best) if n_empty > 0 else 0.0
    mass += mass_empty
    draw = uniform(state) * mass - mass_empty
    if draw <= 0 and n_empty > 0:
        place = below(state, n_empty)
        return own if place == clusters.empty[n_clusters] else clusters.empty[place]
    for cluster in range(n_clusters):
        draw -= scores[cluster]
        if draw <= 0 and scores[cluster] > 0:
            return cluster
    return own


@kernel
def gibbs_rows(items, prior, clusters, postings, tables, first, last, state, tally, work, dense_work):
    """One visit to each of the rows first .. last - 1; returns the row to go on with, as sample_rows does."""
    dense, log_gamma, per_split = tables
    product, bits, exponents, extra, sizes, scores = dense_work
    n_clusters = len(clusters.size)
    for cluster in range(n_clusters):
        sizes[cluster] = clusters.size[cluster]
    for row in range(first, last):
        own, before = clusters.labels[row], state[0]
        own_score = score_own(items, prior, clusters, row, own, work)
        n_empty = clusters.empty[n_clusters] + (1 if clusters.size[own] == 1 else 0)
        empty_score = score_empty(items, prior, clusters, row, n_empty) if n_empty > 0 else LOG_ZERO
        fractional = multiply_features(items, prior, row, dense, sizes, per_split, product, bits, exponents, extra)
        coarse_scores(items, prior, clusters, row, log_gamma, exponents, extra, fractional, scores)
        target = draw_cluster(
            items, prior, clusters, row, own, own_score, empty_score, n_empty, scores, product, state, work
        )
        tally[0] += 1
        if target != own:
            if not has_room(clusters, target, items.ptr[row + 1] - items.ptr[row]):
                state[0] = before
                return row
            move_row(items, prior, clusters, postings, row, own, target, work.marked)
            renew_dense(items, prior, clusters, row, own, dense)
            renew_dense(items, prior, clusters, row, target, dense)
            sizes[own], sizes[target] = clusters.size[own], clusters.size[target]
            tally[1] += 1
    return last
