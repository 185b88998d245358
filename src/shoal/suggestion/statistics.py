"""What a pass over some rows must remember: how often features occur, how often pairs do, and the rows themselves.

Everything else in the model is a function of these, and these add up: rows of one block after those of another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.errors import CannotMerge


@storable
class SuggestionStats(NamedTuple):
    """Counts of some rows, and the rows."""

    frequency: np.ndarray  # (n_features,) rows with each feature
    pairs: sp.csr_matrix  # (n_features, n_features) rows with both features; the diagonal is `frequency`
    row_ptr: np.ndarray  # (n_rows + 1,) where each row begins in `row_features`
    row_features: np.ndarray  # (n_entries,) the features of each row, ascending

    @property
    def n_rows(self) -> int:
        return self.row_ptr.size - 1

    @property
    def n_features(self) -> int:
        return self.frequency.size

    @property
    def mean_length(self) -> float:
        """Features of a row, on average."""
        return self.row_features.size / max(self.n_rows, 1)

    def rows(self) -> sp.csr_matrix:
        """The remembered rows as a matrix of zeros and ones."""
        ones = np.ones(self.row_features.size)
        return sp.csr_matrix((ones, self.row_features, self.row_ptr), shape=(self.n_rows, self.n_features), copy=False)

    def lengths(self) -> np.ndarray:
        """How many rows have 0, 1, 2, ... features."""
        return np.bincount(np.diff(self.row_ptr))


def as_presence(rows: sp.csr_matrix) -> sp.csr_matrix:
    """Zeros and ones: a value above 0 means that the row has the feature."""
    present = rows.data > 0
    kept = np.concatenate([[0], np.cumsum(present)])
    indptr = kept[rows.indptr].astype(np.int64)
    return sp.csr_matrix((np.ones(indptr[-1]), rows.indices[present].astype(np.int32), indptr), shape=rows.shape)


def no_rows(n_features: int) -> SuggestionStats:
    """The statistics of no rows at all."""
    return accumulate(sp.csr_matrix((0, n_features)))[0]


def accumulate(block: sp.csr_matrix, model: None = None, memory: None = None) -> tuple[SuggestionStats, None]:
    """Count one block of rows. Counts depend on no model, and a block keeps nothing between passes.

    Time and memory are proportional to the sum of squared row lengths.

    Parameters
    ----------
    block : CSR matrix
        Rows to count.
    model, memory : None
        Not used: counts do not depend on a model.
    """
    rows = as_presence(block)
    pairs = (rows.T @ rows).tocsr()
    pairs.sort_indices()
    return SuggestionStats(pairs.diagonal(), pairs, rows.indptr.astype(np.int64), rows.indices), None


def merge(first: SuggestionStats, second: SuggestionStats) -> SuggestionStats:
    """Both: the rows of ``second`` come after those of ``first``, everything else does not depend on the order.

    Parameters
    ----------
    first, second : SuggestionStats
        Statistics of two blocks, in the order of the rows.
    """
    if first.n_features != second.n_features:
        raise CannotMerge(
            f"one side has {first.n_features:,} features and the other {second.n_features:,}. "
            "Give both the same columns."
        )
    pairs = (first.pairs + second.pairs).tocsr()
    pairs.sort_indices()
    return SuggestionStats(
        first.frequency + second.frequency,
        pairs,
        np.concatenate([first.row_ptr, first.row_ptr[-1] + second.row_ptr[1:]]),
        np.concatenate([first.row_features, second.row_features]),
    )


def without(stats: SuggestionStats, rows: np.ndarray) -> SuggestionStats:
    """As if some of the remembered rows had never been counted."""
    matrix = stats.rows()
    taken, _ = accumulate(matrix[rows])
    kept = matrix[np.setdiff1d(np.arange(stats.n_rows), rows)]
    pairs = (stats.pairs - taken.pairs).tocsr()
    pairs.eliminate_zeros()
    pairs.sort_indices()
    return SuggestionStats(stats.frequency - taken.frequency, pairs, kept.indptr.astype(np.int64), kept.indices)


def widened(stats: SuggestionStats, n_features: int) -> SuggestionStats:
    """The same rows over more features: the new ones come last and no row has them."""
    more = n_features - stats.n_features
    if more <= 0:
        return stats
    ptr = np.concatenate([stats.pairs.indptr, np.full(more, stats.pairs.indptr[-1], stats.pairs.indptr.dtype)])
    pairs = sp.csr_matrix((stats.pairs.data, stats.pairs.indices, ptr), shape=(n_features, n_features))
    return stats._replace(frequency=np.concatenate([stats.frequency, np.zeros(more)]), pairs=pairs)


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written to."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
