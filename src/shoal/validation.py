"""Input of every model, validated before anything is changed: rows, weights, options."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from shoal.errors import BadInput, NotNumbers, UnknownFeature
from shoal.progress import message
from shoal.row_sources import Mode, numbers_alone, read_words, refuse_other_things, source_of


class Rows(NamedTuple):
    """Rows that a model can use, with what their columns and rows stand for."""

    matrix: sp.csr_matrix  # canonical CSR of float32 or float64, without stored zeros, columns in the model's order
    vocabulary: Any = None  # the names of the columns, where they came from a Dataset
    feature_names: np.ndarray | None = None  # the names of the columns, where they came from a table
    item_ids: np.ndarray | None = None
    times: np.ndarray | None = None
    n_unknown: int = 0  # columns that were left out because the model does not know them
    recipe: Any = None  # how text, lists or a file became these columns, where they came from a Dataset
    item_titles: np.ndarray | None = None  # what to call the items on cards


def validate_rows(estimator: Any, X: Any, *, mode: Mode, nonnegative: bool = False, measurements: bool = False) -> Rows:
    """``X`` as rows in the columns of the estimator; neither ``X`` nor the estimator is changed.

    Parameters
    ----------
    estimator : the model that asks.
    X : matrix, Dataset or table
        A sparse or dense matrix; a :class:`shoal.Dataset`; a pandas, polars or Arrow table; a list or Series of texts
        or of lists of features, which are read as :func:`shoal.read` reads them. Named columns are aligned
        by name with those the model was fitted on. A bare matrix is taken to have the columns of the model.
    mode : {"fit", "partial_fit", "predict"}
        "fit" takes the columns as they are. With "partial_fit" named columns that the model does not know become new
        features at the end. With "predict" they are left out and counted.
    nonnegative : bool
        Refuse negative values.
    measurements : bool
        Every row needs every column, for none of them means 0 by being absent: a table that lacks one is refused, and
        so is text.
    """
    fitted = mode != "fit" and hasattr(estimator, "n_features_in_")
    refuse_other_things(X)
    source = source_of(numbers_alone(X, estimator, mode) if measurements else read_words(X, estimator, mode))
    matrix, names, n_unknown = source.matrix, _Names(source.vocabulary, source.feature_names), 0
    known = _Names(getattr(estimator, "vocabulary_", None), getattr(estimator, "feature_names_in_", None))
    check_structure(matrix)
    if fitted and names and known:
        if measurements and (names.vocabulary is None or getattr(source.recipe, "shape", None) == "numeric"):
            _refuse_missing_columns(estimator, names, known)
        matrix, names, n_unknown = _aligned(matrix, names, known, grow=mode == "partial_fit")
    width = names.n if fitted and names and known else None
    matrix = _checked_values(estimator, matrix, names, fitted=fitted, width=width)
    rows = _canonical(matrix)
    if nonnegative:
        _refuse_negative(estimator, rows)
    if n_unknown and mode == "predict":
        message(f"{n_unknown:,} columns of the data are unknown to the model and were left out")
    of_rows = (source.item_ids, source.times, n_unknown, source.recipe, source.item_titles)
    return Rows(rows, names.vocabulary, names.array, *of_rows)


def remember_rows(estimator: Any, rows: Rows, *, mode: Mode) -> None:
    """Note on the estimator which columns it was fitted on and which items it saw last; call when all has succeeded."""
    estimator.n_features_in_ = int(rows.matrix.shape[1])
    # A bare matrix that follows a Dataset has the Dataset's columns; what a new fit does not name has no names.
    names = (("vocabulary_", rows.vocabulary), ("feature_names_in_", rows.feature_names), ("recipe_", rows.recipe))
    for name, value in names:
        if value is not None:
            setattr(estimator, name, value)
        elif mode == "fit":
            vars(estimator).pop(name, None)
    vars(estimator).pop("stability_", None)  # it was that of the clusters before
    for name, values in (("item_ids_", rows.item_ids), ("item_titles_", rows.item_titles)):
        if values is not None:
            setattr(estimator, name, values)
        else:
            vars(estimator).pop(name, None)


def _refuse_missing_columns(estimator: Any, names: _Names, known: _Names) -> None:
    absent = np.flatnonzero(names.find(known) < 0)
    if absent.size:
        which = ", ".join(repr(str(known.strings[int(at)])) for at in absent[:5])
        raise BadInput(
            f"X lacks {absent.size:,} of the {known.n:,} columns that this {type(estimator).__name__} was fitted on: "
            f"{which}{' ...' if absent.size > 5 else ''}. A measurement that is missing is not 0; add those columns."
        )


class _Names:
    """Names of columns, from a vocabulary or from a table."""

    def __init__(self, vocabulary: Any, array: np.ndarray | None) -> None:
        self.vocabulary, self.array = vocabulary, None if vocabulary is not None else array

    @property
    def n(self) -> int:
        return len(self.array if self.vocabulary is None else self.vocabulary)  # type: ignore[arg-type]

    @property
    def strings(self) -> Any:
        return self.vocabulary.strings if self.vocabulary is not None else self.array

    def __bool__(self) -> bool:
        return self.vocabulary is not None or self.array is not None

    def find(self, names: _Names) -> np.ndarray:
        """The column of each name, -1 where it is not known."""
        if self.vocabulary is not None:
            if names.vocabulary is None:
                return np.asarray(self.vocabulary.find(list(names.strings)))
            if names.vocabulary is self.vocabulary or names.vocabulary == self.vocabulary:
                return np.arange(names.n)
            return np.asarray(self.vocabulary.find(names.strings))
        place = {str(name): at for at, name in enumerate(self.array)}  # type: ignore[arg-type]
        return np.array([place.get(str(name), -1) for name in names.strings], dtype=np.int64)

    def extended(self, names: _Names, unknown: np.ndarray) -> _Names:
        """These names and, at the end, those of ``names`` at ``unknown``; these stay as they are."""
        new = [str(names.strings[int(at)]) for at in unknown]
        if self.vocabulary is not None:
            vocabulary = self.vocabulary.copy()
            vocabulary.extend(new)
            return _Names(vocabulary, None)
        return _Names(None, np.concatenate([self.array, np.array(new, dtype=object)]))  # type: ignore[list-item]


def _aligned(matrix: Any, names: _Names, known: _Names, *, grow: bool) -> tuple[sp.csr_matrix, _Names, int]:
    """The matrix with its columns where the model has them."""
    columns = known.find(names)
    unknown = np.flatnonzero(columns < 0)
    if unknown.size and grow:
        columns[unknown] = known.n + np.arange(unknown.size)
        known = known.extended(names, unknown)
    if columns.size == known.n and np.array_equal(columns, np.arange(known.n)):
        return matrix, known, 0
    rows = sp.csr_matrix(matrix)
    at = columns[rows.indices]
    stays = at >= 0
    lengths = np.diff(rows.indptr)
    if not stays.all():
        kept = np.concatenate([[0], np.cumsum(stays)])
        lengths = kept[rows.indptr[1:]] - kept[rows.indptr[:-1]]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = at[stays].astype(rows.indices.dtype if known.n < 2**31 else np.int64)
    aligned = sp.csr_matrix((rows.data[stays], indices, indptr), shape=(rows.shape[0], known.n))
    aligned.sort_indices()
    return aligned, known, 0 if grow else int(unknown.size)


def check_structure(matrix: Any) -> None:
    """Refuse a sparse matrix whose index arrays point outside it: kernels would follow them."""
    if not sp.issparse(matrix) or matrix.format not in ("csr", "csc"):
        return
    n_long, n_wide = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    indptr, indices = matrix.indptr, matrix.indices
    n = min(indices.size, matrix.data.size)
    if indptr.shape != (n_long + 1,) or indptr[0] != 0 or not 0 <= int(indptr[-1]) <= n:
        raise BadInput(
            f"X is a {matrix.format} matrix of {n_long} x {n_wide} whose indptr does not fit: {indptr.size} offsets "
            f"that end at {indptr[-1] if indptr.size else 'nothing'} of {n} stored values. Build it again, for example "
            "with scipy.sparse.csr_matrix((data, (rows, columns)), shape)."
        )
    falling = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falling.size:
        raise BadInput(
            f"X.indptr falls at {falling[0]}: {indptr[falling[0]]} to {indptr[falling[0] + 1]}. Build X again."
        )
    used = indices[: int(indptr[-1])]
    if used.size and not (used.min() >= 0 and used.max() < n_wide):
        at = int(np.flatnonzero((used < 0) | (used >= n_wide))[0])
        row = int(np.searchsorted(indptr, at, side="right")) - 1
        raise BadInput(
            f"X.indices[{at}] (in row {row}) is {used[at]}, but X has columns 0 to {n_wide - 1}. Build X again."
        )


def _checked_values(estimator: Any, matrix: Any, names: _Names, *, fitted: bool, width: int | None) -> Any:
    """scikit-learn's validation, run on a copy of the estimator, which it would change."""
    _refuse_values_not_finite(matrix, names)
    probe = copy.copy(estimator)
    if width is not None:
        probe.n_features_in_ = width
    vars(probe).pop("feature_names_in_", None)
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # it adds up all values, of which inf - inf may be two
            return validate_data(probe, matrix, reset=not fitted, accept_sparse="csr", dtype=[np.float64, np.float32])
    except ValueError as error:
        raise BadInput(str(error)) from None
    except TypeError as error:
        raise NotNumbers(f"X cannot be used as numbers: {error}") from None


def _refuse_values_not_finite(matrix: Any, names: _Names) -> None:
    """Name the first cell that is missing or infinite."""
    is_sparse = sp.issparse(matrix) and matrix.format in ("csr", "csc")
    if not is_sparse and not (isinstance(matrix, np.ndarray) and matrix.ndim == 2):
        return
    values = matrix.data if sp.issparse(matrix) else matrix
    with np.errstate(all="ignore"):
        looks_finite = values.dtype.kind != "f" or bool(np.isfinite(np.sum(values)))
    if looks_finite:
        return  # one pass without a copy; what adds up to infinity is looked at more closely
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return
    if sp.issparse(matrix):
        at = int(np.argmax(wrong))
        line, value = int(np.searchsorted(matrix.indptr, at, side="right")) - 1, values[at]
        row, column = (line, matrix.indices[at]) if matrix.format == "csr" else (matrix.indices[at], line)
    else:
        row, column = np.argwhere(wrong)[0]
        value = values[row, column]
    what = "NaN (missing)" if np.isnan(value) else "infinity"
    called = f" ({str(names.strings[int(column)])!r})" if names else ""
    raise BadInput(
        f"X contains {what} in row {row}, column {column}{called}; {int(wrong.sum()):,} values are missing or "
        "infinite. Fill them in, or leave those rows out."
    )


def _canonical(matrix: Any) -> sp.csr_matrix:
    """CSR with sorted indices, no duplicates and no stored zeros; the caller's arrays stay as they are."""
    rows = sp.csr_matrix(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
        if not np.isfinite(rows.data).all():
            raise BadInput("X holds cells given more than once whose sum is not finite. Scale the values down.")
    if rows.nnz and not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    return rows


def _refuse_negative(estimator: Any, rows: sp.csr_matrix) -> None:
    if rows.nnz and rows.data.min() < 0:
        at = int(np.argmin(rows.data))
        row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise BadInput(
            f"Negative values in data passed to {type(estimator).__name__}: row {row}, column {rows.indices[at]} "
            f"holds {rows.data[at]:g}. Counts and weights must be 0 or more."
        )


def validate_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """One finite weight, 0 or more, for each row; None means 1 each."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"sample_weight is {sample_weight!r:.80}; it needs one number for each row.") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise BadInput(f"sample_weight has shape {weights.shape}; it needs one number for each of the {n_rows} rows.")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        raise BadInput(
            f"sample_weight[{wrong[0]}] is {weights[wrong[0]]:g}, and {wrong.size} of {n_rows} weights are negative or "
            "not finite. Weights must be 0 or more."
        )
    return weights


def check_int(name: str, value: Any, *, minimum: int = 1, maximum: int | None = None) -> int:
    """A whole number in range.

    >>> check_int("n_clusters", 2.5)
    Traceback (most recent call last):
    shoal.errors.BadInput: n_clusters is 2.5; it must be a whole number, 1 or more.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if number >= minimum and (maximum is None or number <= maximum):
            return number
    bound = f"{minimum} or more" if maximum is None else f"from {minimum} to {maximum}"
    raise BadInput(f"{name} is {value!r}; it must be a whole number, {bound}.")


def check_real(
    name: str, value: Any, *, minimum: float = -np.inf, maximum: float = np.inf, strict: bool = False
) -> float:
    """A finite number in range; ``strict`` excludes the minimum itself."""
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        above = number > minimum if strict else number >= minimum
        if np.isfinite(number) and above and number <= maximum:
            return number
    bounds = [f"{'above' if strict else 'at least'} {minimum:g}"] if minimum > -np.inf else []
    bounds += [f"at most {maximum:g}"] if maximum < np.inf else []
    raise BadInput(f"{name} is {value!r}; it must be a finite number{', ' if bounds else ''}{' and '.join(bounds)}.")


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """One of the words in ``choices``."""
    if isinstance(value, str) and value in choices:
        return value
    raise BadInput(f"{name} is {value!r}; it must be one of {', '.join(map(repr, choices))}.")


def check_random_state(value: Any) -> np.random.Generator:
    """A generator for ``random_state``: None, a whole number from 0, a RandomState or a Generator."""
    if isinstance(value, np.random.Generator):
        return value
    if isinstance(value, np.random.RandomState):
        return np.random.default_rng(value.randint(2**31 - 1))
    if value is None:
        return np.random.default_rng()
    if isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < 2**32:
        return np.random.default_rng(np.random.RandomState(int(value)).randint(2**31 - 1))
    raise BadInput(f"random_state is {value!r}; it must be None, a whole number from 0 to 2**32 - 1, or a generator.")


def check_features(what: str, features: Any, n_features: int) -> tuple[list[str], list[int]]:
    """Features by name or by column number, apart; a number that is no column is refused.

    >>> check_features("observed", ["red", 2], n_features=3)
    (['red'], [2])
    """
    if isinstance(features, str):
        raise BadInput(f"{what} is the text {features!r}; give a list of features, as in [{features!r}].")
    if not isinstance(features, Iterable):
        raise BadInput(f"{what} is {features!r}; give a list of features.")
    asked = list(features)
    numbers = [feature for feature in asked if not isinstance(feature, str)]
    for number in numbers:
        if not isinstance(number, Integral) or isinstance(number, bool):
            raise BadInput(f"{what} holds {number!r}; features are names or column numbers.")
        if not 0 <= int(number) < n_features:
            raise UnknownFeature(f"feature {number} of {what} is not a column; columns run from 0 to {n_features - 1}.")
    return [str(feature) for feature in asked if isinstance(feature, str)], [int(number) for number in numbers]


def check_names(names: Any, n_columns: int, what: str = "feature_names") -> Sequence[str]:
    """One distinct text for each column."""
    listed = list(names)
    if len(listed) != n_columns or not all(isinstance(name, str) for name in listed):
        raise BadInput(f"{what} holds {len(listed)} names; one text for each of the {n_columns} columns is needed.")
    if len(set(listed)) < len(listed):
        raise BadInput(f"{what} holds a name twice. Names must differ.")
    return listed
