"""A tree of clusters: split the cluster that fits worst in two, until there are enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.errors import BadInput
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import Centers, index_centers, own_similarities
from shoal.kmeans.exact import assign
from shoal.kmeans.lloyd import assignment, improved
from shoal.kmeans.rows import UnitRows, compact, take_rows
from shoal.kmeans.seeding import first_centers
from shoal.kmeans.statistics import Memory, Model, accumulate, reassign, update
from shoal.progress import Monitor


@dataclass
class Tree:
    """Splits in the order they were made. Split s makes nodes 2s+1 and 2s+2; node 0 holds all rows."""

    parents: np.ndarray  # (n_splits,) the node that was split
    centers: Centers  # of all nodes
    leaves: np.ndarray  # (n_clusters,) the node of each cluster


@dataclass
class Leaf:
    """A node that has not been split."""

    node: int
    members: np.ndarray
    loss: float  # weight * (1 - cosine), summed: what splitting can win


@dataclass
class Bisected:
    """The finished tree and the cluster of every row."""

    tree: Tree
    labels: np.ndarray
    history: list[float]
    converged: bool


def bisect(
    rows: UnitRows,
    row_weights: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    init: str,
    max_iter: int,
    n_threads: int | None = None,
) -> Bisected:
    """Split until there are ``n_clusters`` leaves, or nothing is left to split."""
    everything = np.flatnonzero(rows.lengths > 0)
    root, loss = _center(rows, row_weights, everything)
    leaves, nodes = [Leaf(0, everything, loss)], [root]
    done: list[Leaf] = []
    parents: list[int] = []
    total = max(row_weights.sum(), 1e-300)
    served = row_weights[everything].sum()
    with Monitor("bisecting", max(n_clusters - 1, 1)) as monitor:
        while monitor.running and leaves and len(leaves) + len(done) < n_clusters:
            worst = leaves.pop(int(np.argmax([leaf.loss for leaf in leaves])))
            try:
                halves = _split(rows, row_weights, worst.members, rng, init, max_iter, n_threads)
            except BadInput:  # one direction only
                done.append(worst)
                continue
            parents.append(worst.node)
            for members, center, loss in halves:
                leaves.append(Leaf(len(nodes), members, loss))
                nodes.append(center)
            psi = (served - sum(leaf.loss for leaf in [*leaves, *done])) / total
            monitor.report(psi, psi=psi, clusters=len(leaves) + len(done))
    ordered = sorted([*leaves, *done], key=lambda leaf: leaf.node)
    labels = np.full(rows.n_rows, -1, np.int32)
    for cluster, leaf in enumerate(ordered):
        labels[leaf.members] = cluster
    tree = Tree(np.array(parents, np.int64), _joined(nodes), np.array([leaf.node for leaf in ordered], np.int64))
    return Bisected(tree, labels, monitor.history, not monitor.interrupted)


def descend(rows: UnitRows, tree: Tree, n_threads: int | None = None) -> np.ndarray:
    """The cluster of each row, by the nearer of two centers at every split; -1 for a row with nothing in common."""
    members = {0: np.arange(rows.n_rows)}
    labels = np.full(rows.n_rows, -1, np.int32)
    for split, parent in enumerate(tree.parents):
        mine = members.pop(int(parent))
        pair = tree.centers.take(np.array([2 * split + 1, 2 * split + 2]))
        side, _ = assign(take_rows(rows, mine), index_centers(pair, rows.n_ranks), n_threads)
        for child in (0, 1):
            members[2 * split + 1 + child] = mine[side == child]
    for cluster, leaf in enumerate(tree.leaves):
        labels[members[int(leaf)]] = cluster
    return labels


def _split(
    rows: UnitRows,
    row_weights: np.ndarray,
    members: np.ndarray,
    rng: np.random.Generator,
    init: str,
    max_iter: int,
    n_threads: int | None,
) -> list[tuple[np.ndarray, Centers, float]]:
    """2-means on some rows: the members, center and loss of each half."""
    mine, weights = compact(take_rows(rows, members)), row_weights[members]
    blocks = [Block(mine.rows, weights)]
    centers, memory = two_means(blocks, first_centers(blocks, 2, init, rng, n_threads), max_iter, n_threads)
    halves = []
    for side in (0, 1):
        chosen = memory.labels == side
        center = centers.take(np.array([side]))
        loss = float(weights[chosen] @ (1.0 - memory.similarities[chosen]))
        halves.append((members[chosen], Centers(center.indptr, mine.ranks[center.ranks], center.weights), loss))
    return halves


def two_means(
    blocks: list[Block], centers: Centers, max_iter: int, n_threads: int | None = None
) -> tuple[Centers, Memory]:
    """Lloyd's algorithm without a progress bar: centers, and labels that belong to them."""
    model, memories, moves = Model(centers, blocks[0].open().n_ranks), None, None
    for _ in range(max_iter):
        moves, memories = assignment(blocks, model, reassign, memories, n_threads)
        if not moves.n_moved:
            break
        model, memories = improved(blocks, model, moves, memories, n_threads)
    else:
        _, memories = assignment(blocks, model, reassign, memories, n_threads)
    assert memories is not None
    return model.centers, memories[0]


def _center(rows: UnitRows, row_weights: np.ndarray, members: np.ndarray) -> tuple[Centers, float]:
    labels = np.full(rows.n_rows, -1, np.int32)
    labels[members] = 0
    nothing = Centers(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    model, zeros = Model(nothing, rows.n_ranks), np.zeros(rows.n_rows)
    stats, _ = accumulate(Block(rows, row_weights), model, Memory(labels, zeros, zeros))
    centers = update(model, stats).centers
    similarities = own_similarities(rows, labels, centers)
    return centers, float(row_weights[members] @ (1.0 - similarities[members]))


def _joined(parts: list[Centers]) -> Centers:
    """Centers one after another."""
    return Centers(
        np.cumsum(np.concatenate([[0], *(np.diff(part.indptr) for part in parts)])),
        np.concatenate([part.ranks for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )
