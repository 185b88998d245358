"""k-means++ seeding for any distance: k-means, clusters of distributions and Gaussian mixtures start from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shoal.progress import task

REJECTIONS_IN_A_ROW = 30


@dataclass
class WeightedDraw:
    """Draws rows with chances proportional to their weights, along a fixed order."""

    order: np.ndarray
    cumulative: np.ndarray

    @classmethod
    def over(cls, order: np.ndarray, weights: np.ndarray) -> WeightedDraw:
        """Draws over all rows; the order decides which row a random number stands for."""
        return cls(order, np.cumsum(weights[order]))

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.cumulative[-1])

    def draw(self, rng: np.random.Generator) -> int:
        """One row number."""
        at = int(np.searchsorted(self.cumulative, rng.random() * self.total, side="right"))
        return int(self.order[min(at, self.order.size - 1)])


def kmeans_plus_plus(
    weights: np.ndarray,
    n_clusters: int,
    distances_to: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
    *,
    order: np.ndarray | None = None,
    distance: Callable[[int, list[int]], float] | None = None,
) -> np.ndarray:
    """Row numbers of up to ``n_clusters`` seeds, each drawn in proportion to weight x distance to the nearest seed.

    Distances only shrink as seeds are added, so stale ones are upper bounds. When ``distance`` can compute the distance
    of a single row, rows are drawn by stale distances and accepted with probability true / stale (Cohen-Addad et al.
    2020): exactly the distribution of k-means++, at the cost of a dozen passes over the rows instead of one per seed.

    Parameters
    ----------
    weights : (n_rows,) weights of the rows, 0 or more and not all 0.
    n_clusters : how many seeds to draw.
    distances_to : gives the distance of every row to the nearest of some seeds (row numbers), 0 where they coincide.
    rng : random generator.
    order : row numbers in the order along which random numbers are laid; the order of the rows if not given.
    distance : gives the distance of one row to the nearest of a few seeds.

    Returns
    -------
    Row numbers; fewer than ``n_clusters`` when every remaining row coincides with a seed.

    Examples
    --------
    >>> x = np.array([0.0, 0.0, 5.0, 5.0])
    >>> seeds = kmeans_plus_plus(
    ...     np.ones(4), 2, lambda seeds: np.abs(x[:, None] - x[seeds]).min(1), np.random.default_rng(0))
    >>> sorted(x[seeds].tolist())
    [0.0, 5.0]
    """
    order = np.arange(weights.size) if order is None else order
    nearest = np.full(weights.size, np.inf)
    draws = WeightedDraw.over(order, weights)
    seeds = [draws.draw(rng)]
    pending = list(seeds)
    rejected = 0
    with task("seeding", total=n_clusters) as bar:
        while len(seeds) < n_clusters:
            if distance is None or len(pending) > len(seeds) // 3 or rejected >= REJECTIONS_IN_A_ROW:
                nearest = np.minimum(nearest, distances_to(np.array(pending)))
                draws = WeightedDraw.over(order, weights * nearest)
                pending, rejected = [], 0
                bar.at(len(seeds))
                if not draws.total > 0:
                    break
            candidate = draws.draw(rng)
            if distance is not None:
                true = min(nearest[candidate], distance(candidate, pending)) if pending else nearest[candidate]
                if not (true > 0 and rng.random() * nearest[candidate] < true):
                    rejected += 1
                    continue
                rejected = 0
            seeds.append(candidate)
            pending.append(candidate)
    return np.array(seeds)
