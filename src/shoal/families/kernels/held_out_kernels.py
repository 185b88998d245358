"""Merges of clusters of sets by the predictive likelihood of rows that are each left out of the chain in turn.

The joint of rows and labels prefers one cluster to several that overlap, for it charges every row the entropy of its
label. The likelihood of rows alone does not: a row may belong to either.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from shoal.families.kernels.counts_kernels import count_of
from shoal.families.kernels.scores_kernels import LOG_ZERO, log_rows_weight, score_row
from shoal.jit import kernel


@kernel
def score_left_out(items, prior, clusters, rows, marked, out):
    """out[i, c]: log weight and log predictive of a row under each cluster, the row itself left out of its own."""
    for at in range(len(rows)):
        row = rows[at]
        own = clusters.labels[row]
        for cluster in range(len(clusters.size)):
            others = clusters.size[cluster] - (cluster == own)
            out[at, cluster] = LOG_ZERO
            if others > 0:
                out[at, cluster] = score_row(items, prior, clusters, row, cluster, cluster == own, marked)


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
def score_union(items, prior, clusters, row, one, two, absent, own):
    """Log weight and log predictive of a row under two clusters as one; `absent` is theirs for the other rows."""
    n = clusters.size[one] + clusters.size[two] - own
    score = log_rows_weight(prior, n) + prior.absent[n] + absent
    for at in range(items.ptr[row], items.ptr[row + 1]):
        feature = items.features[at]
        seen = count_of(clusters, one, feature) + count_of(clusters, two, feature)
        a = prior.shape[feature]
        score += math.log((a + seen - own) / (prior.rate - a + n)) - log_absent(prior, feature, seen, n)
    return score


@kernel
def union_gain(items, prior, clusters, rows, scores, totals, one, two, column):
    """Change of the rows' log likelihood when two clusters become one; `column` takes the rows' scores under it."""
    n = clusters.size[one] + clusters.size[two]
    absent_all, absent_others = (
        absent_of_union(prior, clusters, one, two, n),
        absent_of_union(prior, clusters, one, two, n - 1),
    )
    gain = 0.0
    for at in range(len(rows)):
        row = rows[at]
        own = clusters.labels[row] in (one, two)
        absent = absent_others if own else absent_all
        column[at] = score_union(items, prior, clusters, row, one, two, absent, 1 if own else 0)
        share = math.exp(scores[at, one] - totals[at]) + math.exp(scores[at, two] - totals[at])
        gain += math.log(max(1.0 - share + math.exp(min(column[at] - totals[at], 700.0)), 1e-300))
    return gain


@kernel
def union_gains(items, prior, clusters, rows, scores, totals, pairs, column, out):
    for at in range(len(pairs)):
        out[at] = union_gain(items, prior, clusters, rows, scores, totals, pairs[at, 0], pairs[at, 1], column)
