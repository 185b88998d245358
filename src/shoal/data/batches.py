"""``shoal.read_batches``: the same as ``read``, a part at a time, for data larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.data.assembly import Assembly, Block
from shoal.data.beside import Beside
from shoal.data.columns import Choice
from shoal.data.dataset import Dataset
from shoal.data.finishing import columns_beside, finish, note_unit
from shoal.data.long_tables import find_names, sorted_blocks
from shoal.data.options import Options, as_options
from shoal.data.reading import choose, read_matrix
from shoal.data.recipe import Recipe
from shoal.data.shapes import Layout, blocks, layout_of
from shoal.data.sources import Matrix, opened
from shoal.data.tables import Table
from shoal.data.times import unit_of
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
    item: str | None = None,
    features: str | None = None,
    text: str | None = None,
    feature: str | None = None,
    weight: str | None = None,
    time: str | None = None,
    owner: str | None = None,
    label: str | None = None,
    delimiter: str | None = None,
    weighting: str = "auto",
    sublinear: bool | None = None,
    unit_length: bool | None = None,
    min_items: int = 1,
    max_features: int | None = None,
    lowercase: bool = True,
    stop_words: str | Iterable[str] | None = None,
    bigrams: bool = False,
    vocabulary: Any = None,
    recipe: Any = None,
    time_unit: str | None = None,
    format: str | None = None,
    quote: str | None = None,
    dtype: Any = None,
) -> Iterator[Dataset]:
    """Datasets of ``batch_rows`` items each, one after another; only one of them need be in memory.

    The options are those of :func:`shoal.read`, and so are the matrices, stacked. The vocabulary is

    - fixed, when ``vocabulary`` or ``recipe`` is given: one pass over the source (two for tfidf without a recipe);
    - found in a first pass and used in a second, when neither is given: every batch has the same columns;
    - growing, with ``grow=True``: one pass, and each batch has the columns seen so far (``vocabulary``, if given, comes
      first). There is no ``min_items`` and no tfidf then, since both need to have seen everything.

    Memory is that of a batch, the vocabulary, and what DuckDB may hold (``memory_mb`` at most), however large the file.
    The rows of a long table are sorted by item, on disk where they do not fit, so its items come in that order and not
    as first seen; what stands beside an item is taken from its first row, as in ``read``. Its columns are in the order
    of ``read``, unless ``min_items``, ``max_features`` or tfidf have whole items counted: then in that of the sorted
    items. A matrix file is loaded whole and cut.

    >>> import pyarrow as pa, shoal
    >>> table = pa.table({"tags": [["a"], ["b", "a"], ["c"]]})
    >>> [batch.X.shape for batch in shoal.read_batches(table, features="tags", batch_rows=2)]
    [(2, 3), (1, 3)]
    >>> [batch.X.shape for batch in shoal.read_batches(table, features="tags", batch_rows=2, grow=True)]
    [(2, 2), (1, 3)]
    """
    given = dict(locals())
    for name in ("batch_rows", "memory_mb"):
        if not isinstance(given[name], int | np.integer) or given[name] < 1:
            raise BadInput(f"{name} is {given[name]!r}; it must be a whole number, 1 or more.")
    options = as_options(given)
    if grow and options.known:
        raise BadInput("grow=True adds columns, but a recipe fixes them. Leave one of them out, or give vocabulary=.")
    if grow and (min_items > 1 or weighting == "tfidf"):
        raise BadInput("min_items= and tfidf need to have seen every item; grow=True sees them once. Leave one out.")
    return _batches(source, options, int(batch_rows), int(memory_mb), grow=grow)


def _batches(source: Any, options: Options, batch_rows: int, memory_mb: int, *, grow: bool) -> Iterator[Dataset]:
    with opened(source, format=options.format, quote=options.quote) as table:
        if isinstance(table, Matrix):
            whole = read_matrix(table, options)
            for start in range(0, len(whole), batch_rows):
                yield whole.rows(slice(start, start + batch_rows))
            return
        table.limit_memory(memory_mb)
        choice = choose(table, options)
        if grow and choice.recipe.weighting == "tfidf":
            raise BadInput('text is weighted by tfidf, which needs two passes. Say weighting="count" to let it grow.')
        vocabulary = prepare(table, choice, options, grow=grow)
        yield from _cut(table, choice, options, vocabulary, batch_rows, grow=grow)


def prepare(table: Table, choice: Choice, options: Options, *, grow: bool) -> Vocabulary:
    """The first pass, where one is needed: vocabulary, idf, and the unit of times."""
    recipe = choice.recipe
    needs_idf = recipe.weighting == "tfidf" and recipe.idf is None
    needs_unit = recipe.time is not None and recipe.time_unit is None
    if grow or (options.vocabulary is not None and not needs_idf):
        if needs_unit and recipe.time is not None:
            decide_unit(choice, table.largest_number(recipe.time))
        given = options.vocabulary if options.vocabulary is not None else Vocabulary()
        return given.copy() if grow else given
    counts_matter = needs_idf or options.min_items > 1 or options.max_features is not None
    if recipe.shape == "long" and not counts_matter and not needs_unit:
        vocabulary = Vocabulary()
        if not find_names(table, recipe, vocabulary):
            raise BadInput(f"{table.name} has columns ({', '.join(table.columns)}) but no rows.")
        return vocabulary
    survey = survey_features(table, recipe, options)
    if needs_unit:
        decide_unit(choice, survey.largest_time)
    vocabulary, items_with = survey.vocabulary, survey.items_with
    if options.vocabulary is None:
        kept = np.flatnonzero(items_with >= options.min_items)
        vocabulary, items_with = vocabulary.keep(kept), items_with[kept]
    if needs_idf:
        choice.recipe = replace(choice.recipe, idf=smooth_idf(items_with, survey.n_items))
    return vocabulary


def decide_unit(choice: Choice, largest: float | None) -> None:
    if largest is not None:
        note_unit(choice, unit_of(largest))


class Survey(NamedTuple):
    """What a first pass finds out."""

    vocabulary: Vocabulary
    items_with: np.ndarray  # for each feature, how many items have it
    n_items: int
    largest_time: float | None  # among times given as bare numbers


def survey_features(table: Table, recipe: Recipe, options: Options) -> Survey:
    """One pass that keeps nothing but the vocabulary and a count for each feature."""
    assembly = Assembly(options.vocabulary, fixed=options.vocabulary is not None)
    items_with = np.zeros(len(assembly.vocabulary), dtype=np.int64)
    kept: dict[str, Any] = {
        "item": recipe.item if recipe.shape == "long" else None,
        "time": None if recipe.time_unit else recipe.time,
    }
    bare = replace(recipe, owner=None, label=None, **kept)
    layout = layout_of(bare)
    n_items, largest = 0, None
    with task("counting features", table.n_rows) as counting:
        for columns_of_batch, block in pieces(table, bare, layout):
            if bare.time is not None:
                largest = larger(largest, layout.column(columns_of_batch, "time", "n"))
            stays = np.ones(block.counts.size, dtype=bool)
            if options.max_features is not None:
                stays = block.counts <= options.max_features
            cells = block.indices[np.repeat(stays, block.counts)]
            columns = assembly.columns_of(block.names)
            if items_with.size < len(assembly.vocabulary):
                items_with = np.concatenate([items_with, np.zeros(len(assembly.vocabulary), dtype=np.int64)])
            seen = np.bincount(cells, minlength=columns.size)
            items_with[columns[columns >= 0]] += seen[columns >= 0]
            n_items += int(stays.sum())
            counting.advance(block.counts.size, features=len(assembly.vocabulary))
    if not n_items:
        raise BadInput(
            f"{table.name} has columns ({', '.join(table.columns)}) but no rows, or none within max_features=."
        )
    return Survey(assembly.vocabulary, items_with[: len(assembly.vocabulary)], n_items, largest)


def larger(largest: float | None, numbers: pa.Array) -> float | None:
    """The largest size seen so far; nulls are left out."""
    import pyarrow.compute as pc

    here = pc.max(pc.abs(numbers)).as_py()
    return largest if here is None else max(here, largest or 0.0)


def pieces(table: Table, recipe: Recipe, layout: Layout) -> Iterator[tuple[pa.RecordBatch, Block]]:
    """The table's items in runs of whatever length comes."""
    if recipe.shape == "long":
        return sorted_blocks(table, recipe, layout)
    return blocks(table.batches(layout.wanted), recipe, layout)


def _cut(
    table: Table, choice: Choice, options: Options, vocabulary: Vocabulary, batch_rows: int, *, grow: bool
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
                    yield batch.dataset(choice, options)
                    n_rows += batch_rows
                    batch = Batch(recipe, layout, batch.assembly.vocabulary, fixed=not grow, first_row=n_rows)
            reading.advance(block.counts.size, rows=n_rows + batch.n_items)
    if batch.n_items:
        yield batch.dataset(choice, options)
    elif not n_rows:
        raise BadInput(f"{table.name} has columns ({', '.join(table.columns)}) but no rows.")


class Batch:
    """A batch in the making."""

    def __init__(
        self, recipe: Recipe, layout: Layout, vocabulary: Vocabulary, *, fixed: bool, first_row: int = 0
    ) -> None:
        self.assembly, self.beside = Assembly(vocabulary, fixed=fixed), Beside(recipe, layout, first_row)
        self.n_items, self.first_row = 0, first_row

    def add(self, columns: pa.RecordBatch, block: Block) -> None:
        self.assembly.add(block)
        self.beside.add(columns)
        self.n_items += block.counts.size

    def dataset(self, choice: Choice, options: Options) -> Dataset:
        beside = columns_beside(self.beside, choice)
        if beside["ids"] is None:
            beside["ids"] = np.arange(self.first_row, self.first_row + self.n_items)
        # Names are only ever appended, so these buffers stay as they are while the vocabulary grows on.
        so_far = Vocabulary.from_arrays(*self.assembly.vocabulary.to_arrays())
        dataset = finish(self.assembly.matrix(), so_far, choice, options, beside, fixed=True)
        unknown = self.assembly.unknown if options.vocabulary is not None else 0
        dataset.summary |= {"unknown_features": unknown, "guessed": choice.guessed}
        return dataset


def rows_of(block: Block, start: int, stop: int) -> Block:
    """Some rows of a block, with the names seen up to there (names are numbered as first seen)."""
    if (start, stop) == (0, block.counts.size):
        return block
    first, last = int(block.counts[:start].sum()), int(block.counts[:stop].sum())
    indices = block.indices[first:last]
    letters, offsets = block.names.to_arrays()
    seen = Vocabulary.from_arrays(letters, offsets[: int(indices.max(initial=-1)) + 2])
    return Block(seen, block.counts[start:stop], indices, block.values[first:last])
