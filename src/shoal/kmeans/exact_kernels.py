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
BLOCK = 64  # centres compared at a time


@kernel
def add_lines(lines, n_lines, line_values, hot, n, sums):
    """Add value * line for up to four dense lines at once: the sums are then loaded and stored a quarter as often."""
    if n_lines == 4:
        line0, line1, line2, line3 = hot[lines[0]], hot[lines[1]], hot[lines[2]], hot[lines[3]]
        v0, v1, v2, v3 = line_values[0], line_values[1], line_values[2], line_values[3]
        for place in range(n):
            sums[place] += v0 * line0[place] + v1 * line1[place] + v2 * line2[place] + v3 * line3[place]
        return
    for i in range(n_lines):
        line, value = hot[lines[i]], line_values[i]
        for place in range(n):
            sums[place] += value * line[place]


@kernel
def score_row(ranks, values, start, stop, hot, ptr, places, weights, n, sums, lines, line_values):
    """The cosine of one row to the first `n` centres of the index; returns whether it shares a feature with any.

    `ptr` holds twice the place where a feature's list starts, plus one if the feature has a dense line instead; the
    number of the line is then the only entry of the list. One look-up tells all.
    """
    sums[:n] = 0.0
    n_lines = 0
    met = False
    ends = ptr[1:]
    for at in range(start, stop):
        rank = np.uint32(ranks[at])  # unsigned: no check for an index from the end
        where = ptr[rank]
        first, last = where >> 1, ends[rank] >> 1
        if first == last:
            continue
        met = True
        value = values[at]
        if where & 1:
            lines[n_lines], line_values[n_lines] = places[first], value
            n_lines += 1
            if n_lines == 4:
                add_lines(lines, n_lines, line_values, hot, n, sums)
                n_lines = 0
        elif places[last - 1] < n:
            for entry in range(first, last):
                sums[places[entry]] += value * weights[entry]
        else:
            for entry in range(first, last):
                if places[entry] >= n:
                    break
                sums[places[entry]] += value * weights[entry]
    add_lines(lines, n_lines, line_values, hot, n, sums)
    return met


@kernel
def largest(sums, n):
    """The place of the largest, the first of equals.

    Compared as integers, which order like floats from 0 up: unlike a maximum of floats, where NaN has to be minded,
    that compiles to vector instructions. Most rows have some centre with a cosine of 0 or more.
    """
    bits = sums.view(np.int32)
    best, block = bits[0], 0
    for start in range(0, n, BLOCK):
        top = bits[start]
        for place in range(start, min(start + BLOCK, n)):
            top = max(top, bits[place])
        if top > best:
            best, block = top, start
    if best >= 0:
        for place in range(block, n):
            if bits[place] == best:
                return place
    best_place = 0
    for place in range(1, n):
        if sums[place] > sums[best_place]:
            best_place = place
    return best_place


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
    lines, line_values = np.empty(4, np.int64), np.empty(4, np.float32)
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
        met = score_row(
            ranks, values, indptr[row], indptr[row + 1], hot, ptr, places, weights, n, sums, lines, line_values
        )
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
    lines, line_values = np.empty(4, np.int64), np.empty(4, np.float32)
    for row in range(start, stop):
        n = ids.size
        if score_row(
            ranks, values, indptr[row], indptr[row + 1], hot, ptr, places, weights, n, sums, lines, line_values
        ):
            best = largest(sums, n)
            labels[row] = ids[best]
            similarities[row] = sums[best]
        else:
            labels[row] = -1
            similarities[row] = 0.0


@kernel
def all_similarities(indptr, ranks, values, start, stop, hot, ptr, places, weights, ids, sums, out):
    """Every row's cosine to every centre."""
    lines, line_values = np.empty(4, np.int64), np.empty(4, np.float32)
    for row in range(start, stop):
        score_row(
            ranks, values, indptr[row], indptr[row + 1], hot, ptr, places, weights, ids.size, sums, lines, line_values
        )
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
