"""What the families of counts share: sparse sums as statistics, and a predictive that touches a row's own features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import betaincinv

from shoal.base import storable
from shoal.errors import BadInput
from shoal.families.kernels.predict_kernels import (
    Columns,
    absent_sums,
    best_rows,
    fill_column_gains,
    marginals,
    predict_left_out,
    predict_pairs,
    predict_rows,
    top_rows,
)
from shoal.families.kernels.scores_kernels import Prior


@storable
class CountStats(NamedTuple):
    """Sufficient statistics of clusters: how many rows, and the sum of each feature."""

    size: np.ndarray  # (k,) int64
    sums: sp.csr_matrix  # (k, d)


def beta_interval(a: np.ndarray, b: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Central interval of Beta(a, b)."""
    return betaincinv(a, b, (1 - share) / 2), betaincinv(a, b, (1 + share) / 2)


class Best(NamedTuple):
    """The clusters that suit each row best."""

    clusters: np.ndarray  # (n, m) rows of the model, best first; -1 where there are no more
    scores: np.ndarray  # (n, m) log weight + log predictive
    total: np.ndarray  # (n,) log of the sum of exp(score) over all clusters
    fresh: np.ndarray  # (n,) log predictive under a cluster without rows


def best_of(scores: np.ndarray, most: int, fresh: np.ndarray) -> Best:
    """The best clusters by a table of scores."""
    n = len(scores)
    found = Best(np.full((n, most), -1, np.int64), np.zeros((n, most)), np.zeros(n), fresh)
    best_rows(scores, found.clusters, found.scores, found.total)
    return found


class CountScorer(NamedTuple):
    """What scoring rows of counts needs of a model."""

    binary: bool
    prior: Prior
    size: np.ndarray
    total: np.ndarray
    absent: np.ndarray
    columns: Columns
    log_weights: np.ndarray

    def values(self, X: sp.csr_matrix) -> np.ndarray:
        return np.ones(X.nnz) if self.binary else X.data.astype(np.float64)

    def all(self, X: sp.csr_matrix) -> np.ndarray:
        """(n, k) log weight + log predictive."""
        out = np.zeros((X.shape[0], len(self.size)))
        predict_rows(*self[1:], X.indptr, X.indices, self.values(X), out)
        return out

    def best(self, X: sp.csr_matrix, most: int) -> Best:
        """The ``most`` best clusters of each row; nothing of size rows x clusters is made."""
        n, values = X.shape[0], self.values(X)
        length = np.add.reduceat(np.append(values, 0.0), X.indptr[:-1]) * (np.diff(X.indptr) > 0)
        order = np.argsort(length, kind="stable")
        found = Best(np.full((n, most), -1, np.int64), np.zeros((n, most)), np.zeros(n), np.zeros(n))
        top_rows(*self[1:], X.indptr, X.indices, values, order, *found)
        return found


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
    binary: ClassVar[bool] = False  # any value but 0 is a 1
    absence_counts: ClassVar[bool] = False  # sums over all features a cluster has enter every score
    length_given: ClassVar[bool] = False  # a row's features are drawn given its length
    nonnegative: ClassVar[bool] = True
    samplers: ClassVar[tuple[str, ...]] = ("indexed", "fastex", "gibbs")
    meaning: ClassVar[str] = ""  # of `expected`, for a table head

    @property
    def shape(self) -> np.ndarray:
        """(d,) the prior's pseudo-counts a_v."""
        return self.smoothing + self.strength * self.mean

    @property
    def rate(self) -> float:
        """Pseudo-rows of the prior (Poisson, Bernoulli)."""
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

    def row_lengths(self, X: sp.csr_matrix) -> np.ndarray:
        """(n,) what a row's evidence is measured by."""
        return np.asarray(abs(X).sum(axis=1)).ravel()

    def averaged(self, other: CountFamily, share: float) -> CountFamily:
        """The prior of two models together, the other with this share of the rows."""
        if len(other.mean) != len(self.mean):
            raise BadInput("the two families have different numbers of features.")
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in ("mean", "strength", "smoothing")}
        return replace(self, **{name: (1 - share) * one + share * two for name, (one, two) in pairs.items()})

    def converted(self, other: CountFamily, stats: CountStats) -> CountStats:
        """Statistics of a model with the family ``other`` as this one has them: counts are counts."""
        return stats

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
        if self.absence_counts:
            absent_sums(prior, stats.size, stats.sums.indptr, stats.sums.indices, stats.sums.data, absent)
        return prior, np.asarray(stats.sums.sum(axis=1)).ravel(), absent

    def scorer(self, stats: CountStats, log_weights: np.ndarray) -> CountScorer:
        """Scores of rows under all clusters, made ready once."""
        prior, total, absent = self._ready(stats)
        by_feature = stats.sums.tocsc()
        columns = Columns(by_feature.indptr, by_feature.indices, by_feature.data, np.zeros(by_feature.nnz))
        fill_column_gains(prior, stats.size, columns)
        return CountScorer(self.binary, prior, stats.size, total, absent, columns, log_weights)

    def log_predictive(self, stats: CountStats, X: sp.csr_matrix) -> np.ndarray:
        """(n, k) log p(row | the cluster's rows): parameters integrated out, log x! left out."""
        return self.scorer(stats, np.zeros(len(stats.size))).all(X)

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

    def log_predictive_left_out(self, stats: CountStats, X: sp.csr_matrix, labels: np.ndarray) -> np.ndarray:
        """(n,) log p(row | the other rows of its cluster), for rows that the statistics hold."""
        prior, total, _ = self._ready(stats)
        values = np.ones(X.nnz) if self.binary else X.data.astype(np.float64)
        out, sums = np.zeros(X.shape[0]), stats.sums
        predict_left_out(
            prior, stats.size, total, sums.indptr, sums.indices, sums.data, labels.astype(np.int64),
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

    def salient(self, stats: CountStats, cluster: int, n: int) -> tuple[np.ndarray, np.ndarray, str]:
        """(features, their means, meaning): mean times log ratio to the mean over all rows, largest first."""
        candidates = stats.sums[[cluster]].indices
        mean, typical = self.expected(stats, cluster), self.typical()
        ratio = np.maximum(mean[candidates] / np.maximum(typical[candidates], 1e-300), 1e-300)
        best = np.asarray(candidates[np.argsort(-(mean[candidates] * np.log(ratio)), kind="stable")[:n]])
        return best, mean[best], self.meaning

    def n_parameters(self) -> int:
        """Free parameters of one cluster."""
        return len(self.mean) - int(self.length_given)

    def typical(self) -> np.ndarray:
        """(d,) what `expected` is over all rows."""
        return self.mean

    def interval(self, stats: CountStats, cluster: int, features: np.ndarray, share: float) -> tuple[Any, Any]:
        """Central credible interval of `expected` for these features."""
        raise NotImplementedError

    def grown(self, n_features: int) -> CountFamily:
        """The family with features that no row has had so far."""
        more = np.full(n_features - len(self.mean), float(self.mean.min(initial=1.0)))
        return replace(self, mean=np.concatenate([self.mean, more]))

    def draw(self, stats: CountStats, cluster: int, n: int, lengths: np.ndarray, rng: Any) -> sp.csr_matrix:
        """``n`` new rows of a cluster, its parameters drawn from their posterior."""
        raise NotImplementedError

    def _posterior(self, stats: CountStats) -> np.ndarray:
        return np.asarray(self.shape[None, :] + stats.sums.toarray())


def falling_table(prior: Prior) -> np.ndarray:
    """Bernoulli: sum over all features of lnB(a, t - a + m) - lnB(a, t - a), for m = 0, 1, ... rows without any. Of no
    meaning for the other families."""
    return np.concatenate([[0.0], np.cumsum(prior.absent)])
