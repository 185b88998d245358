"""First centers: k-means++ for cosines, its parallel form k-means||, or rows at random.

The distance of a row to its nearest seed is 1 - cosine, half the squared chord between the unit vectors, so this is
the usual D² weighting. Nothing depends on the order of the rows, nor on whether a row is repeated or weighted: rows
are drawn along the order of their keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.errors import BadInput
from shoal.kmeans.centers import centers_from_rows, index_centers
from shoal.kmeans.exact import assign
from shoal.kmeans.exact_kernels import largest_cosine
from shoal.kmeans.rows import UnitRows, row_keys, take_rows
from shoal.progress import task

SAME_DIRECTION = 1e-6  # 1 - cosine up to here is rounding of float32, not distance
REJECTIONS_IN_A_ROW = 30
PARALLEL_ROUNDS = 5
OVERSAMPLING = 0.6  # rows a round takes, for each cluster asked for: three candidates a cluster in all


@dataclass
class Sampler:
    """Draws rows with chances proportional to weight * distance, along the order of the keys."""

    order: np.ndarray
    weights: np.ndarray
    cumulative: np.ndarray

    @classmethod
    def over(cls, order: np.ndarray, weights: np.ndarray) -> Sampler:
        return cls(order, weights, np.cumsum(weights[order]))

    def reweigh(self, weights: np.ndarray) -> None:
        self.weights, self.cumulative = weights, np.cumsum(weights[self.order])

    @property
    def total(self) -> float:
        return float(self.cumulative[-1])

    def draw(self, rng: np.random.Generator) -> int:
        at = int(np.searchsorted(self.cumulative, rng.random() * self.total, side="right"))
        return int(self.order[min(at, self.order.size - 1)])


def distinct_rows(keys: np.ndarray, row_weights: np.ndarray) -> np.ndarray:
    """One row for each distinct direction that has weight, in the order of their keys."""
    usable = np.flatnonzero((keys != 0) & (row_weights > 0))
    _, first = np.unique(keys[usable], return_index=True)
    return np.asarray(usable[first])


def choose_seeds(
    rows: UnitRows,
    row_weights: np.ndarray,
    n_clusters: int,
    how: str,
    rng: np.random.Generator,
    n_threads: int | None = None,
) -> np.ndarray:
    """Row numbers of ``n_clusters`` distinct seeds."""
    keys = row_keys(rows, n_threads)
    distinct = distinct_rows(keys, row_weights)
    if not row_weights.any():
        raise BadInput("every sample weight is zero: there is nothing to cluster. Give some row a weight above 0.")
    if distinct.size < n_clusters:
        raise BadInput(
            f"n_clusters={n_clusters} is more than the {distinct.size} distinct rows of X (n_samples={rows.n_rows}, "
            f"n_features={rows.n_features}; rows that differ only in length count once, empty rows and rows of weight "
            f"0 not at all). Ask for at most {distinct.size} clusters."
        )
    if how == "random":
        return _random_rows(keys, row_weights, distinct, n_clusters, rng)
    if how == "k-means||":
        return _parallel(rows, row_weights, keys, distinct, n_clusters, rng, n_threads)
    return _plus_plus(rows, row_weights, keys, distinct, n_clusters, rng, n_threads)


def _random_rows(
    keys: np.ndarray, row_weights: np.ndarray, distinct: np.ndarray, n_clusters: int, rng: np.random.Generator
) -> np.ndarray:
    """Distinct rows with chances proportional to the weight of all their copies (Efraimidis and Spirakis' race)."""
    mass = np.zeros(distinct.size)
    alive = (keys != 0) & (row_weights > 0)
    np.add.at(mass, np.searchsorted(keys[distinct], keys[alive]), row_weights[alive])
    arrival = rng.exponential(size=distinct.size) / mass
    return distinct[np.argsort(arrival, kind="stable")[:n_clusters]]


def _plus_plus(
    rows: UnitRows,
    row_weights: np.ndarray,
    keys: np.ndarray,
    distinct: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
    n_threads: int | None,
) -> np.ndarray:
    """k-means++ by rejection: exactly its distribution, at the cost of a dozen passes rather than k.

    Distances only shrink as seeds are added, so stale ones are upper bounds: draw by the stale distance, accept with
    probability true / stale. The true one needs only the seeds chosen since the last pass over the rows. (Cohen-Addad
    et al. 2020 draw by rejection in the same way.)
    """
    mass = np.where(keys != 0, row_weights, 0.0)
    nearest = np.full(rows.n_rows, -np.inf)
    sampler = Sampler.over(np.argsort(keys, kind="stable"), mass)
    seeds = [sampler.draw(rng)]
    pending = list(seeds)
    rejected = 0
    with task("seeding", total=n_clusters) as bar:
        while len(seeds) < n_clusters:
            if len(pending) > len(seeds) // 3 or rejected >= REJECTIONS_IN_A_ROW:
                fresh = index_centers(centers_from_rows(rows, np.array(pending)), rows.n_ranks)
                nearest = np.maximum(nearest, assign(rows, fresh, n_threads)[1])
                distance = 1.0 - nearest
                distance[distance <= SAME_DIRECTION] = 0.0
                sampler.reweigh(mass * distance)
                pending, rejected = [], 0
                bar.at(len(seeds))
                if sampler.total <= 0:  # all that is left are copies up to rounding
                    left = distinct[~np.isin(keys[distinct], keys[seeds])]
                    seeds += rng.permutation(left)[: n_clusters - len(seeds)].tolist()
                    break
            candidate = sampler.draw(rng)
            true = 1.0 - max(nearest[candidate], _largest_cosine(rows, candidate, pending))
            if true > SAME_DIRECTION and rng.random() * (1.0 - nearest[candidate]) < true:
                seeds.append(candidate)
                pending.append(candidate)
                rejected = 0
            else:
                rejected += 1
    return np.array(seeds)


def _largest_cosine(rows: UnitRows, row: int, others: list[int]) -> float:
    """The largest cosine of one row to a few others."""
    if not others:
        return -np.inf
    index = centers_from_rows(rows, np.array([row, *others]))
    return float(largest_cosine(index.indptr, index.ranks, index.weights))


def _parallel(
    rows: UnitRows,
    row_weights: np.ndarray,
    keys: np.ndarray,
    distinct: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
    n_threads: int | None,
) -> np.ndarray:
    """k-means|| (Bahmani et al. 2012): a few rounds that each take many far rows, then k-means++ among those."""
    mass = np.where(keys != 0, row_weights, 0.0)
    nearest = np.full(rows.n_rows, -np.inf)
    by_key = np.argsort(keys, kind="stable")
    chosen = np.array([Sampler.over(by_key, mass).draw(rng)])
    fresh = chosen
    for _ in range(PARALLEL_ROUNDS):
        index = index_centers(centers_from_rows(rows, fresh), rows.n_ranks)
        nearest = np.maximum(nearest, assign(rows, index, n_threads)[1])
        chances = mass * np.maximum(1.0 - nearest, 0.0)
        if chances.sum() <= 0:
            break
        chances *= OVERSAMPLING * n_clusters / chances.sum()
        fresh = np.setdiff1d(by_key[rng.random(rows.n_rows) < chances[by_key]], chosen)
        if not fresh.size:
            continue
        chosen = np.concatenate([chosen, fresh])
    chosen = chosen[np.unique(keys[chosen], return_index=True)[1]]
    if chosen.size < n_clusters:  # few rows, or few far ones: the rounds found too little, any others will do
        left = rng.permutation(distinct[~np.isin(keys[distinct], keys[chosen])])
        chosen = np.concatenate([chosen, left[: n_clusters - chosen.size]])
    index = index_centers(centers_from_rows(rows, chosen), rows.n_ranks)
    labels, _ = assign(rows, index, n_threads)
    served = np.bincount(labels[labels >= 0], weights=mass[labels >= 0], minlength=chosen.size)
    candidates = take_rows(rows, chosen)
    picked = _plus_plus(
        candidates, np.maximum(served, 1e-12), keys[chosen], np.arange(chosen.size), n_clusters, rng, n_threads
    )
    return np.asarray(chosen[picked])
