"""Long tables: one (item, feature[, weight]) a row, gathered into one row an item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from shoal.data.assembly import Assembly, joined, number_block
from shoal.data.beside import Beside
from shoal.data.recipe import Recipe
from shoal.data.shapes import Layout, check_weights, layout_of, stream_map
from shoal.data.tables import Table
from shoal.data.tokens import delimited_slices
from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput
from shoal.progress import task

if TYPE_CHECKING:
    import pyarrow as pa


def read_long(table: Table, recipe: Recipe, vocabulary: Vocabulary | None) -> tuple[sp.csr_matrix, Beside, Assembly]:
    """Items in the order first seen; what stands beside an item is taken from its first row."""
    layout = layout_of(recipe)
    items, assembly = Vocabulary(), Assembly(vocabulary, fixed=vocabulary is not None)
    beside = Beside(recipe, layout)
    rows: list[np.ndarray] = []
    columns: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    with task("reading") as reading:
        for batch, item_names, item_ids, names, ids in stream_map(
            lambda batch: _numbered(batch, layout), table.batches(layout.wanted)
        ):
            first_row = beside.n_rows
            pairs = _weights(batch, layout, recipe, first_row) if recipe.weight is not None else None
            known_items = len(items)
            row_of = items.extend(item_names.strings)
            column_of = assembly.columns_of(names)
            _require_items(item_ids, recipe, first_row)
            fresh = np.flatnonzero(row_of >= known_items)
            first_seen = np.full(len(item_names), -1, dtype=np.int64)
            first_seen[item_ids[::-1]] = np.arange(item_ids.size)[::-1]
            beside.add(batch, first_seen[fresh])
            named = ids >= 0
            column = np.full(ids.size, -1, dtype=np.int64)
            column[named] = column_of[ids[named]]
            assembly.unknown += int((named & (column < 0)).sum())
            good = column >= 0 if pairs is None else (column >= 0) & (pairs > 0)
            rows.append(row_of[item_ids[good]].astype(np.int32))
            columns.append(column[good].astype(np.int32))
            if pairs is not None:
                weights.append(pairs[good])
            reading.advance(batch.num_rows, rows=beside.n_rows)
    row, column = joined(rows, np.int32), joined(columns, np.int32)
    rows.clear()
    columns.clear()
    value = joined(weights, np.float64) if recipe.weight is not None else np.ones(row.size, dtype=np.float32)
    X = sp.coo_matrix((value, (row, column)), shape=(len(items), len(assembly.vocabulary))).tocsr()
    X.sum_duplicates()
    return X, beside, assembly


def _numbered(batch: pa.RecordBatch, layout: Layout) -> tuple[Any, Vocabulary, np.ndarray, Vocabulary, np.ndarray]:
    items = number_block(delimited_slices(layout.column(batch, "item"), None))
    return (batch, *items, *number_block(delimited_slices(layout.column(batch, "features"), None)))


def _require_items(item_ids: np.ndarray, recipe: Recipe, first_row: int) -> None:
    nobody = np.flatnonzero(item_ids < 0)
    if nobody.size:
        raise BadInput(
            f"row {first_row + nobody[0] + 1} has no item in column {recipe.item!r}. Every row of a long table belongs to an "
            "item; drop those rows."
        )


def _weights(batch: pa.RecordBatch, layout: Layout, recipe: Recipe, first_row: int) -> np.ndarray:
    from shoal.data.shapes import refuse_unreadable

    refuse_unreadable(layout.column(batch, "weight", "b"), recipe.weight, first_row)
    values = np.asarray(layout.column(batch, "weight").fill_null(np.nan), dtype=np.float64)
    check_weights(values, lambda at: f"row {first_row + at + 1} of column {recipe.weight!r}")
    return values
