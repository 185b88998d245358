"""Long tables: one (item, feature[, weight]) a row, gathered into one row an item."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.data.layout import Layout, check_weights, layout_of, stream_map
from shoal.data.matrix_builder import (
    Block,
    MatrixBuilder,
    count_block,
    index_kind,
    number_block,
    offsets_of,
    sorted_csr,
)
from shoal.data.recipe import Recipe
from shoal.data.side_columns import SideColumns
from shoal.data.table import Table
from shoal.data.tokens import delimited_slices
from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput
from shoal.progress import task

if TYPE_CHECKING:
    import pyarrow as pa

Rows = tuple[sp.csr_matrix, SideColumns, MatrixBuilder]
PAIRS = 131_072  # rows of a long table taken at a time


def read_long(table: Table, recipe: Recipe, vocabulary: Vocabulary | None) -> Rows:
    """Items in the order first seen; what belongs to an item is taken from its first row."""
    layout = layout_of(recipe)
    pairs = Pairs(recipe, layout, vocabulary)
    with task("reading", table.n_rows) as reading:
        for numbered in stream_map(lambda batch: _numbered(batch, layout), table.batches(layout.requests, PAIRS)):
            pairs.add(numbered)
            reading.advance(numbered.batch.num_rows, rows=pairs.side.n_rows)
    return pairs.matrix(), pairs.side, pairs.builder


class Numbered(NamedTuple):
    """A batch of pairs whose items and features are numbered by names of its own (-1: empty)."""

    batch: Any
    item_names: Vocabulary
    items: np.ndarray
    names: Vocabulary
    features: np.ndarray


class Pairs:
    """Collects (item, feature, weight) batch by batch."""

    def __init__(self, recipe: Recipe, layout: Layout, vocabulary: Vocabulary | None) -> None:
        self.recipe, self.layout = recipe, layout
        self.items, self.builder = Vocabulary(), MatrixBuilder(vocabulary, fixed=vocabulary is not None)
        self.side = SideColumns(recipe, layout)
        self.rows: list[np.ndarray] = []
        self.columns: list[np.ndarray] = []
        self.weights: list[np.ndarray] = []

    def add(self, numbered: Numbered) -> None:
        first_row, n_items = self.side.n_rows, len(self.items)
        _require_items(numbered.items, self.recipe, first_row)
        row_of = self.items.extend(numbered.item_names.strings)
        fresh = np.flatnonzero(row_of >= n_items)
        self.side.add(numbered.batch, _first_places(numbered.items, len(numbered.item_names))[fresh])
        # One place more, for the -1 of an empty feature.
        column_of = np.append(self.builder.columns_of(numbered.names), -1)
        columns = column_of[numbered.features]
        good = columns >= 0
        self.builder.unknown += int(((numbered.features >= 0) & ~good).sum())
        if self.recipe.weight is not None:
            weights = _weights(numbered.batch, self.layout, self.recipe, lambda at: f"row {first_row + at + 1}")
            good &= weights > 0
            self.weights.append(weights[good])
        self.rows.append(row_of[numbered.items[good]].astype(index_kind(len(self.items))))
        self.columns.append(columns[good].astype(index_kind(len(self.builder.vocabulary))))

    def matrix(self) -> sp.csr_matrix:
        """Equal pairs added up; the collected parts are let go one by one."""
        from shoal.data.token_kernels import merge_equal, place_pairs

        weighted = self.recipe.weight is not None
        places = offsets_of(self._pairs_of_items())
        indices = np.empty(places[-1], dtype=index_kind(len(self.builder.vocabulary)))
        values = np.empty(places[-1], dtype=np.float64 if weighted else np.float32)
        next_place, ones = places[:-1].copy(), np.empty(0, dtype=np.float64)
        for part, (rows, columns) in enumerate(zip(self.rows, self.columns, strict=True)):
            place_pairs(rows, columns, self.weights[part] if weighted else ones, next_place, indices, values)
            self.rows[part] = self.columns[part] = ones
            if weighted:
                self.weights[part] = ones
        X = sorted_csr(values, indices, places, len(self.builder.vocabulary))
        cells = int(merge_equal(X.indptr, X.indices, X.data))
        return sp.csr_matrix((X.data[:cells], X.indices[:cells], X.indptr), shape=X.shape, copy=False)

    def _pairs_of_items(self) -> np.ndarray:
        counts = np.zeros(len(self.items), dtype=np.int64)
        for rows in self.rows:
            np.add.at(counts, rows, 1)
        return counts


def _first_places(ids: np.ndarray, n_names: int) -> np.ndarray:
    """Where each id is first seen."""
    first = np.empty(n_names, dtype=np.int64)
    first[ids[::-1]] = np.arange(ids.size)[::-1]
    return first


def sorted_blocks(table: Table, recipe: Recipe, layout: Layout) -> Iterator[tuple[pa.RecordBatch, Block]]:
    """Whole items, sorted by item, for tables that do not fit in memory; DuckDB sorts, on disk if it must."""
    return stream_map(lambda pairs: _gathered(pairs, recipe, layout), _whole_items(table, recipe, layout))


def _whole_items(table: Table, recipe: Recipe, layout: Layout) -> Iterator[pa.RecordBatch]:
    """Batches of whole items: one that is cut by the end of a batch waits for the next."""
    import pyarrow as pa
    import pyarrow.compute as pc

    waiting: list[pa.RecordBatch] = []
    for batch in table.batches(layout.requests, PAIRS, sort_by=layout.place["item"]):
        items = layout.column(batch, "item")
        if not len(items):
            continue
        nobody = items.null_count + pc.sum(pc.equal(items, "")).as_py() if items.null_count < len(items) else len(items)
        if nobody:
            raise BadInput(f"{nobody:,} rows have no item in column {recipe.item!r}; drop those rows.")
        last = len(items) - int(pc.sum(pc.equal(items, items[-1])).as_py())  # where the last item begins
        if last == 0 and (not waiting or layout.column(waiting[0], "item")[0] == items[0]):
            waiting.append(batch)
            continue
        yield pa.concat_batches([*waiting, batch.slice(0, last)])
        waiting = [batch.slice(last)]
    if waiting:
        yield pa.concat_batches(waiting)


def find_names(table: Table, recipe: Recipe, vocabulary: Vocabulary) -> int:
    """Add a long table's features to the vocabulary in one pass that groups nothing; how many pairs there are."""
    layout = layout_of(replace(recipe, item=None, weight=None, time=None, owner=None, label=None))
    n_pairs = 0
    with task("finding features", table.n_rows) as finding:
        batches = table.batches(layout.requests, PAIRS)
        for names, ids in stream_map(lambda batch: _features_of(batch, layout), batches):
            vocabulary.extend(names.strings)
            n_pairs += ids.size
            finding.advance(ids.size, features=len(vocabulary))
    return n_pairs


def _gathered(batch: pa.RecordBatch, recipe: Recipe, layout: Layout) -> tuple[pa.RecordBatch, Block]:
    """Pairs sorted by item as one counted row an item, with the first row of each item."""
    _, item_ids = number_block(delimited_slices(layout.column(batch, "item"), None))
    n_items = int(item_ids[-1]) + 1
    ends = np.searchsorted(item_ids, np.arange(n_items), side="right").astype(np.int64)
    slices = delimited_slices(layout.column(batch, "features"), None)._replace(row_ends=ends)
    weights = None
    if recipe.weight is not None:
        items = layout.column(batch, "item")
        weights = _weights(batch, layout, recipe, lambda at: f"item {items[at].as_py()!r}")
    return batch.take(np.concatenate([[0], ends[:-1]])), count_block(slices, weights)


def _numbered(batch: pa.RecordBatch, layout: Layout) -> Numbered:
    items = number_block(delimited_slices(layout.column(batch, "item"), None))
    return Numbered(batch, *items, *_features_of(batch, layout))


def _features_of(batch: pa.RecordBatch, layout: Layout) -> tuple[Vocabulary, np.ndarray]:
    return number_block(delimited_slices(layout.column(batch, "features"), None))


def _require_items(item_ids: np.ndarray, recipe: Recipe, first_row: int) -> None:
    nobody = np.flatnonzero(item_ids < 0)
    if nobody.size:
        raise BadInput(
            f"row {first_row + nobody[0] + 1} has no item in column {recipe.item!r}. In a long table every row belongs "
            "to an item; drop those that do not."
        )


def _weights(batch: pa.RecordBatch, layout: Layout, recipe: Recipe, where: Callable[[int], str]) -> np.ndarray:
    """The weight of each pair; one that cannot be used is named by ``where``."""
    bad = layout.column(batch, "weight", "b")
    if bad.null_count < len(bad):
        at = int(np.flatnonzero(np.asarray(bad.is_valid()))[0])
        raise BadInput(f"{where(at)} holds {bad[at].as_py()!r} in column {recipe.weight!r}, which is not a number.")
    values = np.asarray(layout.column(batch, "weight").fill_null(np.nan), dtype=np.float64)
    check_weights(values, lambda at: f"{where(at)} of column {recipe.weight!r}")
    return values
