"""Sampling with candidates from an inverted index: a row is scored only against clusters that share its rare features.

The candidates make a proposal; Metropolis-Hastings with the exact collapsed conditional makes the chain right.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.families.counts_kernels import (
    DEAD,
    add_row,
    count_of,
    has_room,
    level_of,
    no_longer_empty,
    now_empty,
    remove_row,
)
from shoal.families.random_kernels import below, uniform
from shoal.families.scores_kernels import (
    BERNOULLI,
    NOTHING,
    absent_without,
    rank_terms,
    refresh_cluster,
    score_empty,
    score_row,
)
from shoal.jit import kernel, sum_kernel

FAINT = 1e-30  # the gain of a posting whose count has fallen to 0: marks the cluster as touched, and counts for nothing
ENOUGH = 1e-20
RUN = 128  # clusters looked at together for one that is worth offering
FIVE, LEVELS = np.uint64(5), np.uint64(31)
DENSE_UP_TO = 1 << 14  # clusters: below, looking at all sums is quicker than noting which were touched

LATE = 4  # fixed lists: so many times less often than `refresh` says, a row is visited with a list of the moment

# Columns of the sweep's tally
PROPOSED, ACCEPTED, LISTED, SCORED, SKIPPED, N_TALLIES = 0, 1, 2, 3, 4, 5


class Lists(NamedTuple):
    """Candidates kept from sweep to sweep, and how long a row has stayed where it is."""

    candidates: np.ndarray  # (n, n_candidates) int32, -1 after the last
    stable: np.ndarray  # (n,) int32 sweeps since the row last moved
    no_birth: np.ndarray  # (n,) bool: an empty cluster was hopeless when the list was made


class Tuning(NamedTuple):
    """How proposals are made."""

    refresh: int  # a stable row's candidates are listed afresh every so many sweeps
    fixed: bool  # the lists kept stay as they are; see is_due
    settle: int  # a row counts as stable after so many sweeps in one place
    share_uniform: float  # share of proposals drawn evenly from all clusters
    keep: float  # candidates further than this below the best are not kept in the list


class Workspace(NamedTuple):
    """Memory a thread needs."""

    gain: np.ndarray  # (k,) float32, zeros between uses
    touched: np.ndarray  # (k + 1,) int64
    marked: np.ndarray  # (d,) bool, False between uses
    chosen: np.ndarray  # (m + 2,) int64
    ranks: np.ndarray  # (m + 2,) float
    scores: np.ndarray  # (m + 2,) float
    by_level: np.ndarray  # (32,) float32
    rank_of: np.ndarray  # (k,) float


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
def rank_all(gain, weight, slope, length, out):
    """The rank of every cluster that was touched, NOTHING for the others; leaves `gain` at zero."""
    for cluster in range(len(out)):
        rank = gain[cluster] + weight[cluster] - length * slope[cluster]
        out[cluster] = rank if gain[cluster] > ENOUGH else NOTHING
        gain[cluster] = 0.0


@kernel
def count_above(ranks, least):
    """How many are above: no branch for each, so that many are looked at at once."""
    n_above = 0
    for at in range(len(ranks)):
        n_above += ranks[at] > least
    return n_above


@kernel
def choose_ranked(work, most):
    """Offer all clusters that were ranked; ties go to the smaller cluster, which comes first."""
    n_chosen, least, ranks = 0, NOTHING, work.rank_of
    for first in range(0, len(ranks), RUN):
        run = ranks[first : first + RUN]
        if count_above(run, least) > 0:
            for at in range(len(run)):
                if run[at] > least:
                    n_chosen = offer(work, n_chosen, most, first + at, run[at])
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
def list_candidates(items, prior, clusters, postings, row, own, work):
    """The best-ranked clusters by the row's rare features, the row itself left out of its cluster `own` (-1: none).
    Returns how many; ties go to the smaller cluster, so that the order of postings does not matter."""
    n_clusters = len(clusters.size)
    dense = n_clusters <= DENSE_UP_TO
    tokens, n_touched = gather_gains(items, postings, row, dense, work)
    length = tokens * prior.unit
    n_chosen, most = 0, len(work.chosen) - 2
    if dense:
        rank_all(work.gain, clusters.weight, clusters.slope, length, work.rank_of)
        if own >= 0:
            work.rank_of[own] = NOTHING
        n_chosen = choose_ranked(work, most)
    for place in range(n_touched):
        cluster = work.touched[place]
        gain = work.gain[cluster]
        work.gain[cluster] = 0.0
        if gain > ENOUGH and cluster != own:
            rank = gain + clusters.weight[cluster] - length * clusters.slope[cluster]
            if n_chosen < most or rank >= work.ranks[most - 1]:
                n_chosen = offer(work, n_chosen, most, cluster, rank)
    if own >= 0:
        gain = own_gain(items, clusters, postings, row, own)
        if gain > ENOUGH:
            n, total = clusters.size[own] - 1, clusters.total[own] - items.length[row]
            absent = (
                absent_without(items, prior, clusters, row, own, n, work.marked) if prior.kind == BERNOULLI else 0.0
            )
            weight, slope = rank_terms(prior, n, total, absent)
            n_chosen = offer(work, n_chosen, most, own, gain + weight - length * slope)
    return n_chosen


@kernel
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
def remember_candidates(lists, row, n_chosen, best, score_of_empty, keep, work):
    """Store the candidates that have any hope; returns how many they are (they are also kept first in `work`)."""
    n_kept = 0
    for at in range(n_chosen):
        if work.scores[at] > best - keep:
            work.chosen[n_kept] = work.chosen[at]
            work.scores[n_kept] = work.scores[at]
            n_kept += 1
    for at in range(lists.candidates.shape[1]):
        lists.candidates[row, at] = work.chosen[at] if at < n_kept else -1
    lists.no_birth[row] = score_of_empty < best - keep
    return n_kept


@kernel
def move_row(items, prior, clusters, postings, row, source, target, marked):
    """Carry out an accepted move."""
    if clusters.size[target] == 0:
        no_longer_empty(clusters, target)
    remove_row(items, clusters, postings, row, source)
    if clusters.size[source] == 0:
        now_empty(clusters, source)
    add_row(items, clusters, postings, row, target)
    clusters.labels[row] = target
    refresh_cluster(prior, clusters, source, marked)
    refresh_cluster(prior, clusters, target, marked)


@kernel
def find_score(work, n_chosen, cluster):
    """A candidate's exact score, or NOTHING if it is none."""
    for at in range(n_chosen):
        if work.chosen[at] == cluster:
            return work.scores[at]
    return NOTHING


@kernel
def draw_even(clusters, empty_score, n_empty, n_chosen, state, work):
    """A cluster drawn evenly from all: (it, its score or NOTHING if still unknown, whether it is a candidate)."""
    target = below(state, len(clusters.size))
    if clusters.size[target] == 0:
        return target, empty_score - math.log(max(n_empty, 1)), True
    score = find_score(work, n_chosen, target)
    return target, score, score > NOTHING


@kernel
def draw_candidate(clusters, own, empty_score, n_empty, n_chosen, best, mass, mass_empty, state, work):
    """A candidate, or one of the empty clusters, drawn by the exact conditional restricted to them: (it, its score)."""
    n_clusters = len(clusters.size)
    draw = uniform(state) * mass - mass_empty
    if n_chosen == 0 or (draw <= 0 and n_empty > 0):
        place = below(state, n_empty)
        target = own if place == clusters.empty[n_clusters] else clusters.empty[place]
        return target, empty_score - math.log(n_empty)
    at = 0
    draw -= math.exp(work.scores[0] - best)
    while draw > 0 and at < n_chosen - 1:
        at += 1
        draw -= math.exp(work.scores[at] - best)
    return work.chosen[at], work.scores[at]


@kernel
def propose(clusters, own, own_score, empty_score, n_empty, n_chosen, share_uniform, state, work):
    """Draw a target: (it, its score or NOTHING if still to be computed, log q(own) - log q(it)).

    q(c) = (1 - e) * exact conditional restricted to the candidates and the empty clusters + e / k. It depends on the
    other rows only, so q of both ends is computed with the same numbers."""
    best = empty_score if n_empty > 0 else NOTHING
    for at in range(n_chosen):
        best = max(best, work.scores[at])
    mass_empty = math.exp(empty_score - best) if n_empty > 0 else 0.0
    mass = mass_empty
    for at in range(n_chosen):
        mass += math.exp(work.scores[at] - best)
    share = share_uniform if n_chosen > 0 or n_empty > 0 else 1.0
    if uniform(state) < share:
        target, target_score, listed = draw_even(clusters, empty_score, n_empty, n_chosen, state, work)
    else:
        listed = True
        target, target_score = draw_candidate(
            clusters, own, empty_score, n_empty, n_chosen, best, mass, mass_empty, state, work
        )
    if target == own:
        return own, own_score, 0.0
    own_listed = clusters.size[own] == 1 or find_score(work, n_chosen, own) > NOTHING
    even = share / len(clusters.size)
    back = even + ((1 - share) * math.exp(own_score - best) / mass if own_listed else 0.0)
    forth = even + ((1 - share) * math.exp(target_score - best) / mass if listed else 0.0)
    return target, target_score, math.log(back) - math.log(forth) if back > 0 else NOTHING


@kernel
def propose_row(items, prior, clusters, row, own, own_score, n_chosen, tuning, state, work):
    """Draw a target and the log of the Metropolis-Hastings ratio."""
    n_empty = clusters.empty[len(clusters.size)] + (1 if clusters.size[own] == 1 else 0)
    empty_score = score_empty(items, prior, clusters, row, n_empty) if n_empty > 0 else NOTHING
    target, score, log_q = propose(
        clusters, own, own_score, empty_score, n_empty, n_chosen, tuning.share_uniform, state, work
    )
    if target == own:
        return own, 0.0
    if score == NOTHING:
        score = score_row(items, prior, clusters, row, target, False, work.marked)
    return target, score - own_score + log_q


@kernel
def score_candidates(items, prior, clusters, row, own, own_score, n_chosen, tally, work):
    """Exact scores of the candidates; returns the best."""
    best = NOTHING
    for at in range(n_chosen):
        cluster = work.chosen[at]
        if cluster == own:
            work.scores[at] = own_score
        else:
            work.scores[at] = score_row(items, prior, clusters, row, cluster, False, work.marked)
            tally[SCORED] += 1
        best = max(best, work.scores[at])
    return best


@kernel
def score_own(items, prior, clusters, row, own, work):
    """The row's score where it is, itself left out; alone in its cluster, it is in one of the empty ones."""
    if clusters.size[own] > 1:
        return score_row(items, prior, clusters, row, own, True, work.marked)
    n_empty = clusters.empty[len(clusters.size)] + 1
    return score_empty(items, prior, clusters, row, n_empty) - math.log(n_empty)


@kernel
def is_due(lists, tuning, row, n_sweep):
    """Whether a row's candidates are to be listed afresh in this sweep. Once lists are fixed this must not depend on
    the chain's state, and what is listed is used and forgotten: then every visit leaves the posterior as it is."""
    if tuning.fixed:
        return (row + n_sweep) % (LATE * tuning.refresh) == 0
    return lists.stable[row] < tuning.settle or (row + n_sweep) % tuning.refresh == 0


@kernel
def is_settled(lists, tuning, row, own, n_chosen, work):
    """Whether nothing but one cluster had any hope when the row's list was made: it is passed over until the next."""
    if not lists.no_birth[row]:
        return False
    if tuning.fixed:
        return lists.candidates[row, 0] >= 0 and (lists.candidates.shape[1] == 1 or lists.candidates[row, 1] < 0)
    return n_chosen == 1 and work.chosen[0] == own


@kernel
def list_rows(items, prior, clusters, postings, lists, tuning, first, last, n_sweep, work):
    """Make the lists that are due, of rows first .. last - 1. Reads the clusters only, so threads can share them."""
    for row in range(first, last):
        if is_due(lists, tuning, row, n_sweep):
            n_chosen = list_candidates(items, prior, clusters, postings, row, clusters.labels[row], work)
            for at in range(lists.candidates.shape[1]):
                lists.candidates[row, at] = work.chosen[at] if at < n_chosen else -1


@kernel
def sample_rows(
    items, prior, clusters, postings, lists, tuning, first, last, n_sweep, listed_before, state, tally, work
):
    """One visit to each of the rows first .. last - 1. `listed_before`: list_rows has made the lists that are due.
    Returns the row to go on with: less than `last` if the arena ran out of room and has to be rebuilt first."""
    for row in range(first, last):
        own = clusters.labels[row]
        before = state[0]
        fresh = is_due(lists, tuning, row, n_sweep)
        if fresh and not listed_before:
            n_chosen = list_candidates(items, prior, clusters, postings, row, own, work)
        else:
            n_chosen = recall_candidates(clusters, lists, row, own, work)
        tally[LISTED] += fresh
        if not fresh and is_settled(lists, tuning, row, own, n_chosen, work):
            lists.stable[row] += 1
            tally[SKIPPED] += 1
            continue
        own_score = score_own(items, prior, clusters, row, own, work)
        best = score_candidates(items, prior, clusters, row, own, own_score, n_chosen, tally, work)
        if fresh and tuning.keep > 0 and not tuning.fixed:
            n_empty = clusters.empty[len(clusters.size)] + (1 if clusters.size[own] == 1 else 0)
            empty_score = score_empty(items, prior, clusters, row, n_empty)
            n_chosen = remember_candidates(lists, row, n_chosen, max(best, empty_score), empty_score, tuning.keep, work)
        target, log_ratio = propose_row(items, prior, clusters, row, own, own_score, n_chosen, tuning, state, work)
        tally[PROPOSED] += target != own
        lists.stable[row] += 1
        if target != own and (log_ratio >= 0 or uniform(state) < math.exp(log_ratio)):
            if not has_room(clusters, target, items.ptr[row + 1] - items.ptr[row]):
                state[0] = before  # the visit is repeated, with the same draws, so that it is as if there were room
                return row
            move_row(items, prior, clusters, postings, row, own, target, work.marked)
            lists.stable[row] = 0
            tally[ACCEPTED] += 1
    return last
