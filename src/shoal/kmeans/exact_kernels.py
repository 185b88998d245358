# mypy: ignore-errors
"""Kernels that find the most similar centre of a row by adding up the index lists of its features."""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel


@kernel
def add_hot_lines(ranks, values, start, stop, hot, sums):
    """Add value * line for the leading entries of a row whose features are dense; returns where they end.

    Four lines at a time: the running sums are then loaded and stored a quarter as often.
    """
    n_hot, k = hot.shape
    end = start
    while end < stop and ranks[end] < n_hot:
        end += 1
    at = start
    while at + 4 <= end:
        line0, line1, line2, line3 = hot[ranks[at]], hot[ranks[at + 1]], hot[ranks[at + 2]], hot[ranks[at + 3]]
        v0, v1, v2, v3 = values[at], values[at + 1], values[at + 2], values[at + 3]
        for centre in range(k):
            sums[centre] += v0 * line0[centre] + v1 * line1[centre] + v2 * line2[centre] + v3 * line3[centre]
        at += 4
    while at < end:
        line, v = hot[ranks[at]], values[at]
        for centre in range(k):
            sums[centre] += v * line[centre]
        at += 1
    return end


@kernel
def add_lists(ranks, values, start, stop, ptr, centres, weights, sums):
    """Add value * weight for the listed centres of each entry; returns how many list entries were met."""
    met = 0
    for at in range(start, stop):
        first, last = ptr[ranks[at]], ptr[ranks[at] + 1]
        value = values[at]
        for place in range(first, last):
            sums[centres[place]] += value * weights[place]
        met += last - first
    return met


@kernel
def similarities_of_row(ranks, values, start, stop, hot, ptr, centres, weights, sums):
    """The cosine of one row to every centre, in `sums`; returns whether the row shares a feature with any."""
    sums[:] = 0.0
    end = add_hot_lines(ranks, values, start, stop, hot, sums)
    met = add_lists(ranks, values, end, stop, ptr, centres, weights, sums)
    return end > start or met > 0


@kernel
def largest(sums):
    """The place of the largest, the first of equals. Two plain passes: each of them vectorises."""
    best = sums[0]
    for centre in range(1, sums.size):
        best = max(best, sums[centre])
    for centre in range(sums.size):
        if sums[centre] == best:
            return centre
    return 0


@kernel
def nearest_centres(indptr, ranks, values, start, stop, hot, ptr, centres, weights, sums, labels, similarities):
    """For each row the most similar centre and the cosine; -1 and 0 for a row that shares no feature with any."""
    for row in range(start, stop):
        if similarities_of_row(ranks, values, indptr[row], indptr[row + 1], hot, ptr, centres, weights, sums):
            labels[row] = largest(sums)
            similarities[row] = sums[labels[row]]
        else:
            labels[row] = -1
            similarities[row] = 0.0


@kernel
def all_similarities(indptr, ranks, values, start, stop, hot, ptr, centres, weights, sums, out):
    """Every row's cosine to every centre."""
    for row in range(start, stop):
        similarities_of_row(ranks, values, indptr[row], indptr[row + 1], hot, ptr, centres, weights, sums)
        for centre in range(sums.size):
            out[row, centre] = sums[centre]


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
