"""The seam: assign the rows of a block and add them up, merge, average.

``center``  minimizes KL(center || row):  rows enter by (theta, -F), centers by (eta, 1) and their negative entropy;
``pooled``  minimizes KL(row || center):  rows enter by (eta, 1) and their negative entropy, centers by (theta, -F).

Either way a divergence is ``constant(row) + constant(center) - <row, center>``, and the best center of some rows is
their plain average on the rows' side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.densities.family import Family
from shoal.densities.kernels import add_up, assign
from shoal.errors import CannotMerge
from shoal.threads import ordered_map, row_blocks

BLOCK_ROWS = 16_384

LARGEST_IN_SINGLE = 1e15  # products of two such numbers, and sums of many of them, are single-precision numbers


class Side(NamedTuple):
    """Rows or centers, ready for the product."""

    stats: np.ndarray  # (n, n_stats)
    constants: np.ndarray  # (n,)


class Block(NamedTuple):
    """Some rows of the data."""

    X: np.ndarray  # (n, n_parameters), smoothed and relative to the origin
    side: Side
    weights: np.ndarray  # (n,)


class Centers(NamedTuple):
    """The model that a pass runs against."""

    family: Family
    direction: str
    parameters: np.ndarray  # (n_clusters, n_parameters), relative to the origin
    side: Side


class Memory(NamedTuple):
    """What a block keeps between passes."""

    labels: np.ndarray  # (n,) places of the centers
    divergences: np.ndarray  # (n,)


class Stats(NamedTuple):
    """What a pass over some rows must remember."""

    mass: np.ndarray  # (n_clusters,) weight of the rows each center received
    total: np.ndarray  # (n_clusters, n_stats) weighted sum of those rows
    cost: float  # the weighted sum of divergences
    n_moved: int  # rows that changed their center


def accumulate(block: Block, model: Centers, memory: Memory | None = None) -> tuple[Stats, Memory]:
    """Assign the rows of a block to their nearest centers and add them up."""
    labels, costs = nearest_centers(block.side, model.side, n_threads=1)
    n_clusters = len(model.parameters)
    mass, total = np.zeros(n_clusters), np.zeros((n_clusters, block.side.stats.shape[1]))
    add_up(block.side.stats, block.weights, labels, mass, total)
    n_moved = labels.size if memory is None else int(np.count_nonzero(labels != memory.labels))
    return Stats(mass, total, float(block.weights @ costs), n_moved), Memory(labels, costs)


def merge(a: Stats, b: Stats) -> Stats:
    """Statistics of two sets of rows together."""
    if a.total.shape != b.total.shape:
        raise CannotMerge(
            f"statistics of {a.total.shape[0]} centers with {a.total.shape[1]} numbers each do not add up with "
            f"{b.total.shape[0]} with {b.total.shape[1]}; accumulate both against the same model."
        )
    return Stats(a.mass + b.mass, a.total + b.total, a.cost + b.cost, a.n_moved + b.n_moved)


def update(model: Centers, stats: Stats) -> Centers:
    """The best center of every cluster; a cluster without rows keeps its center."""
    served = stats.mass > 0
    means = stats.total[served] / stats.mass[served, None]
    if not model.family.normalized:
        means = means[:, :-1]
    parameters = model.parameters.copy()
    if served.any():
        back = model.family.from_natural if model.direction == "center" else model.family.from_expectation
        parameters[served] = back(means)
    return centers_of(model.family, model.direction, parameters)


def centers_of(family: Family, direction: str, parameters: np.ndarray) -> Centers:
    """Centers ready for a pass."""
    return Centers(family, direction, parameters, center_side(family, direction, parameters))


def blocks_of(family: Family, direction: str, X: np.ndarray, weights: np.ndarray) -> list[Block]:
    """The rows in blocks of a fixed size."""
    ranges = [slice(*block) for block in row_blocks(len(X), BLOCK_ROWS)]
    return [Block(X[at], row_side(family, direction, X[at]), weights[at]) for at in ranges]


def stats_behind(model: Centers, masses: np.ndarray) -> Stats:
    """The statistics that gave these centers, from the centers and the weight behind each.

    A center's natural (mean) parameters are the average of its rows'. Where they are normalized, the average differs
    by a number that all components share, which normalizing again takes out.
    """
    side = row_side(model.family, model.direction, model.parameters)
    return Stats(masses.copy(), masses[:, None] * side.stats, 0.0, 0)


# --- repair of empty clusters: a fold of its own ----------------------------------------------------------------------


class WorstRows(NamedTuple):
    """The rows with the largest weighted divergences, the worst first."""

    costs: np.ndarray  # (n,)
    X: np.ndarray  # (n, n_parameters)


def worst_rows(block: Block, n_rows: int, memory: Memory | None = None) -> tuple[WorstRows, Memory | None]:
    """The ``n_rows`` rows of a block that their centers serve worst."""
    assert memory is not None
    costs = memory.divergences * block.weights
    worst = np.argsort(-costs, kind="stable")[:n_rows]
    return WorstRows(costs[worst], block.X[worst]), memory


def merge_worst_rows(a: WorstRows, b: WorstRows) -> WorstRows:
    """The worst of both, as many as the longer one has."""
    costs = np.concatenate([a.costs, b.costs])
    worst = np.argsort(-costs, kind="stable")[: max(len(a.costs), len(b.costs))]
    return WorstRows(costs[worst], np.concatenate([a.X, b.X])[worst])


# --- both sides of the product ----------------------------------------------------------------------------------------


def _by_theta(family: Family, X: np.ndarray) -> np.ndarray:
    theta = family.natural(X)
    return theta if family.normalized else np.column_stack([theta, -family.log_normalizer(X)])


def _by_eta(family: Family, X: np.ndarray) -> np.ndarray:
    eta = family.expectation(X)
    return eta if family.normalized else np.column_stack([eta, np.ones(X.shape[0])])


def row_side(family: Family, direction: str, X: np.ndarray) -> Side:
    """The rows' side of the product."""
    if direction == "center":
        return Side(_by_theta(family, X), np.zeros(X.shape[0]))
    return Side(_by_eta(family, X), family.negative_entropy(X))


def center_side(family: Family, direction: str, centers: np.ndarray) -> Side:
    """The centers' side of the product."""
    if direction == "center":
        return Side(_by_eta(family, centers), family.negative_entropy(centers))
    return Side(_by_theta(family, centers), np.zeros(centers.shape[0]))


def largest_in_size(values: np.ndarray) -> float:
    """Without a copy of the values."""
    return float(max(values.max(initial=0), -values.min(initial=0)))


def nearest_centers(rows: Side, centers: Side, n_threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The nearest center of every row and the divergence to it (or from it)."""
    labels, costs = np.empty(rows.stats.shape[0], dtype=np.int64), np.empty(rows.stats.shape[0])
    double = np.ascontiguousarray(centers.stats)
    with np.errstate(over="ignore"):
        single, single_constants = double.astype(np.float32), centers.constants.astype(np.float32)
    widest = np.abs(double).max(0)
    sizes = (widest.max(initial=0), np.abs(centers.constants).max(initial=0), largest_in_size(rows.stats))
    if max(sizes) > LARGEST_IN_SINGLE:
        widest = np.full_like(widest, np.inf)  # no bound on the error: every row is looked at in double precision

    def one_block(block: tuple[int, int]) -> None:
        at = slice(*block)
        assign(rows.stats[at], double, centers.constants, single, single_constants, widest, labels[at], costs[at])

    for _ in ordered_map(one_block, row_blocks(rows.stats.shape[0], BLOCK_ROWS), n_threads):
        pass
    return labels, np.maximum(costs + rows.constants, 0.0)


def divergences(rows: Side, centers: Side) -> np.ndarray:
    """The whole table, rows down and centers across."""
    table = rows.constants[:, None] + centers.constants[None, :] - rows.stats @ centers.stats.T
    return np.maximum(table, 0.0)
