"""What the families of counts share: sparse sums as statistics, and a predictive that touches a row's own features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.families.kernels.predict_kernels import absent_sums, marginals, predict_pairs, predict_rows
from shoal.families.kernels.scores_kernels import BERNOULLI, Prior


@storable
class CountStats(NamedTuple):
    """Sufficient statistics of clusters: how many rows, and the sum of each feature."""

    size: np.ndarray  # (k,) int64
    sums: sp.csr_matrix  # (k, d)


@dataclass
class CountFamily:
    """A conjugate family over rows of counts.

    ``mean`` is the prior mean of the features (a row's share, rate or probability of each), and the prior's
    pseudo-counts are ``smoothing + strength * mean``: how sure the prior is of that.
    """

    mean: np.ndarray  # (d,)
    strength: float
    smoothing: float = 0.0

    name: ClassVar[str] = ""
    kind: ClassVar[int] = -1
    binary: ClassVar[bool] = False

    @property
    def shape(self) -> np.ndarray:
        """(d,) the prior's pseudo-counts a_v."""
        return self.smoothing + self.strength * self.mean

    @property
    def rate(self) -> float:
        """What stands beside the pseudo-counts: pseudo-rows (Poisson, Bernoulli)."""
        return 1.0

    @classmethod
    def for_rows(cls, X: sp.csr_matrix) -> CountFamily:
        """The family with a prior that suits these rows before anything is learned."""
        raise NotImplementedError

    def absent_table(self, n_rows: int) -> np.ndarray:
        return np.zeros(1)

    def prior(self, *, alpha: float = 1.0, dp_concentration: float = 0.0, unit: float = 1.0, n_rows: int = 0) -> Prior:
        """The prior as kernels read it; ``n_rows`` is the most rows a cluster can have."""
        shape = self.shape
        table = self.absent_table(n_rows)
        return Prior(self.kind, unit, shape, float(shape.sum()), float(self.rate), table, alpha, dp_concentration)

    def statistics(self, X: sp.csr_matrix, labels: np.ndarray, n_clusters: int) -> CountStats:
        """Statistics of the rows by cluster; rows labeled -1 are left out."""
        held = np.flatnonzero(labels >= 0)
        pick = sp.csr_matrix((np.ones(len(held)), (labels[held], held)), shape=(n_clusters, X.shape[0]))
        rows = (X != 0).astype(np.float64) if self.binary else X.astype(np.float64)
        sums = sp.csr_matrix(pick @ rows)
        sums.sort_indices()
        return CountStats(np.bincount(labels[held], minlength=n_clusters), sums)

    def _ready(self, stats: CountStats) -> tuple[Prior, np.ndarray, np.ndarray]:
        prior = self.prior(n_rows=int(stats.size.max(initial=0)) + 1)
        absent = np.zeros(len(stats.size))
        if self.kind == BERNOULLI:
            absent_sums(prior, stats.size, stats.sums.indptr, stats.sums.indices, stats.sums.data, absent)
        return prior, np.asarray(stats.sums.sum(axis=1)).ravel(), absent

    def log_predictive(self, stats: CountStats, X: sp.csr_matrix) -> np.ndarray:
        """(n, k) log p(row | the cluster's rows): parameters integrated out, log x! left out."""
        prior, total, absent = self._ready(stats)
        columns = stats.sums.tocsc()
        values = np.ones(X.nnz) if self.binary else X.data.astype(np.float64)
        out = np.zeros((X.shape[0], len(stats.size)))
        predict_rows(
            prior, stats.size, total, absent, columns.indptr, columns.indices, columns.data,
            X.indptr, X.indices, values, out,
        )  # fmt: skip
        return out

    def log_predictive_at(self, stats: CountStats, X: sp.csr_matrix, labels: np.ndarray) -> np.ndarray:
        """(n,) log p(row | the rows of its cluster ``labels[row]``); a label of -1 means an empty cluster."""
        prior, total, absent = self._ready(stats)
        values = np.ones(X.nnz) if self.binary else X.data.astype(np.float64)
        out = np.zeros(X.shape[0])
        sums = stats.sums
        predict_pairs(
            prior, stats.size, total, absent, sums.indptr, sums.indices, sums.data, labels.astype(np.int64),
            X.indptr, X.indices, values, out,
        )  # fmt: skip
        return out

    def log_marginal(self, stats: CountStats) -> np.ndarray:
        """(k,) log p(the cluster's rows): parameters integrated out, log x! left out."""
        prior, total, _ = self._ready(stats)
        out = np.zeros(len(stats.size))
        sums = stats.sums
        marginals(prior, stats.size, total, falling_table(prior), sums.indptr, sums.indices, sums.data, out)
        return out

    def theta(self, stats: CountStats) -> np.ndarray:
        """(k, d) theta* = E[natural parameter | the cluster's rows]. Dense: for small d."""
        raise NotImplementedError

    def gamma(self, stats: CountStats) -> np.ndarray:
        """gamma* = E[g(theta) | the cluster's rows]: (k, d), or (k,) per token for the multinomial."""
        raise NotImplementedError

    def log_partition(self, theta: np.ndarray) -> np.ndarray:
        """g(theta)"""
        raise NotImplementedError

    def expected(self, stats: CountStats, cluster: int) -> np.ndarray:
        """(d,) the cluster's posterior mean of each feature: a share, a rate or a probability."""
        raise NotImplementedError

    def draw(self, stats: CountStats, cluster: int, n: int, lengths: np.ndarray, rng: Any) -> sp.csr_matrix:
        """``n`` new rows of a cluster, its parameters drawn from their posterior."""
        raise NotImplementedError

    def _posterior(self, stats: CountStats) -> np.ndarray:
        return np.asarray(self.shape[None, :] + stats.sums.toarray())


def falling_table(prior: Prior) -> np.ndarray:
    """Bernoulli: sum over all features of lnB(a, t - a + m) - lnB(a, t - a), for m = 0, 1, ... rows without any. Of no
    meaning for the other families."""
    return np.concatenate([[0.0], np.cumsum(prior.absent)])
