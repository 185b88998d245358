"""Sets: which features an item has, with Beta priors over each cluster's probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import psi

from shoal.base import storable
from shoal.families.distributions.counts import CountFamily, CountStats, beta_interval
from shoal.families.kernels.scores_kernels import BERNOULLI

MOST_COMMON = 0.95  # the largest prior mean of a feature


@storable
@dataclass
class Bernoulli(CountFamily):
    """Independent Bernoulli features with the prior Beta(strength * mean_v, strength * (1 - mean_v)).

    Any value but 0 counts as 1. phi(x) = x, theta = logit p, g(theta) = log(1 + exp(theta)).

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
    >>> family = Bernoulli(mean=np.array([.5, .5]), strength=2.0)
    >>> stats = family.statistics(sp.csr_matrix([[1., 0], [1, 1]]), np.array([0, 0]), 1)
    >>> family.expected(stats, 0).tolist()  # (1 + 2) / (2 + 2), (1 + 1) / (2 + 2)
    [0.75, 0.5]
    """

    name: ClassVar[str] = "bernoulli"
    kind: ClassVar[int] = BERNOULLI
    binary: ClassVar[bool] = True
    absence_counts: ClassVar[bool] = True
    meaning: ClassVar[str] = "share of the cluster's items"

    @property
    def rate(self) -> float:
        return self.strength

    @classmethod
    def for_rows(cls, X: sp.csr_matrix) -> Bernoulli:
        present = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
        # A feature of nearly every row would leave its absence no pseudo-count to speak of.
        return cls(mean=np.minimum((present + 0.5) / (X.shape[0] + 1), MOST_COMMON), strength=1.0)

    def absent_table(self, n_rows: int) -> np.ndarray:
        """sum_v log((t - a_v + m) / (t + m)) for m = 0 .. n_rows + 1.

        With t + m at least twice the largest a_v, a power series in a_v / (t + m) needs only sums of powers of a."""
        t, a = self.strength, self.shape
        rows = np.arange(n_rows + 2)
        table = np.zeros(n_rows + 2)
        direct = rows[t + rows < 2 * a.max(initial=0.0)]
        for m in direct:
            table[m] = np.log1p(-a / (t + m)).sum()
        near = t + rows[len(direct) :]
        largest = a.max(initial=1e-300)
        for power in range(1, 55):
            table[len(direct) :] -= ((a / largest) ** power).sum() / power * (largest / near) ** power
        return table

    def theta(self, stats: CountStats) -> np.ndarray:
        a = self._posterior(stats)
        return np.asarray(psi(a) - psi(self.strength + stats.size[:, None] - a))

    def gamma(self, stats: CountStats) -> np.ndarray:
        total = self.strength + stats.size[:, None]
        return np.asarray(psi(total) - psi(total - self._posterior(stats)))

    def log_partition(self, theta: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, theta)

    def expected(self, stats: CountStats, cluster: int) -> np.ndarray:
        a = self.shape + stats.sums[[cluster]].toarray().ravel()
        return np.asarray(a / (self.strength + stats.size[cluster]))

    def interval(self, stats: CountStats, cluster: int, features: np.ndarray, share: float) -> tuple[Any, Any]:
        a = self.shape[features] + stats.sums[[cluster]].toarray().ravel()[features]
        return beta_interval(a, self.strength + stats.size[cluster] - a, share)

    def draw(self, stats: CountStats, cluster: int, n: int, lengths: np.ndarray, rng: Any) -> sp.csr_matrix:
        a = self.shape + stats.sums[[cluster]].toarray().ravel()
        probabilities = rng.beta(a, self.strength + stats.size[cluster] - a)
        return sp.csr_matrix(rng.random((n, len(a))) < probabilities, dtype=np.float64, shape=(n, len(a)))
