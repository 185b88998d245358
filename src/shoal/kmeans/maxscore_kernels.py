# mypy: ignore-errors
"""Centers pick rows: retrieval for long queries, a window of rows at a time.

MaxScore (Turtle and Flood), over windows as modern search engines do it, in the place of the paper's WAND: lists that
together cannot lift a row over the bar are looked into only for rows that the other lists brought near it. A center is
a query of 50 to thousands of terms, and WAND keeps that many cursors sorted by row. On 50,000 Zipf documents it took
1.2 to 2.3 times as long on tf-idf weights and 4 to 6 times on counts, and reached fewer rows.
"""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel
from shoal.kmeans.wand_kernels import END, allocate_cursors, gallop, open_cursors

WINDOW = 8192  # rows whose partial scores are held at once: they stay in the nearest cache
LONG_QUERY = 128  # terms: beyond, looking rows up in single lists costs more than adding all the lists up


@kernel
def push_score(heap, size, score):
    """Keep the heap.size largest scores, the smallest of them on top; returns how many are kept."""
    if size < heap.size:
        place = size
        heap[place] = score
        while place > 0 and heap[(place - 1) // 2] > heap[place]:
            above = (place - 1) // 2
            heap[place], heap[above] = heap[above], heap[place]
            place = above
        return size + 1
    if score > heap[0]:
        heap[0], place = score, 0
        while True:
            child = 2 * place + 1
            if child + 1 < size and heap[child + 1] < heap[child]:
                child += 1
            if child >= size or heap[place] <= heap[child]:
                break
            heap[place], heap[child] = heap[child], heap[place]
            place = child
    return size


@kernel
def order_by_bound(cursors, n, reach):
    """Put the cursors in `order` by rising bound; `reach[i]` is the most that cursors 0..i can add together."""
    cursors.order[:n] = np.argsort(cursors.bound[:n])
    total = np.float32(0.0)
    for i in range(n):
        total += cursors.bound[cursors.order[i]]
        reach[i] = total


@kernel
def first_essential(reach, n, start, bar):
    """The first cursor without which, or the ones after it, no row can exceed `bar`."""
    while start < n and reach[start] <= bar:
        start += 1
    return start


@kernel
def next_row(cursors, postings, start, n):
    """The smallest row of any essential cursor, END if all have run out."""
    row = END
    for i in range(start, n):
        cursor = cursors.order[i]
        if cursors.at[cursor] < cursors.stop[cursor]:
            row = min(row, postings.rows[cursors.at[cursor]])
    return row


@kernel
def add_window(cursors, postings, start, n, base, sums):
    """Add up the essential lists over rows base .. base + WINDOW - 1."""
    limit = base + WINDOW
    for i in range(start, n):
        cursor = cursors.order[i]
        at, stop, weight = cursors.at[cursor], cursors.stop[cursor], cursors.weight[cursor]
        while at < stop and postings.rows[at] < limit:
            sums[postings.rows[at] - base] += weight * postings.values[at]
            at += 1
        cursors.at[cursor] = at


@kernel
def complete_score(cursors, postings, start, reach, row, score, bar):
    """Add the other lists to a partial score, the heaviest first; -inf once it cannot exceed `bar` any more."""
    for i in range(start - 1, -1, -1):
        if score + reach[i] <= bar:
            return -np.inf
        cursor = cursors.order[i]
        at, stop = cursors.at[cursor], cursors.stop[cursor]
        if at < stop:
            at = gallop(postings.rows, at, stop, row)
            cursors.at[cursor] = at
            if at < stop and postings.rows[at] == row:
                score += cursors.weight[cursor] * postings.values[at]
    return score


@kernel
def centers_pick_rows(
    indptr, ranks, weights, first, last, postings, n_top, thresholds, scored, best_center, best_score
):  # fmt: skip
    """Centers first..last-1 each retrieve their top rows (the paper's WAND(c, i, A, l, theta)).

    Queries of more than LONG_QUERY terms add all their lists up, and offer every row they meet. In shorter ones, every
    row whose bound reaches the bar is scored in full and offered to the center, whether or not it ends up among
    its top: the table (`best_center`, `best_score`) remembers the best offer. A score that does not beat the table is
    not put on the heap, so a row that cannot beat it is left. `thresholds` are the thresholds to start from, and those
    reached.
    """
    longest = 1
    for center in range(first, last):
        longest = max(longest, indptr[center + 1] - indptr[center])
    cursors = allocate_cursors(longest)
    reach = np.empty(longest, np.float32)
    heap = np.empty(n_top, np.float32)
    sums = np.zeros(WINDOW, np.float32)
    for center in range(first, last):
        query = slice(indptr[center], indptr[center + 1])
        n = open_cursors(ranks[query], weights[query], postings, cursors)
        order_by_bound(cursors, n, reach)
        size, bar, essential = 0, thresholds[center], 0
        scored[center] = 0
        while True:
            essential = 0 if n > LONG_QUERY else first_essential(reach, n, essential, bar)
            base = next_row(cursors, postings, essential, n)
            if base == END:
                break
            add_window(cursors, postings, essential, n, base, sums)
            others = reach[essential - 1] if essential > 0 else np.float32(0.0)
            for place in range(min(WINDOW, best_center.size - base)):
                partial = sums[place]
                if partial == 0.0:
                    continue
                sums[place] = 0.0
                row = base + place
                if essential > 0 and partial + others <= bar:
                    continue  # with essential lists only, the score is known already, and offered
                needed = best_score[row] if best_center[row] >= 0 else np.float32(0.0)
                score = complete_score(cursors, postings, essential, reach, row, partial, needed)
                if score > needed:
                    scored[center] += 1
                    best_center[row], best_score[row] = center, score
                    size = push_score(heap, size, np.float32(score))
                    if size == heap.size:
                        bar = max(bar, heap[0])
        thresholds[center] = bar
