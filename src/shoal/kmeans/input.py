"""The data of a fit: validated, at unit length, in one block or several."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import Rows, validate_rows, validate_weights
from shoal.engine import Partitions
from shoal.errors import BadInput
from shoal.kmeans.blocks import Block, BlockFiles, are_blocks, blocks_of_partitions
from shoal.kmeans.inverted_index import InvertedIndex
from shoal.kmeans.rows import unit_rows
from shoal.progress import task
from shoal.weights import scaled_weights


@dataclass
class Input:
    """Blocks of rows, with what the model remembers of them."""

    blocks: list[Block]
    rows: Rows  # the columns and items; its matrix has no rows where there are several blocks
    weights: np.ndarray  # of all rows, the largest about 1
    unit: float  # by which they were divided
    nnz: int


@contextmanager
def read_input(model: Any, X: Any, sample_weight: Any) -> Iterator[Input]:
    """Validate ``X`` and bring its rows to unit length; files of blocks are removed at the end."""
    if isinstance(X, InvertedIndex):
        weights, unit = scaled_weights(validate_weights(sample_weight, X.rows.n_rows))
        block = Block(X.rows, weights, postings=X.postings)
        rows = Rows(sp.csr_matrix((0, X.rows.n_features), dtype=np.float64))
        yield Input([block], rows, weights, unit, int(X.rows.indptr[-1]))
    elif isinstance(X, Partitions):
        yield _from_partitions(X, sample_weight)
    elif are_blocks(X):
        files = BlockFiles(spill=not isinstance(X, list | tuple))
        try:
            yield _from_blocks(model, X, sample_weight, files)
        finally:
            files.close()
    else:
        rows = validate_rows(model, X, mode="fit")
        weights, unit = scaled_weights(validate_weights(sample_weight, rows.matrix.shape[0]))
        unit_length = unit_rows(rows.matrix, n_threads=model.n_threads)
        yield Input([Block(unit_length, weights)], rows, weights, unit, int(unit_length.indptr[-1]))


def _from_partitions(parts: Partitions, sample_weight: Any) -> Input:
    """Blocks that are read where they are used; labels are in the order of the parts."""
    if sample_weight is not None:
        raise BadInput("sample_weight is not for partitions; give blocks of rows, or no weights.")
    blocks = blocks_of_partitions(parts)
    empty = sp.csr_matrix((0, len(parts.columns.vocabulary)), dtype=np.float64)
    rows = Rows(empty, parts.columns.vocabulary, recipe=parts.columns.recipe)
    return Input(blocks, rows, np.ones(parts.n_items), 1.0, int(parts.items_with.sum()))


def _from_blocks(model: Any, X: Any, sample_weight: Any, files: BlockFiles) -> Input:
    """Read every block once; columns that a later block adds come at the end."""
    columns = copy.copy(model)  # remembers the columns seen so far
    weights, ids, titles, nnz = iter(sample_weight if sample_weight is not None else ()), [], [], 0
    rows = None
    with task("reading") as bar:
        for part in X:
            rows = validate_rows(columns, part, mode="fit" if rows is None else "partial_fit")
            columns._remember_rows(rows, mode="fit")
            try:
                mine = None if sample_weight is None else next(weights)
            except StopIteration:
                raise BadInput("sample_weight has fewer parts than X has blocks; give one for each block.") from None
            files.add(unit_rows(rows.matrix, n_threads=model.n_threads), validate_weights(mine, rows.matrix.shape[0]))
            ids.append(rows.item_ids)
            titles.append(rows.item_titles)
            nnz += rows.matrix.nnz
            bar.advance(rows.matrix.shape[0])
    blocks = files.finish()
    assert rows is not None
    scaled, unit = scaled_weights(np.concatenate([block.weights for block in blocks]))
    blocks = [replace(block, weights=scaled[block.start : block.start + block.n_rows]) for block in blocks]
    empty = sp.csr_matrix((0, files.n_features), dtype=rows.matrix.dtype)
    return Input(
        blocks, rows._replace(matrix=empty, item_ids=_whole(ids), item_titles=_whole(titles)), scaled, unit, nnz
    )


def _whole(parts: list[np.ndarray | None]) -> np.ndarray | None:
    """The parts of all blocks together, where every block has one."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None
