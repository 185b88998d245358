# mypy: ignore-errors
"""Entries (the own Betas of a feature in a cluster) and the default of each cluster: opened, measured, refreshed.

All log probabilities are relative to the background: ``log p(x | l) - log p(x | background)``. A feature with an entry
adds ``log(1 - mu) - log(1 - b)`` when absent and further ``log-odds(mu) - log-odds(b)`` when present. A feature
without entry has the odds ``s_l b / (1 - b)``: it adds ``-log(1 + (s - 1) b)`` when absent and further ``log s`` when
present, for every b and s exactly. See profiles.py for the fields.
"""

from __future__ import annotations

import numpy as np

from shoal.jit import inline_kernel, kernel

GRID = 2.0**24  # counts are multiples of 1 / GRID, so their sums are exact
TINY = 1e-12
COMMON_FROM = 0.02  # background from which a feature's default is summed term by term, not as a power series
LEAST_RATIO, MOST_RATIO = 1e-9, 1.0 + 0.25 / COMMON_FROM  # (s - 1) b stays below 1/4 where the series is used
NEWTON_STEPS = 4

# Small helpers that take the whole model are inlined, and long loops take bare arrays: passing the model, or reading a
# field of it, in a loop counts references to its arrays each time.


@kernel
def on_grid(value):
    return np.rint(value * GRID) / GRID


@kernel
def growth(strength, mass, mass_at_refresh):
    """How far a derivative by mass, taken at ``mass_at_refresh``, carries: log(1 - alpha / n) falls off as 1 / n."""
    return (mass - mass_at_refresh) * (strength + mass_at_refresh) / (strength + mass)


# --- the default of a cluster -----------------------------------------------------------------------------------------


@kernel
def default_sums(s, spread, owned, common, background):
    """Sums over the features without entry: of mu / s, of the derivative of mu by s, and of b."""
    t = s - 1.0
    ratio_sum = spread[0] - t * (spread[1] - t * (spread[2] - t * spread[3]))
    slope = spread[0] - spread[1] - 2 * t * (spread[1] - spread[2]) + 3 * t * t * (spread[2] - spread[3])
    prior_sum = spread[0]
    for at in range(common.size):
        if not owned[at]:
            b = background[common[at]]
            one = 1.0 / (1.0 + t * b)
            ratio_sum += b * one
            slope += b * (1.0 - b) * one * one
            prior_sum += b
    return ratio_sum, slope, prior_sum


@kernel
def absent_sum(s, spread, owned, common, background):
    """Sum of log(1 + (s - 1) b) over the features without entry."""
    t = s - 1.0
    total = t * (spread[0] - t * (spread[1] / 2 - t * (spread[2] / 3 - t * spread[3] / 4)))
    for at in range(common.size):
        if not owned[at]:
            total += np.log1p(t * background[common[at]])
    return total


@kernel
def solve_ratio(s, strength, mass, default_hits, spread, owned, common, background):
    """The ratio s for which the default expects the occurrences it holds, by Newton's method from ``s``.

    The default is one Beta with the background as prior: sum of mu = (strength * sum of b + hits) / (strength + mass).
    """
    for _ in range(NEWTON_STEPS):
        ratio_sum, slope, prior_sum = default_sums(s, spread, owned, common, background)
        if prior_sum < TINY:
            return 1.0
        target = max(strength * prior_sum + default_hits, 0.0) / max(strength + mass, TINY)
        step = (target - s * ratio_sum) / max(slope, TINY)
        s = min(max(s + step, s / 4.0), 4.0 * s)
        s = min(max(s, LEAST_RATIO), MOST_RATIO)
        if abs(step) < 1e-9 * s:
            break
    return s


@kernel
def refresh_default(
    row, prior, background, common, mass, default_hits, ratio, log_ratio, default_mass, default_absent, spread, owned
):
    """Solve the ratio of a cluster's default and sum what follows from it."""
    s = solve_ratio(
        ratio[row], prior[0], mass[row], default_hits[row], spread[row], owned[row], common, background
    )  # fmt: skip
    ratio[row], log_ratio[row] = s, np.log(s)
    default_mass[row] = default_sums(s, spread[row], owned[row], common, background)[0]
    default_absent[row] = absent_sum(s, spread[row], owned[row], common, background)


@kernel
def take_from_default(row, feature, background, common_at, ratio, default_mass, default_absent, spread, owned):
    """The feature has an entry now: it leaves the sums of the default."""
    b = background[feature]
    t = ratio[row] - 1.0
    default_mass[row] = max(default_mass[row] - b / (1.0 + t * b), 0.0)
    default_absent[row] -= np.log1p(t * b)
    if common_at[feature] >= 0:
        owned[row, common_at[feature]] = True
        return
    power = 1.0
    for at in range(4):
        power *= b
        spread[row, at] = max(spread[row, at] - power, 0.0)


@inline_kernel
def default_mean(b, s):
    """Mean of a feature without entry."""
    return s * b / (1.0 - b + s * b)


# --- entries ----------------------------------------------------------------------------------------------------------


@kernel
def beta_of(alpha, n, least):
    """beta = n - alpha, never below the prior's."""
    return max(n - alpha, least)


@kernel
def measured(alpha, n, b, strength, log_ratio):
    """An entry's lift over the default, its log(1 - mu) over the background's, and the derivative of that by mass."""
    alpha = max(alpha, TINY)
    least = strength * (1.0 - b)
    beta = beta_of(alpha, n, least)
    by_mass = alpha / ((alpha + beta) * beta) if beta > least else 0.0
    absent = np.log(beta / ((alpha + beta) * (1.0 - b)))
    return np.log(alpha * (1.0 - b) / (beta * b)) - log_ratio, absent, by_mass


@kernel
def measure_entries(
    first, next_of_cluster, feature, uninformative, background, hits, lift, log_absent, strength, mass, log_ratio
):
    """Recompute the entries of one cluster; return the sums of log(1 - mu) and of its derivative by mass."""
    total, slope, slot = 0.0, 0.0, first
    while slot >= 0:
        log_absent[slot] = 0.0
        if not uninformative[feature[slot]]:
            b = background[feature[slot]]
            lift[slot], log_absent[slot], by_mass = measured(
                strength * b + hits[slot], strength + mass, b, strength, log_ratio
            )
            total += log_absent[slot]
            slope += by_mass
        slot = next_of_cluster[slot]
    return total, slope


@kernel
def measure_base(row, prior, mass, default_absent, total, slope, mass_at_refresh, base):
    """The score of a row without any feature: log weight + log p(empty | l) - log p(empty | background)."""
    drift = slope[row] * growth(prior[0], mass[row], mass_at_refresh[row])
    base[row] = np.log(max(prior[1] + mass[row], TINY)) + total[row] + drift - default_absent[row]


@kernel
def refresh_cluster(row, profiles):
    """Recompute the default and every entry of the cluster."""
    refresh_default(
        row, profiles.prior, profiles.background, profiles.common, profiles.mass, profiles.default_hits,
        profiles.ratio, profiles.log_ratio, profiles.default_mass, profiles.default_absent, profiles.spread,
        profiles.owned,
    )  # fmt: skip
    total, slope = measure_entries(
        profiles.first[row], profiles.next_of_cluster, profiles.feature, profiles.uninformative, profiles.background,
        profiles.hits, profiles.lift, profiles.log_absent,
        profiles.prior[0], profiles.mass[row], profiles.log_ratio[row],
    )  # fmt: skip
    profiles.total[row], profiles.slope[row], profiles.mass_at_refresh[row] = total, slope, profiles.mass[row]
    measure_base(
        row, profiles.prior, profiles.mass, profiles.default_absent, profiles.total, profiles.slope,
        profiles.mass_at_refresh, profiles.base,
    )  # fmt: skip


@kernel
def refresh_all(profiles):
    """Recompute everything that is derived from counts and background."""
    sums = np.zeros(4)
    for feature in range(profiles.background.size):
        if not profiles.uninformative[feature] and profiles.common_at[feature] < 0:
            power = 1.0
            for at in range(4):
                power *= profiles.background[feature]
                sums[at] += power
    for row in range(profiles.mass.size):
        profiles.spread[row, :] = sums
        for at in range(profiles.common.size):
            profiles.owned[row, at] = profiles.uninformative[profiles.common[at]]  # no part of the default
        slot = profiles.first[row]
        while slot >= 0:
            feature = profiles.feature[slot]
            if not profiles.uninformative[feature]:
                take_from_default(
                    row, feature, profiles.background, profiles.common_at, profiles.ratio, profiles.default_mass,
                    profiles.default_absent, profiles.spread, profiles.owned,
                )  # fmt: skip
            slot = profiles.next_of_cluster[slot]
        refresh_cluster(row, profiles)


@kernel
def link_slots(profiles):
    """Chain the slots of each feature and of each cluster, in slot order."""
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
    row, feature, background, common_at, head, default_hits, ratio, default_mass, default_absent, first, spread, owned,
    cluster, feature_of, hits, hits_from_default, loss, log_absent, next_of_feature, next_of_cluster, used,
):  # fmt: skip
    """Give the feature its own Beta in this cluster; it starts from the default."""
    slot = used[0]
    used[0] += 1
    handed, b = 0.0, background[feature]
    if default_mass[row] > TINY:
        share = b / (1.0 + (ratio[row] - 1.0) * b) / default_mass[row]
        handed = on_grid(max(default_hits[row], 0.0) * min(share, 1.0))
    default_hits[row] -= handed
    take_from_default(row, feature, background, common_at, ratio, default_mass, default_absent, spread, owned)
    cluster[slot], feature_of[slot] = row, feature
    hits[slot], hits_from_default[slot], loss[slot], log_absent[slot] = handed, handed, 0.0, 0.0
    next_of_feature[slot] = head[feature]
    head[feature] = slot
    next_of_cluster[slot] = first[row]
    first[row] = slot
    return slot


@inline_kernel
def open_entry(row, feature, profiles):
    return open_slot(
        row, feature, profiles.background, profiles.common_at, profiles.head, profiles.default_hits, profiles.ratio,
        profiles.default_mass, profiles.default_absent, profiles.first, profiles.spread, profiles.owned,
        profiles.cluster, profiles.feature, profiles.hits, profiles.hits_from_default, profiles.loss,
        profiles.log_absent, profiles.next_of_feature, profiles.next_of_cluster, profiles.used,
    )  # fmt: skip


@kernel
def find_slot(row, feature, head, next_of_feature, cluster):
    """The entry of this feature in this cluster, -1 for none."""
    slot = head[feature]
    while slot >= 0 and cluster[slot] != row:
        slot = next_of_feature[slot]
    return slot


@kernel
def add_to_entries(cluster, feature, count, loss, sign, profiles, dense):
    """Add the contribution of some rows to the entries, opening those that are missing. There must be room."""
    n_of, line_of, lifts, slots, least, lines = dense
    for at in range(cluster.size):
        line = line_of[feature[at]]
        if line >= 0:
            slot = slots[line, cluster[at]] - 1
        else:
            slot = find_slot(cluster[at], feature[at], profiles.head, profiles.next_of_feature, profiles.cluster)
        if slot < 0:
            slot = open_entry(cluster[at], feature[at], profiles)
            add_to_lines(
                slot, cluster[at], feature[at], profiles.cluster, profiles.lift, profiles.next_of_feature,
                n_of, line_of, lifts, slots, least, lines,
            )  # fmt: skip
        profiles.hits[slot] += sign * count[at]
        profiles.loss[slot] += sign * loss[at]


# --- entries laid out by cluster --------------------------------------------------------------------------------------


@kernel
def fill_lines(used, cluster, feature, lift, least, n_of, line_of, lifts, slots):
    """Give a line to every feature with at least ``least`` entries, as far as there is room; return how many."""
    lines = 0
    for slot in range(used):
        n_of[feature[slot]] += 1
    for number in range(n_of.size):
        if n_of[number] >= least and lines < lifts.shape[0]:
            line_of[number] = lines
            lines += 1
    for slot in range(used):
        line = line_of[feature[slot]]
        if line >= 0:
            lifts[line, cluster[slot]] = lift[slot]
            slots[line, cluster[slot]] = slot + 1
    return lines


@kernel
def add_to_lines(slot, row, feature, cluster, lift, next_of_feature, n_of, line_of, lifts, slots, least, used):
    """After an entry was opened: into its feature's line; with enough entries, the feature gets one."""
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
    """Bring the lines up to date with all entries of one cluster."""
    while slot >= 0:
        line = line_of[feature[slot]]
        if line >= 0:
            lifts[line, row] = lift[slot]
        slot = next_of_cluster[slot]
