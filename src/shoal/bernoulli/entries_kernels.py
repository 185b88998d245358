# mypy: ignore-errors
"""Entries, own Betas of a keyword in a cluster: opened, found, measured, and put on a board. See profiles.py."""

from __future__ import annotations

import numpy as np

from shoal.jit import inline_kernel, kernel

GRID = 2.0**24  # counts are multiples of 1 / GRID, so their sums are exact
TINY = 1e-12

# Small helpers that take the whole model are inlined, and long loops take bare arrays: passing the model, or reading a
# field of it, in a loop counts references to its arrays each time.


@kernel
def on_grid(value):
    return np.rint(value * GRID) / GRID


@kernel
def growth(strength, mass, mass_then):
    """How far a derivative by mass, taken at ``mass_then``, carries: log(1 - alpha / n) falls off as 1 / n does."""
    return (mass - mass_then) * (strength + mass_then) / (strength + mass)


@kernel
def measure_base(row, prior, mass, held, spread, ratio, log_ratio, total, slope, mass_then, base):
    """Bring the cluster's default and its score for an empty ad up to date, at a cost that knows no keywords."""
    n = max(prior[0] + mass[row], TINY)
    w1 = spread[row, 0]
    alpha = prior[0]
    if w1 > TINY:
        alpha += held[row] / w1
    s = max(alpha / n, 1e-9)
    ratio[row] = s
    log_ratio[row] = np.log(s)
    # sum of log(1 - s b_d) over keywords without entry, as a series in s
    rest = s * (w1 + s * (spread[row, 1] / 2 + s * (spread[row, 2] / 3 + s * spread[row, 3] / 4)))
    drift = slope[row] * growth(prior[0], mass[row], mass_then[row])
    base[row] = np.log(max(prior[1] + mass[row], TINY)) + total[row] + drift - rest


@inline_kernel
def refresh_base(row, profiles):
    measure_base(
        row, profiles.prior, profiles.mass, profiles.held, profiles.spread, profiles.ratio, profiles.log_ratio,
        profiles.total, profiles.slope, profiles.mass_then, profiles.base,
    )  # fmt: skip


@kernel
def measured(alpha, n, default):
    """An entry's lift over the default's mean, its log(1 - mu), and the derivative of that by the cluster's mass."""
    alpha = max(alpha, TINY)
    beta = max(n - alpha, 1e-6)
    n = alpha + beta
    return np.log(alpha / (beta * default)) - default, np.log(beta / n), alpha / (n * beta)


@kernel
def measure_entries(
    first, next_of_cluster, feature, shared, background, hits, loss, lift, absent, strength, mass, ratio
):
    """Recompute the entries of one cluster; return the sums of log(1 - mu) and of its derivative by mass."""
    total, slope, slot = 0.0, 0.0, first
    while slot >= 0:
        absent[slot] = 0.0
        if not shared[feature[slot]]:
            b = background[feature[slot]]
            lift[slot], absent[slot], by_mass = measured(
                strength * b + hits[slot], strength + mass - loss[slot], ratio * b
            )
            total += absent[slot]
            slope += by_mass
        slot = next_of_cluster[slot]
    return total, slope


@kernel
def refresh_cluster(row, profiles):
    """Recompute every entry of the cluster."""
    refresh_base(row, profiles)
    total, slope = measure_entries(
        profiles.first[row], profiles.next_of_cluster, profiles.feature, profiles.shared, profiles.background,
        profiles.hits, profiles.loss, profiles.lift, profiles.absent,
        profiles.prior[0], profiles.mass[row], profiles.ratio[row],
    )  # fmt: skip
    profiles.total[row], profiles.slope[row], profiles.mass_then[row] = total, slope, profiles.mass[row]
    refresh_base(row, profiles)


@kernel
def refresh_all(profiles):
    """Recompute everything that is derived from counts and background."""
    sums = np.zeros(4)
    for feature in range(profiles.background.size):
        if not profiles.shared[feature]:
            power = 1.0
            for at in range(4):
                power *= profiles.background[feature]
                sums[at] += power
    for row in range(profiles.mass.size):
        profiles.spread[row, :] = sums
        slot = profiles.first[row]
        while slot >= 0:
            take_from_spread(row, profiles.feature[slot], profiles.background, profiles.shared, profiles.spread)
            slot = profiles.next_of_cluster[slot]
        refresh_cluster(row, profiles)


@kernel
def take_from_spread(row, feature, background, shared, spread):
    if shared[feature]:
        return
    power = 1.0
    for at in range(4):
        power *= background[feature]
        spread[row, at] = max(spread[row, at] - power, 0.0)


@kernel
def link_slots(profiles):
    """Chain the slots of each keyword and of each cluster, in slot order."""
    profiles.head[:] = -1
    profiles.first[:] = -1
    for slot in range(profiles.used[0] - 1, -1, -1):
        feature, row = profiles.feature[slot], profiles.cluster[slot]
        profiles.next_of_feature[slot] = profiles.head[feature]
        profiles.head[feature] = slot
        profiles.next_of_cluster[slot] = profiles.first[row]
        profiles.first[row] = slot


@kernel
def open_slot(
    row, feature, background, shared, held, spread, head, first,
    cluster, feature_of, hits, given, loss, absent, next_of_feature, next_of_cluster, used,
):  # fmt: skip
    """Give the keyword its own Beta in this cluster; it starts as the default believed it to be."""
    slot = used[0]
    used[0] += 1
    handed = 0.0
    if spread[row, 0] > TINY:
        handed = on_grid(max(held[row], 0.0) * min(background[feature] / spread[row, 0], 1.0))
    held[row] -= handed
    cluster[slot], feature_of[slot] = row, feature
    hits[slot], given[slot], loss[slot], absent[slot] = handed, handed, 0.0, 0.0
    take_from_spread(row, feature, background, shared, spread)
    next_of_feature[slot] = head[feature]
    head[feature] = slot
    next_of_cluster[slot] = first[row]
    first[row] = slot
    return slot


@inline_kernel
def open_entry(row, feature, profiles):
    return open_slot(
        row, feature, profiles.background, profiles.shared, profiles.held, profiles.spread, profiles.head,
        profiles.first, profiles.cluster, profiles.feature, profiles.hits, profiles.given, profiles.loss,
        profiles.absent, profiles.next_of_feature, profiles.next_of_cluster, profiles.used,
    )  # fmt: skip


@kernel
def fill_board(used, cluster, feature, lift, least, n_of, line_of, lifts, slots):
    """Give a line to every keyword with at least ``least`` entries, as far as there is room; return how many."""
    lines = 0
    for slot in range(used):
        n_of[feature[slot]] += 1
    for keyword in range(n_of.size):
        if n_of[keyword] >= least and lines < lifts.shape[0]:
            line_of[keyword] = lines
            lines += 1
    for slot in range(used):
        line = line_of[feature[slot]]
        if line >= 0:
            lifts[line, cluster[slot]] = lift[slot]
            slots[line, cluster[slot]] = slot + 1
    return lines


@kernel
def put_on_board(slot, row, feature, cluster, lift, next_of_feature, n_of, line_of, lifts, slots, least, used):
    """After an entry was opened: onto its keyword's line; with enough entries, the keyword gets one."""
    n_of[feature] += 1
    line = line_of[feature]
    if line >= 0:
        slots[line, row] = slot + 1
    elif n_of[feature] >= least[0] and used[0] < lifts.shape[0]:
        line = used[0]
        used[0] += 1
        line_of[feature] = line
        while slot >= 0:
            lifts[line, cluster[slot]] = lift[slot]
            slots[line, cluster[slot]] = slot + 1
            slot = next_of_feature[slot]


@kernel
def copy_lifts(slot, row, next_of_cluster, feature, lift, line_of, lifts):
    """Bring the board up to date with all entries of one cluster."""
    while slot >= 0:
        line = line_of[feature[slot]]
        if line >= 0:
            lifts[line, row] = lift[slot]
        slot = next_of_cluster[slot]


@kernel
def find_slot(row, feature, head, next_of_feature, cluster):
    """The entry of this keyword in this cluster, -1 for none."""
    slot = head[feature]
    while slot >= 0 and cluster[slot] != row:
        slot = next_of_feature[slot]
    return slot


@kernel
def add_to_entries(cluster, feature, count, loss, sign, profiles, board):
    """Add what some ads taught to the entries, opening those that are missing. There must be room."""
    n_of, line_of, lifts, slots, least, lines = board
    for at in range(cluster.size):
        line = line_of[feature[at]]
        if line >= 0:
            slot = slots[line, cluster[at]] - 1
        else:
            slot = find_slot(cluster[at], feature[at], profiles.head, profiles.next_of_feature, profiles.cluster)
        if slot < 0:
            slot = open_entry(cluster[at], feature[at], profiles)
            put_on_board(
                slot, cluster[at], feature[at], profiles.cluster, profiles.lift, profiles.next_of_feature,
                n_of, line_of, lifts, slots, least, lines,
            )  # fmt: skip
        profiles.hits[slot] += sign * count[at]
        profiles.loss[slot] += sign * loss[at]
