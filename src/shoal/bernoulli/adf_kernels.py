# mypy: ignore-errors
"""Assumed density filtering on sparse profiles: responsibilities of a row, the moment match, the counts it adds."""

from __future__ import annotations

import numpy as np

from shoal.bernoulli.entries_kernels import (
    add_to_lines,
    copy_lifts,
    find_slot,
    growth,
    measure_base,
    measured,
    on_grid,
    open_entry,
    open_slot,
    refresh_cluster,
)
from shoal.bernoulli.moment_matching_kernels import match_moments
from shoal.jit import inline_kernel, kernel

# A cluster's sums are recomputed when its mass has grown by this share: sooner while it is small and one row moves
# much, later when it has settled. In between, its default stays as it is and the sum of log(1 - mu) is corrected as
# growth() says; a lift changes with mass by no more than mu times the growth since the feature was last seen.
STALE, STALE_SETTLED, SETTLED = 0.05, 0.2, 300.0
FAR = 20.0  # each cluster this far behind the best adds less than 1e-8 to the sum of scores


@inline_kernel
def score_row(features, profiles, dense, scores):
    """Fill ``scores`` with log gamma_l + log p(x | l) - log p(x | background)."""
    add_up(
        features, profiles.uninformative, profiles.base, profiles.log_ratio, profiles.head, profiles.next_of_feature,
        profiles.cluster, profiles.lift, dense.line_of, dense.lifts, scores,
    )  # fmt: skip


@kernel
def add_up(
    features, uninformative, base, log_ratio, head, next_of_feature, cluster, lift, line_of, lifts, scores
):  # fmt: skip
    n_present = 0
    for feature in features:
        if not uninformative[feature]:
            n_present += 1
    for row in range(scores.size):
        scores[row] = base[row] + n_present * log_ratio[row]  # every present feature first as the default has it
    for feature in features:
        if uninformative[feature]:
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
def learn_present(prior, hits, loss, mass, share, weight, matching):
    """An entry's hits and loss after a row that has the feature, ``share`` of which is this cluster's.

    ``prior`` is the prior's alpha and ``mass`` alpha + beta, but for the loss, before the row. ``matching``: alpha +
    beta by moments. The mean moves by what was counted, and not by what is left of it: a feature would forget the more,
    the more ambiguous its rows, and what rows of several partitions teach would not add up.
    """
    counted = hits + on_grid(weight * share)
    if not matching or share >= 1.0 - 1e-9:
        return counted, loss
    mean = min(max((prior + hits) / mass, 1e-12), 1.0 - 1e-6)
    n = max(mass - loss, 1e-6)
    _, after = match_moments(mean * n, n, share)
    return counted, loss + on_grid(weight * (share - (after - n)))


@kernel
def find_slots(slot, next_of_feature, cluster, share_of, slot_of):
    """Note a feature's entries in clusters that take a share."""
    while slot >= 0:
        if share_of[cluster[slot]] > 0.0:
            slot_of[cluster[slot]] = slot
        slot = next_of_feature[slot]


# One long function: handing two dozen arrays on for each row takes longer than what is then done with them.
@kernel
def read_rows(
    indptr, indices, weights, start, takes_back, looks, adds, negligible, profiles, dense,
    log_norms, kept_rows, kept_shares,
):  # fmt: skip
    """Read the rows from place ``start`` on; return the place reached (short of the end: no room for entries).

    Of each row: ``takes_back`` what it taught, by its kept shares; ``looks`` at it for its shares and its log sum of
    scores; ``adds`` it to the clusters by its shares. Seen for the first time it is learned by moment matching, else as
    plain counts, which can be taken back. The largest shares are kept, padded with -1, in as many columns as there are.
    """
    n_rows, matching = profiles.mass.size, looks and not takes_back
    scores, shares, share_of = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows)
    touched, slot_of = np.zeros(n_rows, np.int64), np.full(n_rows, -1, np.int64)
    (
        prior, background, _, uninformative, _common, common_at, head, mass, default_hits, has_entries, ratio,
        log_ratio, default_mass, default_absent, total, slope, mass_at_refresh, base, first, spread, owned,
        cluster, feature_of, hits, hits_from_default, loss, lift, log_absent, next_of_feature, next_of_cluster, used,
    ) = profiles  # fmt: skip
    n_of, line_of, lifts, slots, least, lines = dense
    strength = prior[0]
    for place in range(start, indptr.size - 1):
        features = indices[indptr[place] : indptr[place + 1]]
        if not matching and used[0] + kept_rows.shape[1] * features.size > hits.size:
            return place
        for sign in (-1.0, 1.0):
            if not (takes_back if sign < 0 else adds):
                continue
            if sign > 0 and looks:
                add_up(
                    features, uninformative, base, log_ratio, head, next_of_feature, cluster, lift, line_of, lifts,
                    scores,
                )  # fmt: skip
                n, log_norms[place] = responsibilities(scores, negligible, touched, shares)
                if matching and used[0] + n * features.size > hits.size:
                    return place
                if not matching:
                    keep_largest(n, touched, shares, kept_rows[place], kept_shares[place])
            if not matching:
                n = unpack(kept_rows[place], kept_shares[place], touched, shares)
            weight = sign * weights[place]
            for at in range(n):
                share_of[touched[at]] = shares[at]
                mass[touched[at]] += on_grid(weight * shares[at])
            for feature in features:
                if uninformative[feature]:
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
                        if not has_entries[row] or weight < 0:
                            default_hits[row] += on_grid(weight * share)
                            continue
                        slot = open_slot(
                            row, feature, background, common_at, head, default_hits, ratio, default_mass,
                            default_absent, first, spread, owned, cluster, feature_of, hits, hits_from_default, loss,
                            log_absent, next_of_feature, next_of_cluster, used,
                        )  # fmt: skip
                        add_to_lines(
                            slot, row, feature, cluster, lift, next_of_feature,
                            n_of, line_of, lifts, slots, least, lines,
                        )  # fmt: skip
                    before = strength + mass[row] - on_grid(weight * share)
                    hits[slot], loss[slot] = learn_present(
                        strength * b, hits[slot], loss[slot], before, share, weight, matching
                    )
                    lift[slot], now, by_mass = measured(
                        strength * b + hits[slot], strength + mass[row], b, strength, log_ratio[row]
                    )
                    now -= by_mass * growth(strength, mass[row], mass_at_refresh[row])  # as of the last refresh
                    total[row] += now - log_absent[slot]
                    log_absent[slot] = now
                    if line_of[feature] >= 0:
                        lifts[line_of[feature], row] = lift[slot]
            for at in range(n):
                row = touched[at]
                share_of[row] = 0.0
                stale = STALE if mass_at_refresh[row] < SETTLED else STALE_SETTLED
                if abs(mass[row] - mass_at_refresh[row]) > stale * (strength + mass_at_refresh[row]):
                    refresh_cluster(row, profiles)
                    copy_lifts(first[row], row, next_of_cluster, feature_of, lift, line_of, lifts)
                else:
                    measure_base(row, prior, mass, default_absent, total, slope, mass_at_refresh, base)
        if matching and kept_rows.shape[1] > 0:
            keep_largest(n, touched, shares, kept_rows[place], kept_shares[place])
    return indptr.size - 1


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
def score_rows(indptr, indices, profiles, dense, log_norms, out):
    """Each row's responsibilities into the rows of ``out`` and its log sum of scores; nothing is learned."""
    scores = np.zeros(profiles.mass.size)
    for place in range(indptr.size - 1):
        score_row(indices[indptr[place] : indptr[place + 1]], profiles, dense, scores)
        best = scores.max()
        total = 0.0
        for row in range(scores.size):
            out[place, row] = np.exp(scores[row] - best)
            total += out[place, row]
        for row in range(scores.size):
            out[place, row] /= total
        log_norms[place] = best + np.log(total)


@kernel
def best_rows(indptr, indices, profiles, dense, labels, log_norms, shares):
    """Each row's most likely cluster, its share, and the log sum of scores."""
    scores = np.zeros(profiles.mass.size)
    for place in range(indptr.size - 1):
        score_row(indices[indptr[place] : indptr[place + 1]], profiles, dense, scores)
        best, total = largest(scores), 0.0
        labels[place] = -1
        for row in range(scores.size):
            if scores[row] > best - FAR:
                total += np.exp(scores[row] - best)
                if scores[row] == best and labels[place] < 0:
                    labels[place] = row
        shares[place], log_norms[place] = 1.0 / total, best + np.log(total)


@kernel
def top_rows(indptr, indices, profiles, dense, negligible, log_norms, kept_rows, kept_shares):
    """Each row's largest responsibilities, padded with -1, made to sum to one, and its log sum of scores."""
    scores, shares = np.zeros(profiles.mass.size), np.zeros(profiles.mass.size)
    touched = np.zeros(profiles.mass.size, np.int64)
    for place in range(indptr.size - 1):
        score_row(indices[indptr[place] : indptr[place + 1]], profiles, dense, scores)
        n, log_norms[place] = responsibilities(scores, negligible, touched, shares)
        keep_largest(n, touched, shares, kept_rows[place], kept_shares[place])


@kernel
def learn_fraction(features, values, weight, negligible, profiles):
    """Give the model one row whose features are present in part (``values``), as plain counts; False if no room."""
    n_rows = profiles.mass.size
    scores, shares, touched = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows, np.int64)
    for row in range(n_rows):
        scores[row] = profiles.base[row]
    for number in range(features.size):
        feature, value = features[number], values[number]
        if profiles.uninformative[feature]:
            continue
        for row in range(n_rows):
            scores[row] += value * profiles.log_ratio[row]
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
            if profiles.uninformative[feature]:
                continue
            amount = on_grid(weight * shares[at] * values[number])
            slot = find_slot(row, feature, profiles.head, profiles.next_of_feature, profiles.cluster)
            if slot < 0 and profiles.has_entries[row]:
                slot = open_entry(row, feature, profiles)
            if slot < 0:
                profiles.default_hits[row] += amount
            else:
                profiles.hits[slot] += amount
        refresh_cluster(row, profiles)
    return True
