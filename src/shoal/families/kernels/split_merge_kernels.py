"""Moves of whole groups: what merging two clusters gains, and splitting one by a restricted Gibbs run."""

# mypy: ignore-errors
from __future__ import annotations

import math

from shoal.families.kernels.counts_kernels import add_row, clear_table, count_of, has_room, no_longer_empty, now_empty
from shoal.families.kernels.metropolis_hastings_kernels import move_row
from shoal.families.kernels.random_kernels import below, uniform
from shoal.families.kernels.scores_kernels import (
    are_sets,
    is_length_given,
    log_gamma_ratio,
    log_rising,
    refresh_cluster,
    score_row,
)
from shoal.families.kernels.size_prior_kernels import log_prior_pair
from shoal.jit import kernel

TAKEN, UNDONE, NO_ROOM = 1, 0, -1  # how an attempt at a split ended
PASSES = 3  # over the rows, in splitting a cluster
HOPE = 0.5  # a split that gains less than this share of what it must is given up
MISFITS = 64  # rows among which a seed that fits badly is looked for
STEPS = 16  # factors of a product that cannot leave the range of numbers, whatever the counts


@kernel
def set_term(prior, feature, n, seen):
    """Bernoulli: a feature's part of a cluster's log marginal, beyond that of an absent one."""
    a = prior.shape[feature]
    return log_rising(a, seen, 1.0) - log_gamma_ratio(prior.rate - a + n - seen, float(seen))


@kernel
def merge_sets(prior, clusters, one, two, falling):
    """Bernoulli: change of log marginal when two clusters become one."""
    n_one, n_two = clusters.size[one], clusters.size[two]
    n = n_one + n_two
    gain = falling[n] - falling[n_one] - falling[n_two]
    for side in range(2):
        this, other = (one, two) if side == 0 else (two, one)
        start = clusters.start[this]
        for at in range(start, start + (1 << clusters.bits[this])):
            feature, seen = clusters.slots[at, 0], clusters.slots[at, 1]
            if feature >= 0 and seen > 0:
                there = count_of(clusters, other, feature)
                gain -= set_term(prior, feature, clusters.size[this], seen)
                if side == 0 or there == 0:
                    gain += set_term(prior, feature, n, seen + there)
    return gain


@kernel
def join_counts(a, more, fewer, unit):
    """(r, rest) such that log r + rest = lnG(a + more + fewer) - lnG(a + more) - lnG(a + fewer) + lnG(a), in units.

    It is the same from either side, so the smaller count is multiplied up; most are small, and need no logarithm."""
    if unit != 1.0:
        return 1.0, log_gamma_ratio(a + more * unit, fewer * unit) - log_gamma_ratio(a, fewer * unit)
    joined, apart = 1.0, 1.0
    n_steps = min(fewer, STEPS)
    for step in range(n_steps):
        joined *= a + more + step
        apart *= a + step
    if fewer == n_steps:
        return joined / apart, 0.0
    rest = float(fewer - n_steps)
    return joined / apart, log_gamma_ratio(a + more + n_steps, rest) - log_gamma_ratio(a + n_steps, rest)


@kernel
def merge_counts(prior, clusters, one, two):
    """Multinomial and Poisson: change of log marginal when two clusters become one."""
    unit, shape_total = prior.unit, prior.shape_total
    total_one, total_two = clusters.total[one] * unit, clusters.total[two] * unit
    if is_length_given(prior):
        gain = log_gamma_ratio(shape_total, total_two) - log_gamma_ratio(shape_total + total_one, total_two)
    else:
        n_one, n_two = clusters.size[one], clusters.size[two]
        gain = (shape_total + total_one) * math.log(prior.rate + n_one)
        gain += (shape_total + total_two) * math.log(prior.rate + n_two) - shape_total * math.log(prior.rate)
        gain -= (shape_total + total_one + total_two) * math.log(prior.rate + n_one + n_two)
    if clusters.used[one] < clusters.used[two]:
        one, two = two, one
    start = clusters.start[two]
    product = 1.0
    for at in range(start, start + (1 << clusters.bits[two])):
        feature, seen = clusters.slots[at, 0], clusters.slots[at, 1]
        if feature >= 0 and seen > 0:
            there = count_of(clusters, one, feature)
            if there > 0:  # features of only one of the two add the same before and after
                ratio, log_rest = join_counts(prior.shape[feature], max(seen, there), min(seen, there), unit)
                product *= ratio
                gain += log_rest
                if product > 1e100:
                    gain += math.log(product)
                    product = 1.0
    return gain + math.log(product)


@kernel
def merge_gain(prior, clusters, one, two, falling):
    """Change of the log joint when two live clusters become one."""
    change = log_prior_pair(prior, clusters.size[one], clusters.size[two])
    if are_sets(prior):
        return change + merge_sets(prior, clusters, one, two, falling)
    return change + merge_counts(prior, clusters, one, two)


@kernel
def merge_gains(prior, clusters, pairs, falling, out):
    for at in range(len(pairs)):
        out[at] = merge_gain(prior, clusters, pairs[at, 0], pairs[at, 1], falling)


@kernel
def move_all(items, prior, clusters, postings, rows, target, marked):
    """Move rows to one cluster; False, with some moved, if the arena has no room (rebuild and call again)."""
    for at in range(len(rows)):
        row = rows[at]
        source = clusters.labels[row]
        if source != target:
            if not has_room(clusters, target, items.ptr[row + 1] - items.ptr[row]):
                return False
            move_row(items, prior, clusters, postings, row, source, target, marked)
    return True


@kernel
def prefer_right(items, prior, clusters, row, left, right, state, marked):
    """Whether a draw between two live clusters takes the right one, for a row of either or of neither."""
    own = clusters.labels[row]
    if own in (left, right) and clusters.size[own] == 1:
        return own == right
    score_left = score_row(items, prior, clusters, row, left, own == left, marked)
    score_right = score_row(items, prior, clusters, row, right, own == right, marked)
    return uniform(state) * (1 + math.exp(min(score_left - score_right, 700.0))) < 1


@kernel
def choose_seeds(items, prior, clusters, rows, state, marked):
    """Shuffle a cluster's rows; put second the one of the next few that fits worst."""
    for at in range(len(rows) - 1, 0, -1):
        other = below(state, at + 1)
        rows[at], rows[other] = rows[other], rows[at]
    worst, least = 1, math.inf
    for at in range(1, min(len(rows), MISFITS + 1)):
        row = rows[at]
        fit = score_row(items, prior, clusters, row, clusters.labels[row], True, marked) - items.base[row]
        if fit < least * max(items.length[row], 1):
            worst, least = at, fit / max(items.length[row], 1)
    rows[1], rows[worst] = rows[worst], rows[1]


@kernel
def copy_row(items, prior, clusters, postings, row, target, marked):
    """Label a row as the target's and count it there, and where it comes from still; False if there is no room."""
    if not has_room(clusters, target, items.ptr[row + 1] - items.ptr[row]):
        return False
    if clusters.size[target] == 0:
        no_longer_empty(clusters, target)
    add_row(items, clusters, postings, row, target)
    clusters.labels[row] = target
    refresh_cluster(prior, clusters, target, marked)
    return True


@kernel
def part_rows(items, prior, clusters, postings, rows, left, right, state, marked):
    """Draw for each row which of two clusters it goes to. Rows of a third one are still counted there; see split_rows.
    False if the arena ran out of room."""
    for at in range(len(rows)):
        row = rows[at]
        own = clusters.labels[row]
        target = right if prefer_right(items, prior, clusters, row, left, right, state, marked) else left
        if own not in (left, right):
            if not copy_row(items, prior, clusters, postings, row, target, marked):
                return False
        elif not move_all(items, prior, clusters, postings, rows[at : at + 1], target, marked):
            return False
    return True


@kernel
def part_while_hopeful(items, prior, clusters, postings, rows, left, right, least, falling, state, marked):
    """Part a cluster's rows between two empty ones: TAKEN as soon as the log joint gains more than `least` by it,
    UNDONE if it is not to be, NO_ROOM if the arena has none."""
    choose_seeds(items, prior, clusters, rows, state, marked)
    if not copy_row(items, prior, clusters, postings, rows[0], left, marked):
        return NO_ROOM
    if not copy_row(items, prior, clusters, postings, rows[1], right, marked):
        return NO_ROOM
    for _ in range(PASSES):
        if not part_rows(items, prior, clusters, postings, rows, left, right, state, marked):
            return NO_ROOM
        gain = -merge_gain(prior, clusters, left, right, falling)
        if gain > least:
            return TAKEN  # the next sweep sees to the rest
        if gain < HOPE * least:
            break
    return UNDONE


@kernel
def clear_cluster(prior, clusters, cluster, marked):
    """Make a live cluster an empty one, whose rows are others' by now."""
    clear_table(clusters, cluster)
    now_empty(clusters, cluster)
    refresh_cluster(prior, clusters, cluster, marked)


@kernel
def split_rows(items, prior, clusters, postings, rows, left, right, least, falling, state, marked):
    """Try to split a cluster's rows between two empty ones; see part_while_hopeful.

    The cluster keeps its counts until the split is taken: then it is emptied at a stroke, otherwise the two are."""
    own = clusters.labels[rows[0]]
    outcome = part_while_hopeful(items, prior, clusters, postings, rows, left, right, least, falling, state, marked)
    if outcome == TAKEN:
        clear_cluster(prior, clusters, own, marked)
        return outcome
    for row in rows:
        clusters.labels[row] = own
    for cluster in (left, right):
        if clusters.size[cluster] > 0:
            clear_cluster(prior, clusters, cluster, marked)
    return outcome
