"""Sampling with candidates from an inverted index: a row is scored only against clusters that share its rare features.

The candidates make a proposal; Metropolis-Hastings with the exact collapsed conditional makes the chain right.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

from shoal.families.kernels.candidates_kernels import (
    keep_scores,
    known_score,
    list_candidates,
    list_others,
    recall_candidates,
    recall_scores,
    remember_candidates,
    store_list,
)
from shoal.families.kernels.counts_kernels import has_room
from shoal.families.kernels.metropolis_hastings_kernels import (
    ACCEPTED,
    LISTED,
    PROPOSED,
    SKIPPED,
    is_accepted,
    move_row,
    propose,
    score_candidates,
    score_own,
)
from shoal.families.kernels.scores_kernels import LOG_ZERO, UNKNOWN_SCORE, score_empty, score_row
from shoal.jit import kernel

LATE = 4  # fixed lists: so many times less often than `refresh` says, a row is visited with a list of the moment
SURE, SELDOM = 6.0, 8  # a row whose cluster is so many nats ahead is visited once in so many sweeps


class Tuning(NamedTuple):
    """How proposals are made."""

    refresh: int  # a stable row's candidates are listed afresh every so many sweeps
    fixed: bool  # the lists kept stay as they are; see is_due
    stable_after: int  # a row counts as stable after so many sweeps in one place
    share_uniform: float  # share of proposals drawn evenly from all clusters
    keep: float  # candidates further than this below the best are not kept in the list


@kernel
def propose_row(items, prior, clusters, row, own, own_score, n_chosen, tuning, state, work):
    """Draw a target and the log of the Metropolis-Hastings ratio."""
    n_empty = clusters.empty[len(clusters.size)] + (1 if clusters.size[own] == 1 else 0)
    empty_score = score_empty(items, prior, clusters, row, n_empty) if n_empty > 0 else LOG_ZERO
    target, score, log_q = propose(
        clusters, own, own_score, empty_score, n_empty, n_chosen, tuning.share_uniform, state, work
    )
    if target == own:
        return own, 0.0
    if score == UNKNOWN_SCORE:
        score = score_row(items, prior, clusters, row, target, False, work.marked)
    return target, score - own_score + log_q


@kernel
def is_due(lists, tuning, row, n_sweep):
    """Whether a row's candidates are to be listed afresh in this sweep. Once lists are fixed this must not depend on
    the chain's state, and what is listed is used and forgotten: then every visit leaves the posterior as it is."""
    if tuning.fixed:
        return (row + n_sweep) % (LATE * tuning.refresh) == 0
    return lists.stable[row] < tuning.stable_after or (row + n_sweep) % tuning.refresh == 0


@kernel
def is_settled(lists, tuning, row, n_sweep):
    """Whether a row is passed over: nothing but its cluster had any hope when its list was made, or little, and it is
    not this row's turn. Once lists are fixed this depends on nothing but them and the numbers of row and sweep."""
    return lists.lead[row] > (SURE if (row + n_sweep) % SELDOM > 0 else tuning.keep)


@kernel
def list_rows(items, prior, clusters, postings, lists, tuning, first, last, n_sweep, work):
    """Make the lists that are due, of rows first .. last - 1. Reads the clusters only, so threads can share them.

    The row's own cluster is in the list whatever its rank, which costs as much to find out as to score it exactly."""
    most = lists.candidates.shape[1]
    for row in range(first, last):
        if is_due(lists, tuning, row, n_sweep):
            own = clusters.labels[row]
            n_chosen, _ = list_others(items, prior, clusters, postings, row, own, work)
            if clusters.size[own] > 1:
                n_chosen = min(n_chosen + 1, most)
                work.chosen[n_chosen - 1] = own
            recall_scores(clusters, lists, row, n_chosen, work)
            store_list(lists, row, n_chosen, work)


@kernel
def decide(items, prior, clusters, lists, tuning, row, n_chosen, fresh, state, tally, work):
    """Where a visit takes a row, its candidates chosen: its own cluster if nowhere else. Reads the clusters only."""
    own = clusters.labels[row]
    own_score = known_score(clusters, lists, row, own) if clusters.size[own] > 1 else UNKNOWN_SCORE
    if own_score == UNKNOWN_SCORE:
        own_score = score_own(items, prior, clusters, row, own, work)
    recall_scores(clusters, lists, row, n_chosen, work)
    score_candidates(items, prior, clusters, row, own, own_score, n_chosen, tally, work)
    if fresh and tuning.keep > 0 and not tuning.fixed:
        n_empty = clusters.empty[len(clusters.size)] + (1 if clusters.size[own] == 1 else 0)
        empty_score = score_empty(items, prior, clusters, row, n_empty)
        n_chosen = remember_candidates(lists, row, own, own_score, n_chosen, empty_score, tuning.keep, work)
    keep_scores(clusters, lists, row, n_chosen, work)
    target, log_ratio = propose_row(items, prior, clusters, row, own, own_score, n_chosen, tuning, state, work)
    tally[PROPOSED] += target != own
    if target != own and not is_accepted(log_ratio, state):
        return own
    return target


@kernel
def sample_rows(items, prior, clusters, postings, lists, tuning, first, last, sweep, state, tally, work):
    """One visit to each of the rows first .. last - 1.

    `sweep` is the number of the sweep, and whether list_rows has made the lists that are due. Returns the row to go on
    with: less than `last` if an arena ran out of room and has to be rebuilt first.
    """
    n_sweep, listed_before = sweep
    for row in range(first, last):
        own = clusters.labels[row]
        before = state[0]
        fresh = is_due(lists, tuning, row, n_sweep)
        if not fresh and is_settled(lists, tuning, row, n_sweep):
            lists.stable[row] += 1
            tally[SKIPPED] += 1
            continue
        if fresh and not listed_before:
            if postings.left_out[0] > 0:
                return row
            n_chosen = list_candidates(items, prior, clusters, postings, row, own, work)
        else:
            n_chosen = recall_candidates(clusters, lists, row, own, work)
        tally[LISTED] += fresh
        target = decide(items, prior, clusters, lists, tuning, row, n_chosen, fresh, state, tally, work)
        lists.stable[row] += 1
        if target != own:
            if not has_room(clusters, target, items.ptr[row + 1] - items.ptr[row]):
                state[0] = before  # the visit is repeated, with the same draws, so that it is as if there were room
                return row
            move_row(items, prior, clusters, postings, row, own, target, work.marked)
            lists.stable[row] = 0
            tally[ACCEPTED] += 1
    return last
