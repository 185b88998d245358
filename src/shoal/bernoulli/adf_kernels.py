# mypy: ignore-errors
"""One step of assumed density filtering on sparse profiles: score an ad, share it out, learn it."""

from __future__ import annotations

import numpy as np

from shoal.bernoulli.entries_kernels import (
    copy_lifts,
    find_slot,
    growth,
    measure_base,
    measured,
    on_grid,
    open_entry,
    open_slot,
    put_on_board,
    refresh_cluster,
)
from shoal.jit import inline_kernel, kernel

# A cluster's cached numbers are recomputed when its mass has grown by this share: sooner while it is small and one ad
# moves much, later when it has settled. Between, the sum of log(1 - mu) is corrected as growth() says, and a lift
# changes with mass by no more than mu times the growth since the keyword was last touched: a keyword with a large mu is
# touched often, so neither error is large.
STALE, STALE_SETTLED, SETTLED = 0.05, 0.2, 300.0
FAR = 20.0  # each cluster this far behind the best adds less than 1e-8 to the sum of scores


@inline_kernel
def score_row(features, profiles, board, scores):
    """Fill ``scores`` with log gamma_l + log p(ad | l), less what is the same for every cluster."""
    add_up(
        features, profiles.shared, profiles.background, profiles.base, profiles.log_ratio, profiles.ratio,
        profiles.head, profiles.next_of_feature, profiles.cluster, profiles.lift, board.line_of, board.lifts, scores,
    )  # fmt: skip


@kernel
def add_up(
    features, shared, background, base, log_ratio, ratio, head, next_of_feature, cluster, lift, line_of, lifts, scores
):
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
        line = line_of[feature]
        if line >= 0:
            for row in range(scores.size):
                scores[row] += lifts[line, row]
            continue
        slot = head[feature]
        while slot >= 0:
            scores[cluster[slot]] += lift[slot]
            slot = next_of_feature[slot]


@kernel
def largest(scores):
    """The maximum, in four lanes: one comparison need not wait for the one before."""
    a = b = c = d = scores[0]
    whole = scores.size - scores.size % 4
    for at in range(0, whole, 4):
        a = scores[at] if scores[at] > a else a
        b = scores[at + 1] if scores[at + 1] > b else b
        c = scores[at + 2] if scores[at + 2] > c else c
        d = scores[at + 3] if scores[at + 3] > d else d
    for at in range(whole, scores.size):
        a = scores[at] if scores[at] > a else a
    return max(max(a, b), max(c, d))


@kernel
def responsibilities(scores, negligible, touched, shares):
    """List the clusters with a share that is not negligible, and their shares; return how many and log sum exp."""
    best = largest(scores)
    cut = best + np.log(max(negligible, 1e-300)) - 1e-9
    n, total = 0, 0.0
    for row in range(scores.size):
        if scores[row] >= cut:
            touched[n], shares[n] = row, np.exp(scores[row] - best)
            total += shares[n]
            n += 1
    for at in range(n):
        shares[at] /= total
    return n, best + np.log(total)


@kernel
def match_moments(alpha, n, share):
    """Project r Beta(alpha + 1, .) + (1 - r) Beta(alpha, .) onto one Beta; return its alpha and alpha + beta."""
    r, q = share, 1.0 - share
    m1 = r * (alpha + 1.0) / (n + 1.0) + q * alpha / n
    m2 = r * (alpha + 1.0) * (alpha + 2.0) / ((n + 1.0) * (n + 2.0)) + q * alpha * (alpha + 1.0) / (n * (n + 1.0))
    after = (m1 - m2) / (m2 - m1 * m1)
    return m1 * after, after


@kernel
def taught(prior, hits, loss, mass, share, weight, matching):
    """What an entry's hits and loss become by an ad with the keyword, ``share`` of it this cluster's.

    ``prior`` is the prior's alpha and ``mass`` alpha + beta, but for the loss, before the ad. ``matching``: by moments.
    """
    if not matching or share >= 1.0 - 1e-9:
        return hits + on_grid(weight * share), loss
    alpha = max(prior + hits, 1e-9)
    n = max(mass - loss, alpha + 1e-6)
    new_alpha, new_n = match_moments(alpha, n, share)
    return hits + on_grid(weight * (new_alpha - alpha)), loss + on_grid(weight * (share - (new_n - n)))


@kernel
def find_slots(slot, next_of_feature, cluster, share_of, slot_of):
    """Note a keyword's entries in clusters that take a share."""
    while slot >= 0:
        if share_of[cluster[slot]] > 0.0:
            slot_of[cluster[slot]] = slot
        slot = next_of_feature[slot]


# One long function: handing two dozen arrays on for each ad takes longer than what is then done with them.
@kernel
def read_rows(
    indptr, indices, weights, order, start, takes_back, looks, adds, negligible, profiles, board,
    log_norms, kept_rows, kept_shares,
):  # fmt: skip
    """Read the ads in ``order`` from place ``start``; return the place reached (short of the end: arena full).

    Of each ad: ``takes_back`` what it taught, by its kept shares; ``looks`` at it for its shares and its log sum of
    scores; ``adds`` it to the clusters by its shares. Seen for the first time it is learned by moment matching, else as
    plain counts, which can be taken back. The largest shares are kept, padded with -1, in as many columns as there are.
    """
    n_rows, matching = profiles.mass.size, looks and not takes_back
    scores, shares, share_of = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows)
    touched, slot_of = np.zeros(n_rows, np.int64), np.full(n_rows, -1, np.int64)
    (
        prior, background, _, shared, head, mass, held, opens, ratio, log_ratio, total, slope, mass_then, base, first,
        spread, cluster, feature_of, hits, given, loss, lift, absent, next_of_feature, next_of_cluster, used,
    ) = profiles  # fmt: skip
    n_of, line_of, lifts, slots, least, lines = board
    strength = prior[0]
    for place in range(start, order.size):
        ad = order[place]
        features = indices[indptr[ad] : indptr[ad + 1]]
        if not matching and used[0] + kept_rows.shape[1] * features.size > hits.size:
            return place
        for sign in (-1.0, 1.0):
            if not (takes_back if sign < 0 else adds):
                continue
            if sign > 0 and looks:
                add_up(
                    features, shared, background, base, log_ratio, ratio, head, next_of_feature, cluster, lift,
                    line_of, lifts, scores,
                )  # fmt: skip
                n, log_norms[place] = responsibilities(scores, negligible, touched, shares)
                if matching and used[0] + n * features.size > hits.size:
                    return place
                if not matching:
                    keep_largest(n, touched, shares, kept_rows[place], kept_shares[place])
            if not matching:
                n = unpack(kept_rows[place], kept_shares[place], touched, shares)
            weight = sign * weights[ad]
            for at in range(n):
                share_of[touched[at]] = shares[at]
                mass[touched[at]] += on_grid(weight * shares[at])
            for feature in features:
                if shared[feature]:
                    continue
                b, line = background[feature], line_of[feature]
                if line < 0:
                    find_slots(head[feature], next_of_feature, cluster, share_of, slot_of)
                for at in range(n):
                    row, share = touched[at], shares[at]
                    if line >= 0:
                        slot = slots[line, row] - 1
                    else:
                        slot = slot_of[row]
                        slot_of[row] = -1
                    if slot < 0:
                        if not opens[row] or weight < 0:
                            held[row] += on_grid(weight * share)
                            continue
                        slot = open_slot(
                            row, feature, background, shared, held, spread, head, first, cluster, feature_of,
                            hits, given, loss, absent, next_of_feature, next_of_cluster, used,
                        )  # fmt: skip
                        put_on_board(
                            slot, row, feature, cluster, lift, next_of_feature,
                            n_of, line_of, lifts, slots, least, lines,
                        )  # fmt: skip
                    before = strength + mass[row] - on_grid(weight * share)
                    hits[slot], loss[slot] = taught(
                        strength * b, hits[slot], loss[slot], before, share, weight, matching
                    )
                    lift[slot], now, by_mass = measured(
                        strength * b + hits[slot], strength + mass[row] - loss[slot], ratio[row] * b
                    )
                    now -= by_mass * growth(strength, mass[row], mass_then[row])  # as of when the total was taken
                    total[row] += now - absent[slot]
                    absent[slot] = now
                    if line_of[feature] >= 0:
                        lifts[line_of[feature], row] = lift[slot]
            for at in range(n):
                row = touched[at]
                share_of[row] = 0.0
                stale = STALE if mass_then[row] < SETTLED else STALE_SETTLED
                if abs(mass[row] - mass_then[row]) > stale * (strength + mass_then[row]):
                    refresh_cluster(row, profiles)
                    copy_lifts(first[row], row, next_of_cluster, feature_of, lift, line_of, lifts)
                else:
                    measure_base(row, prior, mass, held, spread, ratio, log_ratio, total, slope, mass_then, base)
        if matching and kept_rows.shape[1] > 0:
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
def unpack(rows, values, touched, shares):
    n = 0
    for at in range(rows.size):
        if rows[at] >= 0 and values[at] > 0:
            touched[n], shares[n] = rows[at], values[at]
            n += 1
    return n


@kernel
def score_rows(indptr, indices, profiles, board, log_norms, out):
    """Each ad's responsibilities into the rows of ``out`` and its log sum of scores; nothing is learned."""
    scores = np.zeros(profiles.mass.size)
    for ad in range(indptr.size - 1):
        score_row(indices[indptr[ad] : indptr[ad + 1]], profiles, board, scores)
        best = scores.max()
        total = 0.0
        for row in range(scores.size):
            out[ad, row] = np.exp(scores[row] - best)
            total += out[ad, row]
        for row in range(scores.size):
            out[ad, row] /= total
        log_norms[ad] = best + np.log(total)


@kernel
def best_rows(indptr, indices, profiles, board, labels, log_norms, shares):
    """Each ad's most likely cluster, its share, and the log sum of scores."""
    scores = np.zeros(profiles.mass.size)
    for ad in range(indptr.size - 1):
        score_row(indices[indptr[ad] : indptr[ad + 1]], profiles, board, scores)
        best, total = largest(scores), 0.0
        labels[ad] = -1
        for row in range(scores.size):
            if scores[row] > best - FAR:
                total += np.exp(scores[row] - best)
                if scores[row] == best and labels[ad] < 0:
                    labels[ad] = row
        shares[ad], log_norms[ad] = 1.0 / total, best + np.log(total)


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
            slot = find_slot(row, feature, profiles.head, profiles.next_of_feature, profiles.cluster)
            if slot < 0 and profiles.opens[row]:
                slot = open_entry(row, feature, profiles)
            if slot < 0:
                profiles.held[row] += amount
            else:
                profiles.hits[slot] += amount
        refresh_cluster(row, profiles)
    return True
