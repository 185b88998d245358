"""Measurements: Gaussian clusters with unknown means and variances, one variance per coordinate or one in all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import psi, stdtrit

from shoal.base import storable
from shoal.errors import BadInput
from shoal.families.distributions.counts import Best, best_of
from shoal.families.kernels.gaussian_kernels import (
    GaussPrior,
    marginals_gauss,
    predict_gauss,
    predict_gauss_at,
    predict_gauss_left_out,
)

LEAST_SPREAD = 1e-14  # of a column in units of its largest value: below, its values are equal but for rounding


@storable
class GaussStats(NamedTuple):
    """Sufficient statistics of clusters, of standardized coordinates."""

    size: np.ndarray  # (k,) int64
    sums: np.ndarray  # (k, d)
    squares: np.ndarray  # (k, d)


class GaussScorer(NamedTuple):
    """What scoring measurements needs of a model."""

    family: Any
    stats: GaussStats
    log_weights: np.ndarray

    def all(self, X: Any) -> np.ndarray:
        """(n, k) log weight + log predictive."""
        return np.asarray(self.family.log_predictive(self.stats, X) + self.log_weights)

    def best(self, X: Any, most: int) -> Best:
        """The ``most`` best clusters of each row."""
        fresh = self.family.log_predictive_at(self.stats, X, np.full(X.shape[0], -1))
        return best_of(self.all(X), most, fresh)


@storable
@dataclass
class Gaussian:
    """Gaussian coordinates with independent Normal-Gamma priors.

    Coordinates are standardized by the whole data first. phi(x) = (x, x^2), theta = (precision * mean, -precision / 2).

    Parameters
    ----------
    center, scale : array of shape (n_features,)
        Location and scale of the data, by which rows are standardized.
    kappa : float
        Weight of the prior mean, in rows.
    a, b : float
        Shape and rate of the prior of the precision.
    spherical : bool
        One precision for all coordinates of a cluster.

    Examples
    --------
    >>> family = Gaussian.for_rows(np.array([[0.0], [1.0], [10.0], [11.0]]))
    >>> X = np.array([[0.0], [1.0], [10.0]])
    >>> stats = family.statistics(X, np.array([0, 0, 1]), 2)
    >>> int(family.log_predictive(stats, np.array([[0.5]])).argmax())
    0
    """

    center: np.ndarray  # (d,)
    scale: np.ndarray  # (d,)
    kappa: float = 0.05  # pseudo-rows of each cluster's mean
    a: float = 2.0  # shape of the precision's prior
    b: float = 0.5  # its rate: b / a is the share of a coordinate's variance expected within a cluster
    spherical: bool = False

    name: ClassVar[str] = "gaussian"
    nonnegative: ClassVar[bool] = False
    samplers: ClassVar[tuple[str, ...]] = ("fastex", "gibbs")

    @classmethod
    def for_rows(cls, X: Any, *, spherical: bool = False) -> Gaussian:
        """Centre and scale from the rows (dense or sparse); equal values in a column are left unscaled."""
        dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        # In units of the largest value, neither sums nor squares of finite numbers overflow.
        unit = np.maximum(np.abs(dense).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)
        if spherical:  # one variance for all coordinates: their proportions must stay
            unit = np.full(dense.shape[1], unit.max())
        dense = dense / unit
        center = dense.mean(axis=0)
        scale = (dense - center).std(axis=0)
        if spherical:
            scale = np.full(dense.shape[1], np.sqrt((scale**2).mean()))
        return cls(center * unit, np.where(scale > LEAST_SPREAD, scale * unit, 1.0), spherical=spherical)

    def standardize(self, X: Any) -> np.ndarray:
        dense = X.toarray() if sp.issparse(X) else np.asarray(X)
        return np.ascontiguousarray((dense - self.center) / self.scale, dtype=np.float64)

    def prior(self, *, alpha: float = 1.0, dp_concentration: float = 0.0) -> GaussPrior:
        return GaussPrior(self.kappa, self.a, self.b, self.spherical, alpha, dp_concentration)

    def row_lengths(self, X: Any) -> np.ndarray:
        """(n,) what a row's evidence is measured by."""
        return np.asarray(abs(X).sum(axis=1)).ravel()

    def averaged(self, other: Gaussian, share: float) -> Gaussian:
        """The prior of two models together, the other with this share of the rows; coordinates stay this one's."""
        return replace(self, b=(1 - share) * self.b + share * other.b)

    def converted(self, other: Gaussian, stats: GaussStats) -> GaussStats:
        """Statistics of standardized coordinates of ``other`` in those of this family."""
        stretch, shift, n = other.scale / self.scale, (other.center - self.center) / self.scale, stats.size[:, None]
        squares = stretch**2 * stats.squares + 2 * stretch * shift * stats.sums + n * shift**2
        return GaussStats(stats.size, stretch * stats.sums + n * shift, squares)

    def grown(self, n_features: int) -> Gaussian:
        if n_features == len(self.center):
            return self
        raise BadInput(f"X has {n_features} columns, the model {len(self.center)}; a row needs them all.")

    def statistics(self, X: Any, labels: np.ndarray, n_clusters: int) -> GaussStats:
        """Statistics of the rows by cluster; rows labeled -1 are left out."""
        held = np.flatnonzero(labels >= 0)
        rows = self.standardize(X)[held]
        pick = sp.csr_matrix((np.ones(len(held)), (labels[held], np.arange(len(held)))), shape=(n_clusters, len(held)))
        return GaussStats(np.bincount(labels[held], minlength=n_clusters), pick @ rows, pick @ (rows * rows))

    def log_predictive(self, stats: GaussStats, X: Any) -> np.ndarray:
        """(n, k) log p(row | the cluster's rows): Student t, mean and precision integrated out."""
        rows = self.standardize(X)
        out = np.zeros((len(rows), len(stats.size)))
        predict_gauss(rows, self.prior(), stats.size, stats.sums, stats.squares, out)
        return out - np.log(self.scale).sum()

    def scorer(self, stats: GaussStats, log_weights: np.ndarray) -> GaussScorer:
        """Scores of rows under all clusters, made ready once."""
        return GaussScorer(self, stats, log_weights)

    def log_predictive_at(self, stats: GaussStats, X: Any, labels: np.ndarray) -> np.ndarray:
        """(n,) log p(row | the rows of its cluster ``labels[row]``); a label of -1 means an empty cluster."""
        rows = self.standardize(X)
        out, nothing = np.zeros(len(rows)), np.zeros(rows.shape[1])
        labels = labels.astype(np.int64)
        predict_gauss_at(rows, self.prior(), stats.size, stats.sums, stats.squares, labels, nothing, out)
        return np.asarray(out - np.log(self.scale).sum())

    def log_predictive_left_out(self, stats: GaussStats, X: Any, labels: np.ndarray) -> np.ndarray:
        """(n,) log p(row | the other rows of its cluster), for rows that the statistics hold."""
        rows = self.standardize(X)
        out = np.zeros(len(rows))
        predict_gauss_left_out(rows, self.prior(), stats.size, stats.sums, stats.squares, labels.astype(np.int64), out)
        return np.asarray(out - np.log(self.scale).sum())

    def log_marginal(self, stats: GaussStats) -> np.ndarray:
        """(k,) log p(the cluster's rows), of standardized coordinates."""
        out = np.zeros(len(stats.size))
        marginals_gauss(self.prior(), stats.size, stats.sums, stats.squares, out)
        return out

    def posterior(self, stats: GaussStats) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(kappa (k, 1), mean (k, d), a (k, 1), b (k, d)) of standardized coordinates."""
        kappa = self.kappa + stats.size[:, None]
        mean = stats.sums / kappa
        beyond = np.maximum(0.5 * (stats.squares - kappa * mean**2), 0.0)
        if self.spherical:
            d = stats.sums.shape[1]
            total = self.b + beyond.sum(axis=1, keepdims=True)
            return kappa, mean, self.a + 0.5 * d * stats.size[:, None], np.broadcast_to(total, mean.shape)
        return kappa, mean, self.a + 0.5 * stats.size[:, None], self.b + beyond

    def theta(self, stats: GaussStats) -> np.ndarray:
        """(k, 2 d) theta* = E[(precision * mean, -precision / 2) | the cluster's rows]."""
        _, mean, a, b = self.posterior(stats)
        return np.concatenate([mean * a / b, -0.5 * a / b], axis=1)

    def gamma(self, stats: GaussStats) -> np.ndarray:
        """(k, d) gamma* = E[g(theta) | the cluster's rows]."""
        kappa, mean, a, b = self.posterior(stats)
        return np.asarray(0.5 * (1 / kappa + mean**2 * a / b) - 0.5 * (psi(a) - np.log(b)) + 0.5 * np.log(2 * np.pi))

    def log_partition(self, theta: np.ndarray) -> np.ndarray:
        """(k, d) g(theta)"""
        first, second = np.split(theta, 2, axis=-1)
        return np.asarray(-(first**2) / (4 * second) - 0.5 * np.log(-2 * second) + 0.5 * np.log(2 * np.pi))

    def expected(self, stats: GaussStats, cluster: int) -> np.ndarray:
        """(d,) the cluster's posterior mean, in the data's own units."""
        return np.asarray(self.center + self.scale * stats.sums[cluster] / (self.kappa + stats.size[cluster]))

    def n_parameters(self) -> int:
        """Free parameters of one cluster."""
        return len(self.center) + (1 if self.spherical else len(self.center))

    def salient(self, stats: GaussStats, cluster: int, n: int) -> tuple[np.ndarray, np.ndarray, str]:
        """(coordinates, their means, meaning), those furthest from the overall mean first."""
        mean = self.expected(stats, cluster)
        best = np.argsort(-np.abs(mean - self.center) / self.scale, kind="stable")[:n]
        return best, mean[best], "mean in the cluster, features furthest from the overall mean first"

    def interval(self, stats: GaussStats, cluster: int, features: np.ndarray, share: float) -> tuple[Any, Any]:
        """Central credible interval of the cluster's mean: Student t."""
        kappa, mean, a, b = (part[[cluster]] for part in self.posterior(stats))
        a = np.broadcast_to(a, mean.shape)[0, features]
        half = stdtrit(2 * a, (1 + share) / 2) * np.sqrt(b[0, features] / (a * kappa[0]))
        center = mean[0, features]
        low, high = (self.center[features] + self.scale[features] * (center + side) for side in (-half, half))
        return low, high

    def draw(self, stats: GaussStats, cluster: int, n: int, lengths: np.ndarray, rng: Any) -> np.ndarray:
        """``n`` new rows of a cluster, mean and precision drawn from their posterior."""
        kappa, mean, a, b = (part[[cluster]] for part in self.posterior(stats))
        size = (1, 1) if self.spherical else mean.shape
        precision = rng.gamma(a, 1.0, size=size) / b
        center = rng.normal(mean, 1 / np.sqrt(kappa * precision))
        rows = rng.normal(center, 1 / np.sqrt(precision), size=(n, mean.shape[1]))
        return np.asarray(self.center + self.scale * rows)
