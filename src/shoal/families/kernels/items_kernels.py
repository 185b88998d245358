"""Rows in the order in which samplers read them: rare features first."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from shoal.jit import kernel


@kernel
def prepare_rows(ptr, features, counts, frequency, budget, least, n_clusters, scan, indexed):
    """Sort each row from rare to common, and choose the prefix of rare features that looks for candidates: as many as
    fit in the budget of postings, and at least `least` of them."""
    for row in range(len(ptr) - 1):
        first, last = ptr[row], ptr[row + 1]
        rarity = np.empty(last - first, np.int64)
        for at in range(first, last):
            rarity[at - first] = frequency[features[at]]
        order = np.argsort(rarity, kind="mergesort")
        features[first:last] = features[first:last][order]
        counts[first:last] = counts[first:last][order]
        cost, n = 0, 0
        for at in range(first, last):
            cost += min(frequency[features[at]], n_clusters)
            if cost > budget and n >= least:
                break
            n += 1
            indexed[features[at]] = True
        scan[row] = n
