"""InvertedIndex: a search engine over sparse rows, built once and asked many times."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput
from shoal.kmeans.rows import Ranking, UnitRows, unit_rows
from shoal.kmeans.wand_kernels import Postings, fill_postings, list_extremes, top_rows


class Hits(NamedTuple):
    """Rows found for a query, best first, ties by row number."""

    rows: np.ndarray  # (n,)
    scores: np.ndarray  # (n,) cosines, all above 0


class InvertedIndex:
    """The rows most similar to a query, by cosine, without looking at the others.

    For each feature it keeps the rows that have it. It can be given to several fits of :class:`SphericalKMeans` with
    ``algorithm="wand"`` instead of X, so that it is built only once.

    Examples
    --------

    Parameters
    ----------
    X : matrix or Dataset
        Rows to index.
    n_threads : int, optional
        Threads to use; None means all cores.

    Examples
    --------
    >>> import numpy as np
    >>> index = InvertedIndex(np.array([[1.0, 1, 0], [0, 2, 2], [0, 0, 3]]))
    >>> hits = index.top([0, 1, 1], n=2)
    >>> hits.rows.tolist(), hits.scores.round(3).tolist()
    ([1, 2], [1.0, 0.7070000171661377])
    """

    def __init__(self, X: Any, *, n_threads: int | None = None) -> None:
        matrix = sp.csr_matrix(X)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if not np.isfinite(matrix.data).all():
            raise BadInput("X holds NaN or infinity; an index needs finite values.")
        self.rows: UnitRows = unit_rows(matrix, n_threads=n_threads)
        self.ranking = Ranking(self.rows.columns, self.rows.n_features)
        self.postings: Postings = postings_of(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.rows.n_rows, self.rows.n_features

    def top(self, query: Any, n: int = 10) -> Hits:
        """The ``n`` rows with the largest cosine to ``query``; fewer if fewer have one above 0.

        ``query`` is a sparse row (1, n_features), or an array of n_features numbers.
        """
        if n < 1:
            raise BadInput(f"n is {n}; ask for 1 row or more.")
        row = sp.csr_matrix(query, dtype=np.float64)
        if row.shape != (1, self.rows.n_features):
            raise BadInput(f"query has shape {row.shape}; one row of {self.rows.n_features} features is needed.")
        query_rows = unit_rows(row, self.ranking, n_threads=1)
        found, scores = np.empty(n, np.int32), np.empty(n, np.float32)
        n_found = top_rows(query_rows.ranks, query_rows.values, self.postings, found, scores)
        return Hits(found[:n_found], scores[:n_found])


def postings_of(rows: UnitRows) -> Postings:
    """The lists of an index over unit rows."""
    if rows.n_rows >= 2**31 - 1:
        raise BadInput(f"an inverted index holds up to 2,147,483,646 rows, not {rows.n_rows:,}; index them in parts.")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(rows.ranks, minlength=rows.n_ranks))])
    numbers, values = np.empty(rows.ranks.size, np.int32), np.empty(rows.ranks.size, np.float32)
    fill_postings(rows.indptr, rows.ranks, rows.values, ptr[:-1].copy(), numbers, values)
    most, least = np.empty(rows.n_ranks, np.float32), np.empty(rows.n_ranks, np.float32)
    list_extremes(ptr, values, most, least)
    return Postings(ptr, numbers, values, most, least)
