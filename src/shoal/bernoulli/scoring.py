"""Rows under a model that does not learn from them, in fixed blocks on threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import logit

from shoal.bernoulli.adf_kernels import best_rows, score_rows
from shoal.bernoulli.profiles import Profiles, dense_lines
from shoal.threads import ordered_map, row_blocks

BLOCK_ROWS = 16384


def as_presence(rows: sp.csr_matrix) -> sp.csr_matrix:
    """Only what is there: values of 0 and below are taken out."""
    if rows.nnz and rows.data.min() <= 0:
        rows = rows.copy()
        rows.data = np.maximum(rows.data, 0)
        rows.eliminate_zeros()
    return rows


class Scored(NamedTuple):
    """Rows with their most likely cluster."""

    rows: np.ndarray  # (n,) row of the model
    shares: np.ndarray  # (n,) its probability
    log_ratios: np.ndarray  # (n,) log p(x) - log p(x | background)


def scored(profiles: Profiles, X: sp.csr_matrix, n_threads: int | None = None) -> Scored:
    """The most likely cluster of each row."""
    dense = dense_lines(profiles)

    def one(block: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n = block[1] - block[0]
        labels, log_norms, shares = np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n)
        best_rows(X.indptr[block[0] : block[1] + 1], X.indices, profiles, dense, labels, log_norms, shares)
        return labels, shares, log_norms

    found = list(ordered_map(one, row_blocks(X.shape[0], BLOCK_ROWS), n_threads))
    if not found:
        return Scored(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    labels, shares, log_norms = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Scored(labels, shares, log_norms - log_total_weight(profiles))


def log_total_weight(profiles: Profiles) -> float:
    """The scores' log weights are not normalized: this is what they lack."""
    return float(np.log((profiles.prior[1] + profiles.mass).sum()))


def memberships_of(profiles: Profiles, X: sp.csr_matrix, n_threads: int | None = None) -> np.ndarray:
    """Probability of each row of the model for each row of X."""
    dense = dense_lines(profiles)
    shares, log_norms = np.zeros((X.shape[0], profiles.n_rows)), np.zeros(X.shape[0])

    def one(block: tuple[int, int]) -> None:
        first, last = block
        score_rows(X.indptr[first : last + 1], X.indices, profiles, dense, log_norms[first:last], shares[first:last])

    list(ordered_map(one, row_blocks(X.shape[0], BLOCK_ROWS), n_threads))
    return shares


def log_background(profiles: Profiles, X: sp.csr_matrix) -> np.ndarray:
    """log p(x | background) of each row."""
    odds = logit(profiles.background)
    present = sp.csr_matrix((odds[X.indices], X.indices, X.indptr), shape=X.shape).sum(axis=1)
    return np.asarray(present).ravel() + np.log1p(-profiles.background).sum()


def log_likelihoods(profiles: Profiles, X: sp.csr_matrix, n_threads: int | None = None) -> np.ndarray:
    """Log probability of each row."""
    return np.asarray(scored(profiles, X, n_threads).log_ratios + log_background(profiles, X))


def per_feature(log_ratios: np.ndarray, X: sp.csr_matrix) -> np.ndarray:
    """How much better than the background the model explains each row, in nats for each of its features."""
    return np.asarray(log_ratios / np.maximum(np.diff(X.indptr), 1))
