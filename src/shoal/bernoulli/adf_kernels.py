# mypy: ignore-errors
"""One step of assumed density filtering on sparse profiles, and what it needs. See profiles.py for the fields."""

from __future__ import annotations

import numpy as np

from shoal.jit import inline_kernel, kernel

GRID = 2.0**24  # counts are multiples of 1 / GRID, so their sums are exact
# A cluster's cached numbers are recomputed when its mass has grown by this share. Between, the sum of log(1 - mu) is
# corrected to first order, and a lift changes with mass by no more than mu times the growth since the keyword was last
# touched: a keyword with a large mu is touched often, so neither error is large.
STALE = 0.05
TINY = 1e-12

# Small helpers that take the whole model are inlined, and long loops take bare arrays: passing the model, or reading a
# field of it, in a loop counts references to its arrays each time.


@kernel
def on_grid(value):
    return np.rint(value * GRID) / GRID


@inline_kernel
def refresh_base(row, profiles):
    """Bring the cluster's default and its score for an empty ad up to date, at a cost that knows no keywords."""
    strength = profiles.prior[0]
    n = max(strength + profiles.mass[row], TINY)
    w1 = profiles.spread[row, 0]
    alpha = strength
    if w1 > TINY:
        alpha += profiles.held[row] / w1
    s = max(alpha / n, 1e-9)
    profiles.ratio[row] = s
    profiles.log_ratio[row] = np.log(s)
    # sum of log(1 - s b_d) over keywords without entry, as a series in s
    w2, w3, w4 = profiles.spread[row, 1], profiles.spread[row, 2], profiles.spread[row, 3]
    rest = s * (w1 + s * (w2 / 2 + s * (w3 / 3 + s * w4 / 4)))
    drift = profiles.slope[row] * (profiles.mass[row] - profiles.mass_then[row])
    weight = np.log(max(profiles.prior[1] + profiles.mass[row], TINY))
    profiles.base[row] = weight + profiles.total[row] + drift - rest


@inline_kernel
def measure_slot(slot, row, profiles):
    """Recompute an entry's lift; return log(1 - mu) and its derivative by the cluster's mass."""
    b = profiles.background[profiles.feature[slot]]
    alpha = max(profiles.prior[0] * b + profiles.hits[slot], TINY)
    n = profiles.prior[0] + profiles.mass[row] - profiles.loss[slot]
    beta = max(n - alpha, 1e-6)
    default = profiles.ratio[row] * b
    profiles.lift[slot] = np.log(alpha / (beta * default)) - default
    return np.log(beta / (alpha + beta)), alpha / ((alpha + beta) * beta)


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
            alpha = max(strength * b + hits[slot], TINY)
            beta = max(strength + mass - loss[slot] - alpha, 1e-6)
            lift[slot] = np.log(alpha / (beta * ratio * b)) - ratio * b
            absent[slot] = np.log(beta / (alpha + beta))
            total += absent[slot]
            slope += alpha / ((alpha + beta) * beta)
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
            take_from_spread(row, profiles.feature[slot], profiles)
            slot = profiles.next_of_cluster[slot]
        refresh_cluster(row, profiles)


@inline_kernel
def take_from_spread(row, feature, profiles):
    if profiles.shared[feature]:
        return
    b = profiles.background[feature]
    power = 1.0
    for at in range(4):
        power *= b
        profiles.spread[row, at] = max(profiles.spread[row, at] - power, 0.0)


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


@inline_kernel
def open_slot(row, feature, profiles):
    """Give the keyword its own Beta in this cluster; it starts as the default believed it to be."""
    slot = profiles.used[0]
    profiles.used[0] += 1
    b = profiles.background[feature]
    given = 0.0
    if profiles.spread[row, 0] > TINY:
        given = on_grid(max(profiles.held[row], 0.0) * min(b / profiles.spread[row, 0], 1.0))
    profiles.held[row] -= given
    profiles.cluster[slot], profiles.feature[slot] = row, feature
    profiles.hits[slot], profiles.given[slot], profiles.loss[slot] = given, given, 0.0
    profiles.absent[slot] = 0.0
    take_from_spread(row, feature, profiles)
    profiles.next_of_feature[slot] = profiles.head[feature]
    profiles.head[feature] = slot
    profiles.next_of_cluster[slot] = profiles.first[row]
    profiles.first[row] = slot
    return slot


@inline_kernel
def score_row(features, profiles, scores):
    """Fill ``scores`` with log gamma_l + log p(ad | l), less what is the same for every cluster."""
    add_up(
        features, profiles.shared, profiles.background, profiles.base, profiles.log_ratio, profiles.ratio,
        profiles.head, profiles.next_of_feature, profiles.cluster, profiles.lift, scores,
    )  # fmt: skip


@kernel
def add_up(features, shared, background, base, log_ratio, ratio, head, next_of_feature, cluster, lift, scores):
    n_present, sum_background = 0, 0.0
    for feature in features:
        if not shared[feature]:
            n_present += 1
            sum_background += background[feature]
    for row in range(scores.size):
        # every present keyword first as the default would have it: log(s b / (1 - s b)), less the common log b
        scores[row] = base[row] + n_present * log_ratio[row] + ratio[row] * sum_background
    for feature in features:
        if shared[feature]:
            continue
        slot = head[feature]
        while slot >= 0:
            scores[cluster[slot]] += lift[slot]
            slot = next_of_feature[slot]


@kernel
def responsibilities(scores, negligible, touched, shares):
    """List the clusters with a share that is not negligible, and their shares; return how many and log sum exp."""
    best = scores[0]
    for row in range(1, scores.size):
        best = max(best, scores[row])
    cut = best + np.log(max(negligible, 1e-300)) - 1e-9
    n, total, kept = 0, 0.0, 0.0
    for row in range(scores.size):
        if scores[row] > best - 25.0:
            share = np.exp(scores[row] - best)
            total += share
            if scores[row] >= cut:
                touched[n], shares[n] = row, share
                kept += share
                n += 1
    for at in range(n):
        shares[at] /= kept
    return n, best + np.log(total)


@kernel
def match_moments(alpha, n, share):
    """Project r Beta(alpha + 1, .) + (1 - r) Beta(alpha, .) onto one Beta; return its alpha and alpha + beta."""
    r, q = share, 1.0 - share
    m1 = r * (alpha + 1.0) / (n + 1.0) + q * alpha / n
    m2 = r * (alpha + 1.0) * (alpha + 2.0) / ((n + 1.0) * (n + 2.0)) + q * alpha * (alpha + 1.0) / (n * (n + 1.0))
    after = (m1 - m2) / (m2 - m1 * m1)
    return m1 * after, after


@inline_kernel
def touch_slot(slot, row, share, weight, mass_before, profiles):
    """One ad with the keyword, ``share`` of it this cluster's: moment matching."""
    if share >= 1.0 - 1e-9:
        profiles.hits[slot] += on_grid(weight * share)
        return
    alpha = max(profiles.prior[0] * profiles.background[profiles.feature[slot]] + profiles.hits[slot], 1e-9)
    n = max(profiles.prior[0] + mass_before - profiles.loss[slot], alpha + 1e-6)
    new_alpha, new_n = match_moments(alpha, n, share)
    profiles.hits[slot] += on_grid(weight * (new_alpha - alpha))
    profiles.loss[slot] += on_grid(weight * (share - (new_n - n)))


@inline_kernel
def recount_slot(slot, row, profiles):
    """After an entry changed: its part of the running total, taken back to the mass the total stands at."""
    absent, by_mass = measure_slot(slot, row, profiles)
    absent -= by_mass * (profiles.mass[row] - profiles.mass_then[row])
    profiles.total[row] += absent - profiles.absent[slot]
    profiles.absent[slot] = absent


@kernel
def slots_of_touched(slot, next_of_feature, cluster, share_of, found):
    """List a keyword's entries in clusters that take a share; return how many."""
    n = 0
    while slot >= 0:
        if share_of[cluster[slot]] > 0.0:
            found[n] = slot
            n += 1
        slot = next_of_feature[slot]
    return n


@kernel
def learn_row(features, weight, n_touched, touched, shares, matching, share_of, stamp, found, profiles):
    """Let the touched clusters take in their shares of the ad.

    ``share_of``, ``stamp`` and ``found`` are work space by cluster.

    ``matching``: by moment matching; otherwise as plain counts, which can be taken back with a negative weight.
    """
    for at in range(n_touched):
        share_of[touched[at]] = shares[at]
    for at in range(n_touched):
        stamp[touched[at]] = -1
        profiles.mass[touched[at]] += on_grid(weight * shares[at])
    for number in range(features.size):
        feature = features[number]
        if profiles.shared[feature]:
            continue
        n_found = slots_of_touched(profiles.head[feature], profiles.next_of_feature, profiles.cluster, share_of, found)
        for place in range(n_found):
            slot = found[place]
            row = profiles.cluster[slot]
            share = share_of[row]
            if matching:
                touch_slot(slot, row, share, weight, profiles.mass[row] - on_grid(weight * share), profiles)
            else:
                profiles.hits[slot] += on_grid(weight * share)
            recount_slot(slot, row, profiles)
            stamp[row] = number
        for at in range(n_touched):
            row = touched[at]
            if stamp[row] != number:
                if not profiles.opens[row] or weight < 0:
                    profiles.held[row] += on_grid(weight * shares[at])
                    continue
                slot = open_slot(row, feature, profiles)
                if matching:
                    touch_slot(
                        slot, row, shares[at], weight, profiles.mass[row] - on_grid(weight * shares[at]), profiles
                    )
                else:
                    profiles.hits[slot] += on_grid(weight * shares[at])
                recount_slot(slot, row, profiles)
    for at in range(n_touched):
        row = touched[at]
        share_of[row] = 0.0
        grown = abs(profiles.mass[row] - profiles.mass_then[row])
        if grown > STALE * (profiles.prior[0] + profiles.mass_then[row]):
            refresh_cluster(row, profiles)
        else:
            refresh_base(row, profiles)


@kernel
def filter_rows(indptr, indices, weights, order, start, negligible, profiles, log_norms, kept_rows, kept_shares):
    """ADF over the ads in ``order`` from place ``start``; return the place reached (short of the end: arena full).

    ``log_norms`` receives each ad's log sum of scores, before it is learned; ``kept_rows`` and ``kept_shares``
    (n, t) its largest shares, padded with -1, and may have no columns.
    """
    n_rows = profiles.mass.size
    scores, share_of = np.zeros(n_rows), np.zeros(n_rows)
    touched, stamp, shares = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64), np.zeros(n_rows)
    found = np.zeros(n_rows, np.int64)
    for place in range(start, order.size):
        ad = order[place]
        features = indices[indptr[ad] : indptr[ad + 1]]
        score_row(features, profiles, scores)
        n, log_norms[place] = responsibilities(scores, negligible, touched, shares)
        if profiles.used[0] + n * features.size > profiles.hits.size:
            return place
        learn_row(features, weights[ad], n, touched, shares, True, share_of, stamp, found, profiles)
        if kept_rows.shape[1] > 0:
            keep_largest(n, touched, shares, kept_rows[place], kept_shares[place])
    return order.size


@kernel
def keep_largest(n, touched, shares, rows, values):
    """Keep the largest shares, made to sum to one, in as many places as there are."""
    total, filled = 0.0, 0
    for at in range(rows.size):
        best = -1
        for other in range(n):
            if shares[other] > 0 and (best < 0 or shares[other] > shares[best]):
                best = other
        if best < 0:
            rows[at], values[at] = -1, 0.0
            continue
        rows[at], values[at] = touched[best], shares[best]
        total += shares[best]
        shares[best] = 0.0
        filled += 1
    for at in range(filled):
        values[at] = on_grid(values[at] / total)


@kernel
def count_rows(indptr, indices, weights, order, start, sign, profiles, kept_rows, kept_shares):
    """Add (or take back, ``sign`` -1) each ad's kept shares as plain counts; return the place reached."""
    n_rows = profiles.mass.size
    share_of = np.zeros(n_rows)
    touched, stamp, shares = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64), np.zeros(n_rows)
    found = np.zeros(n_rows, np.int64)
    for place in range(start, order.size):
        ad = order[place]
        features = indices[indptr[ad] : indptr[ad + 1]]
        n = unpack(kept_rows[place], kept_shares[place], touched, shares)
        if profiles.used[0] + n * features.size > profiles.hits.size:
            return place
        learn_row(features, sign * weights[ad], n, touched, shares, False, share_of, stamp, found, profiles)
    return order.size


@kernel
def unpack(rows, values, touched, shares):
    n = 0
    for at in range(rows.size):
        if rows[at] >= 0 and values[at] > 0:
            touched[n], shares[n] = rows[at], values[at]
            n += 1
    return n


@kernel
def revisit_rows(indptr, indices, weights, order, start, negligible, profiles, log_norms, kept_rows, kept_shares):
    """A further pass: take each ad's old shares back, look at it anew without it, add its new shares."""
    n_rows = profiles.mass.size
    scores, share_of = np.zeros(n_rows), np.zeros(n_rows)
    touched, stamp, shares = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64), np.zeros(n_rows)
    found = np.zeros(n_rows, np.int64)
    for place in range(start, order.size):
        ad = order[place]
        features = indices[indptr[ad] : indptr[ad + 1]]
        if profiles.used[0] + kept_rows.shape[1] * features.size > profiles.hits.size:
            return place
        n = unpack(kept_rows[place], kept_shares[place], touched, shares)
        learn_row(features, -weights[ad], n, touched, shares, False, share_of, stamp, found, profiles)
        score_row(features, profiles, scores)
        n, log_norms[place] = responsibilities(scores, negligible, touched, shares)
        keep_largest(n, touched, shares, kept_rows[place], kept_shares[place])
        n = unpack(kept_rows[place], kept_shares[place], touched, shares)
        learn_row(features, weights[ad], n, touched, shares, False, share_of, stamp, found, profiles)
    return order.size


@kernel
def score_rows(indptr, indices, profiles, log_norms, out):
    """Each ad's responsibilities into the rows of ``out`` and its log sum of scores; nothing is learned."""
    scores = np.zeros(profiles.mass.size)
    for ad in range(indptr.size - 1):
        score_row(indices[indptr[ad] : indptr[ad + 1]], profiles, scores)
        best = scores.max()
        total = 0.0
        for row in range(scores.size):
            out[ad, row] = np.exp(scores[row] - best)
            total += out[ad, row]
        for row in range(scores.size):
            out[ad, row] /= total
        log_norms[ad] = best + np.log(total)


@kernel
def best_rows(indptr, indices, profiles, labels, log_norms, shares):
    """Each ad's most likely cluster, its share, and the log sum of scores."""
    scores = np.zeros(profiles.mass.size)
    for ad in range(indptr.size - 1):
        score_row(indices[indptr[ad] : indptr[ad + 1]], profiles, scores)
        best = np.argmax(scores)
        total = 0.0
        for row in range(scores.size):
            total += np.exp(scores[row] - scores[best])
        labels[ad], shares[ad] = best, 1.0 / total
        log_norms[ad] = scores[best] + np.log(total)


@kernel
def learn_fraction(features, values, weight, negligible, profiles):
    """Give the model one ad whose keywords are present in part (``values``), as plain counts; False if out of room."""
    n_rows = profiles.mass.size
    scores, shares, touched = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows, np.int64)
    for row in range(n_rows):
        scores[row] = profiles.base[row]
    for number in range(features.size):
        feature, value = features[number], values[number]
        if profiles.shared[feature]:
            continue
        b = profiles.background[feature]
        for row in range(n_rows):
            scores[row] += value * (profiles.log_ratio[row] + profiles.ratio[row] * b)
        slot = profiles.head[feature]
        while slot >= 0:
            scores[profiles.cluster[slot]] += value * profiles.lift[slot]
            slot = profiles.next_of_feature[slot]
    n, _ = responsibilities(scores, negligible, touched, shares)
    if profiles.used[0] + n * features.size > profiles.hits.size:
        return False
    for at in range(n):
        row = touched[at]
        profiles.mass[row] += on_grid(weight * shares[at])
        for number in range(features.size):
            feature = features[number]
            if profiles.shared[feature]:
                continue
            amount = on_grid(weight * shares[at] * values[number])
            slot = find_slot(row, feature, profiles)
            if slot < 0 and profiles.opens[row]:
                slot = open_slot(row, feature, profiles)
            if slot < 0:
                profiles.held[row] += amount
            else:
                profiles.hits[slot] += amount
        refresh_cluster(row, profiles)
    return True


@kernel
def find_slot(row, feature, profiles):
    """The entry of this keyword in this cluster, -1 for none."""
    slot = profiles.head[feature]
    while slot >= 0 and profiles.cluster[slot] != row:
        slot = profiles.next_of_feature[slot]
    return slot


@kernel
def add_to_entries(cluster, feature, count, loss, sign, profiles):
    """Add what some ads taught to the entries, opening those that are missing. There must be room."""
    for at in range(cluster.size):
        slot = find_slot(cluster[at], feature[at], profiles)
        if slot < 0:
            slot = open_slot(cluster[at], feature[at], profiles)
        profiles.hits[slot] += sign * count[at]
        profiles.loss[slot] += sign * loss[at]
