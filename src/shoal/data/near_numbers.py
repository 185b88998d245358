"""Columns that would hold numbers but for some of their values: what to tell the user."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shoal.data.table import NUMBER_TEXT, ColumnRequest, Table

MISSING = {"na", "n/a", "nan", "null", "none", "-", "?", "inf", "-inf", "infinity", "-infinity"}
TRUTH = {"true", "false", "yes", "no"}
COMMA = re.compile(r"[-+]?\d+,\d+")


def nearly_numbers(table: Table, columns: Iterable[str]) -> str:
    """A sentence about the first column of text whose first rows are numbers but for missing values, decimal commas
    or truth values; empty if there is none.

    >>> import pyarrow as pa
    >>> nearly_numbers(Table.of_arrow(pa.table({"price": ["1.5", "NA", "2"]})), ["price"])
    " Column 'price' would be one, but for 'NA' in row 2: fill in what is missing, or leave those rows out."
    """
    texts = [column for column in columns if table.type_of(column) in ("VARCHAR", "JSON") and column in table.columns]
    sampled = table.sample([ColumnRequest(column, "text") for column in texts]) if texts else []
    for at, column in enumerate(texts):
        values = [(row, value[at].strip()) for row, value in enumerate(sampled, start=1) if value[at] is not None]
        advice = _advice([(row, value) for row, value in values if value])
        if advice:
            return f" Column {column!r} {advice}."
    return ""


def _advice(values: list[tuple[int, str]]) -> str:
    others = [(row, value) for row, value in values if not NUMBER_TEXT.fullmatch(value)]
    if not others:
        return ""
    row, value = others[0]
    if all(one.lower() in TRUTH for _, one in values):
        return f"holds {value!r} and the like: write 1 and 0 for numbers, or take it for a feature by its name"
    if len(others) < len(values) and all(one.lower() in MISSING for _, one in others):
        return f"would be one, but for {value!r} in row {row}: fill in what is missing, or leave those rows out"
    if all(COMMA.fullmatch(one) for _, one in others):
        return f"has decimal commas, as in {value!r}: write {value.replace(',', '.')!r}"
    return ""
