"""The seam: rows pick centers, the rows of each cluster are summed, sums are merged, centers are updated.

One iteration of Lloyd's algorithm is two passes over the blocks of rows. ``reassign`` moves rows to better centers;
what makes it short (bounds, labels, grouping) is the block's memory. ``accumulate`` sums the clusters that won or lost
rows; the others keep their centers without work. A batch of a stream, or a block that has no memory yet, is one call
of ``accumulate``: it assigns its rows first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from shoal.errors import CannotMerge
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import CenterIndex, Centers, index_centers, spliced
from shoal.kmeans.centers_kernels import (
    cosines_of_members,
    count_entries,
    count_moves,
    directions,
    group_by_label,
    merge_sums,
    sum_clusters,
)
from shoal.kmeans.exact_kernels import reassign_rows
from shoal.threads import ordered_map

CLUSTER_BLOCKS = 16  # each part of the clusters clears d numbers once, so there are few; fixed, whatever the threads
NO_DIRECTION = 1e-9  # a mean shorter than this share of its weight is rounding: the rows cancel


@dataclass(frozen=True)
class Model:
    """What travels to the blocks: centers, and what the last pass found out about them."""

    centers: Centers
    n_ranks: int
    features_kept: int | None = None  # the heaviest features that an update keeps
    movement: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (k,) of each center in the last update
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (k,) of the mean unit row: 1 when rows agree
    changed: np.ndarray | None = None  # (k,) clusters that won or lost rows in the last pass; None: all
    index: CenterIndex | None = None  # of the centers, by falling movement

    @property
    def k(self) -> int:
        """How many centers."""
        return len(self.centers)

    def indexed(self) -> Model:
        """The model with its index, built once for all blocks of a pass."""
        movement = self.movement if self.movement.size else np.full(self.k, np.inf)
        by_movement = np.argsort(-movement, kind="stable")
        return replace(self, movement=movement, index=index_centers(self.centers, self.n_ranks, by_movement))


class Memory(NamedTuple):
    """What a block keeps between passes."""

    labels: np.ndarray  # (n,) int32 places of centers; -1: no center
    similarities: np.ndarray  # (n,) cosines to the own center when it was picked
    others: np.ndarray  # (n,) no cosine to a center other than the own one is larger
    starts: np.ndarray | None = None  # (k + 1,) where the rows of each cluster begin in `members`
    members: np.ndarray | None = None  # rows by label
    thresholds: np.ndarray | None = None  # (k,) of retrieval, for wand


class Moves(NamedTuple):
    """What an assignment pass reports."""

    changed: np.ndarray  # (k,) clusters that won or lost rows
    sizes: np.ndarray  # (k,) rows
    n_moved: int
    n_outliers: int  # rows without a center
    similarity: float  # weighted sum of cosines
    weight: float  # of all rows
    n_scored: int = 0  # cosines computed


class Stats(NamedTuple):
    """Weighted sums of the unit rows of each cluster, as the rows of a sparse matrix over ranks."""

    starts: np.ndarray  # (k,) where the entries of each cluster begin; there may be gaps between clusters
    sizes: np.ndarray  # (k,) how many there are
    ranks: np.ndarray  # int32, in no particular order within a cluster
    sums: np.ndarray  # float64
    mass: np.ndarray  # (k,) weight of the rows summed
    similarity: float  # weighted sum of cosines
    weight: float  # of all rows, assigned or not


# --- rows pick centers ------------------------------------------------------------------------------------------------


def reassign(
    block: Block, model: Model, memory: Memory | None = None, *, n_threads: int | None = 1
) -> tuple[Moves, Memory]:
    """Move rows to better centers, looking only at centers that can have become better for a row."""
    rows, k = block.open(), model.k
    assert model.index is not None
    index, movement = model.index, model.movement[model.index.ids]
    place_of = np.empty_like(index.ids)
    place_of[index.ids] = np.arange(k)
    if memory is None:
        labels, similarities = np.full(rows.n_rows, -1, np.int32), np.zeros(rows.n_rows)
        others = np.full(rows.n_rows, -np.inf)
    else:
        labels, others = memory.labels.copy(), memory.others.copy()
        similarities = own_similarities_again(block, model, memory, n_threads)

    def one_range(part: tuple[int, int]) -> int:
        sums = np.empty(index.n_places, np.float32)
        n_scored = reassign_rows(
            rows.indptr, rows.ranks, rows.values, *part, *index.arrays, index.ids, place_of, movement, sums, labels,
            similarities, others,
        )  # fmt: skip
        return int(n_scored)

    n_scored = sum(ordered_map(one_range, rows.blocks(), n_threads))
    moves = moves_of(block, None if memory is None else memory.labels, labels, similarities, k)
    return moves._replace(n_scored=n_scored), Memory(labels, similarities, others)


def moves_of(block: Block, before: np.ndarray | None, labels: np.ndarray, similarities: np.ndarray, k: int) -> Moves:
    """What changed in this block."""
    changed, sizes = np.zeros(k + 1, np.bool_), np.zeros(k + 1, np.int64)  # the last place takes label -1
    n_moved = int(count_moves(labels[:0] if before is None else before, labels, changed, sizes))
    similarity, weight = float(block.weights @ similarities), float(block.weights.sum())
    return Moves(changed[:k], sizes[:k], n_moved, int(sizes[k]), similarity, weight)


def merge_moves(a: Moves, b: Moves) -> Moves:
    """Both blocks together."""
    return Moves(
        a.changed | b.changed,
        a.sizes + b.sizes,
        a.n_moved + b.n_moved,
        a.n_outliers + b.n_outliers,
        a.similarity + b.similarity,
        a.weight + b.weight,
        a.n_scored + b.n_scored,
    )


def own_similarities_again(block: Block, model: Model, memory: Memory, n_threads: int | None) -> np.ndarray:
    """Each row's cosine to its own center, where that has moved since."""
    rows = block.open()
    out = memory.similarities.copy()
    starts, members = _grouped(memory, model.k)
    moved = np.flatnonzero(model.movement > 0)
    centers = model.centers

    def some_clusters(clusters: np.ndarray) -> None:
        dense = np.zeros(model.n_ranks, np.float32)
        cosines_of_members(
            rows.indptr, rows.ranks, rows.values, starts, members, clusters, centers.indptr, centers.ranks,
            centers.weights, dense, out,
        )  # fmt: skip

    for _ in ordered_map(some_clusters, cluster_blocks(moved), n_threads):
        pass
    return out


def cluster_blocks(clusters: np.ndarray) -> list[np.ndarray]:
    """Clusters in a fixed number of parts, for threads."""
    return [part for part in np.array_split(clusters, CLUSTER_BLOCKS) if part.size]


def _grouped(memory: Memory, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows by label."""
    if memory.starts is not None and memory.members is not None:
        return memory.starts, memory.members
    starts, members = np.zeros(k + 1, np.int64), np.empty(memory.labels.size, np.int64)
    group_by_label(memory.labels, k, starts, members)
    return starts, members


# --- sums of clusters -------------------------------------------------------------------------------------------------


def accumulate(
    block: Block, model: Model, memory: Memory | None = None, *, whole: bool = False, n_threads: int | None = 1
) -> tuple[Stats, Memory]:
    """Sum the rows of every cluster that changed. Each cluster is summed by one thread, in the order of the rows.

    ``whole`` promises that there is no other block: what the update would drop is then left out here.
    """
    if memory is None:
        _, memory = reassign(block, model if model.index is not None else model.indexed(), n_threads=n_threads)
    rows, k = block.open(), model.k
    starts, members = _grouped(memory, k)
    entries = np.zeros(k, np.int64)
    count_entries(rows.indptr, memory.labels, entries)
    if model.changed is not None:
        entries[~model.changed] = 0
    n_keep = (model.features_kept or 0) if whole else 0
    if n_keep:
        entries = np.minimum(entries, n_keep)
    firsts = np.cumsum(entries) - entries
    sizes, mass = np.zeros(k, np.int64), np.zeros(k)
    ranks, sums = np.empty(int(entries.sum()), np.int32), np.empty(int(entries.sum()))

    def some_clusters(part: np.ndarray) -> None:
        weighted = (rows.indptr, rows.ranks, rows.values, block.weights)
        sum_clusters(weighted, starts, members, part, rows.n_ranks, n_keep, firsts, ranks, sums, sizes, mass)

    for _ in ordered_map(some_clusters, cluster_blocks(np.flatnonzero(entries)), n_threads):
        pass
    similarity = float(block.weights @ memory.similarities)
    stats = Stats(firsts, sizes, ranks, sums, mass, similarity, float(block.weights.sum()))
    return stats, memory._replace(starts=starts, members=members)


def merge(a: Stats, b: Stats) -> Stats:
    """The statistics of both sets of rows together."""
    if a.mass.size != b.mass.size:
        raise CannotMerge(
            f"sums of {a.mass.size} clusters cannot be merged with sums of {b.mass.size}; accumulate both against the "
            "same centers."
        )
    most = int(a.sizes.sum() + b.sizes.sum())
    ranks, sums = np.empty(most, np.int32), np.empty(most)
    starts, sizes = np.zeros_like(a.starts), np.zeros_like(a.sizes)
    n_ranks = 1 + int(max(part.ranks[_filled(part)].max(initial=-1) for part in (a, b)))
    n = merge_sums(a[:4], b[:4], n_ranks, starts, sizes, ranks, sums)
    return Stats(
        starts, sizes, ranks[:n].copy(), sums[:n].copy(), a.mass + b.mass, a.similarity + b.similarity,
        a.weight + b.weight,
    )  # fmt: skip


def _filled(stats: Stats) -> np.ndarray | slice:
    """The places that hold entries."""
    n = int(stats.sizes.sum())
    if n == stats.ranks.size:
        return slice(None)
    return np.repeat(stats.starts - np.cumsum(stats.sizes) + stats.sizes, stats.sizes) + np.arange(n)


# --- new centers ------------------------------------------------------------------------------------------------------


def update(model: Model, stats: Stats, *, n_threads: int | None = 1) -> Model:
    """The unit mean of every cluster that was summed, with its heaviest features; the others stay.

    A center also stays when it has no rows, or rows that cancel: then every direction serves them equally.
    """
    clusters = np.flatnonzero(stats.sizes)
    old = model.centers

    def some_clusters(part: np.ndarray) -> tuple[np.ndarray, ...]:
        capacity = int(stats.sizes[part].sum())
        ranks, weights = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
        sizes, moved, lengths = np.zeros(part.size, np.int64), np.zeros(part.size), np.zeros(part.size)
        filled = directions(
            stats[:5], part, model.n_ranks, model.features_kept or 0, NO_DIRECTION,
            (old.indptr, old.ranks, old.weights), ranks, weights, sizes, moved, lengths,
        )  # fmt: skip
        return sizes, ranks[:filled].copy(), weights[:filled].copy(), moved, lengths

    parts = list(ordered_map(some_clusters, cluster_blocks(clusters), n_threads))
    sizes = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
    new = Centers(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([np.zeros(0, np.int32), *(part[1] for part in parts)]),
        np.concatenate([np.zeros(0, np.float32), *(part[2] for part in parts)]),
    )
    movement, lengths = np.zeros(model.k), model.lengths.copy() if model.lengths.size else np.zeros(model.k)
    movement[clusters] = np.concatenate([np.zeros(0), *(part[3] for part in parts)])
    lengths[clusters] = np.concatenate([np.zeros(0), *(part[4] for part in parts)])
    directed = np.flatnonzero(sizes)
    centers = spliced(old, clusters[directed], new.take(directed) if directed.size < sizes.size else new)
    return replace(model, centers=centers, movement=movement, lengths=lengths, changed=None, index=None)


def replaced(model: Model, places: np.ndarray, centers: Centers) -> Model:
    """The model with other centers in some places: every row looks at them anew."""
    movement = model.movement.copy() if model.movement.size else np.full(model.k, np.inf)
    movement[places] = np.inf
    return replace(model, centers=spliced(model.centers, places, centers), movement=movement, index=None)


def stats_behind(centers: Centers, lengths: np.ndarray, masses: np.ndarray) -> Stats:
    """The sums that gave these centers, from the length of each mean and the weight behind it."""
    scale = np.repeat(lengths * masses, np.diff(centers.indptr))
    starts, sizes = centers.indptr[:-1], np.diff(centers.indptr)
    return Stats(starts, sizes, centers.ranks, scale * centers.weights, masses.copy(), 0.0, 0.0)


# --- repair of empty clusters: a pass of its own ----------------------------------------------------------------------


class WorstRows(NamedTuple):
    """The rows with the smallest cosines to their centers, the worst first."""

    similarities: np.ndarray
    keys: np.ndarray  # of their content: equal rows count once
    centers: Centers  # the rows themselves


def worst_rows(
    block: Block, wanted: tuple[int, np.ndarray], memory: Memory | None = None
) -> tuple[WorstRows, Memory | None]:
    """The rows of this block that are served worst and are not alone in their cluster: (how many, cluster sizes)."""
    assert memory is not None
    rows, (n, sizes) = block.open(), wanted
    shared = (memory.labels < 0) | (np.append(sizes, 2)[memory.labels] > 1)
    usable = np.flatnonzero(shared & (rows.lengths > 0) & (block.weights > 0) & (memory.similarities < 1 - 1e-6))
    order = usable[np.argsort(memory.similarities[usable], kind="stable")[: 4 * n]]
    keys = block.keys(order)
    first = np.sort(np.unique(keys, return_index=True)[1])[:n]
    return WorstRows(memory.similarities[order[first]], keys[first], block.centers(order[first])), memory


def merge_worst_rows(a: WorstRows, b: WorstRows) -> WorstRows:
    """The worst of both, as many as the longer one has."""
    n = max(a.keys.size, b.keys.size)
    similarities, keys = np.concatenate([a.similarities, b.similarities]), np.concatenate([a.keys, b.keys])
    order = np.argsort(similarities, kind="stable")
    first = order[np.sort(np.unique(keys[order], return_index=True)[1])][:n]
    return WorstRows(similarities[first], keys[first], a.centers.followed_by(b.centers).take(first))
