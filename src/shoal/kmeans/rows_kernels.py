# mypy: ignore-errors
"""Kernels that bring rows to unit length and order their features by how common they are."""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel

SHORT_ROW = 48  # up to here an insertion sort beats the general one


@kernel
def unit_length(indptr, values, start, stop, lengths, out):
    """Divide each row by its Euclidean length. Scaling by the largest value first keeps tiny and huge rows exact."""
    for row in range(start, stop):
        largest = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            largest = max(largest, abs(values[at]))
        total = 0.0
        if largest > 0.0:
            for at in range(indptr[row], indptr[row + 1]):
                total += (values[at] / largest) ** 2
        root = np.sqrt(total)
        length = largest * root
        lengths[row] = length
        plain = 1e-290 < length < np.inf  # otherwise the length itself is rounded badly, or infinite
        for at in range(indptr[row], indptr[row + 1]):
            if plain:
                out[at] = values[at] / length
            else:
                out[at] = (values[at] / largest) / root if largest > 0.0 else 0.0


@kernel
def keep_known(indptr, columns, values, rank_of, start, stop, kept, ranks, weights):
    """Copy the entries whose column has a rank (>= 0), by rank, from `indptr[row]` on; `kept[row]` counts them."""
    for row in range(start, stop):
        first = indptr[row]
        n = 0
        for at in range(first, indptr[row + 1]):
            rank = rank_of[columns[at]]
            if rank >= 0 and values[at] != 0.0:
                ranks[first + n] = rank
                weights[first + n] = values[at]
                n += 1
        kept[row] = n
        if n > SHORT_ROW:
            order = np.argsort(ranks[first : first + n])
            ranks[first : first + n] = ranks[first : first + n][order]
            weights[first : first + n] = weights[first : first + n][order]
        else:
            sort_short(ranks, weights, first, first + n)


@kernel
def sort_short(keys, values, start, stop):
    """Insertion sort of `keys[start:stop]`, carrying `values` along."""
    for at in range(start + 1, stop):
        key, value = keys[at], values[at]
        before = at - 1
        while before >= start and keys[before] > key:
            keys[before + 1] = keys[before]
            values[before + 1] = values[before]
            before -= 1
        keys[before + 1] = key
        values[before + 1] = value


@kernel
def close_gaps(indptr, kept, new_indptr, ranks, weights):
    """Move the kept entries of every row together, in place."""
    for row in range(kept.size):
        source, target = indptr[row], new_indptr[row]
        if source != target:
            for i in range(kept[row]):
                ranks[target + i] = ranks[source + i]
                weights[target + i] = weights[source + i]
