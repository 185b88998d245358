"""What a source holds, found without reading its rows into a matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shoal.data.column_guess import ITEM_NAMES
from shoal.data.matrix_source import Matrix
from shoal.data.mixed_columns import ColumnFacts, survey_columns
from shoal.data.read_options import ReadOptions, ReadPlan
from shoal.data.reading import choose
from shoal.data.recipe import Recipe
from shoal.data.sources import opened
from shoal.data.table import ColumnRequest, Table
from shoal.errors import MissingColumn

TIME_NAMES = (
    "time",
    "date",
    "datetime",
    "timestamp",
    "created",
    "created_at",
    "created_utc",
    "published",
    "when",
    "day",
)


@dataclass
class SourceFacts:
    """The columns of a source, and how they would be read."""

    recipe: Recipe
    kinds: dict[str, str]  # what each column holds: list, number, time, text or nested
    numbers: list[str] = field(default_factory=list)  # columns of numbers that have no other part
    time: str | None = None  # the one column that looks like the time of a row, asked for or not


def inspect_columns(source: Any, options: ReadOptions | None = None) -> list[ColumnFacts]:
    """What the columns hold that no role is given to, from a pass over all rows; none for a matrix.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = {"age": ["31", "NA", "7"], "smoker": ["y", "n", "n"]}
    >>> [(one.name, one.kind, one.n_known) for one in inspect_columns(people)]
    [('age', 'number', 2), ('smoker', 'text', 3)]
    """
    options = options or ReadOptions()
    with opened(source, options) as table:
        if isinstance(table, Matrix):
            return []
        named = {*options.columns.values(), options.feature}
        asked = [table.require(name, "numeric") for name in _named(options)]
        free = [name for name in table.columns if name not in named and name.lower() not in ITEM_NAMES]
        return survey_columns(table, asked or free)


def _named(options: ReadOptions) -> list[str]:
    return [] if options.numeric is None or isinstance(options.numeric, bool) else list(options.numeric)


def inspect_source(source: Any, options: ReadOptions | None = None) -> SourceFacts:
    """Which columns a source has and how ``read`` would take them.

    Where no column describes the items but there are columns of numbers, the shape is "numeric".

    Examples
    --------
    >>> import pyarrow as pa
    >>> facts = inspect_source(pa.table({"id": [1, 2], "tags": [["a"], ["b"]]}))
    >>> facts.recipe.shape, facts.kinds
    ('list', {'id': 'number', 'tags': 'list'})
    """
    options = options or ReadOptions()
    plan = ReadPlan.of(options)
    with opened(source, options) as table:
        if isinstance(table, Matrix):
            return SourceFacts(Recipe(shape="matrix"), {})
        kinds = {name: table.kind(name) for name in table.columns}
        named = set(options.columns.values())
        free = [name for name in table.columns if name not in named and name.lower() not in ITEM_NAMES]
        numbers = table.holds_numbers(free)
        try:
            recipe = choose(table, plan).recipe
        except MissingColumn:
            if not numbers or named - {options.item, options.time, options.owner, options.label}:
                raise
            recipe = Recipe(shape="numeric", numeric=tuple(numbers))
        return SourceFacts(recipe, kinds, numbers, options.time or _time_column(table, kinds))


def _time_column(table: Table, kinds: dict[str, str]) -> str | None:
    """A column of times, by its type or by its name and its first values, if there is one alone."""
    typed = [name for name, kind in kinds.items() if kind == "time"]
    if len(typed) == 1:
        return typed[0]
    found = []
    for name in (name for name, kind in kinds.items() if name.lower() in TIME_NAMES and kind in ("text", "number")):
        moments = [row[0] for row in table.sample([ColumnRequest(name, "time")])]
        if moments and all(moment is not None for moment in moments):
            found.append(name)
    return found[0] if len(found) == 1 else None
