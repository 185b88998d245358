"""Measurements: Gaussian clusters with unknown means and variances, one variance per coordinate or one in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import psi

from shoal.base import storable
from shoal.families.kernels.gaussian_kernels import GaussPrior, marginals_gauss, predict_gauss, predict_gauss_at


@storable
class GaussStats(NamedTuple):
    """Sufficient statistics of clusters, of standardized coordinates."""

    size: np.ndarray  # (k,) int64
    sums: np.ndarray  # (k, d)
    squares: np.ndarray  # (k, d)


@storable
@dataclass
class Gaussian:
    """Normal-Gamma prior on coordinates that were centered and scaled by the whole data.

    phi(x) = (x, x^2), theta = (precision * mean, -precision / 2).

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

    @classmethod
    def for_rows(cls, X: Any, *, spherical: bool = False) -> Gaussian:
        """Centre and scale from the rows (dense or sparse); equal values in a column are left unscaled."""
        dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        scale = dense.std(axis=0)
        if spherical:  # one variance for all coordinates: their proportions must stay
            scale = np.full(dense.shape[1], np.sqrt((scale**2).mean()))
        return cls(dense.mean(axis=0), np.where(scale > 0, scale, 1.0), spherical=spherical)

    def standardize(self, X: Any) -> np.ndarray:
        dense = X.toarray() if sp.issparse(X) else np.asarray(X)
        return np.ascontiguousarray((dense - self.center) / self.scale, dtype=np.float64)

    def prior(self, *, alpha: float = 1.0, dp_concentration: float = 0.0) -> GaussPrior:
        return GaussPrior(self.kappa, self.a, self.b, self.spherical, alpha, dp_concentration)

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

    def log_predictive_at(self, stats: GaussStats, X: Any, labels: np.ndarray) -> np.ndarray:
        """(n,) log p(row | the rows of its cluster ``labels[row]``); a label of -1 means an empty cluster."""
        rows = self.standardize(X)
        out, nothing = np.zeros(len(rows)), np.zeros(rows.shape[1])
        labels = labels.astype(np.int64)
        predict_gauss_at(rows, self.prior(), stats.size, stats.sums, stats.squares, labels, nothing, out)
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

    def draw(self, stats: GaussStats, cluster: int, n: int, lengths: np.ndarray, rng: Any) -> np.ndarray:
        """``n`` new rows of a cluster, mean and precision drawn from their posterior."""
        kappa, mean, a, b = (part[[cluster]] for part in self.posterior(stats))
        size = (1, 1) if self.spherical else mean.shape
        precision = rng.gamma(a, 1.0, size=size) / b
        center = rng.normal(mean, 1 / np.sqrt(kappa * precision))
        rows = rng.normal(center, 1 / np.sqrt(precision), size=(n, mean.shape[1]))
        return np.asarray(self.center + self.scale * rows)
