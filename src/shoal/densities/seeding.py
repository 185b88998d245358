"""First centers: k-means++ with the divergence in place of the squared distance."""

from __future__ import annotations

import numpy as np

from shoal.densities.family import Family
from shoal.densities.statistics import Side, center_side


def spread_out_rows(
    family: Family,
    direction: str,
    X: np.ndarray,
    rows: Side,
    weights: np.ndarray,
    n_clusters: int,
    random: np.random.Generator,
) -> np.ndarray:
    """Row numbers, each drawn in proportion to its divergence from the nearest row drawn before."""
    chosen = [_draw(weights, random)]
    nearest = np.full(X.shape[0], np.inf)
    for _ in range(1, n_clusters):
        last = center_side(family, direction, X[chosen[-1:]])
        nearest = np.minimum(nearest, rows.constants + last.constants[0] - rows.stats @ last.stats[0])
        odds = weights * np.maximum(nearest, 0.0)
        odds[chosen] = 0.0
        chosen.append(_draw(odds if odds.sum() > 0 else weights, random))
    return np.array(chosen)


def _draw(odds: np.ndarray, random: np.random.Generator) -> int:
    ladder = np.cumsum(odds)
    return int(min(np.searchsorted(ladder, random.random() * ladder[-1], side="right"), odds.size - 1))
