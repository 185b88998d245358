"""Which rows and columns stay, and what their cells weigh."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from shoal.data.arrow import frozen
from shoal.data.matrix_builder import counts_of_kept, offsets_of
from shoal.threads import ordered_map, row_blocks


def items_per_feature(X: sp.csr_matrix) -> np.ndarray:
    """In how many rows each column occurs."""
    return np.bincount(X.indices, minlength=X.shape[1]).astype(np.int64)


def keep_columns(X: sp.csr_matrix, columns: np.ndarray) -> sp.csr_matrix:
    """These columns (ascending), renumbered from 0; rows stay, even when they become empty."""
    place = np.full(X.shape[1], -1, dtype=X.indices.dtype)
    place[columns] = np.arange(columns.size)
    indices = place[X.indices]
    kept = indices >= 0
    counts = counts_of_kept(np.diff(X.indptr), kept)
    indptr = offsets_of(counts).astype(X.indptr.dtype)
    smaller = sp.csr_matrix((X.data[kept], indices[kept], indptr), shape=(X.shape[0], columns.size), copy=False)
    smaller.has_sorted_indices = True
    smaller.has_canonical_format = True
    return smaller


def smooth_idf(items_with: np.ndarray, n_items: int) -> np.ndarray:
    """``log((1 + n) / (1 + n_f)) + 1``, as scikit-learn has it: never zero, and defined for a feature nobody has."""
    return np.asarray(np.log((1 + n_items) / (1 + items_with.astype(np.float64))) + 1.0)


def weigh(
    X: sp.csr_matrix, weighting: str, *, idf: np.ndarray | None, sublinear: bool, unit_length: bool, dtype: str
) -> sp.csr_matrix:
    """The cells as wanted: 1, the count, or the count times the feature's idf; then rows of unit length if asked."""
    from shoal.data.token_kernels import weigh_rows

    values = np.empty(X.nnz, dtype=np.float64)
    factor = idf if weighting == "tfidf" and idf is not None else np.empty(0, dtype=np.float64)
    plan = (X.indptr, X.indices, X.data, weighting == "binary", sublinear, frozen(factor), unit_length, values)
    for _ in ordered_map(lambda rows: weigh_rows(*rows, *plan), row_blocks(X.shape[0], 1 << 16)):
        pass
    weighed = sp.csr_matrix((values.astype(dtype, copy=False), X.indices, X.indptr), shape=X.shape, copy=False)
    weighed.has_sorted_indices = True
    weighed.has_canonical_format = True
    return weighed
