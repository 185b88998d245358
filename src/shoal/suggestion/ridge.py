"""Ridge weights between features (EASE), in three ways behind one interface.

The ridge score of feature d for a set S is e_d = sum over j in S of B_jd with B_jd = -P_jd / P_dd and
P = (X'X + penalty I)^-1 (Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019). Each way offers

    scores(stats, given)               e of every feature, for the rows of `given`
    scores_without(stats, given, own)  the same as if row own[q] had never been counted; exact, without a refit
    weights_to(stats, given, targets)  B_jd for j given, d a target

Which way is taken depends on the shape of the data alone: :func:`ridge_way`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from shoal.base import storable
from shoal.errors import BadInput
from shoal.suggestion.ridge_kernels import local_weights
from shoal.suggestion.statistics import SuggestionStats, read_only
from shoal.threads import ordered_map, row_blocks

MOST_DENSE = 5000  # no n x n array above this
LOCAL_WIDTH = 64
BLOCK_TARGETS = 1000


@storable
class DenseRidge(NamedTuple):
    """P itself: for up to 5000 features."""

    inverse: np.ndarray  # (n_features, n_features)

    def scores(self, stats: SuggestionStats, given: sp.csr_matrix) -> np.ndarray:
        return np.asarray(-(given @ self.inverse) / np.diag(self.inverse))

    def scores_without(self, stats: SuggestionStats, given: sp.csr_matrix, own: np.ndarray) -> np.ndarray:
        rows = stats.rows()[own]
        of_row = np.asarray(rows @ self.inverse)
        return _downdated(rows, np.asarray(given @ self.inverse), of_row, np.diag(self.inverse))

    def weights_to(self, stats: SuggestionStats, given: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return np.asarray(-self.inverse[np.ix_(given, targets)] / np.diag(self.inverse)[targets])


@storable
class DualRidge(NamedTuple):
    """Through rows, where they are fewer than features: P = (I - X' K X) / penalty, K = (X X' + penalty I)^-1."""

    kernel: np.ndarray  # (n_rows, n_rows) K
    diagonal: np.ndarray  # (n_features,) of P
    penalty: float

    def scores(self, stats: SuggestionStats, given: sp.csr_matrix) -> np.ndarray:
        return -self._times_inverse(stats.rows(), given) / self.diagonal

    def scores_without(self, stats: SuggestionStats, given: sp.csr_matrix, own: np.ndarray) -> np.ndarray:
        X = stats.rows()
        of_row = np.asarray((X.T @ self.kernel[own].T).T)  # P x = X' K e_row, by the definition of K
        return _downdated(X[own], self._times_inverse(X, given), of_row, self.diagonal)

    def weights_to(self, stats: SuggestionStats, given: np.ndarray, targets: np.ndarray) -> np.ndarray:
        X = stats.rows()
        one_each = sp.csr_matrix(
            (np.ones(given.size), given, np.arange(given.size + 1)), shape=(given.size, X.shape[1])
        )
        return np.asarray(-self._times_inverse(X, one_each)[:, targets] / self.diagonal[targets])

    def _times_inverse(self, X: sp.csr_matrix, given: sp.csr_matrix) -> np.ndarray:
        inner = np.asarray((given @ X.T) @ self.kernel)
        product = -np.asarray((X.T @ inner.T).T)
        product += given.toarray()
        return product / self.penalty


@storable
class LocalRidge(NamedTuple):
    """Each feature from the 64 others that explain most of it: memory in proportion to features, not their square."""

    weights: sp.csr_matrix  # (n_features, n_features) from given features to targets

    def scores(self, stats: SuggestionStats, given: sp.csr_matrix) -> np.ndarray:
        return np.asarray((given @ self.weights).toarray())

    def weights_to(self, stats: SuggestionStats, given: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return np.asarray(self.weights[given][:, targets].toarray())


Ridge: TypeAlias = DenseRidge | DualRidge | LocalRidge


def _downdated(rows: sp.csr_matrix, of_given: np.ndarray, of_row: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """e when one row x is taken out of X'X, by Sherman and Morrison.

    With u = P s, t = P x, h = x't, g = x'u and f = 1 / (1 - h): P becomes P + f t t', so e_d becomes
    -(u_d + g f t_d) / (P_dd + f t_d^2).
    """
    leverage = np.asarray(rows.multiply(of_row).sum(axis=1)).ravel()
    overlap = np.asarray(rows.multiply(of_given).sum(axis=1)).ravel()
    scale = 1 / np.maximum(1 - leverage, 1e-9)  # the penalty keeps the leverage below 1
    numerator = of_given + (overlap * scale)[:, None] * of_row
    return np.asarray(-numerator / (diagonal + scale[:, None] * of_row**2))


def ridge_way(n_rows: int, n_features: int, way: str = "auto") -> str:
    """Which of "dense", "dual" and "local" to take for data of this shape."""
    if way == "auto":
        if n_rows < n_features and n_rows <= MOST_DENSE:
            return "dual"
        return "dense" if n_features <= MOST_DENSE else "local"
    size = {"dense": n_features, "dual": n_rows}.get(way, 0)
    if size > MOST_DENSE:
        what = "features" if way == "dense" else "rows"
        raise BadInput(
            f"ridge={way!r} would keep an array of {size:,} x {size:,} {what}; it is for up to {MOST_DENSE:,}. "
            "Use ridge='local' or 'auto'."
        )
    return way


def ridge_of(stats: SuggestionStats, penalty: float, way: str, n_threads: int | None = None) -> Ridge:
    """Ridge weights between all features, in one of the three ways."""
    if way == "dense":
        return DenseRidge(inverse_of(stats.pairs.toarray(), penalty))
    if way == "dual":
        return _dual(stats.rows(), penalty)
    return _local(stats, penalty, n_threads)


def inverse_of(gram: np.ndarray, penalty: float) -> np.ndarray:
    """(gram + penalty I)^-1 by Cholesky, half the work of a general inverse."""
    shifted = np.asfortranarray(gram + penalty * np.eye(len(gram)))
    factor, _ = lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    upper = np.triu_indices(len(gram), 1)
    inverse[upper] = inverse.T[upper]
    return np.ascontiguousarray(inverse)


def _dual(X: sp.csr_matrix, penalty: float) -> DualRidge:
    inverse = inverse_of((X @ X.T).toarray(), penalty)
    columns = X.tocsc()
    quadratic = np.empty(X.shape[1])
    for start, end in row_blocks(X.shape[1], BLOCK_TARGETS):  # x_d' K x_d, and nothing of size features x rows
        block = columns[:, start:end]
        quadratic[start:end] = np.asarray(block.multiply(inverse @ block).sum(axis=0)).ravel()
    return DualRidge(inverse, (1 - quadratic) / penalty, penalty)


def _local(stats: SuggestionStats, penalty: float, n_threads: int | None) -> LocalRidge:
    pairs, n_features = stats.pairs, stats.n_features
    ptr, indices = pairs.indptr.astype(np.int64), pairs.indices.astype(np.int32)
    data, count = read_only(pairs.data), read_only(stats.frequency)

    def towards(block: tuple[int, int]) -> sp.csr_matrix:
        targets = np.arange(*block)
        sources = np.zeros((targets.size, LOCAL_WIDTH), np.int32)
        weights, n_sources = np.zeros((targets.size, LOCAL_WIDTH)), np.zeros(targets.size, np.int64)
        local_weights(targets, ptr, indices, data, count, penalty, sources, weights, n_sources)
        used = np.arange(LOCAL_WIDTH)[None, :] < n_sources[:, None]
        indptr = np.append(0, np.cumsum(n_sources))
        return sp.csr_matrix((weights[used], sources[used], indptr), shape=(targets.size, n_features))

    blocks = list(ordered_map(towards, row_blocks(n_features, BLOCK_TARGETS), n_threads))
    return LocalRidge(sp.vstack(blocks).T.tocsr())
