"""The predictive likelihood of rows that are each left out of the chain in turn, and what merging two clusters does to
it. Rows, and the tables of their features, are as `LeftOutRows` has them."""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.families.kernels.counts_kernels import count_of
from shoal.families.kernels.scores_kernels import (
    LOG_ZERO,
    are_sets,
    cluster_term,
    log_rising,
    log_rows_weight,
    score_row,
)
from shoal.jit import kernel

NO_MATTER = 1e-4  # a row that two clusters together hold with less probability has no say in whether they merge


class LeftOutRows(NamedTuple):
    """Some rows, and the counts of their features in the live clusters, which are numbered here from 0."""

    rows: np.ndarray  # (m,) the shortest first
    ptr: np.ndarray  # (m + 1,)
    features: np.ndarray  # numbers among `held`
    counts: np.ndarray
    held: np.ndarray  # (f,) the features that the rows have
    live: np.ndarray  # (c,) clusters
    seen: np.ndarray  # (f, c) counts of the clusters, in units


@kernel
def tabulate(clusters, place, live, seen):
    """seen[f, c]: counts of each live cluster; place[feature] is f, or -1."""
    for column in range(len(live)):
        start = clusters.start[live[column]]
        for at in range(start, start + (1 << clusters.bits[live[column]])):
            feature = clusters.slots[at, 0]
            if feature >= 0 and place[feature] >= 0:
                seen[place[feature], column] = clusters.slots[at, 1]


@kernel
def fill_terms(prior, clusters, left_out, terms):
    """terms[f, c]: what a single occurrence of a feature adds to a row's score under a cluster."""
    for f in range(len(left_out.held)):
        a = prior.shape[left_out.held[f]]
        log_a = math.log(a)
        for column in range(len(left_out.live)):
            seen = left_out.seen[f, column]
            if are_sets(prior):
                n = clusters.size[left_out.live[column]]
                terms[f, column] = math.log((a + seen) / (prior.rate - a + n - seen))
            else:
                terms[f, column] = log_a if seen == 0 else math.log(a + seen * prior.unit)


@kernel
def score_left_out(items, prior, clusters, left_out, terms, marked, out):
    """out[i, c]: log weight and log predictive of a row under each cluster, the row itself left out of its own."""
    fixed, length = np.empty(len(left_out.live)), -1
    for at in range(len(left_out.rows)):
        row, scores = left_out.rows[at], out[at]
        if items.length[row] != length:
            length = items.length[row]
            for column in range(len(fixed)):
                cluster = left_out.live[column]
                n, absent = clusters.size[cluster], clusters.absent[cluster] if are_sets(prior) else 0.0
                term = cluster_term(prior, n, clusters.total[cluster], length)
                fixed[column] = log_rows_weight(prior, n) + term + absent
        scores[:] = fixed
        for value in range(left_out.ptr[at], left_out.ptr[at + 1]):
            f, count = left_out.features[value], left_out.counts[value]
            if (count == 1 and prior.unit == 1.0) or are_sets(prior):
                scores += terms[f]
                continue
            a = prior.shape[left_out.held[f]]
            for column in range(len(fixed)):
                scores[column] += log_rising(a + left_out.seen[f, column] * prior.unit, count, prior.unit)
        own = np.searchsorted(left_out.live, clusters.labels[row])
        alone = clusters.size[clusters.labels[row]] == 1
        scores[own] = LOG_ZERO if alone else score_row(items, prior, clusters, row, clusters.labels[row], True, marked)


@kernel
def log_absent(prior, feature, seen, n):
    """What a feature adds to log p(absent) beyond the prior's; 0 where all rows have it, which a row left out does."""
    ceiling = prior.rate - prior.shape[feature] + n
    return math.log1p(-seen / ceiling) if seen < n + 1 and seen < ceiling else 0.0


@kernel
def absent_of_union(prior, clusters, one, two, n):
    """Sum over the features of both clusters of log_absent, for n rows."""
    total = 0.0
    for side in range(2):
        this, other = (one, two) if side == 0 else (two, one)
        start = clusters.start[this]
        for at in range(start, start + (1 << clusters.bits[this])):
            feature, seen = clusters.slots[at, 0], clusters.slots[at, 1]
            if feature >= 0 and seen > 0:
                there = count_of(clusters, other, feature)
                if side == 0 or there == 0:
                    total += log_absent(prior, feature, seen + there, n)
    return total


@kernel
def union_fixed(prior, clusters, one, two, own, length):
    """The part of a row's score under two clusters as one that its features do not enter."""
    n = clusters.size[one] + clusters.size[two] - own
    total = clusters.total[one] + clusters.total[two] - own * length
    absent = absent_of_union(prior, clusters, one, two, n) if are_sets(prior) else 0.0
    return log_rows_weight(prior, n) + cluster_term(prior, n, total, length) + absent


@kernel
def union_term(prior, feature, seen, count, n, own):
    """What a feature adds to a row's score under a union of n other rows; `seen` includes the row where it is `own`."""
    a = prior.shape[feature]
    if are_sets(prior):
        return math.log((a + seen - own) / (prior.rate - a + n)) - log_absent(prior, feature, seen, n)
    return log_rising(a + (seen - own * count) * prior.unit, count, prior.unit)


@kernel
def union_gain(items, prior, clusters, left_out, scores, totals, pair, single, stamps, stamp, column):
    """Change of the rows' log likelihood when two live clusters become one; `column` takes the rows' scores under it.

    scores[c, i], and totals[i], their log sum over c. `single` keeps the terms of one occurrence, as far as they have
    been needed for this pair, which is what `stamp` is for."""
    first, second = pair
    one, two = left_out.live[first], left_out.live[second]
    n = clusters.size[one] + clusters.size[two]
    fixed, length = np.zeros(2), np.full(2, -1)
    gain = 0.0
    for at in range(len(left_out.rows)):
        row = left_out.rows[at]
        share = math.exp(scores[first, at] - totals[at]) + math.exp(scores[second, at] - totals[at])
        if share < NO_MATTER:
            column[at] = max(scores[first, at], scores[second, at])
            continue
        own = 1 if clusters.labels[row] == one or clusters.labels[row] == two else 0
        if length[own] < 0 or (length[own] != items.length[row] and not are_sets(prior)):
            length[own] = items.length[row]
            fixed[own] = union_fixed(prior, clusters, one, two, own, length[own])
        score = fixed[own]
        for value in range(left_out.ptr[at], left_out.ptr[at + 1]):
            f, count = left_out.features[value], left_out.counts[value]
            kept = own == 0 and (count == 1 or are_sets(prior))
            if kept and stamps[f] == stamp:
                score += single[f]
                continue
            seen = left_out.seen[f, first] + left_out.seen[f, second]
            term = union_term(prior, left_out.held[f], seen, count, n - own, own)
            if kept:
                single[f], stamps[f] = term, stamp
            score += term
        column[at] = score
        gain += math.log(max(1.0 - share + math.exp(min(score - totals[at], 700.0)), 1e-300))
    return gain


@kernel
def union_gains(items, prior, clusters, left_out, scores, totals, pairs, single, stamps, column, out):
    for at in range(len(pairs)):
        pair = (pairs[at, 0], pairs[at, 1])
        out[at] = union_gain(items, prior, clusters, left_out, scores, totals, pair, single, stamps, at + 1, column)
