"""Blocks of rows for a fit: all rows at once, or parts that are read one after another and kept on disk."""

from __future__ import annotations

import operator
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.engine import fold
from shoal.engine.fold import loaded
from shoal.errors import BadInput
from shoal.kmeans.centers import Centers, centers_from_rows
from shoal.kmeans.inverted_index import postings_of
from shoal.kmeans.rows import Ranking, UnitRows, ranked_again, row_keys, stacked, take_rows, unit_rows

PARTS = ("indptr", "ranks", "values", "lengths")


@dataclass(frozen=True)
class Block:
    """Some rows of the data, with their weights. ``open`` gives the rows, from memory or from disk."""

    rows: UnitRows | None
    weights: np.ndarray  # (n,)
    start: int = 0  # number of the first row among all rows
    folder: str = ""  # where the rows are, when they are on disk
    columns: np.ndarray | None = None
    n_features: int = 0
    postings: Any = None  # of the rows, for wand
    partition: Any = None  # what gives the rows, where they are read when they are used
    ranking: Ranking | None = None  # of the columns of a partition's rows
    wants_postings: bool = False

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return self.weights.size

    def open(self) -> UnitRows:
        """The rows."""
        if self.rows is not None:
            return self.rows
        if self.partition is not None:
            return loaded(self).rows  # type: ignore[no-any-return]
        assert self.columns is not None
        indptr, ranks, values, lengths = (np.load(Path(self.folder) / f"{part}.npy") for part in PARTS)
        return UnitRows(indptr, ranks, values, self.columns, self.n_features, lengths)

    def keys(self, which: np.ndarray) -> np.ndarray:
        """Keys of the content of some rows."""
        return row_keys(take_rows(self.open(), which), 1)

    def centers(self, which: np.ndarray) -> Centers:
        """Some rows, as centers."""
        return centers_from_rows(self.open(), which)

    def with_postings(self) -> Block:
        """The same block with an index over its rows, made where the rows are."""
        if self.partition is not None:
            return replace(self, wants_postings=True)
        return replace(self, postings=postings_of(self.open()))

    def needs(self) -> tuple[Any, ...]:
        """What loading takes, see :func:`shoal.engine.fold.loaded`."""
        return () if self.partition is None else (self.ranking, *self.partition.needs())

    def bare(self) -> Block:
        """The block without what it needs."""
        return self if self.partition is None else replace(self, ranking=None, partition=self.partition.bare())

    def load(self, ranking: Ranking | None = None, *needs: Any) -> Block:
        """The block with its rows in memory, if they are those of a partition; else as it is."""
        if self.partition is None:
            return self
        assert ranking is not None
        X = self.partition.load(*needs).X
        if X.nnz and not (np.isfinite(X.data).all() and X.data.min() >= 0):
            raise BadInput(f"part {self.partition.source} of the data holds values that are negative or not finite.")
        rows = ranked_again(unit_rows(X, n_threads=1), ranking)
        postings = postings_of(rows) if self.wants_postings else None
        return replace(self, rows=rows, postings=postings, partition=None, ranking=None)

    def on_disk(self, folder: Path) -> Block:
        """The same block with its rows in a folder."""
        folder.mkdir()
        rows = self.open()
        for part in PARTS:
            np.save(folder / f"{part}.npy", getattr(rows, part))
        return replace(self, rows=None, folder=str(folder), columns=rows.columns, n_features=rows.n_features)


def one_block(rows: UnitRows, weights: np.ndarray, postings: Any = None) -> list[Block]:
    """All rows as one block: its kernels run on threads themselves."""
    return [Block(rows, weights, postings=postings)]


class BlockFiles:
    """Blocks gathered from an iterator; with ``spill`` their rows wait on disk, so that memory is that of one block.

    Ranks are by the frequency of features over all blocks, which is known only after the last one: then every block is
    written again with its final ranks.
    """

    def __init__(self, *, spill: bool) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="shoal-kmeans-") if spill else None
        self.blocks: list[Block] = []
        self.n_rows, self.n_features = 0, 0

    def add(self, rows: UnitRows, weights: np.ndarray) -> None:
        """The next block."""
        block = Block(rows, weights, self.n_rows)
        self.n_features = max(self.n_features, rows.n_features)
        self.n_rows += rows.n_rows
        self.blocks.append(self._kept(block, f"read-{len(self.blocks)}"))

    def finish(self) -> list[Block]:
        """All blocks, over common ranks."""
        if not self.blocks:
            raise BadInput("there are no blocks to learn from.")
        columns, counts = fold(self.blocks, count_features, merge_counts, None, n_threads=1).stats
        ranking = Ranking(columns[np.argsort(-counts, kind="stable")], self.n_features)
        for at, block in enumerate(self.blocks):
            rows = ranked_again(block.open(), ranking)
            ranked = Block(rows, block.weights, block.start)
            self.blocks[at] = self._kept(ranked, f"block-{at}")
            for file in Path(block.folder).iterdir() if block.folder else ():
                file.unlink()
        return self.blocks

    def close(self) -> None:
        """Remove what is on disk."""
        if self.folder is not None:
            self.folder.cleanup()

    def _kept(self, block: Block, name: str) -> Block:
        return block if self.folder is None else block.on_disk(Path(self.folder.name) / name)


def count_features(block: Block, model: None, memory: None = None) -> tuple[tuple[np.ndarray, np.ndarray], None]:
    """How many rows of this block have each column."""
    rows = block.open()
    counts = np.bincount(rows.ranks, minlength=rows.n_ranks)
    order = np.argsort(rows.columns, kind="stable")
    return (rows.columns[order], counts[order]), None


def merge_counts(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The counts of both, by ascending column."""
    columns, place = np.unique(np.concatenate([a[0], b[0]]), return_inverse=True)
    counts = np.zeros(columns.size, np.int64)
    np.add.at(counts, place, np.concatenate([a[1], b[1]]))
    return columns, counts


def blocks_of_partitions(parts: Any) -> list[Block]:
    """Blocks whose rows are read when they are used; columns are ranked by how many items have them."""
    used = np.flatnonzero(parts.items_with)
    columns = used[np.argsort(-parts.items_with[used], kind="stable")]
    ranking = Ranking(columns, len(parts.columns.vocabulary))
    return [Block(None, np.ones(part.n_items), part.first_row, partition=part, ranking=ranking) for part in parts]


def spread_rows(blocks: list[Block], n: int) -> UnitRows:
    """About ``n`` rows, evenly spread over all."""
    n_rows = sum(block.n_rows for block in blocks)
    which = np.linspace(0, n_rows - 1, min(n, n_rows)).astype(np.int64)
    if len(blocks) == 1:
        rows = blocks[0].open()
        return rows if n_rows <= n else take_rows(rows, which)
    return stacked(fold(blocks, some_rows, operator.add, which).stats)


def some_rows(block: Block, which: np.ndarray, memory: None = None) -> tuple[list[UnitRows], None]:
    """Those of some rows, by number among all, that this block has."""
    mine = which[(which >= block.start) & (which < block.start + block.n_rows)] - block.start
    return [take_rows(block.open(), mine)] if mine.size else [], memory


def are_blocks(X: Any) -> bool:
    """Whether ``X`` is an iterator or a list of blocks (matrices, Datasets, tables), and not one table."""
    if isinstance(X, list | tuple):
        return bool(X) and all(_is_table(part) for part in X)
    return not _is_table(X) and isinstance(X, Iterable) and not hasattr(X, "__len__") and not hasattr(X, "__array__")


def _is_table(X: Any) -> bool:
    return (hasattr(X, "shape") and len(X.shape) == 2) or (hasattr(X, "X") and hasattr(X, "vocabulary"))
