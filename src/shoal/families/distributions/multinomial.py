"""Documents: counts of words, with a Dirichlet prior over each cluster's word shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, psi

from shoal.base import storable
from shoal.families.distributions.counts import CountFamily, CountStats, beta_interval
from shoal.families.kernels.scores_kernels import MULTINOMIAL


@storable
@dataclass
class Multinomial(CountFamily):
    """Multinomial counts with a Dirichlet prior of pseudo-counts b + s m_v, where b is ``smoothing`` and s is
    ``strength``.

    phi(x) = x, theta_v = log p_v, g(theta) = log sum_v exp(theta_v) for each token, which is 0 on the simplex.

    Parameters
    ----------
    mean : array of shape (n_features,)
        Prior mean of each feature.
    strength : float
        Weight of the prior, in tokens.
    smoothing : float
        Pseudo-count of every feature, whatever its mean.

    Examples
    --------
    >>> family = Multinomial(mean=np.array([.5, .25, .25]), strength=4.0)
    >>> stats = family.statistics(sp.csr_matrix([[3., 1, 0]]), np.array([0]), 1)
    >>> np.exp(family.log_predictive(stats, sp.csr_matrix([[1., 0, 0]]))).round(3).tolist()  # (2 + 3) / (4 + 4)
    [[0.625]]
    """

    name: ClassVar[str] = "multinomial"
    kind: ClassVar[int] = MULTINOMIAL
    length_given: ClassVar[bool] = True
    meaning: ClassVar[str] = "share of the cluster's words"

    @classmethod
    def for_rows(cls, X: sp.csr_matrix) -> Multinomial:
        totals = np.asarray(X.sum(axis=0), dtype=np.float64).ravel() + 0.5
        return cls(mean=totals / totals.sum(), strength=0.0, smoothing=0.1)

    def theta(self, stats: CountStats) -> np.ndarray:
        a = self._posterior(stats)
        return np.asarray(psi(a) - psi(a.sum(axis=1, keepdims=True)))

    def gamma(self, stats: CountStats) -> np.ndarray:
        return np.zeros(len(stats.size))

    def log_partition(self, theta: np.ndarray) -> np.ndarray:
        return np.asarray(logsumexp(theta, axis=-1))

    def expected(self, stats: CountStats, cluster: int) -> np.ndarray:
        a = self.shape + stats.sums[[cluster]].toarray().ravel()
        return np.asarray(a / a.sum())

    def typical(self) -> np.ndarray:
        return np.asarray(self.mean / max(self.mean.sum(), 1e-300))

    def interval(self, stats: CountStats, cluster: int, features: np.ndarray, share: float) -> tuple[Any, Any]:
        a = self.shape[features] + stats.sums[[cluster]].toarray().ravel()[features]
        total = self.shape.sum() + stats.sums[[cluster]].sum()
        return beta_interval(a, total - a, share)

    def draw(self, stats: CountStats, cluster: int, n: int, lengths: np.ndarray, rng: Any) -> sp.csr_matrix:
        a = self.shape + stats.sums[[cluster]].toarray().ravel()
        shares = rng.standard_gamma(a)
        shares /= shares.sum()
        return sp.csr_matrix([rng.multinomial(int(length), shares) for length in lengths[:n]], shape=(n, len(a)))
