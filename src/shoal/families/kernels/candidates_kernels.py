"""Candidates from an inverted index: the clusters that share a row's rare features, the best-ranked few of them."""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.families.kernels.counts_kernels import DEAD, count_of, level_of
from shoal.families.kernels.metropolis_hastings_kernels import find_score
from shoal.families.kernels.scores_kernels import LOG_ZERO, UNKNOWN_SCORE, absent_without, are_sets, rank_terms
from shoal.jit import inline_kernel, kernel, sum_kernel

FAINT = 1e-30  # the gain of a posting whose count has fallen to 0: marks the cluster as touched, and counts for nothing
ENOUGH = 1e-20
KNOWN = 8  # scores kept of each row's candidates: few rows have more with any hope
RUN = 128  # clusters ranked together, and looked at together for one that is worth offering
FIVE, LEVELS = np.uint64(5), np.uint64(31)
DENSE_UP_TO = 1 << 14  # clusters: below, looking at all sums is quicker than noting which were touched


class Lists(NamedTuple):
    """Candidates kept from sweep to sweep, and how long a row has stayed where it is."""

    candidates: np.ndarray  # (n, n_candidates) int32, -1 after the last
    stable: np.ndarray  # (n,) int32 sweeps since the row last moved
    lead: np.ndarray  # (n,) float32: nats by which the row's cluster was ahead of all others when the list was made
    scores: (
        np.ndarray
    )  # (n, KNOWN or fewer) exact scores of the first candidates, UNKNOWN_SCORE if unknown; see known_score
    scored: np.ndarray  # (n,) int64 when they were true, by the clusters' clock


class Workspace(NamedTuple):
    """Memory a thread needs."""

    gain: np.ndarray  # (k,) float32, zeros between uses
    touched: np.ndarray  # (k + 1,) int64
    marked: np.ndarray  # (d,) bool, False between uses
    chosen: np.ndarray  # (m + 2,) int64
    ranks: np.ndarray  # (m + 2,) float
    scores: np.ndarray  # (m + 2,) float
    by_level: np.ndarray  # (32,) float32
    run: np.ndarray  # (RUN,) float


@kernel
def fill_gains(prior, postings):
    """What an occurrence of each feature speaks for a cluster at each level, relative to an empty cluster."""
    for feature in range(len(postings.indexed)):
        start = postings.gain_start[feature]
        for level in range(postings.gain_start[feature + 1] - start):
            typical = (1.0 if level == 0 else 1.4 * (1 << level)) * prior.unit
            postings.gains[start + level] = math.log1p(typical / prior.shape[feature]) * prior.unit


@kernel
def add_gains_dense(entries, by_level, gain):
    for place in range(len(entries)):
        entry = np.uint64(entries[place])  # unsigned: no check for indices from the end
        gain[entry >> FIVE] += by_level[entry & LEVELS]


@kernel
def add_gains_sparse(entries, by_level, gain, touched, n_touched):
    for place in range(len(entries)):
        entry = entries[place]
        cluster = entry >> 5
        before = gain[cluster]
        touched[n_touched] = cluster
        n_touched += before == 0.0
        gain[cluster] = before + by_level[entry & 31]
    return n_touched


@kernel
def gather_gains(items, postings, row, dense, work):
    """Sum over the row's rare features what their postings speak for each cluster: (tokens, clusters touched)."""
    first = items.ptr[row]
    n_touched, tokens = 0, 0
    work.by_level[DEAD] = FAINT
    for at in range(first, first + items.scan[row]):
        feature, count = items.features[at], items.counts[at]
        tokens += count
        gains = postings.gain_start[feature]
        for level in range(postings.gain_start[feature + 1] - gains):
            work.by_level[level] = postings.gains[gains + level] * count
        start = postings.start[feature]
        entries = postings.entries[start : start + postings.length[feature]]
        if dense:
            add_gains_dense(entries, work.by_level, work.gain)
        else:
            n_touched = add_gains_sparse(entries, work.by_level, work.gain, work.touched, n_touched)
    return tokens, n_touched


@sum_kernel
def rank_run(gains, weights, slopes, length, ranks):
    """The rank of each of a run of clusters, LOG_ZERO for those that were not touched; leaves `gains` at zero."""
    for at in range(len(gains)):
        gain = gains[at]
        rank = gain + weights[at] - length * slopes[at]
        ranks[at] = rank if gain > ENOUGH else LOG_ZERO
        gains[at] = 0.0


@kernel
def count_above(ranks, least):
    """How many are above: no branch for each, so that many are looked at at once."""
    n_above = 0
    for at in range(len(ranks)):
        n_above += ranks[at] > least
    return n_above


@kernel
def choose_touched(clusters, own, length, most, work):
    """Offer all clusters that were touched but `own`; ties go to the smaller cluster, which comes first."""
    n_chosen, least = 0, LOG_ZERO
    for first in range(0, len(clusters.size), RUN):
        last = min(first + RUN, len(clusters.size))
        ranks = work.run[: last - first]
        rank_run(work.gain[first:last], clusters.weight[first:last], clusters.slope[first:last], length, ranks)
        if count_above(ranks, least) > 0:
            for at in range(len(ranks)):
                if ranks[at] > least and first + at != own:
                    n_chosen = offer(work, n_chosen, most, first + at, ranks[at])
                    if n_chosen == most:
                        least = work.ranks[most - 1]
    return n_chosen


@kernel
def own_gain(items, clusters, postings, row, own):
    """What the row's rare features speak for its own cluster, the row itself left out."""
    total, first = np.float32(0.0), items.ptr[row]
    for at in range(first, first + items.scan[row]):
        feature, count = items.features[at], items.counts[at]
        others = count_of(clusters, own, feature) - count
        if others > 0:
            total += np.float32(postings.gains[postings.gain_start[feature] + level_of(others)] * count)
    return total


@kernel
def list_others(items, prior, clusters, postings, row, own, work):
    """The best-ranked clusters but `own` (-1: none) by the row's rare features: (how many, tokens they were ranked by).
    Ties go to the smaller cluster, so that the order of postings does not matter."""
    dense = len(clusters.size) <= DENSE_UP_TO
    tokens, n_touched = gather_gains(items, postings, row, dense, work)
    length = tokens * prior.unit
    most = len(work.chosen) - 2
    if dense:
        return choose_touched(clusters, own, length, most, work), length
    n_chosen = 0
    for place in range(n_touched):
        cluster = work.touched[place]
        gain = work.gain[cluster]
        work.gain[cluster] = 0.0
        if gain > ENOUGH and cluster != own:
            rank = gain + clusters.weight[cluster] - length * clusters.slope[cluster]
            if n_chosen < most or rank >= work.ranks[most - 1]:
                n_chosen = offer(work, n_chosen, most, cluster, rank)
    return n_chosen, length


@kernel
def list_candidates(items, prior, clusters, postings, row, own, work):
    """The best-ranked clusters by the row's rare features, the row itself left out of its cluster `own` (-1: none).
    Returns how many. They depend on the other rows alone, as a proposal must for the chain to be right."""
    n_chosen, length = list_others(items, prior, clusters, postings, row, own, work)
    if own >= 0:
        gain = own_gain(items, clusters, postings, row, own)
        if gain > ENOUGH:
            n, total = clusters.size[own] - 1, clusters.total[own] - items.length[row]
            absent = absent_without(items, prior, clusters, row, own, n, work.marked) if are_sets(prior) else 0.0
            weight, slope = rank_terms(prior, n, total, absent)
            n_chosen = offer(work, n_chosen, len(work.chosen) - 2, own, gain + weight - length * slope)
    return n_chosen


@inline_kernel
def offer(work, n_chosen, most, cluster, rank):
    """Keep the `most` best, sorted."""
    at = n_chosen
    if n_chosen == most:
        at = most - 1
        if rank < work.ranks[at] or (rank == work.ranks[at] and cluster > work.chosen[at]):
            return n_chosen
    else:
        n_chosen += 1
    while at > 0 and (rank > work.ranks[at - 1] or (rank == work.ranks[at - 1] and cluster < work.chosen[at - 1])):
        work.ranks[at] = work.ranks[at - 1]
        work.chosen[at] = work.chosen[at - 1]
        at -= 1
    work.ranks[at] = rank
    work.chosen[at] = cluster
    return n_chosen


@kernel
def recall_candidates(clusters, lists, row, own, work):
    """The list made in an earlier sweep, without clusters that have emptied since."""
    n_chosen = 0
    for at in range(lists.candidates.shape[1]):
        cluster = lists.candidates[row, at]
        if cluster < 0:
            break
        if clusters.size[cluster] - (1 if cluster == own else 0) > 0:
            work.chosen[n_chosen] = cluster
            n_chosen += 1
    return n_chosen


@kernel
def known_score(clusters, lists, row, cluster):
    """The row's exact score under a cluster if it is kept and the cluster has not changed since, or UNKNOWN_SCORE."""
    if clusters.changed[cluster] <= lists.scored[row]:
        for at in range(lists.scores.shape[1]):
            if lists.candidates[row, at] == cluster:
                return lists.scores[row, at]
    return UNKNOWN_SCORE


@kernel
def keep_scores(clusters, lists, row, n_chosen, work):
    """Keep the scores just computed of those chosen that are in the row's list; others' stay while they are true."""
    for at in range(lists.scores.shape[1]):
        cluster = lists.candidates[row, at]
        if cluster < 0:
            break
        score = find_score(work, n_chosen, cluster)
        if score > UNKNOWN_SCORE or clusters.changed[cluster] > lists.scored[row]:
            lists.scores[row, at] = score
    lists.scored[row] = clusters.clock[0]


@kernel
def recall_scores(clusters, lists, row, n_chosen, work):
    """The scores that are known of those chosen."""
    for at in range(n_chosen):
        work.scores[at] = known_score(clusters, lists, row, work.chosen[at])


@kernel
def store_list(lists, row, n_chosen, work):
    """Let those chosen be the row's list, with their scores."""
    for at in range(lists.candidates.shape[1]):
        lists.candidates[row, at] = work.chosen[at] if at < n_chosen else -1
    for at in range(min(n_chosen, lists.scores.shape[1])):
        lists.scores[row, at] = work.scores[at]


@kernel
def remember_candidates(lists, row, own, own_score, n_chosen, score_of_empty, keep, work):
    """Store the candidates that have any hope; returns how many they are (they are also kept first in `work`)."""
    other = score_of_empty
    for at in range(n_chosen):
        if work.chosen[at] != own:
            other = max(other, work.scores[at])
    lists.lead[row] = own_score - other
    n_kept, best = 0, max(own_score, other)
    for at in range(n_chosen):
        if work.scores[at] > best - keep:
            work.chosen[n_kept] = work.chosen[at]
            work.scores[n_kept] = work.scores[at]
            n_kept += 1
    store_list(lists, row, n_kept, work)
    return n_kept
