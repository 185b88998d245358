"""First centers: k-means++ for cosines, its parallel form k-means||, or rows at random.

The distance of a row to its nearest seed is 1 - cosine, half the squared chord between the unit vectors, so this is
the usual D² weighting. Nothing depends on the order of the rows, nor on whether a row is repeated or weighted: rows
are drawn along the order of their keys, or by numbers made from their keys.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shoal.engine import fold
from shoal.errors import BadInput
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import CenterIndex, Centers, centers_from_rows, index_centers
from shoal.kmeans.exact import assign
from shoal.kmeans.exact_kernels import largest_cosine
from shoal.kmeans.lloyd import inner_threads
from shoal.kmeans.rows import UnitRows, mixed, row_keys
from shoal.kmeans_plus_plus import kmeans_plus_plus

SAME_DIRECTION = 1e-6  # 1 - cosine up to here is rounding of float32, not distance
PARALLEL_ROUNDS = 5
OVERSAMPLING = 0.6  # rows a round takes, for each cluster asked for: three candidates a cluster in all


def first_centers(
    blocks: list[Block], n_clusters: int, how: str, rng: np.random.Generator, n_threads: int | None = None
) -> Centers:
    """``n_clusters`` distinct rows. Over several blocks k-means++ would need a pass for every few seeds: there the
    candidates of k-means|| take its place."""
    require_distinct_rows(blocks, n_clusters, n_threads)
    if how == "random":
        return random_rows(blocks, n_clusters, rng, n_threads)
    if how == "k-means||" or len(blocks) > 1:
        return parallel(blocks, n_clusters, rng, n_threads)
    rows = blocks[0].open()
    return centers_from_rows(rows, plus_plus(rows, blocks[0].weights, n_clusters, rng, n_threads))


def require_distinct_rows(blocks: list[Block], n_clusters: int, n_threads: int | None = None) -> None:
    """Refuse more clusters than rows that differ."""
    if not any(block.weights.any() for block in blocks):
        raise BadInput("every sample weight is zero: there is nothing to cluster. Give some row a weight above 0.")
    step = partial(distinct_keys, n_threads=inner_threads(blocks, n_threads))
    keys, n_rows = fold(blocks, step, merge_keys, n_clusters, n_threads=n_threads).stats
    if not keys.size:
        raise BadInput(f"all {n_rows} rows of X are empty (n_samples={n_rows}): there is nothing to cluster.")
    if keys.size < n_clusters:
        raise BadInput(
            f"n_clusters={n_clusters} is more than the {keys.size} distinct rows of X (n_samples={n_rows}, "
            f"n_features={blocks[0].open().n_features}; rows that differ only in length count once, empty rows and "
            f"rows of weight 0 not at all). Ask for at most {keys.size} clusters."
        )


def distinct_keys(
    block: Block, n: int, memory: None = None, *, n_threads: int | None = 1
) -> tuple[tuple[np.ndarray, int], None]:
    """The ``n`` smallest keys of distinct rows that have weight: enough to see whether there are n, or how many."""
    keys = row_keys(block.open(), n_threads)
    return (np.unique(keys[(keys != 0) & (block.weights > 0)])[:n], block.n_rows), None


def merge_keys(a: tuple[np.ndarray, int], b: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
    """The keys of both."""
    return np.union1d(a[0], b[0]), a[1] + b[1]


# --- k-means++ --------------------------------------------------------------------------------------------------------


def plus_plus(
    rows: UnitRows, weights: np.ndarray, n_clusters: int, rng: np.random.Generator, n_threads: int | None = None
) -> np.ndarray:
    """Row numbers of distinct seeds, by k-means++."""
    keys = row_keys(rows, n_threads)
    mass = np.where(keys != 0, weights, 0.0)

    def distances_to(seeds: np.ndarray) -> np.ndarray:
        index = index_centers(centers_from_rows(rows, seeds), rows.n_ranks)
        distance = 1.0 - assign(rows, index, n_threads)[1]
        distance[distance <= SAME_DIRECTION] = 0.0
        return distance

    def distance(row: int, seeds: list[int]) -> float:
        few = centers_from_rows(rows, np.array([row, *seeds]))
        apart = 1.0 - float(largest_cosine(few.indptr, few.ranks, few.weights))
        return apart if apart > SAME_DIRECTION else 0.0

    order = np.argsort(keys, kind="stable")
    seeds = kmeans_plus_plus(mass, n_clusters, distances_to, rng, order=order, distance=distance)
    if seeds.size < n_clusters:  # all that is left are copies up to rounding
        usable = np.flatnonzero(mass > 0)
        distinct = usable[np.unique(keys[usable], return_index=True)[1]]
        left = distinct[~np.isin(keys[distinct], keys[seeds])]
        seeds = np.concatenate([seeds, rng.permutation(left)[: n_clusters - seeds.size]])
    return seeds


# --- k-means||: a few passes that each take many far rows -------------------------------------------------------------


class Candidates(NamedTuple):
    """Rows drawn in a pass, by ascending key."""

    keys: np.ndarray
    centers: Centers


class Nearest(NamedTuple):
    """What a block keeps while seeding."""

    keys: np.ndarray
    distance: np.ndarray  # 1 - cosine to the nearest candidate so far


class Draw(NamedTuple):
    """What the blocks need to draw: new candidates, and by what to multiply weight x distance."""

    candidates: CenterIndex | None
    scale: float
    salt: np.uint64


def parallel(blocks: list[Block], n_clusters: int, rng: np.random.Generator, n_threads: int | None = None) -> Centers:
    """k-means|| (Bahmani et al. 2012): a few rounds over the blocks, then k-means++ among the rows they took."""
    n_ranks = blocks[0].open().n_ranks
    inner = inner_threads(blocks, n_threads)
    salts = rng.integers(1, 2**63, PARALLEL_ROUNDS + 2).astype(np.uint64)
    # The first candidate: the smallest of exponential arrival times with the weights as rates.
    chosen = smallest_arrivals(blocks, 1, salts[-1], n_threads)
    fresh: Candidates = chosen
    memories: Any = None
    total = 0.0
    for salt in salts[:PARALLEL_ROUNDS]:
        if fresh.keys.size:
            draw = Draw(index_centers(fresh.centers, n_ranks), 0.0, salt)
            step = partial(draw_nearer, n_threads=inner)
            total, memories = fold(blocks, step, _add, draw, memories=memories, n_threads=n_threads)
        if total <= 0:
            break
        draw = Draw(None, OVERSAMPLING * n_clusters / total, salt)
        fresh = fold(blocks, draw_far_rows, merge_candidates, draw, memories=memories, n_threads=n_threads).stats
        new = np.flatnonzero(~np.isin(fresh.keys, chosen.keys))
        fresh = Candidates(fresh.keys[new], fresh.centers.take(new))
        if fresh.keys.size:
            chosen = merge_candidates(chosen, fresh)
    if chosen.keys.size < n_clusters:  # few rows, or few far ones: any others will do
        chosen = merge_candidates(chosen, smallest_arrivals(blocks, 2 * n_clusters, salts[-2], n_threads))
    served = fold(
        blocks, partial(serve, n_threads=inner), _add, index_centers(chosen.centers, n_ranks), n_threads=n_threads
    ).stats
    rows = as_rows(chosen.centers, blocks[0].open())
    return chosen.centers.take(plus_plus(rows, np.maximum(served, 1e-12), n_clusters, rng, n_threads))


def draw_nearer(
    block: Block, draw: Draw, memory: Nearest | None = None, *, n_threads: int | None = 1
) -> tuple[float, Nearest]:
    """Bring each row's distance up to date with the new candidates; the sum of weight x distance."""
    rows = block.open()
    assert draw.candidates is not None
    distance = np.maximum(1.0 - assign(rows, draw.candidates, n_threads)[1], 0.0)
    keys = row_keys(rows, n_threads) if memory is None else memory.keys
    if memory is not None:
        distance = np.minimum(distance, memory.distance)
    return float(np.where(keys != 0, block.weights, 0.0) @ distance), Nearest(keys, distance)


def draw_far_rows(block: Block, draw: Draw, memory: Nearest | None = None) -> tuple[Candidates, Nearest | None]:
    """Take each row with probability scale x weight x distance, by a number made from its key."""
    assert memory is not None
    chances = np.where(memory.keys != 0, block.weights, 0.0) * memory.distance * draw.scale
    taken = np.flatnonzero(uniform(memory.keys, draw.salt) < chances)
    keys, first = np.unique(memory.keys[taken], return_index=True)
    return Candidates(keys, block.centers(taken[first])), memory


def merge_candidates(a: Candidates, b: Candidates) -> Candidates:
    """The rows of both, equal ones once."""
    keys, first = np.unique(np.concatenate([a.keys, b.keys]), return_index=True)
    return Candidates(keys, a.centers.followed_by(b.centers).take(first))


def serve(
    block: Block, index: CenterIndex, memory: None = None, *, n_threads: int | None = 1
) -> tuple[np.ndarray, None]:
    """The weight of the rows that are nearest to each candidate."""
    labels, _ = assign(block.open(), index, n_threads)
    won = labels >= 0
    return np.bincount(labels[won], block.weights[won], index.n_places), None


def as_rows(centers: Centers, like: UnitRows) -> UnitRows:
    """Centers as rows."""
    lengths = np.ones(len(centers))
    return UnitRows(centers.indptr, centers.ranks, centers.weights, like.columns, like.n_features, lengths)


# --- rows at random ---------------------------------------------------------------------------------------------------


class Arrivals(NamedTuple):
    """Distinct rows with the weight of their copies."""

    keys: np.ndarray
    mass: np.ndarray
    centers: Centers


def random_rows(
    blocks: list[Block], n_clusters: int, rng: np.random.Generator, n_threads: int | None = None
) -> Centers:
    """Distinct rows with chances proportional to the weight of all their copies (Efraimidis and Spirakis' race)."""
    salt = np.uint64(rng.integers(1, 2**63))
    return smallest_arrivals(blocks, n_clusters, salt, n_threads).centers


def smallest_arrivals(blocks: list[Block], n: int, salt: np.uint64, n_threads: int | None) -> Candidates:
    """The ``n`` distinct rows that arrive first, when a row arrives at rate weight."""
    found = fold(blocks, first_arrivals, merge_arrivals, (n, salt), n_threads=n_threads).stats
    order = np.argsort(arrival(found.keys, found.mass, salt), kind="stable")[:n]
    by_key = order[np.argsort(found.keys[order])]
    return Candidates(found.keys[by_key], found.centers.take(by_key))


def first_arrivals(block: Block, draw: tuple[int, np.uint64], memory: None = None) -> tuple[Arrivals, None]:
    """The rows of a block that arrive first. A few more than asked for: copies in other blocks bring rows forward."""
    n, salt = draw
    keys = row_keys(block.open(), 1)
    alive = np.flatnonzero((keys != 0) & (block.weights > 0))
    distinct, first, place = np.unique(keys[alive], return_index=True, return_inverse=True)
    mass = np.bincount(place, block.weights[alive], distinct.size)
    early = np.sort(np.argsort(arrival(distinct, mass, salt), kind="stable")[: 2 * n + 16])
    return Arrivals(distinct[early], mass[early], block.centers(alive[first[early]])), None


def merge_arrivals(a: Arrivals, b: Arrivals) -> Arrivals:
    """Both, with the weight of equal rows added."""
    keys, first, place = np.unique(np.concatenate([a.keys, b.keys]), return_index=True, return_inverse=True)
    mass = np.bincount(place, np.concatenate([a.mass, b.mass]), keys.size)
    return Arrivals(keys, mass, a.centers.followed_by(b.centers).take(first))


def arrival(keys: np.ndarray, mass: np.ndarray, salt: np.uint64) -> np.ndarray:
    """Exponential arrival times at these rates, made from the keys."""
    return -np.log1p(-uniform(keys, salt)) / np.maximum(mass, 1e-300)


def uniform(keys: np.ndarray, salt: np.uint64) -> np.ndarray:
    """A number in [0, 1) for each key: the same for the same key and salt."""
    return (mixed(keys ^ salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _add(a: Any, b: Any) -> Any:
    return a + b
