# mypy: ignore-errors
"""WAND: the rows most similar to a query, document at a time, skipping rows that cannot be among the best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.jit import kernel

END = np.int32(2**31 - 1)  # the row number of a cursor that has run out
ROUNDING = np.float32(1.000002)  # bounds are sums of float32 in another order than scores: lift them by more than that


class Postings(NamedTuple):
    """For each term the rows that have it, ascending, and their values."""

    ptr: np.ndarray  # (n_terms + 1,) int64
    rows: np.ndarray  # int32
    values: np.ndarray  # float32
    most: np.ndarray  # (n_terms,) the largest value of each list
    least: np.ndarray  # (n_terms,) and the smallest


class Cursors(NamedTuple):
    """One place in a list for each term of the query."""

    at: np.ndarray
    stop: np.ndarray
    row: np.ndarray  # the row at that place, END when the list has run out
    weight: np.ndarray  # of the term in the query
    bound: np.ndarray  # the most the term can add to a score
    order: np.ndarray  # the cursors by row


@kernel
def allocate_cursors(n):
    """Cursors for up to n terms."""
    return Cursors(
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.float32),
        np.empty(n, np.float32), np.empty(n, np.int64),
    )  # fmt: skip


@kernel
def open_cursors(terms, weights, postings, cursors):
    """A cursor at the start of the list of every term that has one; returns how many there are.

    A negative query weight gains most from the most negative value; a row without the term gains 0.
    """
    n = 0
    for i in range(terms.size):
        first, last = postings.ptr[terms[i]], postings.ptr[terms[i] + 1]
        if last > first:
            cursors.at[n], cursors.stop[n], cursors.row[n] = first, last, postings.rows[first]
            most = max(weights[i] * postings.most[terms[i]], weights[i] * postings.least[terms[i]])
            cursors.weight[n] = weights[i]
            cursors.bound[n] = max(most, np.float32(0.0)) * ROUNDING
            n += 1
    cursors.order[:n] = np.argsort(cursors.row[:n])
    return n


@kernel
def find_pivot(cursors, n_open, bar):
    """The last cursor at the first row that could score more than `bar`, or -1 when none could.

    Walking the cursors by row, the bounds so far limit every row before the next one.
    """
    reach = np.float32(0.0)
    for i in range(n_open):
        reach += cursors.bound[cursors.order[i]]
        if reach > bar:
            pivot = i
            while pivot + 1 < n_open and cursors.row[cursors.order[pivot + 1]] == cursors.row[cursors.order[i]]:
                pivot += 1
            return pivot
    return -1


@kernel
def gallop(rows, start, stop, target):
    """The first place at or after `start` whose row is >= target: doubling steps, then halving."""
    if rows[start] >= target:
        return start
    low, step = start, 1
    while low + step < stop and rows[low + step] < target:
        low += step
        step *= 2
    high = min(low + step, stop)
    while low + 1 < high:
        middle = (low + high) // 2
        if rows[middle] < target:
            low = middle
        else:
            high = middle
    return high


@kernel
def move_to(cursors, cursor, place, postings):
    """Put a cursor at another place of its list."""
    cursors.at[cursor] = place
    cursors.row[cursor] = postings.rows[place] if place < cursors.stop[cursor] else END


@kernel
def restore_order(cursors, n_open, n_moved):
    """The first n_moved cursors in order moved forward: sort them back in; returns how many are still open."""
    order, row = cursors.order, cursors.row
    for i in range(n_moved - 1, -1, -1):
        cursor = order[i]
        place = i
        while place + 1 < n_open and row[order[place + 1]] < row[cursor]:
            order[place] = order[place + 1]
            place += 1
        order[place] = cursor
    while n_open > 0 and row[order[n_open - 1]] == END:
        n_open -= 1
    return n_open


@kernel
def score_pivot(cursors, postings, pivot):
    """The full score of the row at which cursors 0..pivot stand; moves them on."""
    score = np.float32(0.0)
    for i in range(pivot + 1):
        cursor = cursors.order[i]
        score += cursors.weight[cursor] * postings.values[cursors.at[cursor]]
        move_to(cursors, cursor, cursors.at[cursor] + 1, postings)
    return score


@kernel
def catch_up(cursors, postings, target):
    """Bring every cursor that is before row `target` to it; returns how many moved."""
    n_moved = 0
    while cursors.row[cursors.order[n_moved]] < target:
        cursor = cursors.order[n_moved]
        move_to(cursors, cursor, gallop(postings.rows, cursors.at[cursor], cursors.stop[cursor], target), postings)
        n_moved += 1
    return n_moved


@kernel
def next_scored(cursors, n_open, postings, bar):
    """Go on to the next row that could beat `bar` and score it: (row, score, open cursors); row END when none can."""
    while True:
        pivot = find_pivot(cursors, n_open, bar)
        if pivot < 0:
            return END, np.float32(0.0), n_open
        target = cursors.row[cursors.order[pivot]]
        if cursors.row[cursors.order[0]] == target:
            score = score_pivot(cursors, postings, pivot)
            return target, score, restore_order(cursors, n_open, pivot + 1)
        n_open = restore_order(cursors, n_open, catch_up(cursors, postings, target))


@kernel
def top_rows(terms, weights, postings, best_rows, best_scores):
    """The best_rows.size rows with the largest scores above 0, best first, ties by row; returns how many there are."""
    cursors = allocate_cursors(terms.size)
    n_open = open_cursors(terms, weights, postings, cursors)
    size, bar = 0, np.float32(0.0)
    while True:
        row, score, n_open = next_scored(cursors, n_open, postings, bar)
        if row == END:
            return size
        if score > bar:  # rows come in ascending order, so a tie with the last one stays behind it
            size = min(size + 1, best_rows.size)
            place = size - 1
            while place > 0 and score > best_scores[place - 1]:
                best_rows[place], best_scores[place] = best_rows[place - 1], best_scores[place - 1]
                place -= 1
            best_rows[place], best_scores[place] = row, score
            if size == best_rows.size:
                bar = best_scores[size - 1]


@kernel
def fill_postings(indptr, ranks, values, place, rows_out, values_out):
    """Turn rows into lists; rows are walked in order, so each list ascends."""
    for row in range(indptr.size - 1):
        for at in range(indptr[row], indptr[row + 1]):
            rank = ranks[at]
            rows_out[place[rank]] = row
            values_out[place[rank]] = values[at]
            place[rank] += 1


@kernel
def list_extremes(ptr, values, most, least):
    """The largest and smallest value of every list; 0 for an empty one."""
    for term in range(most.size):
        most[term], least[term] = 0.0, 0.0
        if ptr[term + 1] > ptr[term]:
            most[term], least[term] = values[ptr[term]], values[ptr[term]]
            for at in range(ptr[term] + 1, ptr[term + 1]):
                most[term] = max(most[term], values[at])
                least[term] = min(least[term], values[at])
