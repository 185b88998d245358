"""One step of the fit as plain functions: assign rows to centers, add up, merge, average.

``center``  minimizes KL(center || row):  rows enter by (theta, -F), centers by (eta, 1) and their negative entropy;
``pooled``  minimizes KL(row || center):  rows enter by (eta, 1) and their negative entropy, centers by (theta, -F).

Either way a divergence is ``constant(row) + constant(center) - <row, center>``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.densities.family import Family
from shoal.densities.kernels import add_up, assign
from shoal.threads import ordered_map, row_blocks

BLOCK_ROWS = 16_384


class Side(NamedTuple):
    """Rows or centers, ready for the product."""

    stats: np.ndarray  # (n, n_stats)
    constants: np.ndarray  # (n,)


class Stats(NamedTuple):
    """What a pass over some rows must remember."""

    mass: np.ndarray  # (n_clusters,) weight of the rows each center received
    total: np.ndarray  # (n_clusters, n_stats) weighted sum of those rows
    cost: float  # the weighted sum of divergences


def merge(a: Stats, b: Stats) -> Stats:
    """Statistics of two sets of rows together."""
    return Stats(a.mass + b.mass, a.total + b.total, a.cost + b.cost)


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


def nearest_centers(rows: Side, centers: Side, n_threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The nearest center of every row and the divergence to it (or from it)."""
    labels, costs = np.empty(rows.stats.shape[0], dtype=np.int64), np.empty(rows.stats.shape[0])
    double = np.ascontiguousarray(centers.stats)
    single, single_constants = double.astype(np.float32), centers.constants.astype(np.float32)
    widest = np.abs(double).max(0)

    def one_block(block: tuple[int, int]) -> None:
        at = slice(*block)
        assign(rows.stats[at], double, centers.constants, single, single_constants, widest, labels[at], costs[at])

    for _ in ordered_map(one_block, row_blocks(rows.stats.shape[0], BLOCK_ROWS), n_threads):
        pass
    return labels, np.maximum(costs + rows.constants, 0.0)


def accumulate(rows: Side, weights: np.ndarray, labels: np.ndarray, costs: np.ndarray, n_clusters: int) -> Stats:
    """Add up the rows of every cluster."""
    mass, total = np.zeros(n_clusters), np.zeros((n_clusters, rows.stats.shape[1]))
    add_up(rows.stats, weights, labels, mass, total)
    return Stats(mass, total, float(weights @ costs))


def update(family: Family, direction: str, stats: Stats, previous: np.ndarray) -> np.ndarray:
    """The best center of every cluster; a cluster without rows keeps its center."""
    served = stats.mass > 0
    means = stats.total[served] / stats.mass[served, None]
    if not family.normalized:
        means = means[:, :-1]
    centers = previous.copy()
    if served.any():
        back = family.from_natural if direction == "center" else family.from_expectation
        centers[served] = back(means)
    return centers


def divergences(rows: Side, centers: Side) -> np.ndarray:
    """The whole table, rows down and centers across."""
    table = rows.constants[:, None] + centers.constants[None, :] - rows.stats @ centers.stats.T
    return np.maximum(table, 0.0)
