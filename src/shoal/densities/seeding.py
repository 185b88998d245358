"""First centers: rows drawn by k-means++ with the divergence in place of the squared distance, or at random."""

from __future__ import annotations

import numpy as np

from shoal.densities.family import Family
from shoal.densities.statistics import Block, Side, center_side
from shoal.kmeans_plus_plus import WeightedDraw, kmeans_plus_plus


def first_centers(
    blocks: list[Block],
    weights: np.ndarray,
    n_clusters: int,
    how: str,
    family: Family,
    direction: str,
    random: np.random.Generator,
) -> np.ndarray:
    """Row numbers of the first centers; rows repeat only where there are too few that differ."""
    X = np.concatenate([block.X for block in blocks]) if len(blocks) > 1 else blocks[0].X
    rows = Side(*(np.concatenate(part) for part in zip(*(block.side for block in blocks), strict=True)))

    def divergence_from(seeds: np.ndarray) -> np.ndarray:
        side = center_side(family, direction, X[seeds])
        table = rows.constants[:, None] + side.constants[None, :] - rows.stats @ side.stats.T
        nearest = np.maximum(table.min(1), 0.0)
        nearest[seeds] = 0.0
        return np.asarray(nearest)

    seeds = kmeans_plus_plus(weights, n_clusters if how == "k-means++" else 1, divergence_from, random).tolist()
    usable = weights.copy()
    usable[seeds] = 0.0
    while len(seeds) < n_clusters:
        seeds.append(WeightedDraw.over(np.arange(len(X)), usable).draw(random))
        usable[seeds[-1]] = 0.0
    return np.array(seeds)
