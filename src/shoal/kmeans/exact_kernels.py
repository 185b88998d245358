# mypy: ignore-errors
"""Kernels that find the most similar centre of a row by adding up the index lists of its features."""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel

# Scores are sums of float32: a row leaves its centre only for one that is better by more than their rounding, so that
# a tie cannot send it to and fro.
TIE = 5e-7
# A bound that rounding could have lowered is never trusted to the last digits.
SLACK = 2e-6


@kernel
def add_hot_lines(ranks, values, start, stop, hot, n, sums):
    """Add value * line for the leading entries of a row whose features are dense; returns where they end.

    Only the first `n` places of each line count. Four lines at a time: the running sums are then loaded and stored a
    quarter as often.
    """
    n_hot = hot.shape[0]
    end = start
    while end < stop and ranks[end] < n_hot:
        end += 1
    at = start
    while at + 4 <= end:
        line0, line1, line2, line3 = hot[ranks[at]], hot[ranks[at + 1]], hot[ranks[at + 2]], hot[ranks[at + 3]]
        v0, v1, v2, v3 = values[at], values[at + 1], values[at + 2], values[at + 3]
        for place in range(n):
            sums[place] += v0 * line0[place] + v1 * line1[place] + v2 * line2[place] + v3 * line3[place]
        at += 4
    while at < end:
        line, v = hot[ranks[at]], values[at]
        for place in range(n):
            sums[place] += v * line[place]
        at += 1
    return end


@kernel
def add_lists(ranks, values, start, stop, ptr, places, weights, n, sums):
    """Add value * weight for the listed centres of each entry; returns whether any list entry was met."""
    met = False
    for at in range(start, stop):
        first, last = ptr[ranks[at]], ptr[ranks[at] + 1]
        value = values[at]
        met |= last > first
        for entry in range(first, last):
            place = places[entry]
            if place >= n:
                break
            sums[place] += value * weights[entry]
    return met


@kernel
def score_row(ranks, values, start, stop, hot, ptr, places, weights, n, sums):
    """The cosine of one row to the first `n` centres of the index; returns whether it shares a feature with any."""
    sums[:n] = 0.0
    end = add_hot_lines(ranks, values, start, stop, hot, n, sums)
    return add_lists(ranks, values, end, stop, ptr, places, weights, n, sums) or end > start


@kernel
def largest(sums, n):
    """The place of the largest, the first of equals. Two plain passes: each of them vectorises."""
    best = sums[0]
    for place in range(1, n):
        best = max(best, sums[place])
    for place in range(n):
        if sums[place] == best:
            return place
    return 0


@kernel
def how_many_can_win(gap, movement):
    """How many of the centres, ordered by falling movement, moved by more than `gap`."""
    low, high = 0, movement.size
    while low < high:
        middle = (low + high) // 2
        if movement[middle] > gap:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def reassign_rows(
    indptr, ranks, values, start, stop, hot, ptr, places, weights, ids, place_of, movement, sums, labels, similarities,
    others,
):  # fmt: skip
    """Move rows to better centres, in place, scoring only centres that can have become better.

    Before: `similarities` are the cosines to the row's own, new centre, `others` bounds from above its cosines to all
    other centres as they were. A centre that moved by m gained at most m. So only centres that moved by more than
    similarity - others can win, and they are a prefix of the index, which is ordered by falling `movement`.
    (Unmoved centres have movement 0: this contains the invariant-centre filter of Aoyama and Saito.)
    After: `others` bounds the cosines to the new centres. Returns how many scores were needed.
    """
    n_scored = 0
    for row in range(start, stop):
        own = labels[row]
        n = movement.size
        if own >= 0:
            n = how_many_can_win(similarities[row] - others[row] - SLACK, movement)
        elif indptr[row] == indptr[row + 1]:
            continue
        unscored = others[row] + movement[n] if n < movement.size else -np.inf
        if n == 0:
            others[row] = unscored
            continue
        n_scored += n
        met = score_row(ranks, values, indptr[row], indptr[row + 1], hot, ptr, places, weights, n, sums)
        if not met:
            continue
        if own >= 0 and place_of[own] < n:
            sums[place_of[own]] = -np.inf
        best = largest(sums, n)
        score = sums[best]
        if own < 0 or score > similarities[row] + TIE:
            others[row] = unscored if own < 0 else max(unscored, similarities[row])
            labels[row] = ids[best]
            similarities[row] = score
            sums[best] = -np.inf
            score = sums[largest(sums, n)]
        else:
            others[row] = unscored
        others[row] = max(others[row], score)
    return n_scored


@kernel
def nearest_centres(indptr, ranks, values, start, stop, hot, ptr, places, weights, ids, sums, labels, similarities):
    """For each row the most similar centre and the cosine; -1 and 0 for a row that shares no feature with any."""
    for row in range(start, stop):
        n = ids.size
        if score_row(ranks, values, indptr[row], indptr[row + 1], hot, ptr, places, weights, n, sums):
            best = largest(sums, n)
            labels[row] = ids[best]
            similarities[row] = sums[best]
        else:
            labels[row] = -1
            similarities[row] = 0.0


@kernel
def all_similarities(indptr, ranks, values, start, stop, hot, ptr, places, weights, ids, sums, out):
    """Every row's cosine to every centre."""
    for row in range(start, stop):
        score_row(ranks, values, indptr[row], indptr[row + 1], hot, ptr, places, weights, ids.size, sums)
        for place in range(ids.size):
            out[row, ids[place]] = sums[place]


@kernel
def largest_cosine(indptr, ranks, weights):
    """The largest cosine of the first of some unit rows to the others; features ascend within a row."""
    best = -np.inf
    for other in range(1, indptr.size - 1):
        total = 0.0
        left, right = indptr[0], indptr[other]
        while left < indptr[1] and right < indptr[other + 1]:
            if ranks[left] == ranks[right]:
                total += weights[left] * weights[right]
                left += 1
                right += 1
            elif ranks[left] < ranks[right]:
                left += 1
            else:
                right += 1
        best = max(best, total)
    return best
