# mypy: ignore-errors
"""Kernels that find the most similar center of a row by adding up the index lists of its features."""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel

# Scores are sums of float32: a row leaves its center only for one that is better by more than their rounding, so that
# a tie cannot send it to and fro.
TIE = 5e-7
# A bound that rounding could have lowered is never trusted to the last digits.
SLACK = 2e-6
BLOCK = 64  # centers compared at a time
# Dense lines are added for all centers, eight lines at a time, until at most 32 centers can still win.
LINES_AT_ONCE, MOST_FOUND = 8, 32
FEW_LINES, FEW_CENTERS = 8, 128  # below either, looking for survivors costs more than adding the lines
# A row remembers how near the other centers came. Those dropped unseen count as this much below its own, so the wider,
# the more centers are scored now and the fewer in later steps.
MARGIN = 0.05
NO_LIST = 2**16 - 1  # in `firsts`: no center has the feature


@kernel
def add_lines(lines, line_values, first, last, hot, n, sums):
    """Add value * line for dense lines, four at once: the sums are then loaded and stored a quarter as often."""
    at = first
    while at + 4 <= last:
        line0, line1, line2, line3 = hot[lines[at]], hot[lines[at + 1]], hot[lines[at + 2]], hot[lines[at + 3]]
        v0, v1, v2, v3 = line_values[at], line_values[at + 1], line_values[at + 2], line_values[at + 3]
        for place in range(n):
            sums[place] += v0 * line0[place] + v1 * line1[place] + v2 * line2[place] + v3 * line3[place]
        at += 4
    while at < last:
        line, value = hot[lines[at]], line_values[at]
        for place in range(n):
            sums[place] += value * line[place]
        at += 1


@kernel
def add_lists(ranks, values, start, stop, ptr, firsts, places, weights, n, sums, lines, line_values):
    """Add up the lists of one row's features for the first `n` centers; features with dense lines are only noted.

    `ptr` holds twice the place where a feature's list starts, plus one if the feature has a dense line instead; the
    number of the line is then the only entry of the list. `firsts`, small enough to stay near the processor, says
    which features have nothing for the first `n` centers: late in a fit that is most of them. Returns how many lines
    were noted, and whether the row shares a feature with any center at all.
    """
    sums[:n] = 0.0
    n_lines = 0
    met = False
    ends = ptr[1:]
    for at in range(start, stop):
        rank = np.uint32(ranks[at])  # unsigned: no check for an index from the end
        if firsts[rank] >= n:
            met |= firsts[rank] != NO_LIST
            continue
        where = ptr[rank]
        first, last = where >> 1, ends[rank] >> 1
        if first == last:
            continue
        met = True
        value = values[at]
        if where & 1:
            lines[n_lines], line_values[n_lines] = places[first], value
            n_lines += 1
        elif places[last - 1] < n:
            for entry in range(first, last):
                sums[places[entry]] += value * weights[entry]
        else:
            for entry in range(first, last):
                if places[entry] >= n:
                    break
                sums[places[entry]] += value * weights[entry]
    return n_lines, met


@kernel
def sort_by_size(lines, line_values, n_lines):
    """Heaviest first, so that little is left of the row after a few lines."""
    for at in range(1, n_lines):
        line, value = lines[at], line_values[at]
        before = at - 1
        while before >= 0 and abs(line_values[before]) < abs(value):
            lines[before + 1], line_values[before + 1] = lines[before], line_values[before]
            before -= 1
        lines[before + 1], line_values[before + 1] = line, value


@kernel
def survivors(sums, rest, lengths, bar, n, found):
    """Places whose sum can still pass `bar` when at most rest * length is to come; more than fit in `found`: -1."""
    n_found = 0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        some, long = sums[start:stop], lengths[start:stop]
        passing = np.int32(0)
        for at in range(some.size):  # counting compiles to vector instructions; a maximum of floats would not
            passing += np.int32(some[at] + rest * long[at] > bar)
        if passing:
            for place in range(start, stop):
                if sums[place] + rest * lengths[place] > bar:
                    if n_found == found.size:
                        return -1
                    found[n_found] = place
                    n_found += 1
    return n_found


@kernel
def finish_sums(hot, lengths, n, bar, sums, lines, line_values, n_lines, found):
    """Add the noted dense lines to the sums, for all centers or only for those that can pass `bar`.

    A center gains at most (length of the rest of the row) * (length of the center over dense features), by Cauchy and
    Schwarz. Returns the number of places in `found` whose sums are complete and hold all that pass `bar`, or -1 when
    all sums are complete.
    """
    if bar <= 0.0 or n_lines < FEW_LINES or n < FEW_CENTERS:
        add_lines(lines, line_values, 0, n_lines, hot, n, sums)
        return -1
    rest = np.float32(0.0)
    for at in range(n_lines):
        rest += line_values[at] * line_values[at]
    added = 0
    while added < n_lines:
        n_found = survivors(sums, np.float32(np.sqrt(rest)), lengths, np.float32(bar), n, found)
        if n_found >= 0:
            for at in range(n_found):
                place = found[at]
                total = sums[place]
                for line in range(added, n_lines):
                    total += line_values[line] * hot[lines[line], place]
                sums[place] = total
            return n_found
        if added == 0:
            sort_by_size(lines, line_values, n_lines)  # most rows never come here
        until = min(added + LINES_AT_ONCE, n_lines)
        add_lines(lines, line_values, added, until, hot, n, sums)
        for at in range(added, until):
            rest -= line_values[at] * line_values[at]
        rest = max(rest, np.float32(0.0))
        added = until
    return -1


@kernel
def largest(sums, n):
    """The place of the largest, the first of equals.

    Compared as integers, which order like floats from 0 up: unlike a maximum of floats, where NaN has to be minded,
    that compiles to vector instructions. Most rows have some center with a cosine of 0 or more.
    """
    bits = sums[:n].view(np.int32)
    best, block = bits[0], 0
    for start in range(0, n, BLOCK):
        part = bits[start : min(start + BLOCK, n)]  # a slice: with indices into the whole it would not be vectors
        top = part[0]
        for at in range(part.size):
            top = max(top, part[at])
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
def two_largest(sums, n, found, n_found):
    """The place of the largest sum, the first of equals, and the second largest sum.

    Among the first `n`, or among the places `found` if n_found >= 0; then there may be none: place -1.
    """
    if n_found < 0:
        best = largest(sums, n)
        top = sums[best]
        sums[best] = -np.inf
        second = sums[largest(sums, n)]
        sums[best] = top
        return best, second
    best, top, second = -1, np.float32(-np.inf), np.float32(-np.inf)
    for at in range(n_found):
        score = sums[found[at]]
        if score > top:
            best, top, second = np.int64(found[at]), score, top
        elif score > second:
            second = score
    return best, second


@kernel
def lower_bound(hot, n, sums, lines, line_values, n_lines):
    """What the best center reaches at least: the whole score of the one that is best without the dense lines."""
    place = largest(sums, n)
    total = sums[place]
    for line in range(n_lines):
        total += line_values[line] * hot[lines[line], place]
    return total


@kernel
def allocate_row_buffers(indptr, start, stop):
    """Buffers for the dense lines of one row and for the centers that may win it."""
    longest = 1
    for row in range(start, stop):
        longest = max(longest, indptr[row + 1] - indptr[row])
    return np.empty(longest, np.int64), np.empty(longest, np.float32), np.empty(MOST_FOUND, np.int64)


@kernel
def how_many_can_win(gap, movement):
    """How many of the centers, ordered by falling movement, moved by more than `gap`."""
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
    indptr, ranks, values, start, stop, hot, lengths, ptr, firsts, places, weights, ids, place_of, movement, sums,
    labels, similarities, others,
):  # fmt: skip
    """Move rows to better centers, in place, scoring only centers that can have become better.

    Before: `similarities` are the cosines to the row's own, new center, `others` bounds from above its cosines to all
    other centers as they were. A center that moved by m gained at most m. So only centers that moved by more than
    similarity - others can win, and they are a prefix of the index, which is ordered by falling `movement`.
    (Unmoved centers have movement 0: this contains the invariant-center filter of Aoyama and Saito.)
    After: `others` bounds the cosines to the new centers. Returns how many scores were needed.
    """
    n_scored = 0
    lines, line_values, found = allocate_row_buffers(indptr, start, stop)
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
        n_lines, met = add_lists(
            ranks, values, indptr[row], indptr[row + 1], ptr, firsts, places, weights, n, sums, lines, line_values
        )
        if not met:
            continue
        if own >= 0 and place_of[own] < n:
            sums[place_of[own]] = -np.inf
        near = similarities[row] if own >= 0 else lower_bound(hot, n, sums, lines, line_values, n_lines)
        bar = near - MARGIN
        n_found = finish_sums(hot, lengths, n, bar, sums, lines, line_values, n_lines, found)
        if n_found >= 0:
            unscored = max(unscored, bar)
        best, second = two_largest(sums, n, found, n_found)
        score = sums[best] if best >= 0 else -np.inf
        if own < 0 or score > similarities[row] + TIE:
            others[row] = unscored if own < 0 else max(unscored, similarities[row])
            labels[row] = ids[best]
            similarities[row] = score
            score = second
        else:
            others[row] = unscored
        others[row] = max(others[row], score)
    return n_scored


@kernel
def nearest_centers(
    indptr, ranks, values, start, stop, hot, lengths, ptr, firsts, places, weights, ids, sums, labels, similarities
):
    """For each row the most similar center and the cosine; -1 and 0 for a row that shares no feature with any."""
    lines, line_values, found = allocate_row_buffers(indptr, start, stop)
    n = ids.size
    for row in range(start, stop):
        labels[row] = -1
        similarities[row] = 0.0
        n_lines, met = add_lists(
            ranks, values, indptr[row], indptr[row + 1], ptr, firsts, places, weights, n, sums, lines, line_values
        )
        if met:
            bar = lower_bound(hot, n, sums, lines, line_values, n_lines) - SLACK
            n_found = finish_sums(hot, lengths, n, bar, sums, lines, line_values, n_lines, found)
            best = two_largest(sums, n, found, n_found)[0]
            labels[row] = ids[best]
            similarities[row] = sums[best]


@kernel
def all_similarities(indptr, ranks, values, start, stop, hot, lengths, ptr, firsts, places, weights, ids, sums, out):
    """Every row's cosine to every center."""
    lines, line_values, _ = allocate_row_buffers(indptr, start, stop)
    for row in range(start, stop):
        n_lines, _ = add_lists(
            ranks, values, indptr[row], indptr[row + 1], ptr, firsts, places, weights, ids.size, sums, lines,
            line_values,
        )  # fmt: skip
        add_lines(lines, line_values, 0, n_lines, hot, ids.size, sums)
        for place in range(ids.size):
            out[row, ids[place]] = sums[place]


@kernel
def nearest_few(
    indptr, ranks, values, start, stop, hot, lengths, ptr, firsts, places, weights, ids, sums, found, scores, sizes
):  # fmt: skip
    """For each row the centers with the largest cosines above 0, largest first; `sizes` counts them."""
    lines, line_values, _ = allocate_row_buffers(indptr, start, stop)
    top = found.shape[1]
    for row in range(start, stop):
        n_lines, _ = add_lists(
            ranks, values, indptr[row], indptr[row + 1], ptr, firsts, places, weights, ids.size, sums, lines,
            line_values,
        )  # fmt: skip
        add_lines(lines, line_values, 0, n_lines, hot, ids.size, sums)
        n = 0
        for place in range(ids.size):
            score = sums[place]
            if score > 0.0 and (n < top or score > scores[row, n - 1]):
                at = n if n < top else top - 1
                while at > 0 and score > scores[row, at - 1]:
                    scores[row, at], found[row, at] = scores[row, at - 1], found[row, at - 1]
                    at -= 1
                scores[row, at], found[row, at] = score, ids[place]
                n = min(n + 1, top)
        sizes[row] = n


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
