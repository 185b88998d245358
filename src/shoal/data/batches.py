"""``shoal.read_batches``: the same as ``read``, a part at a time, for data larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.data.build_dataset import build_dataset, note_unit, side_columns
from shoal.data.column_guess import ColumnChoice
from shoal.data.dataset import Dataset
from shoal.data.index_ids import named_by_index
from shoal.data.layout import Layout, blocks, layout_of
from shoal.data.long_tables import find_names, sorted_blocks
from shoal.data.matrix_builder import Block, MatrixBuilder
from shoal.data.matrix_source import Matrix
from shoal.data.read_options import ReadOptions, ReadPlan, merged_options
from shoal.data.reading import choose, read_matrix, read_mixed
from shoal.data.recipe import Recipe
from shoal.data.side_columns import SideColumns
from shoal.data.sources import opened
from shoal.data.table import ColumnRequest, Table, listed
from shoal.data.vocabulary import Vocabulary
from shoal.data.weighting import smooth_idf
from shoal.errors import BadInput
from shoal.progress import task

if TYPE_CHECKING:
    import pyarrow as pa


def read_batches(
    source: Any,
    *,
    batch_rows: int = 100_000,
    grow: bool = False,
    memory_mb: int = 2_000,
    options: ReadOptions | None = None,
    **more: Any,
) -> Iterator[Dataset]:
    """Read a source as a sequence of Datasets of ``batch_rows`` items, with one batch in memory at a time.

    The matrices are those of :func:`shoal.read`. The vocabulary is

    - fixed, if ``vocabulary`` or ``recipe`` is given: one pass over the source (two for tfidf without a recipe);
    - found in a first pass and used in a second, otherwise: every batch has the same columns;
    - growing, with ``grow=True``: one pass, and each batch has the columns seen so far (after those of ``vocabulary``
      or ``recipe``). ``min_items`` is then not available, nor tfidf without a recipe, since both need all items;
      features that are new to a recipe get the weight of its rarest feature.

    The rows of a long table are sorted by item, on disk if necessary, so items come in that order and not in the order
    of their first row; other columns are taken from the first row, as in ``read``. Columns are in the order of
    ``read``, except with ``min_items``, ``max_features`` or tfidf on a long table, where they are in the order of the
    sorted items. A matrix file is loaded completely.

    Parameters
    ----------
    source : path, glob, query or table
        As in :func:`shoal.read`.
    batch_rows : int
        Items per batch.
    grow : bool
        Read in one pass, with columns added as features are found.
    memory_mb : int
        Memory limit of DuckDB.
    options : ReadOptions, optional
        Columns and options of :func:`shoal.read`, which may also be given by name.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> table = pa.table({"tags": [["a"], ["b", "a"], ["c"]]})
    >>> [batch.X.shape for batch in shoal.read_batches(table, features="tags", batch_rows=2)]
    [(2, 3), (1, 3)]
    >>> [batch.X.shape for batch in shoal.read_batches(table, features="tags", batch_rows=2, grow=True)]
    [(2, 2), (1, 3)]
    """
    for name, value in (("batch_rows", batch_rows), ("memory_mb", memory_mb)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise BadInput(f"{name} is {value!r}; it must be a whole number, 1 or more.")
    plan = ReadPlan.of(merged_options(options, more))
    if grow and plan.options.min_items > 1:
        raise BadInput("min_items= needs to have seen every item; grow=True sees them once. Leave one out.")
    if grow and not plan.known and plan.options.weighting == "tfidf":
        raise BadInput("tfidf needs to have seen every item; grow=True sees them once. Leave one out.")
    return _batches(source, plan, int(batch_rows), int(memory_mb), grow=grow)


def _batches(source: Any, plan: ReadPlan, batch_rows: int, memory_mb: int, *, grow: bool) -> Iterator[Dataset]:
    with opened(source, plan.options) as table:
        if isinstance(table, Matrix):
            whole = read_matrix(table, plan)
            for start in range(0, len(whole), batch_rows):
                yield whole.rows(slice(start, start + batch_rows))
            return
        table.limit_memory(memory_mb)
        choice = choose(table, plan)
        if grow and choice.recipe.weighting == "tfidf" and choice.recipe.idf is None:
            raise BadInput('text is weighted by tfidf, which needs two passes. Pass weighting="count" to let it grow.')
        if choice.recipe.shape == "table":
            whole = named_by_index(read_mixed(table, choice, plan), source, title=plan.options.title)
            for start in range(0, len(whole), batch_rows):
                yield whole.rows(slice(start, start + batch_rows))
            return
        vocabulary = prepare(table, choice, plan, grow=grow)
        for batch in _cut(table, choice, plan, vocabulary, batch_rows, grow=grow):
            yield named_by_index(batch, source, title=plan.options.title)


def prepare(table: Table, choice: ColumnChoice, plan: ReadPlan, *, grow: bool) -> Vocabulary:
    """The first pass, where one is needed: vocabulary, idf, and the unit of times."""
    recipe = choice.recipe
    if recipe.time is not None and recipe.time_unit is None and recipe.time_format is None:
        unit = table.time_unit(ColumnRequest(recipe.time, "time"))
        if unit is not None:
            note_unit(choice, unit)
    if recipe.shape == "numeric":
        return Vocabulary(list(recipe.numeric))
    needs_idf = recipe.weighting == "tfidf" and recipe.idf is None
    if grow or (plan.vocabulary is not None and not needs_idf):
        given = plan.vocabulary if plan.vocabulary is not None else Vocabulary()
        return given.copy() if grow else given
    counts_matter = needs_idf or plan.options.min_items > 1 or plan.options.max_features is not None
    if recipe.shape == "long" and not counts_matter:
        vocabulary = Vocabulary()
        if not find_names(table, recipe, vocabulary):
            raise no_rows(table)
        return vocabulary
    survey = survey_features(table, recipe, plan)
    vocabulary, items_with = survey.vocabulary, survey.items_with
    if plan.vocabulary is None:
        kept = np.flatnonzero(items_with >= plan.options.min_items)
        vocabulary, items_with = vocabulary.keep(kept), items_with[kept]
    if needs_idf:
        choice.recipe = replace(choice.recipe, idf=smooth_idf(items_with, survey.n_items))
    return vocabulary


class Survey(NamedTuple):
    """What a first pass finds out."""

    vocabulary: Vocabulary
    items_with: np.ndarray  # for each feature, how many items have it
    n_items: int


def survey_features(table: Table, recipe: Recipe, plan: ReadPlan) -> Survey:
    """One pass that keeps nothing but the vocabulary and a count for each feature."""
    builder = MatrixBuilder(plan.vocabulary, fixed=plan.vocabulary is not None)
    items_with = np.zeros(len(builder.vocabulary), dtype=np.int64)
    item = recipe.item if recipe.shape == "long" else None
    bare = replace(recipe, item=item, owner=None, label=None, time=None)
    n_items = 0
    with task("counting features", table.n_rows) as counting:
        for _, block in pieces(table, bare, layout_of(bare)):
            stays = np.ones(block.counts.size, dtype=bool)
            if plan.options.max_features is not None:
                stays = block.counts <= plan.options.max_features
            cells = block.indices[np.repeat(stays, block.counts)]
            columns = builder.columns_of(block.names)
            if items_with.size < len(builder.vocabulary):
                items_with = np.concatenate([items_with, np.zeros(len(builder.vocabulary), dtype=np.int64)])
            seen = np.bincount(cells, minlength=columns.size)
            items_with[columns[columns >= 0]] += seen[columns >= 0]
            n_items += int(stays.sum())
            counting.advance(block.counts.size, features=len(builder.vocabulary))
    if not n_items:
        raise no_rows(table, " or none within max_features=")
    return Survey(builder.vocabulary, items_with[: len(builder.vocabulary)], n_items)


def no_rows(table: Table, more: str = "") -> BadInput:
    return BadInput(f"{table.name} has columns ({listed(table.columns)}) but no rows{more}.")


def pieces(table: Table, recipe: Recipe, layout: Layout) -> Iterator[tuple[pa.RecordBatch, Block]]:
    """The table's items in runs of whatever length comes."""
    if recipe.shape == "long":
        return sorted_blocks(table, recipe, layout)
    return blocks(table.batches(layout.requests), recipe, layout)


def _cut(
    table: Table, choice: ColumnChoice, plan: ReadPlan, vocabulary: Vocabulary, batch_rows: int, *, grow: bool
) -> Iterator[Dataset]:
    """Runs of items cut and joined into batches of exactly ``batch_rows``; the last may be shorter."""
    recipe = choice.recipe
    layout = layout_of(recipe)
    batch = Batch(recipe, layout, vocabulary, fixed=not grow)
    n_rows = 0
    with task("reading", table.n_rows) as reading, closing(pieces(table, recipe, layout)) as runs:  # type: ignore[type-var]
        for columns, block in runs:
            start = 0
            while start < block.counts.size:
                stop = min(block.counts.size, start + batch_rows - batch.n_items)
                batch.add(columns.slice(start, stop - start), rows_of(block, start, stop))
                start = stop
                if batch.n_items == batch_rows:
                    yield batch.dataset(choice, plan)
                    n_rows += batch_rows
                    batch = Batch(recipe, layout, batch.builder.vocabulary, fixed=not grow, first_row=n_rows)
            reading.advance(block.counts.size, rows=n_rows + batch.n_items)
    if batch.n_items:
        yield batch.dataset(choice, plan)
    elif not n_rows:
        raise no_rows(table)


class Batch:
    """A batch in the making."""

    def __init__(
        self, recipe: Recipe, layout: Layout, vocabulary: Vocabulary, *, fixed: bool, first_row: int = 0
    ) -> None:
        self.builder, self.side = MatrixBuilder(vocabulary, fixed=fixed), SideColumns(recipe, layout, first_row)
        self.n_items, self.first_row = 0, first_row

    def add(self, columns: pa.RecordBatch, block: Block) -> None:
        self.builder.add(block)
        self.side.add(columns)
        self.n_items += block.counts.size

    def dataset(self, choice: ColumnChoice, plan: ReadPlan) -> Dataset:
        side = side_columns(self.side, choice)
        if side["ids"] is None:
            side["ids"] = np.arange(self.first_row, self.first_row + self.n_items)
        # Names are only ever appended, so these buffers stay as they are while the vocabulary grows on.
        so_far = Vocabulary.from_arrays(*self.builder.vocabulary.to_arrays())
        choice.recipe = with_new_features(choice.recipe, len(so_far))
        dataset = build_dataset(self.builder.matrix(), so_far, choice, plan, side, fixed=True)
        dataset.summary |= {"unknown_features": self.builder.unknown, "guessed": choice.guessed}
        return dataset


def with_new_features(recipe: Recipe, n_features: int) -> Recipe:
    """A recipe whose idf reaches the features that have come since; they weigh as much as its rarest feature."""
    if recipe.idf is None or recipe.idf.size >= n_features:
        return recipe
    rarest = recipe.idf.max() if recipe.idf.size else 1.0
    return replace(recipe, idf=np.concatenate([recipe.idf, np.full(n_features - recipe.idf.size, rarest)]))


def rows_of(block: Block, start: int, stop: int) -> Block:
    """Some rows of a block, with the names seen up to there (names are numbered as first seen)."""
    if (start, stop) == (0, block.counts.size):
        return block
    first, last = int(block.counts[:start].sum()), int(block.counts[:stop].sum())
    indices = block.indices[first:last]
    letters, offsets = block.names.to_arrays()
    seen = Vocabulary.from_arrays(letters, offsets[: int(indices.max(initial=-1)) + 2])
    return Block(seen, block.counts[start:stop], indices, block.values[first:last])
