"""Tables of any make (pandas, polars, Arrow, dict, array) as columns, and the family each is guessed to have."""

from __future__ import annotations

import datetime
import decimal
import logging
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput
from shoal.families.distributions.columns import COLUMNS, Column
from shoal.families.distributions.columns.base import refuse_infinite, values_for
from shoal.validation import check_structure

MOST_LEVELS = 50
MOST_CODES, ROWS_PER_CODE, SPARSE_CODES = 12, 5, 4  # whole numbers that are codes: few, often, far apart
WORDS_PER_TEXT = 3
LARGEST_COUNT, LARGEST_MEAN_COUNT, DISPERSION = 10_000.0, 20.0, (0.5, 3.0)  # counts beyond are measured like numbers
BETTER = 0.02  # nats a value by which log-normal must be ahead
logger = logging.getLogger("shoal")


def columns_of(X: Any, known: Sequence[str] | None = None) -> dict[str, Any]:
    """The table's columns by name: float arrays, dates, or lists with None for what is missing.

    ``known``: the columns of the model that asks, which those of a matrix without names are taken to be.
    """
    pairs = column_pairs(X, known)
    names = [name for name, _ in pairs]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise BadInput(f"duplicate name {name!r} at {names.index(name)} and {at}: columns of X need one name each.")
    lengths = {len(values) for _, values in pairs}
    if len(lengths) > 1:
        raise BadInput(f"the columns of X differ in length: {', '.join(map(str, sorted(lengths)))}.")
    if not pairs or lengths == {0}:
        raise BadInput("X has no rows or no columns; there is nothing to cluster.")
    table = {name: values_of(values) for name, values in pairs}
    for name, values in table.items():
        refuse_infinite(name, values)
    return table


def column_pairs(X: Any, known: Sequence[str] | None) -> list[tuple[str, Any]]:
    """(name, values) of each column of a table of any make."""
    names = None
    if hasattr(X, "vocabulary") and hasattr(X, "X"):  # a Dataset
        held, names = getattr(X, "table", None), [str(name) for name in X.vocabulary]
        X = X.X if held is None else held
    if sp.issparse(X):
        check_structure(X)
        X = X.toarray()
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):  # a lazy frame of polars
        X = X.collect()
    if isinstance(X, (list, tuple)) and X and all(isinstance(row, Mapping) for row in X):  # records
        keys = dict.fromkeys(name for row in X for name in row)
        return [(str(name), [row.get(name) for row in X]) for name in keys]
    if isinstance(X, Mapping):
        return [(str(name), values) for name, values in X.items()]
    if hasattr(X, "to_pydict"):  # Arrow
        return [(str(name), X.column(at).to_pylist()) for at, name in enumerate(X.column_names)]
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas
        return [(str(name), X.iloc[:, at]) for at, name in enumerate(X.columns)]
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):  # polars
        return [(str(name), X[name]) for name in X.columns]
    rows = np.asarray(X)
    if rows.ndim != 2:
        raise BadInput(
            f"X has {rows.ndim} dimension{'s' * (rows.ndim != 1)}; a table has rows and columns: a DataFrame, an Arrow "
            "table, a dict of columns, a list of records, or a matrix."
        )
    names = names_of_bare(rows.shape[1], known) if names is None else names
    return list(zip(names, rows.T, strict=True))


def names_of_bare(n_columns: int, known: Sequence[str] | None) -> list[str]:
    """Names for the columns of a matrix without names: those of the model, whose number must agree."""
    by_place = [f"column {at}" for at in range(n_columns)]
    if known is None or (set(known) < set(by_place) and set(known) != set(by_place[: len(known)])):
        return by_place  # a model of some columns of a matrix finds them by their places
    if len(known) != n_columns:
        raise BadInput(f"X has {n_columns} features, but the model was fitted to {len(known)} features. Give the same.")
    return by_place if set(known) == set(by_place) else list(known)


def values_of(values: Any) -> Any:
    """One column: floats with NaN where it is numeric, dates with NaT, else a list with None."""
    if hasattr(values, "to_numpy"):
        try:
            array = np.asarray(values.to_numpy())
        except Exception:
            array = np.array(list(values), dtype=object)
    else:
        array = values if isinstance(values, np.ndarray) else object_array(values)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    if array.dtype.kind == "M":
        return array.astype("datetime64[us]")
    if array.dtype.kind == "m":
        return np.where(np.isnat(array), np.nan, array / np.timedelta64(1, "D"))
    items = [None if is_missing(value) else value for value in array.tolist()]
    known = [value for value in items if value is not None]
    if known and all(isinstance(value, datetime.date) for value in known):
        return np.array([np.datetime64("NaT") if value is None else as_datetime(value) for value in items], "M8[us]")
    if known and all(isinstance(value, datetime.timedelta) for value in known):
        return np.array([np.nan if value is None else value / datetime.timedelta(days=1) for value in items])
    if all(isinstance(value, (numbers.Real, decimal.Decimal)) and not isinstance(value, bool) for value in known):
        return np.array([np.nan if value is None else float(value) for value in items])
    return items


def as_datetime(value: Any) -> np.datetime64:
    """A date or time, in UTC where it has a time zone."""
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def object_array(values: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


# --- families ---------------------------------------------------------------------------------------------------------


def guess_family(name: str, values: Any) -> str:
    """The family that suits a column."""
    if isinstance(values, np.ndarray):
        return "date" if values.dtype.kind == "M" else guess_of_numbers(values[~np.isnan(values)])
    known = [value for value in values if value is not None]
    if any(isinstance(value, (list, tuple, set, frozenset, np.ndarray)) for value in known):
        return "multinomial"
    n_levels = len({str(value) for value in known})
    if n_levels <= MOST_LEVELS or 2 * n_levels <= len(known):
        return "categorical"
    if are_sentences(known):
        return "multinomial"
    advice = "Leave it out, or pass family={'*': 'auto', " + repr(name) + ": None} to have it left out"
    if all(is_number(value) for value in known):
        advice = "Its texts are numbers: convert them (pandas.to_numeric)"
    raise BadInput(
        f"column {name!r} has {n_levels} different texts in {len(known)} rows, so it tells rows apart rather than "
        f"groups. {advice}."
    )


def guess_of_numbers(known: np.ndarray) -> str:
    """The family of numbers without missing ones."""
    distinct = np.unique(known)
    if len(distinct) <= 2:
        return "categorical"
    whole = bool((known == np.rint(known)).all())
    few = len(distinct) <= MOST_CODES and len(known) >= ROWS_PER_CODE * len(distinct)
    if whole and few and distinct[-1] - distinct[0] >= SPARSE_CODES * len(distinct):
        return "categorical"  # a few whole numbers far apart are codes, not amounts
    if whole and distinct[0] >= 0 and distinct[-1] <= LARGEST_COUNT:
        mean, variance = known.mean(), known.var()
        if mean <= LARGEST_MEAN_COUNT and DISPERSION[0] <= variance / mean <= DISPERSION[1]:
            return "poisson"
    if distinct[0] > 0:
        scaled, logs = known / distinct[-1], np.log(known)
        gain = np.log(scaled.std()) - np.log(max(logs.std(), 1e-300)) - (logs - np.log(distinct[-1])).mean()
        if gain > BETTER:
            return "lognormal"
    return "gaussian"


def are_sentences(known: list[Any]) -> bool:
    """Whether these are texts of several words that they share."""
    if not all(isinstance(value, str) for value in known):
        return False
    words = [word for value in known for word in value.split()]
    return len(words) >= WORDS_PER_TEXT * len(known) and 2 * len(set(words)) <= len(words)


def is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def make_columns(table: Mapping[str, Any], families: Mapping[Any, str | None] | None) -> list[Column]:
    """The columns to be modeled: all, with families guessed, or those named."""
    wanted = {"*": "auto"} if families is None else dict(families)
    others = wanted.pop("*", None)
    named = {str(part) for sources in wanted for part in ([sources] if isinstance(sources, str) else sources)}
    if others is not None:
        wanted |= {name: others for name in table if name not in named}
    chosen = {sources: family for sources, family in wanted.items() if family is not None}
    for name, family in chosen.items():
        if family == "auto" and name in table:
            chosen[name] = guess_family(name, table[name])
    if "auto" in wanted.values():
        logger.info("families: %s", ", ".join(f"{name} {family}" for name, family in chosen.items()))
    if not chosen:
        raise BadInput("family names no column; give at least one, or '*': 'auto' for all.")
    return [make_column(table, sources, str(family)) for sources, family in chosen.items()]


def make_column(table: Mapping[str, Any], sources: Any, family: str) -> Column:
    """One column (a name), or several with one distribution (a tuple of names)."""
    names = [str(name) for name in sources] if isinstance(sources, (tuple, list)) else [str(sources)]
    missing = [name for name in names if name not in table]
    if missing:
        raise BadInput(f"there is no column {missing[0]!r} in X, which has {', '.join(map(repr, table))}.")
    if family not in COLUMNS:
        known = ", ".join(map(repr, (*COLUMNS, "auto")))
        raise BadInput(f"the family of column {sources!r} is {family!r}; choose one of {known}.")
    column = COLUMNS[family]
    if len(names) > 1 and not column.is_joint:
        raise BadInput(f"family {family!r} takes one column, not {len(names)}: {', '.join(names)}.")
    return column.learn(", ".join(names), names, values_for(column, table, names))
