"""Independent streams side by side: one fitted copy of a model for each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from shoal.engine.fold import fold
from shoal.errors import BadInput


@dataclass(frozen=True)
class KeyedRows:
    """The rows of one key."""

    key: Any
    X: Any
    options: dict[str, Any]


def fit_by_key(model: Any, X: Any, key: Any, *, times: Any = None) -> dict[Any, Any]:
    """Fit a copy of the model to the rows of each key, on the engine in use: the keys are independent of one another.

    A stream is learned in the order of its times, so one stream is the work of one thread. Many of them (a thread of
    messages for each mailing list, a log for each machine) are learned in parallel.

    Parameters
    ----------
    model : estimator
        What is copied; it stays as it is.
    X : matrix, Dataset or table
        All rows.
    key : array of shape (n_rows,)
        Which stream each row belongs to.
    times : array of shape (n_rows,), optional
        For models that have a clock.

    Returns
    -------
    dict
        A fitted model for each key, by ascending key.

    Examples
    --------
    >>> import numpy as np, shoal
    >>> X = np.array([[3, 0], [3, 0], [0, 3], [0, 3]])
    >>> model = shoal.TimeSensitiveMixture(random_state=0)
    >>> fitted = shoal.engine.fit_by_key(model, X, ["web", "db", "web", "db"], times=[0, 1, 2, 3])
    >>> {name: each.labels_.size for name, each in fitted.items()}
    {'db': 2, 'web': 2}
    """
    keys = np.asarray(key)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if keys.shape != (n_rows,):
        raise BadInput(f"key has shape {keys.shape}; it needs the key of each of the {n_rows} rows.")
    clock = None if times is None else np.asarray(times)
    order = np.argsort(keys, kind="stable")
    names, first = np.unique(keys[order], return_index=True)
    blocks = []
    for name, rows in zip(names.tolist(), np.split(order, first[1:]), strict=True):
        options = {} if clock is None else {"times": clock[rows]}
        blocks.append(KeyedRows(name, taken(X, rows), options))
    return fold(blocks, fit_rows, _both, model).stats  # type: ignore[no-any-return]


def taken(X: Any, rows: np.ndarray) -> Any:
    """Some rows of a matrix, a table or a Dataset."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "take") and hasattr(X, "column_names"):
        return X.take(rows)
    return X[rows] if hasattr(X, "shape") or hasattr(X, "vocabulary") else [X[row] for row in rows]


def fit_rows(block: KeyedRows, model: Any, memory: None = None) -> tuple[dict[Any, Any], None]:
    """A copy of the model, fitted to the rows of one key."""
    return {block.key: clone(model).fit(block.X, **block.options)}, memory


def _both(a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
    return a | b
