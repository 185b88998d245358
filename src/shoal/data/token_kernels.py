"""From bytes to numbered features: cut rows into slices, number the slices, add them up row by row."""

# mypy: ignore-errors
import numpy as np

from shoal.data.vocabulary_kernels import ID_BITS, ID_MASK, TAG_SHIFT, find_slot, hash_bytes
from shoal.jit import kernel

SPACE = 32
NOT_A_WORD = -1
NEEDS_NEIGHBOURS = -2


@kernel
def doubled(array, used):
    larger = np.empty(array.size * 2, array.dtype)
    larger[:used] = array[:used]
    return larger


@kernel
def next_code_point(text, at, stop):
    """The code point that begins at ``at`` and where the next begins; never reads past ``stop``."""
    first = np.int64(text[at])
    if first < 0x80:
        return first, at + 1
    if first < 0xE0:
        length, point = 2, first & 0x1F
    elif first < 0xF0:
        length, point = 3, first & 0x0F
    else:
        length, point = 4, first & 0x07
    end = min(at + length, stop)
    for next_at in range(at + 1, end):
        point = (point << 6) | (np.int64(text[next_at]) & 0x3F)
    return min(point, 0x10FFFF), end


@kernel
def put_code_point(point, out, at):
    """Write a code point as UTF-8; where the next one goes."""
    if point < 0x80:
        out[at] = point
        return at + 1
    if point < 0x800:
        out[at] = 0xC0 | (point >> 6)
        out[at + 1] = 0x80 | (point & 0x3F)
        return at + 2
    if point < 0x10000:
        out[at] = 0xE0 | (point >> 12)
        out[at + 1] = 0x80 | ((point >> 6) & 0x3F)
        out[at + 2] = 0x80 | (point & 0x3F)
        return at + 3
    out[at] = 0xF0 | (point >> 18)
    out[at + 1] = 0x80 | ((point >> 12) & 0x3F)
    out[at + 2] = 0x80 | ((point >> 6) & 0x3F)
    out[at + 3] = 0x80 | (point & 0x3F)
    return at + 4


@kernel
def cut_words(text, offsets, folded, stop_table, stop_names, stop_offsets, words, starts, stops, row_ends):
    """Write each row's words of two letters or more, folded, with one space between; stop words are left out.

    ``folded[code point]`` is the letter to write, -1 where the code point ends a word, -2 where it cannot be folded
    alone. Because a single space separates neighbours, a pair of words is the slice from the first one's start to the
    second one's stop. Returns the number of words, or -1 at the first letter that cannot be folded alone.
    """
    n_words = 0
    out = 0
    for row in range(row_ends.size):
        at, stop = offsets[row], offsets[row + 1]
        while at < stop:
            begin, letters, point = out, 0, 0
            while at < stop:
                byte = text[at]
                if byte < 0x80:  # most text is ASCII
                    point = folded[byte]
                    if point < 0:
                        break
                    words[out] = point
                    out += 1
                    at += 1
                else:
                    raw, after = next_code_point(text, at, stop)
                    point = folded[raw]
                    if point < 0:
                        break
                    out = put_code_point(point, words, out)
                    at = after
                letters += 1
            if point == NEEDS_NEIGHBOURS:
                return -1
            if letters >= 2 and not is_stop_word(stop_table, stop_names, stop_offsets, words, begin, out):
                starts[n_words] = begin
                stops[n_words] = out
                n_words += 1
                words[out] = SPACE
                out += 1
            else:
                out = begin
            at = skip_to_word(text, at, stop, folded)
        row_ends[row] = n_words
    return n_words


@kernel
def skip_to_word(text, at, stop, folded):
    """Past everything that is no part of a word; a letter that cannot be folded alone is left for the caller."""
    while at < stop:
        raw, after = np.int64(text[at]), at + 1
        if raw >= 0x80:
            raw, after = next_code_point(text, at, stop)
        if folded[raw] != NOT_A_WORD:
            return at
        at = after
    return at


@kernel
def is_stop_word(stop_table, stop_names, stop_offsets, words, start, stop):
    if stop_table.size == 1:  # no stop words
        return False
    hashed = hash_bytes(words, start, stop)
    return stop_table[find_slot(stop_table, stop_names, stop_offsets, words, start, stop, hashed)] >= 0


@kernel
def add_pairs(starts, stops, row_ends, all_starts, all_stops, all_ends):
    """Each row's words, followed by its pairs of neighbours."""
    out = 0
    first = 0
    for row in range(row_ends.size):
        last = row_ends[row]
        for word in range(first, last):
            all_starts[out], all_stops[out] = starts[word], stops[word]
            out += 1
        for word in range(first, last - 1):
            all_starts[out], all_stops[out] = starts[word], stops[word + 1]
            out += 1
        all_ends[row] = out
        first = last
    return out


@kernel
def cut_at(text, offsets, delimiter, starts, stops, row_ends):
    """Cut rows at a delimiter (some bytes); blanks around a piece are left out, and so are empty pieces."""
    n_pieces = 0
    width = delimiter.size
    for row in range(row_ends.size):
        begin, stop = offsets[row], offsets[row + 1]
        at = begin
        while at <= stop:
            here = at + width <= stop
            for step in range(width):
                here = here and text[at + step] == delimiter[step]
            if not here and at < stop:
                at += 1
                continue
            first, last = begin, at
            while first < last and is_blank(text[first]):
                first += 1
            while first < last and is_blank(text[last - 1]):
                last -= 1
            if last > first:
                starts[n_pieces], stops[n_pieces] = first, last
                n_pieces += 1
            if not here:
                break
            at += width
            begin = at
        row_ends[row] = n_pieces
    return n_pieces


@kernel
def is_blank(byte):
    return byte == 32 or 9 <= byte <= 13


@kernel
def number_slices(data, starts, stops, ids):
    """Number the slices in the order they are first seen; an empty slice gets -1. Returns the names and offsets."""
    table = np.full(1 << 12, -1, np.int64)
    hashes = np.empty(1 << 11, np.int64)
    offsets = np.zeros(1 << 11, np.int64)
    names = np.empty(1 << 14, np.uint8)
    n_names = 0
    for piece in range(ids.size):
        start, stop = starts[piece], stops[piece]
        if stop <= start:
            ids[piece] = -1
            continue
        hashed = hash_bytes(data, start, stop)
        slot = find_slot(table, names, offsets, data, start, stop, hashed)
        if table[slot] < 0:
            end = offsets[n_names]
            while end + stop - start > names.size:
                names = doubled(names, end)
            names[end : end + stop - start] = data[start:stop]
            if n_names + 2 > offsets.size:
                offsets = doubled(offsets, n_names + 1)
                hashes = doubled(hashes, n_names)
            offsets[n_names + 1] = end + stop - start
            hashes[n_names] = hashed
            table[slot] = ((hashed >> TAG_SHIFT) << ID_BITS) | np.int64(n_names)
            ids[piece] = n_names
            n_names += 1
            if 2 * n_names > table.size:
                table = spread(hashes, n_names, table.size * 2)
        else:
            ids[piece] = table[slot] & ID_MASK
    return names[: offsets[n_names]].copy(), offsets[: n_names + 1].copy()


@kernel
def spread(hashes, n_names, size):
    """A larger table for names that are known to differ."""
    table = np.full(size, -1, np.int64)
    for name in range(n_names):
        slot = hashes[name] & (size - 1)
        while table[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = ((hashes[name] >> TAG_SHIFT) << ID_BITS) | np.int64(name)
    return table


@kernel
def add_up_rows(row_ends, ids, weights, n_names, indices, values, counts):
    """Sum the weights of equal features within each row. An empty ``weights`` means 1 each.

    Returns how many (row, feature) cells were written; ``counts[row]`` says how many belong to the row.
    """
    last_row = np.full(n_names, -1, np.int64)
    place = np.empty(n_names, np.int64)
    cells = 0
    first = 0
    for row in range(row_ends.size):
        began = cells
        for piece in range(first, row_ends[row]):
            name = ids[piece]
            weight = weights[piece] if weights.size else 1.0
            if name < 0 or weight == 0.0:
                continue
            if last_row[name] == row:
                values[place[name]] += weight
            else:
                last_row[name], place[name] = row, cells
                indices[cells] = name
                values[cells] = weight
                cells += 1
        first = row_ends[row]
        counts[row] = cells - began
    return cells


@kernel
def sort_rows(first_row, last_row, indptr, indices, values):
    """Put each row's cells in the order of their columns, in place."""
    for row in range(first_row, last_row):
        start, stop = indptr[row], indptr[row + 1]
        if stop - start > 64:
            order = np.argsort(indices[start:stop])
            indices[start:stop] = indices[start:stop][order]
            values[start:stop] = values[start:stop][order]
            continue
        for at in range(start + 1, stop):
            column, value = indices[at], values[at]
            back = at
            while back > start and indices[back - 1] > column:
                indices[back], values[back] = indices[back - 1], values[back - 1]
                back -= 1
            indices[back], values[back] = column, value


@kernel
def place_pairs(rows, columns, weights, next_place, indices, values):
    """Put each pair where its row's next cell goes. An empty ``weights`` means 1 each."""
    for pair in range(rows.size):
        at = next_place[rows[pair]]
        next_place[rows[pair]] = at + 1
        indices[at] = columns[pair]
        values[at] = weights[pair] if weights.size else 1.0


@kernel
def merge_equal(indptr, indices, values):
    """Add up, in place, the cells of a column that stands twice or more in a (sorted) row. Returns the cells left."""
    cells = indptr[0]
    first = indptr[0]
    for row in range(indptr.size - 1):
        began = cells
        for at in range(first, indptr[row + 1]):
            if cells > began and indices[cells - 1] == indices[at]:
                values[cells - 1] += values[at]
            else:
                indices[cells], values[cells] = indices[at], values[at]
                cells += 1
        first = indptr[row + 1]
        indptr[row + 1] = cells
    return cells


@kernel
def weigh_rows(first_row, last_row, indptr, indices, counts, binary, sublinear, idf, unit_length, values):
    """Cells as 1 or their count, damped, times the feature's idf (none if empty), and rows made unit length."""
    for row in range(first_row, last_row):
        largest = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            value = 1.0 if binary else np.float64(counts[at])
            if sublinear:
                value = 1.0 + np.log(value)
            if idf.size:
                value *= idf[indices[at]]
            values[at] = value
            largest = max(largest, abs(value))
        if unit_length and largest > 0.0:
            squares = 0.0
            for at in range(indptr[row], indptr[row + 1]):
                squares += values[at] * values[at]
            # Squares of numbers beyond 1e154 or below 1e-154 leave the range of float64; those rows are scaled first.
            if not 1e-200 < squares < 1e300:
                squares = 0.0
                for at in range(indptr[row], indptr[row + 1]):
                    values[at] /= largest
                    squares += values[at] * values[at]
            length = np.sqrt(squares)
            for at in range(indptr[row], indptr[row + 1]):
                values[at] /= length
