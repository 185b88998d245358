"""What a user may give as rows (matrix, Dataset, table, texts, lists): a matrix, and what it stands for."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput
from shoal.progress import message

Mode = Literal["fit", "partial_fit", "predict"]


def read_words(X: Any, estimator: Any, mode: Mode) -> Any:
    """A Dataset where ``X`` is text or lists of features; ``X`` itself where it is numbers already."""
    if _is_matrix(X) or hasattr(X, "vocabulary"):
        return X
    if mode != "fit" and getattr(estimator, "recipe_", None) is None:
        X = _columns_of_model(X, estimator)
    from shoal.data import as_dataset  # only here, so that the models do not need the readers

    dataset = as_dataset(X, like=None if mode == "fit" else estimator, grow=mode == "partial_fit",
                         weighting=estimator.preferred_weighting)  # fmt: skip
    return X if dataset is None else dataset


def numbers_alone(X: Any, estimator: Any, mode: Mode) -> Any:
    """``X`` for a model of measurements, which takes no text."""
    if _is_matrix(X) or hasattr(X, "vocabulary"):
        return X
    if mode != "fit":
        X = _columns_of_model(X, estimator)
    from shoal.data.as_dataset import holds_words, is_table, text_columns

    if not holds_words(X):
        return X
    which = ", ".join(map(repr, text_columns(X)[:5])) if is_table(X) else ""
    where = f"columns {which} of X hold" if which else "X holds"
    raise BadInput(
        f"{where} text, and this {type(estimator).__name__} is for measurements. Give it the columns of numbers alone, "
        "or shoal.ExponentialFamilyMixture(family='mixed') the table as it is."
    )


def _is_matrix(X: Any) -> bool:
    return sp.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "biuf")


def _columns_of_model(X: Any, estimator: Any) -> Any:
    """A table without the columns that hold no numbers and that the model, fitted on named columns, does not know."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is None or not (hasattr(X, "columns") or hasattr(X, "column_names")):
        return X
    from shoal.data.as_dataset import select_columns, text_columns

    foreign = [name for name in text_columns(X) if name not in set(known)]
    if foreign:
        message(f"{len(foreign):,} columns hold no numbers and are unknown to the model: they were left out")
    return select_columns(X, without=foreign) if foreign else X


def refuse_other_things(X: Any) -> None:
    """Refuse what is no rows at all, before numpy tries to make numbers of it."""
    if isinstance(X, str | bytes) or hasattr(X, "__fspath__"):
        raise BadInput(f"X is {X!r:.60}; it must hold rows. Read a file with shoal.read(path); put a text into a list.")
    first = next((one for one in X[:1] if isinstance(one, dict)), None) if isinstance(X, list | tuple) else None
    if isinstance(X, set | frozenset) or first is not None or hasattr(X, "__next__"):
        kind = "a list of dicts" if first is not None else f"a {type(X).__name__}"
        raise BadInput(
            f"X is {kind}; give a list of texts or of lists of features, a matrix, or a table such as "
            "pandas.DataFrame(rows)."
        )
    if isinstance(X, np.matrix):
        raise BadInput("X is a numpy.matrix; give numpy.asarray(X).")
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise BadInput(
            f"X is a masked array, and {int(np.ma.getmaskarray(X).sum()):,} of its values are masked: missing. Fill "
            "them in with X.filled(value), or leave those rows out."
        )


class RowSource(NamedTuple):
    """A matrix, or what can be made one, with what its columns and rows stand for."""

    matrix: Any
    vocabulary: Any = None
    feature_names: np.ndarray | None = None
    item_ids: np.ndarray | None = None
    times: np.ndarray | None = None
    recipe: Any = None
    item_titles: np.ndarray | None = None


def source_of(X: Any) -> RowSource:
    """What ``X`` is made of, whichever kind of thing it is."""
    if hasattr(X, "X") and hasattr(X, "vocabulary"):
        if getattr(X, "table", None) is not None:
            raise BadInput(
                "this Dataset holds a table of mixed columns, which ExponentialFamilyMixture(family='mixed') takes. "
                "Read it without table= for other models."
            )
        ids, times = _as_array(X.ids), _as_array(X.times)
        titles = _as_array(getattr(X, "titles", None))
        return RowSource(X.X, X.vocabulary, None, ids, times, getattr(X, "recipe", None), titles)
    columns = getattr(X, "column_names", None)  # Arrow
    if columns is not None and hasattr(X, "schema"):
        _refuse_repeated(columns)
        parts = [np.asarray(X.column(at).to_numpy()) for at in range(len(columns))]
        return RowSource(
            np.column_stack(parts) if parts else np.empty((len(X), 0)), None, np.array(columns, dtype=object)
        )
    columns = getattr(X, "columns", None)  # pandas and polars
    if columns is not None and not sp.issparse(X):
        names = np.array(list(columns), dtype=object)
        n_texts = sum(isinstance(name, str) for name in names)
        if n_texts:
            _refuse_repeated(names)
        if n_texts in (0, names.size):  # scikit-learn refuses names of which some are numbers
            sparse = hasattr(X, "sparse") and all(hasattr(dtype, "fill_value") for dtype in X.dtypes)
            matrix = X.sparse.to_coo().tocsr() if sparse else X.to_numpy()
            return RowSource(matrix, None, names if n_texts else None, ids_of_rows(X))
    return RowSource(X)


def ids_of_rows(X: Any) -> np.ndarray | None:
    """Names of rows: those of a Dataset, or of a pandas table whose index is more than row numbers."""
    if hasattr(X, "vocabulary"):
        return _as_array(X.ids)
    if not hasattr(X, "index"):
        return None
    from shoal.data.index_ids import index_ids  # only here, so that the models do not need the readers

    return index_ids(X)


def _as_array(values: Any) -> np.ndarray | None:
    """A plain array: a pandas Series would be indexed by its labels, not by row."""
    return None if values is None else np.asarray(values)


def _refuse_repeated(names: Any) -> None:
    """Columns are found by name, so a name stands for one of them."""
    unique, counts = np.unique(np.asarray(names, dtype=str), return_counts=True)
    if unique.size < len(names):
        raise BadInput(f"X has {counts.max()} columns called {str(unique[counts.argmax()])!r}. Rename all but one.")
