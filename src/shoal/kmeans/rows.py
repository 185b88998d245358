"""Rows of unit length, as the kernels want them: float32, the most common features first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.kmeans.rows_kernels import close_gaps, keep_known, unit_length
from shoal.threads import ordered_map, row_blocks

BLOCK_ROWS = 2048


@dataclass
class UnitRows:
    """CSR rows of unit length over *ranks*: rank 0 is the feature that most rows have.

    Common features come first in every row, so the part that is scored densely is a prefix.
    """

    indptr: np.ndarray  # (n_rows + 1,) int64
    ranks: np.ndarray  # (nnz,) int32, ascending within a row
    values: np.ndarray  # (nnz,) float32
    columns: np.ndarray  # rank -> column of X
    n_features: int  # columns of X
    lengths: np.ndarray  # (n_rows,) Euclidean length before; 0 for an empty row

    @property
    def n_rows(self) -> int:
        return self.indptr.size - 1

    @property
    def n_ranks(self) -> int:
        return self.columns.size

    @property
    def csr(self) -> sp.csr_matrix:
        """The same rows as a scipy matrix (n_rows, n_ranks), without a copy."""
        return sp.csr_matrix((self.values, self.ranks, self.indptr), shape=(self.n_rows, self.n_ranks), copy=False)

    def blocks(self) -> list[tuple[int, int]]:
        return row_blocks(self.n_rows, BLOCK_ROWS)


def by_frequency(X: sp.csr_matrix) -> np.ndarray:
    """The columns that X uses, most common first."""
    seen = np.bincount(X.indices, minlength=1)
    used = np.flatnonzero(seen)
    return used[np.argsort(-seen[used], kind="stable")]


@dataclass
class Ranking:
    """Which column has which rank."""

    columns: np.ndarray  # rank -> column
    rank_of: np.ndarray  # column -> rank, -1 for none

    @classmethod
    def of(cls, columns: np.ndarray, n_features: int) -> Ranking:
        rank_of = np.full(n_features, -1, dtype=np.int32)
        rank_of[columns] = np.arange(columns.size, dtype=np.int32)
        return cls(columns, rank_of)


def unit_rows(X: sp.csr_matrix, ranking: Ranking | None = None, n_threads: int | None = None) -> UnitRows:
    """Rows of ``X`` at unit length. Columns without a rank in a given ``ranking`` are dropped after that."""
    ranking = Ranking.of(by_frequency(X), X.shape[1]) if ranking is None else ranking
    indptr = X.indptr.astype(np.int64)
    scaled, weights = np.empty(X.nnz, np.float32), np.empty(X.nnz, np.float32)
    ranks = np.empty(X.nnz, np.int32)
    lengths, kept = np.empty(X.shape[0]), np.zeros(X.shape[0], np.int64)

    def prepare(block: tuple[int, int]) -> None:
        unit_length(indptr, X.data, *block, lengths, scaled)
        keep_known(indptr, X.indices, scaled, ranking.rank_of, *block, kept, ranks, weights)

    for _ in ordered_map(prepare, row_blocks(X.shape[0], BLOCK_ROWS), n_threads):
        pass
    if kept.sum() < X.nnz:
        new_indptr = np.concatenate([[0], np.cumsum(kept)])
        close_gaps(indptr, kept, new_indptr, ranks, weights)
        indptr, ranks, weights = new_indptr, ranks[: new_indptr[-1]], weights[: new_indptr[-1]]
    return UnitRows(indptr, ranks, weights, ranking.columns, X.shape[1], lengths)


def take_rows(rows: UnitRows, which: np.ndarray) -> UnitRows:
    """Some of the rows, in the order given."""
    sizes = np.diff(rows.indptr)[which]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    at = np.repeat(rows.indptr[which] - indptr[:-1], sizes) + np.arange(indptr[-1])
    return UnitRows(indptr, rows.ranks[at], rows.values[at], rows.columns, rows.n_features, rows.lengths[which])


class Compact(NamedTuple):
    """Rows over only those ranks that they use."""

    rows: UnitRows
    ranks: np.ndarray  # new rank -> old rank


def compact(rows: UnitRows) -> Compact:
    """Drop the ranks that no row uses; the order of the others stays."""
    used, ranks = np.unique(rows.ranks, return_inverse=True)
    smaller = UnitRows(
        rows.indptr, ranks.astype(np.int32), rows.values, rows.columns[used], rows.n_features, rows.lengths
    )
    return Compact(smaller, used)


def row_keys(rows: UnitRows, n_threads: int | None = None) -> np.ndarray:
    """A 64-bit number for the content of each row: equal rows have equal keys; an empty row has key 0.

    Seeding walks the rows in the order of their keys, so the answer depends neither on the order of the rows nor on
    whether a row is repeated or weighted.
    """

    def keys_of(block: tuple[int, int]) -> np.ndarray:
        ptr = rows.indptr[block[0] : block[1] + 1]
        part = slice(int(ptr[0]), int(ptr[-1]))
        key = rows.columns[rows.ranks[part]].astype(np.uint64) << np.uint64(32)
        key |= rows.values[part].view(np.uint32)
        # The finalizer of splitmix64 for each entry, summed over the row (array arithmetic wraps around silently).
        key *= np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            key ^= key >> np.uint64(shift)
            key *= np.uint64(factor)
        key ^= key >> np.uint64(31)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(key, dtype=np.uint64)])
        of_rows: np.ndarray = sums[ptr[1:] - ptr[0]] - sums[ptr[:-1] - ptr[0]]
        return of_rows

    return np.concatenate([np.zeros(0, np.uint64), *ordered_map(keys_of, rows.blocks(), n_threads)])
