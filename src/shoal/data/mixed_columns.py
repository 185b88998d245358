"""Tables of mixed columns (numbers, categories, dates, lists, with gaps), kept as columns for a model of tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from shoal.data.recipe import Recipe
from shoal.data.sql import literal
from shoal.data.table import ColumnRequest, Table, listed
from shoal.errors import MissingColumn
from shoal.progress import message

if TYPE_CHECKING:
    import pyarrow as pa

MISSING_WORDS = ("", "na", "n/a", "#n/a", "nan", "null", "<na>")  # as pandas and R write what is missing
MOST_OTHER_TEXTS = 3  # ways to write a gap, such as "?", that a column of numbers may have
MOST_LEVELS = 50  # of a category, unless its values are met twice
WORDS_OF_A_SENTENCE = 3
FEW_ROWS = 10


@dataclass(frozen=True)
class ColumnFacts:
    """What all values of a column are like."""

    name: str
    kind: str  # number, time, text, list or nested
    n_rows: int = 0
    n_known: int = 0
    n_distinct: int = 0
    n_words: float = 1.0  # of a text
    n_zero: int = 0
    is_whole: bool = False
    least: float = 0.0
    most: float = 0.0
    mean: float = 0.0
    variance: float = 0.0
    gaps: str = ""  # a text in a column of numbers, which is taken for a gap

    @property
    def is_sentences(self) -> bool:
        return self.kind == "text" and self.n_words >= WORDS_OF_A_SENTENCE

    @property
    def tells_rows_apart(self) -> bool:
        """Whether nearly every row has a text of its own."""
        if self.kind != "text" or self.is_sentences:
            return False
        every = self.n_distinct == self.n_known >= FEW_ROWS
        return every or (self.n_distinct > MOST_LEVELS and 2 * self.n_distinct > self.n_known)


def survey_columns(table: Table, names: Iterable[str]) -> list[ColumnFacts]:
    """One pass over all values: what can be counted, measured or told apart."""
    names = list(names)
    kinds = {name: "text" if table.type_of(name) == "BOOLEAN" else table.kind(name) for name in names}
    flat = [name for name in names if kinds[name] in ("text", "number")]
    found = _measured(table, flat) if flat else {}
    return [found.get(name) or ColumnFacts(name, kinds[name]) for name in names]


def _measured(table: Table, names: list[str]) -> dict[str, ColumnFacts]:
    parts = ["count(*)"]
    for name in names:
        text = f"TRIM({table.as_text(name)})"
        known = f"CASE WHEN lower({text}) NOT IN ({', '.join(map(literal, MISSING_WORDS))}) THEN {text} END"
        number = f"TRY_CAST({known} AS DOUBLE)"
        other = f"CASE WHEN {number} IS NULL THEN {known} END"
        finite = f"CASE WHEN isfinite({number}) AND abs({number}) < 1e100 THEN {number} END"
        parts += [
            f"count({known})", f"count({number})", f"count(DISTINCT {known})", f"count(DISTINCT {other})",
            f"min({other})", f"count(TRY_CAST({known} AS TIMESTAMP))",
            f"avg(length({known}) - length(replace({known}, ' ', ''))) + 1",
            f"count(CASE WHEN {number} = 0 THEN 1 END)", f"bool_and({number} = round({number}))",
            f"min({number})", f"max({number})", f"avg({finite})", f"var_pop({finite})",
        ]  # fmt: skip
    row = table.fetch(f"SELECT {', '.join(parts)} FROM ({table.scan([ColumnRequest(name, 'text') for name in names])})")
    n_rows, *values = row[0]
    width = len(values) // len(names)
    return {
        name: _facts(name, int(n_rows), values[at * width : (at + 1) * width], table.type_of(name) == "BOOLEAN")
        for at, name in enumerate(names)
    }


def _facts(name: str, n_rows: int, values: list[Any], is_truth: bool) -> ColumnFacts:
    n_known, n_numbers, n_distinct, n_others, other, n_times, n_words, n_zero, whole, least, most, mean, var = values
    is_number = 2 * n_numbers > n_known and n_others <= MOST_OTHER_TEXTS and not is_truth
    if not is_number:
        kind = "time" if n_times == n_known > 0 else "text"
        return ColumnFacts(name, kind, n_rows, n_known, n_distinct, n_words or 1.0)
    return ColumnFacts(
        name, "number", n_rows, n_numbers, n_distinct, 1.0, n_zero, bool(whole), least, most, mean or 0.0, var or 0.0,
        other or "",
    )  # fmt: skip


def choose_mixed_columns(table: Table, recipe: Recipe, taken: set[str | None]) -> Recipe:
    """The columns asked for, or all that can tell groups of rows; what is left out is reported."""
    if recipe.columns:
        columns = survey_columns(table, [table.require(name, "table") for name in recipe.columns])
    else:
        columns = survey_columns(table, [name for name in table.columns if name not in taken])
        for columns_out, why in (
            ([one for one in columns if one.kind in ("text", "number") and not one.n_known], "no value"),
            ([one for one in columns if one.tells_rows_apart], "another text in nearly every row"),
            ([one for one in columns if one.kind == "nested"], "nested values (name a field as in 'ad.id')"),
        ):
            if columns_out:
                message(f"left out, having {why}: {listed([one.name for one in columns_out], 8)}")
                columns = [one for one in columns if one not in columns_out]
    if not columns:
        raise MissingColumn(f"{table.name} has no column that tells groups of rows. It has: {listed(table.columns)}.")
    for one in columns:
        if one.gaps:
            message(f"column {one.name!r} holds numbers, and {one.gaps!r}: taken as missing")
    return replace(recipe, columns=tuple(one.name for one in columns), kinds=tuple(one.kind for one in columns))


def mixed_requests(recipe: Recipe) -> list[ColumnRequest]:
    """What is read of a table of mixed columns."""
    return [ColumnRequest(name, kind) for name, kind in zip(recipe.columns, recipe.kinds, strict=True)]


class MixedColumns:
    """Collects the columns batch by batch."""

    def __init__(self, recipe: Recipe, first: int) -> None:
        self.kinds, self.first = recipe.kinds, first
        self.parts: list[list[Any]] = [[] for _ in recipe.kinds]
        self.n_unread = 0  # values that are no numbers where there should be one

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch's values; what is missing is null."""
        for at, kind in enumerate(self.kinds):
            number = self.first + at
            values = batch.column(f"c{number}")
            if kind in ("number", "time"):
                bad = _without_missing_words(batch.column(f"b{number}"))
                self.n_unread += len(bad) - bad.null_count
            self.parts[at].append(_READERS[kind](values))

    def table(self, names: list[str]) -> pa.Table:
        import pyarrow as pa

        return pa.table([pa.chunked_array(parts) for parts in self.parts], names=names)


def presence(table: pa.Table) -> sp.csr_matrix:
    """(rows, columns) 1 where there is a value."""
    there = np.column_stack([np.asarray(column.is_valid()) for column in table.columns])
    return sp.csr_matrix(there.astype(np.float64))


def _without_missing_words(values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(values.cast(pa.string()))
    missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(MISSING_WORDS))
    return pc.if_else(missing, pa.scalar(None, pa.string()), text)


def _numbers(values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)


def _times(seconds: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64()).cast(pa.timestamp("us"))


def _lists(values: pa.Array) -> pa.Array:
    return values


_READERS = {"text": _without_missing_words, "number": _numbers, "time": _times, "list": _lists}
