"""Rows of a table into counted blocks, whatever shape the features have."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from shoal.data.log_tokens import LogLines
from shoal.data.matrix_builder import Block, count_block
from shoal.data.mixed_columns import mixed_requests
from shoal.data.recipe import Recipe
from shoal.data.table import ColumnRequest
from shoal.data.tokens import Slices, Words, delimited_slices, list_slices
from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput
from shoal.threads import n_threads_available

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")
Result = TypeVar("Result")
SIDE_ROLES = ("item", "owner", "label", "title", "time")  # columns that are not features


class Layout(NamedTuple):
    """Which columns are requested, and where they are in a batch."""

    requests: list[ColumnRequest]
    place: dict[str, int]  # role -> number

    def column(self, batch: pa.RecordBatch, role: str, letter: str = "c") -> pa.Array:
        return batch.column(f"{letter}{self.place[role]}")


def layout_of(recipe: Recipe) -> Layout:
    """The columns a recipe needs."""
    kinds = {"item": "text", "owner": "text", "label": "text", "title": "text", "time": "time", "text": "text"}
    kinds["features"] = "list" if recipe.shape == "list" else "text"
    kinds["weight"] = "numbers" if recipe.shape == "list" else "number"
    roles = [role for role in kinds if getattr(recipe, role) is not None]
    formats = {"time": recipe.time_format}
    requests = [ColumnRequest(getattr(recipe, role), kinds[role], formats.get(role)) for role in roles]
    if recipe.shape == "numeric":
        requests += [ColumnRequest(column, "number") for column in recipe.numeric]
    if recipe.shape == "table":
        requests += mixed_requests(recipe)
    return Layout(requests, {role: at for at, role in enumerate(roles)})


def slicer(recipe: Recipe, layout: Layout) -> Callable[[pa.RecordBatch], Slices]:
    """How this shape's rows are cut into features."""
    if recipe.shape == "text" and recipe.tokens == "log":
        lines = LogLines()
        return lambda batch: lines.cut(layout.column(batch, "text"))
    if recipe.shape == "text":
        words = Words(lowercase=recipe.lowercase, stop_words=recipe.stop_words, bigrams=recipe.bigrams)
        return lambda batch: words.cut(layout.column(batch, "text"))
    if recipe.shape == "list":
        return lambda batch: list_slices(layout.column(batch, "features"))
    return lambda batch: delimited_slices(layout.column(batch, "features"), recipe.delimiter)


def numeric_block(batch: pa.RecordBatch, recipe: Recipe, layout: Layout, first_row: int) -> Block:
    """Columns of numbers as cells; a number that is missing or infinite is refused, since 0 would be a guess."""
    first, names = len(layout.place), recipe.numeric
    values = np.empty((batch.num_rows, len(names)))
    for at, name in enumerate(names):
        bad = batch.column(f"b{first + at}")
        if bad.null_count < len(bad):
            row = int(np.flatnonzero(np.asarray(bad.is_valid()))[0])
            raise BadInput(
                f"row {first_row + row + 1} of column {name!r} holds {bad[row].as_py()!r}, which is not a number. Name "
                "the columns to use (numeric=[...]), or repair that row."
            )
        values[:, at] = np.asarray(batch.column(f"c{first + at}").fill_null(np.nan))
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size:
        row, at = wrong[0]
        what = "no number" if np.isnan(values[row, at]) else f"{values[row, at]:g}"
        raise BadInput(
            f"row {first_row + row + 1} of column {names[at]!r} holds {what}, and {len(wrong):,} numbers are missing "
            "or infinite. Fill them, drop those rows, or leave the column out."
        )
    rows, columns = np.nonzero(values)
    counts = np.bincount(rows, minlength=batch.num_rows).astype(np.int64)
    return Block(Vocabulary(list(names)), counts, columns.astype(np.int32), values[rows, columns])


def blocks(batches: Iterable[pa.RecordBatch], recipe: Recipe, layout: Layout) -> Iterator[tuple[pa.RecordBatch, Block]]:
    """Each batch with its counted block, in order; the counting runs on threads."""
    cut = slicer(recipe, layout)

    def counted(numbered: tuple[int, pa.RecordBatch]) -> tuple[pa.RecordBatch, Block]:
        first_row, batch = numbered
        if recipe.shape == "numeric":
            return batch, numeric_block(batch, recipe, layout, first_row)
        slices = cut(batch)
        weights = _list_weights(batch, recipe, layout, slices, first_row) if recipe.weight is not None else None
        return batch, count_block(slices, weights)

    return stream_map(counted, _with_first_rows(batches))


def _with_first_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    first_row = 0
    for batch in batches:
        yield first_row, batch
        first_row += batch.num_rows


def _list_weights(batch: Any, recipe: Recipe, layout: Layout, slices: Slices, first_row: int) -> np.ndarray:
    """One number for each feature of a list column, from the list that goes with it."""
    import pyarrow.compute as pc

    lists = layout.column(batch, "weight")
    ends = np.cumsum(np.asarray(pc.fill_null(pc.list_value_length(lists), 0)), dtype=np.int64)
    if not np.array_equal(ends, slices.row_ends):
        row = int(np.flatnonzero(ends != slices.row_ends)[0])
        features, weights = (np.diff(part, prepend=0)[row] for part in (slices.row_ends, ends))
        raise BadInput(
            f"row {first_row + row + 1} has {features} features in {recipe.features!r} but {weights} weights in "
            f"{recipe.weight!r}. Each feature needs one weight."
        )
    values = np.asarray(pc.fill_null(lists.flatten(), np.nan), dtype=np.float64)
    rows = first_row + np.searchsorted(ends, np.arange(values.size), side="right")
    check_weights(values, lambda at: f"row {rows[at] + 1} of column {recipe.weight!r}")
    return values


def check_weights(values: np.ndarray, where: Callable[[int], str]) -> None:
    """Weights are finite and not negative; the first that is not is named."""
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if wrong.size:
        found = values[wrong[0]]
        what = "no number" if np.isnan(found) else f"{found:g}"
        raise BadInput(
            f"{where(int(wrong[0]))} holds {what}, and {wrong.size:,} weights are missing, negative or infinite. "
            "Weights must be finite and 0 or more; drop or repair those rows."
        )


def stream_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """``map`` on threads over a stream: results in order, a few items ahead at most, so memory stays bounded."""
    n_threads = n_threads_available()
    if n_threads <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        ahead: deque[Future[Result]] = deque()
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > 2 * n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
