# mypy: ignore-errors
"""Counting pairs of items by the chance that they belong together."""

from __future__ import annotations

from shoal.jit import kernel


@kernel
def count_pairs_above(together, truth_of_rows, truth_of_columns, first_column, thresholds, guide, same, different):
    """Add each pair to the bin of the number of ``thresholds`` (ascending) that its chance exceeds.

    ``together[row, column]`` is the chance for row ``row`` and column ``first_column + column`` of a common order of
    items; only pairs in which the column comes later than the row are counted, so that each pair counts once.
    ``guide[g]`` is how many thresholds lie below g / (guide.size - 1): where the search for a chance can begin.
    """
    scale = guide.size - 1
    for row in range(together.shape[0]):
        for column in range(max(0, row + 1 - first_column), together.shape[1]):
            chance = together[row, column]
            bin_ = 0
            if chance > thresholds[0]:  # most pairs are not together at all
                bin_ = guide[min(int(chance * scale), scale)]
                while bin_ < thresholds.size and thresholds[bin_] < chance:
                    bin_ += 1
            if truth_of_rows[row] == truth_of_columns[column]:
                same[bin_] += 1
            else:
                different[bin_] += 1
