"""How a column holds features: a list, a list spelled out, delimited text, or one feature per row of a long table."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from shoal.data.recipe import Recipe
from shoal.data.table import ColumnRequest, Table
from shoal.errors import BadInput

DELIMITERS = ("|", ";", ",", "\t")
WRITTEN_LISTS = re.compile(r"\s*(\[.*\]|\{.*\}|c\(.*\))\s*", re.DOTALL)
SHARE = 0.2  # of the values that must hold a delimiter before it is taken for one
PAIRS_PER_ITEM = 2  # a table in which items repeat less often is not taken for a long one unasked


class FoundLayout(NamedTuple):
    """A recipe with its shape, and the guess to report, if it was one."""

    recipe: Recipe
    guess: str = ""


def find_layout(table: Table, recipe: Recipe) -> FoundLayout:
    """The shape of the features column: by its type, by the options given, or by its first values."""
    column = recipe.features
    assert column is not None
    kind = table.kind(column)
    if kind in ("list", "nested"):  # nested columns are refused when all parts are known
        return FoundLayout(replace(recipe, shape="list"))
    if recipe.delimiter is not None:
        return FoundLayout(replace(recipe, shape="delimited"))
    if recipe.weight is not None:
        return FoundLayout(replace(recipe, shape="long"))
    return _by_values(table, recipe, column)


def _by_values(table: Table, recipe: Recipe, column: str) -> FoundLayout:
    requests = [ColumnRequest(column, "text")] + ([ColumnRequest(recipe.item, "text")] if recipe.item else [])
    rows = [row for row in table.sample(requests) if row[0]]
    values = [row[0] for row in rows]
    if values and all(WRITTEN_LISTS.fullmatch(value) for value in values):
        return FoundLayout(replace(recipe, shape="list"), f"column {column!r} holds lists spelled out as text")
    for delimiter in DELIMITERS:
        if _is_delimiter(delimiter, values):
            return _cut_at(recipe, column, delimiter)
    items = [row[1] for row in rows if row[1]] if recipe.item else []
    n_repeated = len(items) - len(set(items))
    if n_repeated and len(items) >= PAIRS_PER_ITEM * len(set(items)):
        said = f"column {recipe.item!r} repeats, so each row is taken as one (item, feature) pair of a long table"
        return FoundLayout(replace(recipe, shape="long"), said)
    if n_repeated:
        raise BadInput(
            f"column {recipe.item!r} of {table.name} names an item again in {n_repeated:,} of the first {len(rows):,} "
            f"rows. If each row is one (item, feature) pair, pass feature={column!r} in place of features=. If each "
            "row is an item of its own, pass delimiter= (what separates its features) or another item=."
        )
    if _is_delimiter(" ", values):
        return _cut_at(recipe, column, " ")
    said = f"each value of column {column!r} is taken as one feature (pass delimiter= to cut it)"
    return FoundLayout(replace(recipe, shape="delimited", delimiter=None), said)


def _is_delimiter(delimiter: str, values: list[str]) -> bool:
    holding = sum(delimiter in value for value in values)
    return bool(holding) and holding >= SHARE * len(values)


def _cut_at(recipe: Recipe, column: str, delimiter: str) -> FoundLayout:
    said = f"column {column!r} is cut at {delimiter!r} (pass delimiter= to choose another)"
    return FoundLayout(replace(recipe, shape="delimited", delimiter=delimiter), said)
