"""What a user hands to ``fit`` in place of a matrix, as a Dataset: texts, lists of features, a table of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.data.batches import read_batches
from shoal.data.dataset import Dataset
from shoal.data.index_ids import named_by_index
from shoal.data.reading import read
from shoal.data.sources import as_arrow

ALL_ROWS = 2**62


def as_dataset(X: Any, like: Any = None, *, grow: bool = False, weighting: str = "auto") -> Dataset | None:
    """``X`` as a Dataset if it holds text or lists of features; None if it is numbers, which need no reading.

    Parameters
    ----------
    X : a list, array or Series of texts or of lists of features; a table (pandas, polars, Arrow, a dict of columns)
        with a text or list column; a Dataset.
    like : a model or Dataset with a recipe, so that ``X`` is read into the same columns.
    grow : features that ``like`` does not know become columns at the end; otherwise they are ignored and counted.
    weighting : as in :func:`shoal.read`, where there is no recipe.

    Examples
    --------
    >>> as_dataset(["red fox", "red wine"]).X.shape
    (2, 3)
    >>> as_dataset([[1.0, 2.0], [3.0, 4.0]]) is None
    True
    """
    if isinstance(X, Dataset):
        return X
    if not holds_words(X):
        return None
    recipe = getattr(like, "recipe_", None) or getattr(like, "recipe", None)
    if recipe is None or recipe.shape == "matrix":
        return read(X, weighting=weighting)
    # A list or Series is the one column that the recipe reads.
    table = X if is_table(X) else as_arrow(X).rename_columns([recipe.text or recipe.features])
    if grow:
        dataset = next(iter(read_batches(table, recipe=like, grow=True, batch_rows=ALL_ROWS)))
    else:
        dataset = read(table, recipe=like)
    return dataset if table is X else named_by_index(dataset, X)


def is_table(X: Any) -> bool:
    """Whether it has named columns."""
    return isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names") or hasattr(X, "schema")


def holds_words(X: Any) -> bool:
    """Whether there is text, or a list of text, where a matrix has numbers."""
    if X is None or sp.issparse(X) or isinstance(X, str | bytes):
        return False
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUT" and _is_words(X)
    if isinstance(X, list | tuple):
        return _is_words(X)
    package = type(X).__module__.split(".")[0]
    if package in ("pandas", "polars", "pyarrow") or isinstance(X, Mapping):
        return _table_holds_words(X)
    return False


def _is_words(values: Any) -> bool:
    """By the first value that is there; a list of numbers is a row of a matrix."""
    for value in values:
        if isinstance(value, str):
            return True
        if isinstance(value, list | tuple | set | frozenset | np.ndarray) and len(value):
            return all(isinstance(part, str) for part in value)
        if not (value is None or isinstance(value, list | tuple | set) or value != value):
            return False
    return False


def _table_holds_words(X: Any) -> bool:
    return bool(text_columns(X))


def text_columns(X: Any) -> list[str]:
    """The columns of a table that hold text or lists; empty for what is no table."""
    import pyarrow as pa

    pandas = type(X).__module__.startswith("pandas")
    if pandas and not hasattr(X, "columns"):  # a Series
        X = X.to_frame(X.name if isinstance(X.name, str) else "0") if _is_dense(X.dtype) else None
    elif pandas:  # Arrow has no sparse columns; those hold numbers
        X = X.loc[:, [_is_dense(dtype) for dtype in X.dtypes]]
    columns = None if X is None else as_arrow(X)
    if not isinstance(columns, pa.Table):
        return []
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_list)

    def is_words(kind: Any) -> bool:
        inside = kind.value_type if pa.types.is_dictionary(kind) else kind
        return any(test(inside) for test in (*tests, pa.types.is_large_list))

    return [field.name for field in columns.schema if is_words(field.type)]


def select_columns(X: Any, *, without: list[str]) -> Any:
    """A pandas, polars or Arrow table without some of its columns."""
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        return X.select([name for name in X.column_names if name not in without])
    return X.drop(columns=without) if hasattr(X, "loc") else X.drop(without)


def _is_dense(dtype: Any) -> bool:
    return not hasattr(dtype, "fill_value")
