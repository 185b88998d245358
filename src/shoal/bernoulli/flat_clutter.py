"""Rows of unrelated features: a component with one mean for all features, in addition to the clusters of the start.

In the likelihood of the rows it was fitted to, a cluster always beats a single parameter: it has counted the very
features it is asked about. What each row itself has added to a cluster is therefore taken out of it first
(leave one out), so that a row belongs to the clutter if clusters that never saw it explain it worse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.adf import Block
from shoal.bernoulli.em_kernels import unseen_scores
from shoal.bernoulli.statistics import ExpectedCounts, Theta

EARNED = 3.0  # nats that the clutter must earn on all rows together
LEAST_ROWS = 10.0  # expected, without which there is no clutter
MOST_SHARE = 0.5  # of all rows: what most rows do is no clutter
FIRST_SHARE = 0.1
ITERATIONS, CHANGED = 100, 1e-4
LEAST_MEAN, MOST_MEAN = 1e-9, 0.5


class Flat(NamedTuple):
    """One mean for all features, and the share of the rows."""

    share: float
    mean: float

    def log_density(self, lengths: np.ndarray, n_features: int) -> np.ndarray:
        """Of rows with so many features, weighted by the share."""
        absent = n_features * np.log1p(-self.mean) + np.log(self.share)
        return np.asarray(absent + lengths * (np.log(self.mean) - np.log1p(-self.mean)))


def with_flat(theta: Theta, flat: Flat) -> Theta:
    """Parameters of clusters with the clutter before them, as column 0."""
    n_features = theta.log_odds.shape[0]
    odds = np.full((n_features, 1), np.log(flat.mean) - np.log1p(-flat.mean))
    base = np.log(flat.share) + n_features * np.log1p(-flat.mean)
    return Theta(np.hstack([odds, theta.log_odds]), np.append(base, theta.base + np.log1p(-flat.share)))


def flat_of(counts: np.ndarray, mass: float, total: float) -> Flat:
    """The parameters of most likelihood for what the clutter has received."""
    mean = float(counts.sum()) / max(mass * counts.size, 1e-300)
    share = min(max(mass / max(total, 1e-300), 1e-12), MOST_SHARE)
    return Flat(share, min(max(mean, LEAST_MEAN), MOST_MEAN))


def shares_of_clutter(
    block: Block, clusters: ExpectedCounts, theta: Theta, background: np.ndarray, strength: float
) -> np.ndarray | None:
    """Probability of each row to belong to the clutter, given clusters that have not seen it; None: there is none.

    With the clusters as they are, the share and the mean of the clutter of most likelihood are found by EM.
    """
    rows, weights = block.rows, block.weights
    own = np.empty(rows.shape[0])
    unseen_scores(
        rows.indptr, rows.indices, weights, *theta, clusters.counts, clusters.mass, background, strength, own
    )  # fmt: skip
    lengths, n_features = np.diff(rows.indptr).astype(np.float64), background.size
    total = float(weights.sum())
    if total <= 0 or n_features == 0:
        return None
    flat = Flat(FIRST_SHARE, min(max(float(weights @ lengths) / (total * n_features), LEAST_MEAN), MOST_MEAN))
    for _ in range(ITERATIONS):
        both = np.logaddexp(own + np.log1p(-flat.share), flat.log_density(lengths, n_features))
        shares = np.exp(flat.log_density(lengths, n_features) - both)
        mass, before = float(weights @ shares), flat.share
        if not LEAST_ROWS <= mass <= MOST_SHARE * total:
            return None
        mean = float(weights @ (shares * lengths)) / (mass * n_features)
        flat = Flat(min(mass / total, MOST_SHARE), min(max(mean, LEAST_MEAN), MOST_MEAN))
        if abs(flat.share - before) < CHANGED * before:
            break
    return shares if float(weights @ (both - own)) > EARNED else None


def received(rows: sp.csr_matrix, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Counts by feature, and rows."""
    per_entry = np.repeat(weights, np.diff(rows.indptr))
    return np.bincount(rows.indices, weights=per_entry, minlength=rows.shape[1]), float(weights.sum())
