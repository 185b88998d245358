"""Counts of events whose total matters too: a Poisson rate for each feature, with Gamma priors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaincinv, psi

from shoal.base import storable
from shoal.families.distributions.counts import CountFamily, CountStats
from shoal.families.kernels.scores_kernels import POISSON


@storable
@dataclass
class Poisson(CountFamily):
    """Poisson counts with the prior Gamma(strength * mean_v, rate strength).

    phi(x) = x, theta = log rate, g(theta) = exp(theta), base measure 1 / x!.

    Parameters
    ----------
    mean : array of shape (n_features,)
        Prior mean of each feature.
    strength : float
        Weight of the prior, in rows.
    smoothing : float
        Pseudo-count of every feature, whatever its mean.

    Examples
    --------
    >>> family = Poisson(mean=np.array([1., 2.]), strength=1.0)
    >>> stats = family.statistics(sp.csr_matrix([[3., 0]]), np.array([0]), 1)
    >>> family.expected(stats, 0).tolist()  # ((1 + 3) / 2, (2 + 0) / 2)
    [2.0, 1.0]
    """

    name: ClassVar[str] = "poisson"
    kind: ClassVar[int] = POISSON
    meaning: ClassVar[str] = "mean count in the cluster"

    @property
    def rate(self) -> float:
        return self.strength

    @classmethod
    def for_rows(cls, X: sp.csr_matrix) -> Poisson:
        totals = np.asarray(X.sum(axis=0), dtype=np.float64).ravel()
        return cls(mean=(totals + 0.5) / (X.shape[0] + 1), strength=0.5)

    def theta(self, stats: CountStats) -> np.ndarray:
        return np.asarray(psi(self._posterior(stats)) - np.log(self.rate + stats.size)[:, None])

    def gamma(self, stats: CountStats) -> np.ndarray:
        return np.asarray(self._posterior(stats) / (self.rate + stats.size)[:, None])

    def log_partition(self, theta: np.ndarray) -> np.ndarray:
        return np.exp(theta)

    def expected(self, stats: CountStats, cluster: int) -> np.ndarray:
        a = self.shape + stats.sums[[cluster]].toarray().ravel()
        return np.asarray(a / (self.rate + stats.size[cluster]))

    def interval(self, stats: CountStats, cluster: int, features: np.ndarray, share: float) -> tuple[Any, Any]:
        a = self.shape[features] + stats.sums[[cluster]].toarray().ravel()[features]
        rate = self.rate + stats.size[cluster]
        return gammaincinv(a, (1 - share) / 2) / rate, gammaincinv(a, (1 + share) / 2) / rate

    def draw(self, stats: CountStats, cluster: int, n: int, lengths: np.ndarray, rng: Any) -> sp.csr_matrix:
        a = self.shape + stats.sums[[cluster]].toarray().ravel()
        rates = rng.standard_gamma(a) / (self.rate + stats.size[cluster])
        return sp.csr_matrix([rng.poisson(rates) for _ in range(n)], shape=(n, len(a)))
