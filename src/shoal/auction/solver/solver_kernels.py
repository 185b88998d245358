# mypy: ignore-errors
"""Passes over all classes and items of the choice problem."""

import numpy as np

from shoal.jit import kernel, sum_kernel

N_BINS = 128
LARGEST = 2.0 ** (N_BINS - 2)


@sum_kernel
def weigh(value, row0, row1, row2, c0, c1, c2, out):
    """out = value + c0 row0 + c1 row1 + c2 row2, for the items of one class."""
    if c2 == 0.0:
        for item in range(value.shape[0]):
            out[item] = value[item] + c0 * row0[item] + c1 * row1[item]
    else:
        for item in range(value.shape[0]):
            out[item] = value[item] + c0 * row0[item] + c1 * row1[item] + c2 * row2[item]


@kernel
def first_largest(values):
    """The first place of the largest value."""
    best = 0
    top = values[0]
    for item in range(1, values.shape[0]):
        if values[item] > top:
            top = values[item]
            best = item
    return best


@kernel
def best_items(first, last, value, row0, row1, row2, c0, c1, c2, choice, sums):
    """Each class takes its best item at these prices; sums holds the priced total, the value and the rows."""
    weighed = np.empty(value.shape[1])
    total = 0.0
    v = 0.0
    r0 = 0.0
    r1 = 0.0
    r2 = 0.0
    for klass in range(first, last):
        weigh(value[klass], row0[klass], row1[klass], row2[klass], c0, c1, c2, weighed)
        item = first_largest(weighed)
        choice[klass] = item
        total += weighed[item]
        v += value[klass, item]
        r0 += row0[klass, item]
        r1 += row1[klass, item]
        r2 += row2[klass, item]
    sums[0] = total
    sums[1] = v
    sums[2] = r0
    sums[3] = r1
    sums[4] = r2


@kernel
def move_key(loss, value, row0, row1, row2, klass, item, held, u0, u1, u2, per_movement):
    """What a move costs: its loss at the current prices, or that loss for each unit by which it moves the rows."""
    if not per_movement:
        return max(loss, 0.0)
    movement = (
        abs(row0[klass, item] - row0[klass, held]) * u0
        + abs(row1[klass, item] - row1[klass, held]) * u1
        + abs(row2[klass, item] - row2[klass, held]) * u2
    )
    return max(loss, 0.0) / max(movement, 1e-300)


@kernel
def count_moves(value, row0, row1, row2, c0, c1, c2, choice, u0, u1, u2, per_movement, unit, counts):
    """A histogram of all moves by the power of two of their key over ``unit``."""
    weighed = np.empty(value.shape[1])
    for klass in range(value.shape[0]):
        weigh(value[klass], row0[klass], row1[klass], row2[klass], c0, c1, c2, weighed)
        held = choice[klass]
        for item in range(value.shape[1]):
            if item == held or not weighed[item] > -np.inf:
                continue
            loss = weighed[held] - weighed[item]
            key = move_key(loss, value, row0, row1, row2, klass, item, held, u0, u1, u2, per_movement)
            ratio = key / unit
            power = N_BINS - 1
            if ratio <= 1.0:
                power = 0
            elif ratio < LARGEST:  # infinity and what does not fit go into the last bin
                power = int(np.log2(ratio)) + 1
            counts[power] += 1


@kernel
def collect_moves(value, row0, row1, row2, c0, c1, c2, choice, u0, u1, u2, per_movement, limit, classes, items, keys):
    """Write the moves whose key is at most ``limit``; how many there are (more than fit are counted, not written)."""
    weighed = np.empty(value.shape[1])
    found = 0
    for klass in range(value.shape[0]):
        weigh(value[klass], row0[klass], row1[klass], row2[klass], c0, c1, c2, weighed)
        held = choice[klass]
        for item in range(value.shape[1]):
            if item == held or not weighed[item] > -np.inf:
                continue
            loss = weighed[held] - weighed[item]
            key = move_key(loss, value, row0, row1, row2, klass, item, held, u0, u1, u2, per_movement)
            if key <= limit:
                if found < classes.shape[0]:
                    classes[found] = klass
                    items[found] = item
                    keys[found] = key
                found += 1
    return found


@kernel
def best_pair(classes, gain, moved, slack, feasible, priced_loss, least_gain):
    """The best move or pair of moves in different classes; moves come by falling gain.

    From a feasible choice: the most gain that stays feasible. From an infeasible one: a feasible pair if there is one
    (the one with the most gain), else the least priced loss for each unit of violation removed. Slacks are in units of
    their bounds. Returns two places (equal for a single move), or -1, -1.
    """
    n_moves = classes.shape[0]
    n_rows = slack.shape[0]
    best = least_gain if feasible else -np.inf
    a = -1
    b = -1
    violated = 0.0
    for row in range(n_rows):
        violated += max(-slack[row], 0.0)
    cheapest = np.inf
    c = -1
    d = -1
    for one in range(n_moves):
        for two in range(one, n_moves):
            total = gain[one] + (gain[two] if two > one else 0.0)
            if total <= best and (feasible or a >= 0):
                if two > one:
                    break  # moves come by falling gain, so no later partner does better
                continue
            if two > one and classes[two] == classes[one]:
                continue
            still = 0.0
            for row in range(n_rows):
                after = slack[row] + moved[one, row] + (moved[two, row] if two > one else 0.0)
                still += max(-after, 0.0)
            if still <= 0.0:
                if total > best:
                    best = total
                    a = one
                    b = two
            elif not feasible and a < 0 and still < violated:
                loss = priced_loss[one] + (priced_loss[two] if two > one else 0.0)
                cost = max(loss, 1e-12) / (violated - still)
                if cost < cheapest:
                    cheapest = cost
                    c = one
                    d = two
    if a >= 0 or feasible:
        return a, b
    return c, d
