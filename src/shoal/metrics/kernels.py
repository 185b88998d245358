"""Counting pairs of items by the chance that they belong together."""

from __future__ import annotations

from shoal.jit import kernel


@kernel
def count_pairs_above(together, truth_of_rows, truth_of_columns, first_column, thresholds, same, different):
    """Add each pair to the bin of the number of ``thresholds`` (ascending) that its chance exceeds.

    ``together[row, column]`` is the chance for row ``row`` and column ``first_column + column`` of a common order of
    items; only pairs in which the column comes later than the row are counted, so that each pair counts once.
    """
    for row in range(together.shape[0]):
        for column in range(max(0, row + 1 - first_column), together.shape[1]):
            chance = together[row, column]
            low, high = 0, thresholds.size
            while low < high:
                middle = (low + high) // 2
                if thresholds[middle] < chance:
                    low = middle + 1
                else:
                    high = middle
            if truth_of_rows[row] == truth_of_columns[column]:
                same[low] += 1
            else:
                different[low] += 1
