"""Blocks of rows, each with names of its own, put together into one matrix under one vocabulary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.data.arrow import frozen
from shoal.data.tokens import Slices
from shoal.data.vocabulary import Vocabulary
from shoal.threads import ordered_map, row_blocks


class Block(NamedTuple):
    """Some rows as counted cells; column numbers count the block's own names, in the order first seen."""

    names: Vocabulary
    counts: np.ndarray  # cells in each row
    indices: np.ndarray
    values: np.ndarray


def count_block(slices: Slices, weights: np.ndarray | None = None) -> Block:
    """Number a block's features and add them up row by row. Runs without the interpreter lock."""
    from shoal.data.token_kernels import add_up_rows

    names, ids = number_block(slices)
    each = weights if weights is not None else np.empty(0, dtype=np.float64)
    indices = np.empty(ids.size, dtype=np.int32)
    values = np.empty(ids.size, dtype=np.float64 if weights is not None else np.float32)
    counts = np.empty(slices.row_ends.size, dtype=np.int64)
    cells = add_up_rows(slices.row_ends, ids, each, len(names), indices, values, counts)
    return Block(names, counts, indices[:cells].copy(), values[:cells].copy())


def number_block(slices: Slices) -> tuple[Vocabulary, np.ndarray]:
    """The distinct names among the slices, and each slice's number (-1: empty)."""
    from shoal.data.token_kernels import number_slices

    ids = np.empty(slices.starts.size, dtype=np.int32)
    names = Vocabulary.from_arrays(*number_slices(frozen(slices.data), slices.starts, slices.stops, ids))
    return names, ids


class MatrixBuilder:
    """Collects blocks in order. A growing vocabulary numbers names as first seen; a fixed one ignores unknown names."""

    def __init__(self, vocabulary: Vocabulary | None = None, *, fixed: bool = False) -> None:
        self.vocabulary = vocabulary if vocabulary is not None else Vocabulary()
        self.fixed = fixed
        self.unknown = 0  # (item, feature) cells whose feature is not in the fixed vocabulary
        self.counts: list[np.ndarray] = []
        self.indices: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def columns_of(self, names: Vocabulary) -> np.ndarray:
        strings = names.strings
        return self.vocabulary.find(strings) if self.fixed else self.vocabulary.extend(strings)

    def add(self, block: Block) -> None:
        columns = self.columns_of(block.names)
        indices = columns.astype(index_kind(len(self.vocabulary)))[block.indices]
        counts, values = block.counts, block.values
        if self.fixed and columns.size and columns.min() < 0:
            known = indices >= 0
            self.unknown += int(known.size - known.sum())
            counts = counts_of_kept(counts, known)
            indices, values = indices[known], values[known]
        self.counts.append(counts)
        self.indices.append(indices)
        self.values.append(values)

    def matrix(self) -> sp.csr_matrix:
        """All rows so far, each sorted by column; the collected blocks are let go."""
        indptr = offsets_of(joined(self.counts, np.int64))
        indices = joined(self.indices, np.int32)
        self.indices.clear()
        values = joined(self.values, np.float32)
        self.values.clear()
        self.counts.clear()
        return sorted_csr(values, indices, indptr, len(self.vocabulary))


def sorted_csr(values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_columns: int) -> sp.csr_matrix:
    """A canonical CSR matrix of cells that hold no column twice in a row; 64-bit places where 32 may overflow."""
    from shoal.data.token_kernels import sort_rows

    kind = index_kind(max(indptr[-1], n_columns))
    indices, indptr = indices.astype(kind, copy=False), indptr.astype(kind, copy=False)
    blocks = row_blocks(len(indptr) - 1, 1 << 16)
    for _ in ordered_map(lambda rows: sort_rows(*rows, indptr, indices, values), blocks):
        pass
    matrix = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_columns), copy=False)
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def index_kind(largest: int) -> type[np.signedinteger]:
    """32-bit numbers where they are enough, as scipy prefers, and 64-bit where they would overflow."""
    return np.int32 if largest < 2**31 else np.int64


def offsets_of(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


def counts_of_kept(counts: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """How many cells each row has left when only the ``kept`` ones stay."""
    running = offsets_of(kept)
    return np.diff(running[offsets_of(counts)])


def joined(parts: list[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, dtype=kind)
