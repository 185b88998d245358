# mypy: ignore-errors
"""Choosing rows that lie far from one another."""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel


@kernel
def spread_out(indptr, indices, values, n_features, draws, interest, chosen):
    """k-means++ on unit rows: fill ``chosen`` with rows, each drawn by distance to the nearest one before.

    ``interest`` (n_rows,) is how much each row is wanted to begin with; ``draws`` are uniform numbers, one per choice.
    The count of rows chosen is returned: fewer than asked when no row is left that differs from those chosen.
    """
    n_rows = indptr.size - 1
    nearness = np.zeros(n_rows)
    seed = np.zeros(n_features)
    for number in range(chosen.size):
        total = 0.0
        for row in range(n_rows):
            total += interest[row] * max(1.0 - nearness[row], 0.0)
        if total <= 1e-9:
            return number
        target, pick, last = draws[number] * total, -1, -1
        for row in range(n_rows):
            mass = interest[row] * max(1.0 - nearness[row], 0.0)
            if mass > 0:
                last = row
            target -= mass
            if target <= 0 and mass > 0:
                pick = row
                break
        if pick < 0:
            pick = last
        chosen[number] = pick
        for at in range(indptr[pick], indptr[pick + 1]):
            seed[indices[at]] = values[at]
        for row in range(n_rows):
            near = 0.0
            for at in range(indptr[row], indptr[row + 1]):
                near += values[at] * seed[indices[at]]
            nearness[row] = max(nearness[row], near)
        nearness[pick] = 1.0
        for at in range(indptr[pick], indptr[pick + 1]):
            seed[indices[at]] = 0.0
    return chosen.size
