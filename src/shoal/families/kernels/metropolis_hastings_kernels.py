"""Metropolis-Hastings steps: proposals among exactly scored candidates, and the move that was accepted."""

# mypy: ignore-errors
from __future__ import annotations

import math

from shoal.families.kernels.counts_kernels import add_row, no_longer_empty, now_empty, remove_row
from shoal.families.kernels.random_kernels import below, uniform
from shoal.families.kernels.scores_kernels import LOG_ZERO, UNKNOWN_SCORE, refresh_cluster, score_empty, score_row
from shoal.jit import kernel

# Columns of a sweep's tally
PROPOSED, ACCEPTED, LISTED, SCORED, SKIPPED, N_TALLIES = 0, 1, 2, 3, 4, 5


@kernel
def score_own(items, prior, clusters, row, own, work):
    """The row's score where it is, itself left out; alone in its cluster, it is in one of the empty ones."""
    if clusters.size[own] > 1:
        return score_row(items, prior, clusters, row, own, True, work.marked)
    n_empty = clusters.empty[len(clusters.size)] + 1
    return score_empty(items, prior, clusters, row, n_empty) - math.log(n_empty)


@kernel
def score_candidates(items, prior, clusters, row, own, own_score, n_chosen, tally, work):
    """Exact scores of the candidates, where they are not known (UNKNOWN_SCORE)."""
    for at in range(n_chosen):
        cluster = work.chosen[at]
        if cluster == own:
            work.scores[at] = own_score
        elif work.scores[at] == UNKNOWN_SCORE:
            work.scores[at] = score_row(items, prior, clusters, row, cluster, False, work.marked)
            tally[SCORED] += 1


@kernel
def find_score(work, n_chosen, cluster):
    """A candidate's exact score, or UNKNOWN_SCORE if it is none."""
    for at in range(n_chosen):
        if work.chosen[at] == cluster:
            return work.scores[at]
    return UNKNOWN_SCORE


@kernel
def draw_even(clusters, empty_score, n_empty, n_chosen, state, work):
    """A cluster drawn evenly from all: (it, its score or UNKNOWN_SCORE if still unknown, whether it is a candidate)."""
    target = below(state, len(clusters.size))
    if clusters.size[target] == 0:
        return target, empty_score - math.log(max(n_empty, 1)), True
    score = find_score(work, n_chosen, target)
    return target, score, score > UNKNOWN_SCORE


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
    """Draw a target: (it, its score or UNKNOWN_SCORE if still to be computed, log q(own) - log q(it)).

    q(c) = (1 - e) * exact conditional restricted to the candidates and the empty clusters + e / k. It depends on the
    other rows only, so q of both ends is computed with the same numbers."""
    best = empty_score if n_empty > 0 else LOG_ZERO
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
    own_listed = clusters.size[own] == 1 or find_score(work, n_chosen, own) > UNKNOWN_SCORE
    even = share / len(clusters.size)
    back = even + ((1 - share) * math.exp(own_score - best) / mass if own_listed else 0.0)
    forth = even + ((1 - share) * math.exp(target_score - best) / mass if listed else 0.0)
    return target, target_score, math.log(back) - math.log(forth) if back > 0 else LOG_ZERO


@kernel
def is_accepted(log_ratio, state):
    """Whether a proposal with this log acceptance ratio is accepted; a ratio of 1 or more draws no random number."""
    return log_ratio >= 0 or uniform(state) < math.exp(log_ratio)


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
