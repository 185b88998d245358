"""What a model says of rows it does not learn from, in fixed blocks on threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.adf_kernels import best_rows, score_rows
from shoal.bernoulli.profiles import Profiles, board_of
from shoal.threads import ordered_map, row_blocks

BLOCK_ROWS = 16384


def as_presence(rows: sp.csr_matrix) -> sp.csr_matrix:
    """Only what is there: values of 0 and below are taken out."""
    if rows.nnz and rows.data.min() <= 0:
        rows = rows.copy()
        rows.data = np.maximum(rows.data, 0)
        rows.eliminate_zeros()
    return rows


class Labelled(NamedTuple):
    """Rows with their most likely cluster."""

    rows: np.ndarray  # (n,) row of the model
    shares: np.ndarray  # (n,) its probability
    explained: np.ndarray  # (n,) how much likelier than under the background, in nats for each keyword


def labelled(profiles: Profiles, X: sp.csr_matrix) -> Labelled:
    """The most likely cluster of each row."""
    board = board_of(profiles)

    def one(block: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n = block[1] - block[0]
        labels, log_norms, shares = np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n)
        best_rows(X.indptr[block[0] : block[1] + 1], X.indices, profiles, board, labels, log_norms, shares)
        return labels, shares, log_norms

    found = list(ordered_map(one, row_blocks(X.shape[0], BLOCK_ROWS)))
    if not found:
        return Labelled(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    labels, shares, log_norms = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Labelled(labels, shares, explained(profiles, X, log_norms))


def memberships_of(profiles: Profiles, X: sp.csr_matrix) -> np.ndarray:
    """Probability of each row of the model for each row of X."""
    board = board_of(profiles)
    shares, log_norms = np.zeros((X.shape[0], profiles.n_rows)), np.zeros(X.shape[0])

    def one(block: tuple[int, int]) -> None:
        first, last = block
        score_rows(X.indptr[first : last + 1], X.indices, profiles, board, log_norms[first:last], shares[first:last])

    list(ordered_map(one, row_blocks(X.shape[0], BLOCK_ROWS)))
    return shares


def likelihoods(profiles: Profiles, X: sp.csr_matrix) -> np.ndarray:
    """Log probability of each row."""
    board = board_of(profiles)
    labels, log_norms, shares = np.zeros(X.shape[0], dtype=np.int64), np.zeros(X.shape[0]), np.zeros(X.shape[0])

    def one(block: tuple[int, int]) -> None:
        first, last = block
        part = slice(first, last)
        best_rows(X.indptr[first : last + 1], X.indices, profiles, board, labels[part], log_norms[part], shares[part])

    list(ordered_map(one, row_blocks(X.shape[0], BLOCK_ROWS)))
    b, shared = profiles.background, profiles.shared
    # The scores leave out what is the same for every cluster: log b of present keywords, and keywords that say nothing.
    each = np.log(b) - np.where(shared, np.log1p(-b), 0.0)
    present = np.asarray(sp.csr_matrix((each[X.indices], X.indices, X.indptr), shape=X.shape).sum(axis=1)).ravel()
    everywhere = np.log1p(-b[shared]).sum() - np.log((profiles.prior[1] + profiles.mass).sum())
    return np.asarray(log_norms + present + everywhere)


def explained(profiles: Profiles, X: sp.csr_matrix, log_norms: np.ndarray) -> np.ndarray:
    """How much better than the background the model explains each row, in nats for each of its keywords."""
    b = profiles.background
    own = np.where(profiles.shared, 0.0, b)
    alone = np.asarray(sp.csr_matrix((own[X.indices], X.indices, X.indptr), shape=X.shape).sum(axis=1)).ravel()
    alone += np.log1p(-b[~profiles.shared]).sum()
    gain = log_norms - np.log((profiles.prior[1] + profiles.mass).sum()) - alone
    return np.asarray(gain / np.maximum(np.diff(X.indptr), 1))
