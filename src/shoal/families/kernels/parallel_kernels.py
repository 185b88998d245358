"""Visits decided side by side, and carried out one after another.

Threads decide where the rows of a group go, from the clusters as they are when the group begins. Then the moves are
carried out in the order of the rows, and a row is decided again if, meanwhile, anything it looked at has changed: its
own cluster, a candidate, the target, or which clusters are empty. Each row has random numbers of its own, so deciding
again is what visiting it in its turn would have been. With fixed lists the states are those of visiting row by row.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from shoal.families.kernels.candidates_kernels import list_candidates, recall_candidates
from shoal.families.kernels.counts_kernels import has_room
from shoal.families.kernels.indexed_kernels import decide, is_due, is_settled
from shoal.families.kernels.metropolis_hastings_kernels import ACCEPTED, LISTED, SKIPPED, move_row
from shoal.families.kernels.random_kernels import start_stream
from shoal.jit import kernel

LATER, PASSED_OVER = -2, -1  # a row to be decided in its turn; a row that has settled


@kernel
def decide_recalled(items, prior, clusters, lists, tuning, row, fresh, n_sweep, stream, state, tally, work):
    """Where a row with a list made before goes, or PASSED_OVER."""
    if not fresh and is_settled(lists, tuning, row, n_sweep):
        return PASSED_OVER
    n_chosen = recall_candidates(clusters, lists, row, clusters.labels[row], work)
    start_stream(state, stream[0], row)
    return decide(items, prior, clusters, lists, tuning, row, n_chosen, fresh, state, tally, work)


@kernel
def decide_rows(items, prior, clusters, lists, tuning, first, last, n_sweep, stream, targets, tally, work):
    """Decide rows first .. last - 1 of lists made before. Reads the clusters only, so threads can share them."""
    state = np.zeros(1, np.uint64)
    for row in range(first, last):
        fresh = is_due(lists, tuning, row, n_sweep)
        if fresh and tuning.fixed:  # wants a list of the moment
            targets[row] = LATER
        else:
            targets[row] = decide_recalled(
                items, prior, clusters, lists, tuning, row, fresh, n_sweep, stream, state, tally, work
            )


@kernel
def is_stale(clusters, lists, tuning, row, own, target, began):
    """Whether what a decision looked at has changed since the group began."""
    if clusters.changed[own] > began or clusters.changed[target] > began:
        return True
    if clusters.births[0] > began and (tuning.fixed or lists.lead[row] < tuning.keep):
        return True
    for at in range(lists.candidates.shape[1]):
        cluster = lists.candidates[row, at]
        if cluster < 0:
            break
        if clusters.changed[cluster] > began:
            return True
    return False


@kernel
def decide_again(items, prior, clusters, postings, lists, tuning, row, n_sweep, stream, state, tally, work):
    """Visit a row in its turn: where it goes, or PASSED_OVER."""
    fresh = is_due(lists, tuning, row, n_sweep)
    if not (fresh and tuning.fixed):
        return decide_recalled(items, prior, clusters, lists, tuning, row, fresh, n_sweep, stream, state, tally, work)
    n_chosen = list_candidates(items, prior, clusters, postings, row, clusters.labels[row], work)
    start_stream(state, stream[0], row)
    return decide(items, prior, clusters, lists, tuning, row, n_chosen, fresh, state, tally, work)


@kernel
def carry_out(items, prior, clusters, postings, lists, tuning, first, last, n_sweep, decided, tally, work):
    """Move rows first .. last - 1 where they were decided to go; the row to go on with, as sample_rows does.

    `decided`: the random stream of the decisions, the target of each row, and the clock when they were made.
    """
    stream, targets, began = decided
    state = np.zeros(1, np.uint64)
    for row in range(first, last):
        own, target = clusters.labels[row], targets[row]
        if target == LATER or (target >= 0 and is_stale(clusters, lists, tuning, row, own, target, began)):
            if postings.left_out[0] > 0 and tuning.fixed and is_due(lists, tuning, row, n_sweep):
                return row
            target = decide_again(
                items, prior, clusters, postings, lists, tuning, row, n_sweep, stream, state, tally, work
            )
        if target >= 0 and target != own:
            if not has_room(clusters, target, items.ptr[row + 1] - items.ptr[row]):
                return row
            move_row(items, prior, clusters, postings, row, own, target, work.marked)
            tally[ACCEPTED] += 1
        tally[LISTED] += is_due(lists, tuning, row, n_sweep)
        tally[SKIPPED] += target == PASSED_OVER
        lists.stable[row] = 0 if target >= 0 and target != own else lists.stable[row] + 1
    return last
