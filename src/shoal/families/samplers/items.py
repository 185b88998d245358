"""Rows of counts made ready for sampling: whole units, rare features first, and which features are worth an index."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput
from shoal.families.kernels.counts_kernels import Items
from shoal.families.kernels.items_kernels import prepare_rows

FRACTION = 1024  # fractional counts are kept to 1/1024


def units_of(X: sp.csr_matrix, *, binary: bool) -> tuple[np.ndarray, float]:
    """The stored values as whole numbers of a unit: 1 for counts, 1/1024 where any value is fractional."""
    if binary:
        return np.ones(X.nnz, dtype=np.int32), 1.0
    whole = bool(np.all(X.data == np.rint(X.data)))
    unit = 1.0 if whole else 1.0 / FRACTION
    largest = float(X.data.max(initial=0.0)) / unit
    if largest * 4 > np.iinfo(np.int32).max:
        raise BadInput(
            f"the largest value in X is {X.data.max():g}, more than a table of counts can hold. Divide X by a "
            "constant, or use family='gaussian' for measurements."
        )
    return np.rint(X.data / unit).astype(np.int32), unit


def as_items(
    X: sp.csr_matrix, *, binary: bool, n_clusters: int, budget: int, least: int
) -> tuple[Items, np.ndarray, float]:
    """(items, which features are indexed, unit). Entries that are 0, or round to 0, are dropped."""
    counts, unit = units_of(X, binary=binary)
    features, ptr = X.indices.astype(np.int32), X.indptr.astype(np.int64)
    if not counts.all() or (binary and not X.data.all()):
        kept = (counts > 0) & (X.data != 0)
        ptr = np.concatenate([[0], np.cumsum(kept)])[ptr].astype(np.int64)
        features, counts = features[kept], counts[kept]
    n, n_features = X.shape
    frequency = np.bincount(features, minlength=n_features)
    scan, indexed = np.zeros(n, np.int64), np.zeros(n_features, np.bool_)
    prepare_rows(ptr, features, counts, frequency, budget, least, n_clusters, scan, indexed)
    sums = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return Items(ptr, features, counts, np.diff(sums[ptr]), scan, np.zeros(n)), indexed, unit
