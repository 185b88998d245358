"""Rows of unit length, as the kernels want them: float32, the most common features first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.kmeans.rows_kernels import close_gaps, keep_known, unit_length
from shoal.threads import ordered_map, row_blocks

BLOCK_ROWS = 4096
WIDE = 2**24  # beyond this many columns tables over all columns are not made: most columns are then unused


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
        """How many rows."""
        return self.indptr.size - 1

    @property
    def n_ranks(self) -> int:
        """How many features are used."""
        return self.columns.size

    @property
    def csr(self) -> sp.csr_matrix:
        """The same rows as a scipy matrix (n_rows, n_ranks), without a copy."""
        return sp.csr_matrix((self.values, self.ranks, self.indptr), shape=(self.n_rows, self.n_ranks), copy=False)

    def blocks(self) -> list[tuple[int, int]]:
        """Row ranges for threads."""
        return row_blocks(self.n_rows, BLOCK_ROWS)


def by_frequency(X: sp.csr_matrix) -> np.ndarray:
    """The columns that X uses, most common first."""
    if X.shape[1] > WIDE:
        used, seen = np.unique(X.indices[: X.indptr[-1]], return_counts=True)
    else:
        counts = np.bincount(X.indices[: X.indptr[-1]], minlength=1)
        used = np.flatnonzero(counts)
        seen = counts[used]
    return np.asarray(used[np.argsort(-seen, kind="stable")])


@dataclass
class Ranking:
    """Which column has which rank."""

    columns: np.ndarray  # rank -> column
    n_features: int

    @cached_property
    def _table(self) -> np.ndarray:
        """Column -> rank, -1 for none."""
        table = np.full(self.n_features, -1, dtype=np.int32)
        table[self.columns] = np.arange(self.columns.size, dtype=np.int32)
        return table

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """Columns in ascending order and their ranks."""
        order = np.argsort(self.columns, kind="stable")
        return self.columns[order], order.astype(np.int32)

    def lookup(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a kernel needs to find ranks: ``table[keys]`` is the rank of each of ``columns``, -1 for none."""
        if self.n_features <= WIDE:
            return columns, self._table
        ordered, ranks = self._sorted
        if not ordered.size:
            return np.zeros(columns.size, np.int32), np.full(1, -1, np.int32)
        at = np.minimum(np.searchsorted(ordered, columns), ordered.size - 1)
        # The last place of the table stands for every unknown column.
        keys = np.where(ordered[at] == columns, ranks[at], self.columns.size)
        return keys, np.append(np.arange(self.columns.size, dtype=np.int32), np.int32(-1))


def unit_rows(X: sp.csr_matrix, ranking: Ranking | None = None, n_threads: int | None = None) -> UnitRows:
    """Rows of ``X`` at unit length. Columns without a rank in a given ``ranking`` are dropped after that."""
    ranking = Ranking(by_frequency(X), X.shape[1]) if ranking is None else ranking
    indptr = X.indptr.astype(np.int64)
    keys, table = ranking.lookup(X.indices)
    scaled, weights = np.empty(X.nnz, np.float32), np.empty(X.nnz, np.float32)
    ranks = np.empty(X.nnz, np.int32)
    lengths, kept = np.empty(X.shape[0]), np.zeros(X.shape[0], np.int64)

    def prepare(block: tuple[int, int]) -> None:
        unit_length(indptr, X.data, *block, lengths, scaled)
        keep_known(indptr, keys, scaled, table, *block, kept, ranks, weights)

    for _ in ordered_map(prepare, row_blocks(X.shape[0], BLOCK_ROWS), n_threads):
        pass
    if kept.sum() < X.nnz:
        new_indptr = np.concatenate([[0], np.cumsum(kept)])
        close_gaps(indptr, kept, new_indptr, ranks, weights)
        indptr, ranks, weights = new_indptr, ranks[: new_indptr[-1]], weights[: new_indptr[-1]]
    return UnitRows(indptr, ranks, weights, ranking.columns, X.shape[1], lengths)


def ranked_again(rows: UnitRows, ranking: Ranking) -> UnitRows:
    """The same rows over the ranks of another ranking, which has all their columns."""
    keys, table = ranking.lookup(rows.columns)
    rank_of = table[keys]
    ranks, values = np.empty_like(rows.ranks), np.empty_like(rows.values)
    kept = np.zeros(rows.n_rows, np.int64)
    keep_known(rows.indptr, rows.ranks, rows.values, rank_of, 0, rows.n_rows, kept, ranks, values)
    return UnitRows(rows.indptr, ranks, values, ranking.columns, ranking.n_features, rows.lengths)


def take_rows(rows: UnitRows, which: np.ndarray) -> UnitRows:
    """Some of the rows, in the order given."""
    sizes = np.diff(rows.indptr)[which]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    at = np.repeat(rows.indptr[which] - indptr[:-1], sizes) + np.arange(indptr[-1])
    return UnitRows(indptr, rows.ranks[at], rows.values[at], rows.columns, rows.n_features, rows.lengths[which])


def stacked(parts: list[UnitRows]) -> UnitRows:
    """Rows over the same ranks, one part after another."""
    if len(parts) == 1:
        return parts[0]
    return UnitRows(
        np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.indptr) for part in parts]))]),
        np.concatenate([part.ranks for part in parts]),
        np.concatenate([part.values for part in parts]),
        parts[0].columns,
        parts[0].n_features,
        np.concatenate([part.lengths for part in parts]),
    )


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
        key = mixed(key)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(key, dtype=np.uint64)])
        of_rows: np.ndarray = sums[ptr[1:] - ptr[0]] - sums[ptr[:-1] - ptr[0]]
        return of_rows

    return np.concatenate([np.zeros(0, np.uint64), *ordered_map(keys_of, rows.blocks(), n_threads)])


def mixed(key: np.ndarray) -> np.ndarray:
    """The finalizer of splitmix64: a hash of each number (array arithmetic wraps around silently)."""
    key = key * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key ^= key >> np.uint64(shift)
        key *= np.uint64(factor)
    key ^= key >> np.uint64(31)
    return np.asarray(key)
