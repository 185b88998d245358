"""Data in parts that are read where they are used: files of a pattern, or the partitions of a Dask collection.

One pass over the parts counts their features; the counts are merged, features that are too rare are left out, and
tf-idf is weighted by all items. Then every part can be read into the same columns, by any worker, as often as it is
needed: a part is a pure task that makes a Dataset from a file.
"""

from __future__ import annotations

import glob
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.base import Rows
from shoal.data import Dataset, ReadOptions, Recipe, Vocabulary, read
from shoal.data.read_options import merged_options
from shoal.data.weighting import items_per_feature, smooth_idf
from shoal.engine.fold import fold
from shoal.errors import BadInput, BadSource


class Columns(NamedTuple):
    """What all parts have in common."""

    vocabulary: Vocabulary
    recipe: Recipe


class Counts(NamedTuple):
    """What one pass over some parts finds out."""

    vocabulary: Vocabulary
    items_with: np.ndarray  # (n_features,) items that have each feature
    n_items: tuple[int, ...]  # of each part
    recipe: Recipe


@dataclass(frozen=True)
class Partition:
    """A part of the data; ``load`` reads it."""

    source: Any  # a file, a table, or a Dask object that becomes one
    options: ReadOptions
    columns: Columns | None = None
    first_row: int = 0
    n_items: int = 0

    def needs(self) -> tuple[Any, ...]:
        """What an engine brings to where the part is read: the columns, and the source if it is a Dask object."""
        return (self.columns, self.source)

    def bare(self) -> Partition:
        """The part without what it needs."""
        return replace(self, columns=None, source=None)

    def load(self, columns: Columns | None, source: Any) -> Dataset:
        """The rows; in the columns of all parts once these are known."""
        source = as_table(source)
        if columns is None:
            options = self.options.changed(min_items=1)
            if options.weighting in ("auto", "tfidf"):
                options = options.changed(weighting="count", unit_length=False)
            return read(source, options=options)
        dataset = read(source, options=self.options.changed(min_items=1, recipe=columns.recipe,
                                                            vocabulary=columns.vocabulary))  # fmt: skip
        if columns.recipe.item is None:
            dataset.ids = np.arange(self.first_row, self.first_row + len(dataset))
        return dataset


@dataclass(frozen=True)
class Converted:
    """A part in the form that a model wants, made where the part is read."""

    part: Partition
    convert: Callable[[Dataset], Any]

    def needs(self) -> tuple[Any, ...]:
        """What reading the part takes."""
        return self.part.needs()

    def bare(self) -> Converted:
        """The part without what it needs."""
        return replace(self, part=self.part.bare())

    def load(self, columns: Columns | None, source: Any) -> Any:
        """Read and convert."""
        return self.convert(self.part.load(columns, source))


class Partitions(Sequence[Partition]):
    """Parts in common columns, for ``fit`` of a model that learns from blocks."""

    def __init__(self, parts: list[Partition], columns: Columns, items_with: np.ndarray) -> None:
        self.parts, self.columns, self.items_with = parts, columns, items_with

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, at: Any) -> Any:
        return self.parts[at]

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.parts)

    def to_numpy(self, *_: Any, **__: Any) -> np.ndarray:
        """Refused: what asks for it would hold all rows in one place."""
        raise BadInput(
            "data in parts is for fit of models that merge. A stream is learned one by one, in the order of its times: "
            "give batches to partial_fit, or independent streams to shoal.engine.fit_by_key."
        )

    __array__ = to_numpy

    @property
    def n_items(self) -> int:
        """Items of all parts."""
        return sum(part.n_items for part in self.parts)

    def matrices(self) -> list[Converted]:
        """The parts as sparse matrices."""
        return self.converted(_matrix_of)

    def converted(self, convert: Callable[[Dataset], Any]) -> list[Converted]:
        """The parts as a model wants them: blocks for :func:`shoal.engine.fold`."""
        return [Converted(part, convert) for part in self.parts]

    def columns_alone(self, item_ids: np.ndarray | None = None) -> Rows:
        """What a model remembers of its columns, with a matrix of no rows."""
        empty = sp.csr_matrix((0, len(self.columns.vocabulary)), dtype=np.float64)
        return Rows(empty, self.columns.vocabulary, recipe=self.columns.recipe, item_ids=item_ids)

    def rows(self, which: np.ndarray) -> sp.csr_matrix:
        """Some rows by their ascending numbers among those of all parts, brought to where this is called."""
        asked = [which[(which >= part.first_row) & (which < part.first_row + part.n_items)] for part in self.parts]
        blocks = (
            Converted(part, partial(_matrix_rows, which=mine - part.first_row))
            for part, mine in zip(self.parts, asked, strict=True)
            if mine.size
        )
        return sp.vstack(fold(blocks, _as_list, operator.add, None).stats, format="csr")

    def item_ids(self) -> np.ndarray:
        """The ids of all items, in the order of the parts."""
        return np.concatenate(fold(iter(self.converted(_ids_of)), _as_list, operator.add, None).stats)

    def __repr__(self) -> str:
        return f"Partitions({len(self)} parts, {self.n_items:,} items, {len(self.columns.vocabulary):,} features)"


def read_partitions(source: Any, *, options: ReadOptions | None = None, **more: Any) -> Partitions:
    """Data in parts, of which no two need be in one memory.

    Parameters
    ----------
    source : path pattern, list of paths, or Dask DataFrame, Array or Bag
        Each file is a part, and so is each partition of a Dask collection: a table with columns, rows of numbers, or a
        bag of dicts or of texts.
    options, **more
        Those of :func:`shoal.read`. The rows of an item are in one part; items of a long table are not gathered
        across parts.

    Examples
    --------
    >>> import pathlib, tempfile, shoal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day, lines in enumerate(["fast cars\\nfast food\\n", "slow food\\n"]):
    ...         _ = pathlib.Path(folder, f"{day}.txt").write_text(lines)
    ...     parts = shoal.engine.read_partitions(f"{folder}/*.txt", text="-", min_items=2)
    >>> parts, list(parts.columns.vocabulary)
    (Partitions(2 parts, 3 items, 2 features), ['fast', 'food'])
    """
    options = merged_options(options, more)
    parts = [Partition(each, options) for each in sources_of(source)]
    counts = fold(iter(parts), count_features, merge_counts, None).stats  # an iterator: no part stays in memory
    firsts = np.cumsum((0, *counts.n_items))
    columns, items_with = common_columns(counts, options)
    parts = [
        replace(part, columns=columns, first_row=int(first), n_items=n)
        for part, first, n in zip(parts, firsts, counts.n_items, strict=False)
    ]
    return Partitions(parts, columns, items_with)


def as_table(source: Any) -> Any:
    """The items of a bag, where they are dicts, as a table; anything else as it is."""
    if isinstance(source, list | tuple) and source and isinstance(source[0], dict):
        import pyarrow as pa

        return pa.Table.from_pylist(list(source))
    return source


def sources_of(source: Any) -> list[Any]:
    """The parts of a pattern, a list of files, or a Dask collection."""
    if hasattr(source, "to_delayed"):
        return list(np.ravel(np.asarray(source.to_delayed(), dtype=object)))
    if isinstance(source, str | Path):
        found = sorted(glob.glob(str(source)))
        if not found:
            raise BadSource(f"no file matches {source}. Check the path; a worker must see the files under this name.")
        files = [str(Path(path).absolute()) for path in found]
        folders = [path for path in files if Path(path).is_dir()]
        if folders:
            raise BadInput(f"{folders[0]} is a folder; give a pattern of files, such as {folders[0]}/*.parquet.")
        return files
    if isinstance(source, list | tuple) and source:
        return list(source)
    raise BadInput(
        f"the source is a {type(source).__name__}; give a pattern of files, a list of files, or a Dask collection."
    )


def count_features(dataset: Dataset, model: None, memory: None = None) -> tuple[Counts, None]:
    """How many items of a part have each feature."""
    counts = Counts(dataset.vocabulary, items_per_feature(dataset.X), (len(dataset),), dataset.recipe)
    return counts, memory


def merge_counts(a: Counts, b: Counts) -> Counts:
    """Both parts; names that only ``b`` has come at the end."""
    if (a.recipe.shape, a.recipe.features, a.recipe.text) != (b.recipe.shape, b.recipe.features, b.recipe.text):
        raise BadInput(
            f"parts of the data have other columns: {a.recipe} and {b.recipe}. Name the columns (features= or text=)."
        )
    if a.vocabulary == b.vocabulary:
        return Counts(a.vocabulary, a.items_with + b.items_with, a.n_items + b.n_items, a.recipe)
    vocabulary = a.vocabulary.copy()
    places = vocabulary.extend(b.vocabulary.strings)
    items_with = np.zeros(len(vocabulary), np.int64)
    items_with[: a.items_with.size] = a.items_with
    items_with[places] += b.items_with
    return Counts(vocabulary, items_with, a.n_items + b.n_items, a.recipe)


def common_columns(counts: Counts, options: ReadOptions) -> tuple[Columns, np.ndarray]:
    """The columns that stay, and how they are weighted."""
    vocabulary, items_with, recipe = counts.vocabulary, counts.items_with, counts.recipe
    if options.recipe is None and options.vocabulary is None:
        kept = np.flatnonzero(items_with >= options.min_items)
        if recipe.shape == "matrix":  # columns are known by number outside, so empty ones stay
            if options.min_items > 1:
                raise BadInput("min_items is not for parts that are matrices: their columns have no names to keep.")
            kept = np.arange(items_with.size)
        if recipe.shape == "numeric":  # in the order of the table, whichever part has the first value of each
            place = {name: at for at, name in enumerate(recipe.numeric)}
            kept = np.array(sorted(kept, key=lambda at: place[vocabulary[int(at)]]), dtype=np.int64)
        vocabulary, items_with = vocabulary.keep(kept), items_with[kept]
        is_text = recipe.shape == "text"
        weighting = ("tfidf" if is_text else recipe.weighting) if options.weighting == "auto" else options.weighting
        unit = weighting == "tfidf" if options.unit_length is None else bool(options.unit_length)
        idf = smooth_idf(items_with, sum(counts.n_items)) if weighting == "tfidf" else None
        recipe = replace(recipe, weighting=weighting, unit_length=unit, idf=idf)
    return Columns(vocabulary, recipe), items_with


def _matrix_of(dataset: Dataset) -> sp.csr_matrix:
    return dataset.X


def _matrix_rows(dataset: Dataset, which: np.ndarray) -> sp.csr_matrix:
    return dataset.X[which]


def _ids_of(dataset: Dataset) -> np.ndarray:
    return np.asarray(dataset.ids)


def _as_list(block: Any, model: None, memory: None = None) -> tuple[list[Any], None]:
    return [block], memory
