"""Collapsed Gibbs over tables of any columns: a cluster's log predictive of a row is the sum over its columns."""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.families.kernels.column_kernels import (
    add_value,
    log_marginal_of,
    refresh_column,
    score_value,
    shift_column,
)
from shoal.families.kernels.counts_kernels import no_longer_empty, now_empty
from shoal.families.kernels.random_kernels import below, uniform
from shoal.families.kernels.scores_kernels import LOG_ZERO
from shoal.families.kernels.size_prior_kernels import empty_weight
from shoal.jit import kernel


class TableClusters(NamedTuple):
    """Which row is where, and the statistics of each cluster; the last row of `stats` and `kept` is an empty one."""

    labels: np.ndarray  # (n,) int32
    size: np.ndarray  # (k,) int64
    stats: np.ndarray  # (k + 1, s)
    kept: np.ndarray  # (k + 1, q) what is kept of each posterior
    empty: np.ndarray  # (k + 1,) int64 the empty clusters, and how many they are in the last place
    place: np.ndarray  # (k,) int64


class LabelPrior(NamedTuple):
    """The prior over labels."""

    alpha: float  # pseudo-count of every live cluster
    dp_concentration: float  # Dirichlet process: weight of all empty clusters together; 0: each empty one weighs alpha


@kernel
def shift_row(layout, table, row, sign, stats, kept):
    """A row enters (1) or leaves (-1) a cluster."""
    for column in range(len(layout.kind)):
        if table.present[row, column]:
            shift_column(layout, table, row, column, sign, stats, kept)


@kernel
def add_plain(layout, table, row, stats):
    """A row enters a cluster's statistics; nothing else is brought up to date."""
    for column in range(len(layout.kind)):
        if table.present[row, column]:
            add_value(layout, table, row, column, 1, stats)


@kernel
def score_table_row(layout, table, row, stats, kept):
    """Log predictive of the values a row has."""
    total = 0.0
    for column in range(len(layout.kind)):
        if table.present[row, column]:
            total += score_value(layout, table, row, column, stats, kept)
    return total


@kernel
def refresh_stats(layout, stats, kept):
    for column in range(len(layout.kind)):
        refresh_column(layout, column, stats, kept)


@kernel
def fill_stats(layout, table, labels, size, stats, kept):
    """Statistics from the labels in the order of the rows, and what is kept of them; labels of -1 are left out."""
    size[:] = 0
    stats[:] = 0.0
    refresh_stats(layout, stats[len(stats) - 1], kept[len(stats) - 1])
    for cluster in range(len(size)):
        kept[cluster] = kept[len(stats) - 1]
    for row in range(len(labels)):
        cluster = labels[row]
        if cluster >= 0:
            size[cluster] += 1
            add_plain(layout, table, row, stats[cluster])
    for cluster in range(len(size)):
        if size[cluster] > 0:
            refresh_stats(layout, stats[cluster], kept[cluster])


@kernel
def log_weight_of_empty(prior, n_empty):
    weight = empty_weight(prior, n_empty)
    return math.log(weight) if weight > 0 else LOG_ZERO


@kernel
def draw_by_scores(scores, empty_score, best, state):
    """A cluster by exp(score), or -1 for an empty one."""
    mass = math.exp(empty_score - best)
    for cluster in range(len(scores)):
        if scores[cluster] > LOG_ZERO:
            mass += math.exp(scores[cluster] - best)
    draw = uniform(state) * mass - math.exp(empty_score - best)
    if draw <= 0 and empty_score > LOG_ZERO:
        return -1
    last = -1
    for cluster in range(len(scores)):
        if scores[cluster] > LOG_ZERO:
            last = cluster
            draw -= math.exp(scores[cluster] - best)
            if draw <= 0:
                break
    return last


@kernel
def gibbs_table(layout, table, prior, clusters, first, last, state, tally, scores):
    """One visit to each of the rows first .. last - 1."""
    k = len(clusters.size)
    for row in range(first, last):
        own = clusters.labels[row]
        clusters.size[own] -= 1
        shift_row(layout, table, row, -1, clusters.stats[own], clusters.kept[own])
        if clusters.size[own] == 0:
            clusters.stats[own] = 0.0
            clusters.kept[own] = clusters.kept[k]
            now_empty(clusters, own)
        n_empty = clusters.empty[k]
        empty_score = LOG_ZERO
        if n_empty > 0:
            empty_score = log_weight_of_empty(prior, n_empty)
            if empty_score > LOG_ZERO:
                empty_score += score_table_row(layout, table, row, clusters.stats[k], clusters.kept[k])
        best = empty_score
        for cluster in range(k):
            scores[cluster] = LOG_ZERO
            if clusters.size[cluster] > 0:
                scores[cluster] = math.log(clusters.size[cluster] + prior.alpha) + score_table_row(
                    layout, table, row, clusters.stats[cluster], clusters.kept[cluster]
                )
                best = max(best, scores[cluster])
        target = draw_by_scores(scores, empty_score, best, state)
        if target < 0:
            place = below(state, n_empty)
            target = own if clusters.size[own] == 0 else clusters.empty[place]
        enter_table(layout, table, clusters, row, target)
        tally[0] += 1
        tally[1] += target != own


@kernel
def enter_table(layout, table, clusters, row, target):
    """A row that is in no cluster enters one."""
    if clusters.size[target] == 0:
        no_longer_empty(clusters, target)
    clusters.size[target] += 1
    shift_row(layout, table, row, 1, clusters.stats[target], clusters.kept[target])
    clusters.labels[row] = target


@kernel
def marginals_table(layout, stats, out):
    """out[c, j]: log marginal of each cluster's values in each column."""
    for cluster in range(len(out)):
        for column in range(len(layout.kind)):
            out[cluster, column] = log_marginal_of(layout, column, stats[cluster])


@kernel
def column_marginals(layout, column, stats):
    """Sum over clusters of the log marginal of one column."""
    total = 0.0
    for cluster in range(len(stats)):
        total += log_marginal_of(layout, column, stats[cluster])
    return total


@kernel
def score_table(layout, table, log_weights, stats, kept, out):
    """out[row, cluster]: log weight + log predictive."""
    for row in range(len(table.values)):
        for cluster in range(len(log_weights)):
            out[row, cluster] = log_weights[cluster] + score_table_row(
                layout, table, row, stats[cluster], kept[cluster]
            )


@kernel
def score_columns(layout, table, labels, stats, kept, out):
    """out[row, column]: log predictive of each value under the row's own cluster; 0 where it is missing."""
    for row in range(len(labels)):
        for column in range(len(layout.kind)):
            out[row, column] = 0.0
            if table.present[row, column]:
                out[row, column] = score_value(layout, table, row, column, stats[labels[row]], kept[labels[row]])


@kernel
def part_table(layout, table, rows, sides, stats, kept, state):
    """Part rows between two clusters: seeds, then passes in which each row is drawn by the other rows. `sides`: 0 or 1;
    stats and kept: three rows, for both sides and for an empty cluster. How many are on side 1."""
    n = len(rows)
    one, two = below(state, n), below(state, n - 1)
    two += two >= one
    size = np.zeros(2)
    for turn in range(4):
        for at in range(n):
            row = rows[at]
            if turn == 0:
                if at in (one, two):
                    sides[at] = 0 if at == one else 1
                    shift_row(layout, table, row, 1, stats[sides[at]], kept[sides[at]])
                    size[sides[at]] += 1
                continue
            if turn > 1 or at in (one, two):
                side = sides[at]
                if size[side] <= 1:
                    continue
                shift_row(layout, table, row, -1, stats[side], kept[side])
                size[side] -= 1
            gap = score_table_row(layout, table, row, stats[1], kept[1])
            gap += math.log(size[1] / size[0]) - score_table_row(layout, table, row, stats[0], kept[0])
            sides[at] = 1 if uniform(state) * (1 + math.exp(min(-gap, 700.0))) < 1 else 0
            shift_row(layout, table, row, 1, stats[sides[at]], kept[sides[at]])
            size[sides[at]] += 1
    return np.int64(size[1])


@kernel
def left_out_table(layout, table, labels, stats, kept, out):
    """out[row] = log p(row | the other rows of cluster labels[row], which counts it among its rows)."""
    for row in range(len(labels)):
        own, posterior = stats[labels[row]].copy(), kept[labels[row]].copy()
        shift_row(layout, table, row, -1, own, posterior)
        out[row] = score_table_row(layout, table, row, own, posterior)
