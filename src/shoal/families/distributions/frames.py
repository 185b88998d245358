"""Tables of any make (pandas, polars, Arrow, dict, array) as columns, and the family each is guessed to have."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput
from shoal.families.distributions.columns import (
    KINDS,
    SEVERAL,
    SPARSE,
    Column,
    category_column,
    count_column,
    number_column,
    proportions_column,
    sparse_column,
    vector_column,
)
from shoal.validation import check_structure

MOST_LEVELS = 50
LARGEST_MEAN_COUNT, DISPERSION = 20.0, (0.5, 3.0)  # counts beyond are measured like numbers
BETTER = 0.02  # nats a value by which log-normal must be ahead
logger = logging.getLogger("shoal")


def columns_of(X: Any, known: Sequence[str] | None = None) -> dict[str, Any]:
    """The table's columns by name: float arrays, or lists with None for what is missing.

    ``known``: the columns of the model that asks, which those of a matrix without names are taken to be.
    """
    names = None
    if hasattr(X, "vocabulary") and hasattr(X, "X"):  # a Dataset
        X, names = X.X, [str(name) for name in X.vocabulary]
    if sp.issparse(X):
        check_structure(X)
        X = X.toarray()
    if isinstance(X, Mapping):
        found = {str(name): values for name, values in X.items()}
    elif hasattr(X, "to_pydict"):  # Arrow
        found = {str(name): values for name, values in X.to_pydict().items()}
    elif hasattr(X, "columns") and hasattr(X, "__getitem__"):  # pandas, polars
        found = {str(name): X[name] for name in X.columns}
    else:
        rows = np.asarray(X)
        if rows.ndim != 2:
            raise BadInput(f"X has {rows.ndim} dimensions; a table has rows and columns.")
        names = names_of_bare(rows.shape[1], known) if names is None else names
        found = dict(zip(names, rows.T, strict=True))
    lengths = {len(values) for values in found.values()}
    if len(lengths) > 1:
        raise BadInput(f"the columns of X differ in length: {', '.join(map(str, sorted(lengths)))}.")
    if not found or lengths == {0}:
        raise BadInput("X has no rows or no columns; there is nothing to cluster.")
    table = {name: values_of(values) for name, values in found.items()}
    for name, values in table.items():
        refuse_infinite(name, values)
    return table


def names_of_bare(n_columns: int, known: Sequence[str] | None) -> list[str]:
    """Names for the columns of a matrix without names: those of the model, whose number must agree."""
    by_place = [f"column {at}" for at in range(n_columns)]
    if known is None or (set(known) < set(by_place) and set(known) != set(by_place[: len(known)])):
        return by_place  # a model of some columns of a matrix finds them by their places
    if len(known) != n_columns:
        raise BadInput(f"X has {n_columns} features, but the model was fitted to {len(known)} features. Give the same.")
    return by_place if set(known) == set(by_place) else list(known)


def refuse_infinite(name: str, values: Any) -> None:
    """Infinity is neither a number to model nor a missing one."""
    if isinstance(values, np.ndarray) and np.isinf(values).any():
        raise BadInput(f"row {int(np.flatnonzero(np.isinf(values))[0])} of column {name!r} is infinite.")


def values_of(values: Any) -> Any:
    """One column: floats with NaN where it is numeric, else a list with None."""
    if hasattr(values, "to_numpy"):
        try:
            array = np.asarray(values.to_numpy())
        except Exception:
            array = np.array(list(values), dtype=object)
    else:
        array = values if isinstance(values, np.ndarray) else object_array(values)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    items = [None if is_missing(value) else value for value in array.tolist()]
    if all(value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) for value in items):
        return np.array([np.nan if value is None else float(value) for value in items])
    return items


def object_array(values: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def guess_family(name: str, values: Any) -> str:
    """The family that suits a column."""
    if isinstance(values, np.ndarray):
        known = values[~np.isnan(values)]
        distinct = np.unique(known)
        if len(distinct) <= 2:
            return "categorical"
        with np.errstate(over="ignore", invalid="ignore"):  # of huge values, which are no counts
            mean, variance, spread = known.mean(), known.var(), known.std()
        whole = bool((known == np.rint(known)).all() and known.min() >= 0)
        if whole and 0 < mean <= LARGEST_MEAN_COUNT and DISPERSION[0] <= variance / mean <= DISPERSION[1]:
            return "poisson"
        if known.min() > 0:
            logs = np.log(known)
            gain = np.log(spread) - np.log(max(logs.std(), 1e-300)) - logs.mean()
            if gain > BETTER:
                return "lognormal"
        return "gaussian"
    known_items = [value for value in values if value is not None]
    if any(isinstance(value, (list, tuple, set, frozenset, np.ndarray)) for value in known_items):
        return "multinomial"
    n_levels = len({str(value) for value in known_items})
    if n_levels > MOST_LEVELS and 2 * n_levels > len(known_items):
        raise BadInput(
            f"column {name!r} has {n_levels} different texts in {len(known_items)} rows, so it tells rows apart rather "
            "than groups. Leave it out, or name the columns to use: family={'column': 'categorical', ...}."
        )
    return "categorical"


def make_columns(table: Mapping[str, Any], families: Mapping[Any, str] | None) -> list[Column]:
    """The columns to be modeled: all, with families guessed, or those named."""
    if families is None:
        families = {name: guess_family(name, values) for name, values in table.items()}
        logger.info("families: %s", ", ".join(f"{name} {family}" for name, family in families.items()))
    return [make_column(table, sources, family) for sources, family in families.items()]


def make_column(table: Mapping[str, Any], sources: Any, family: str) -> Column:
    """One column (a name), or several with one distribution (a tuple of names)."""
    if family not in KINDS:
        raise BadInput(f"the family of column {sources!r} is {family!r}; choose one of {', '.join(map(repr, KINDS))}.")
    names = [str(name) for name in sources] if isinstance(sources, (tuple, list)) else [str(sources)]
    missing = [name for name in names if name not in table]
    if missing:
        raise BadInput(f"there is no column {missing[0]!r} in X, which has {', '.join(map(repr, table))}.")
    if family in SEVERAL:
        name = ", ".join(names)
        rows = np.column_stack([numbers(part, table[part], family) for part in names])
        if family == "dirichlet":
            return proportions_column(name, names, rows)
        return vector_column(name, family, names, rows)
    if len(names) > 1:
        raise BadInput(f"family {family!r} takes one column, not {len(names)}: {', '.join(names)}.")
    name, values = names[0], table[names[0]]
    if family in SPARSE:
        return sparse_column(name, family, lists(name, values))
    if family == "categorical":
        return category_column(name, categories(values))
    if family == "poisson":
        return count_column(name, numbers(name, values, family))
    return number_column(name, family, numbers(name, values, family))


def numbers(name: str, values: Any, family: str) -> np.ndarray:
    """A column of floats, with NaN for what is missing."""
    if not isinstance(values, np.ndarray):
        try:
            values = np.array([np.nan if value is None else float(value) for value in values])
        except (TypeError, ValueError):
            raise BadInput(
                f"column {name!r} holds values that are no numbers; family {family!r} needs numbers."
            ) from None
    refuse_infinite(name, values)  # of numbers written as text
    return np.asarray(values)


def categories(values: Any) -> list[Any]:
    """A column of names, with None for what is missing."""
    if isinstance(values, np.ndarray):
        return [None if np.isnan(value) else f"{value:g}" for value in values]
    return list(values)


def lists(name: str, values: Any) -> list[Any]:
    """A column of lists, with None for what is missing; text is split at blanks."""
    if isinstance(values, np.ndarray):
        raise BadInput(f"column {name!r} holds numbers; a family of words or sets needs lists or text.")
    return [value.split() if isinstance(value, str) else value for value in values]
