"""What the model is given, validated before anything is changed: rows, times, single messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import Estimator, Rows, validate_rows
from shoal.data import Vocabulary
from shoal.errors import BadInput
from shoal.streams.state import arrays as st

LARGEST_COUNT = 1e15  # counts are added up as float32
LARGEST_VALUE = 1e75  # measurements are squared
SMALLEST_VALUE = 1e-130  # of the largest of a column: squares of its differences are numbers still


def read_rows(model: Estimator, X: Any, family: int, *, mode: Any) -> Rows:
    """``X`` as float64 CSR in the model's columns; with "partial_fit" more columns than before are welcome."""
    rows = validate_rows(model, X, mode=mode, nonnegative=family != st.GAUSSIAN, measurements=family == st.GAUSSIAN)
    if family == st.GAUSSIAN and mode == "fit":
        _refuse_tiny(rows.matrix)
    return rows._replace(matrix=_as_likelihood_asks(rows.matrix.astype(np.float64), family))


def _refuse_tiny(matrix: sp.csr_matrix) -> None:
    """Columns whose squares vanish would not tell clusters apart."""
    largest = np.zeros(matrix.shape[1])
    np.maximum.at(largest, matrix.indices, np.abs(matrix.data))
    wrong = np.flatnonzero((largest > 0) & (largest < SMALLEST_VALUE))
    if wrong.size:
        raise BadInput(
            f"no value of column {wrong[0]} is larger than {largest[wrong[0]]:g}, and squares of such numbers vanish. "
            "Divide the column by its scale."
        )


def _as_likelihood_asks(matrix: sp.csr_matrix, family: int) -> sp.csr_matrix:
    matrix = sp.csr_matrix(matrix)
    most = LARGEST_VALUE if family == st.GAUSSIAN else LARGEST_COUNT
    wrong = np.flatnonzero(~(np.abs(matrix.data) <= most))
    if wrong.size:
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        raise BadInput(
            f"row {row}, column {matrix.indices[wrong[0]]} holds {matrix.data[wrong[0]]:g}; values must be finite and "
            f"at most {most:g}. Divide the column by its scale."
        )
    if family == st.BERNOULLI:
        matrix.eliminate_zeros()
        matrix.data = np.ones_like(matrix.data)
    return matrix


def read_times(times: Any, n_rows: int, first: int) -> np.ndarray:
    """One finite number for each row, seconds where they are dates; without times the order of rows is the clock.

    >>> read_times(["2019-04-15 17:00", "2019-04-15T17:00:30Z"], 2, 0) - 1555347600
    array([ 0., 30.])
    """
    if times is None:
        return np.arange(first, first + n_rows, dtype=np.float64)
    numbers = _as_numbers(times)
    if numbers.shape != (n_rows,):
        raise BadInput(f"times has shape {numbers.shape}; it needs one number for each of the {n_rows} rows.")
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        raise BadInput(
            f"times[{wrong[0]}] is missing or infinite, and so are {wrong.size} of {n_rows} times. "
            "Leave those rows out, or fill in the time of their neighbors."
        )
    return numbers


def _as_numbers(times: Any) -> np.ndarray:
    """Numbers as they are; datetimes of numpy, pandas and Python, and text, as seconds since 1970 in UTC."""
    try:
        values = np.asarray(times)
        if values.dtype.kind in "OUS" and values.size and not _all_numbers(values):
            values = _as_datetimes(values)
        if values.dtype.kind == "M":
            missing = np.isnat(values)
            seconds = values.astype("datetime64[us]").astype(np.int64) / 1e6
            return np.where(missing, np.nan, seconds)
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        said = str(error).splitlines()[0].split(". You might")[0]
        raise BadInput(f"times cannot be read as numbers or datetimes: {said}. Give seconds, or ISO dates.") from None


def _all_numbers(values: np.ndarray) -> bool:
    return values.dtype.kind == "O" and all(isinstance(value, int | float | np.number) for value in values.ravel())


def _as_datetimes(values: np.ndarray) -> np.ndarray:
    """Text and Python's datetimes; those without a zone are UTC."""
    import pandas as pd

    return np.asarray(pd.to_datetime(values.ravel(), utc=True, format="ISO8601").tz_localize(None)).reshape(
        values.shape
    )


def read_one(message: Any, known: Any, n_features: int, family: int) -> tuple[sp.csr_matrix, Vocabulary | None]:
    """One message as a row: words, word counts, or a row of numbers. New words make a longer copy of the vocabulary."""
    if isinstance(message, str):
        raise BadInput(f"learn_one got the text {message[:30]!r}; give its words, for example text.lower().split().")
    if sp.issparse(message) or isinstance(message, np.ndarray):
        row = _row_of_numbers(message, family)
        if n_features and row.shape[1] != n_features:
            raise BadInput(f"learn_one got a row of {row.shape[1]} columns; this model has {n_features}.")
        return _as_likelihood_asks(row, family), None
    if not isinstance(message, Iterable):
        raise BadInput(f"learn_one got {message!r}; give a message's words, or its counts by word.")
    counts = dict(message) if isinstance(message, Mapping) else _count(message)
    if known is None and n_features:
        raise BadInput("this model was fitted on rows without names; give learn_one a row of numbers, not words.")
    names = [str(name) for name in counts]
    try:
        values = np.array([float(value) for value in counts.values()])
    except (TypeError, ValueError) as error:
        raise BadInput(f"learn_one got a count that is no number: {error}.") from None
    if family != st.GAUSSIAN and (values < 0).any():
        raise BadInput(f"learn_one got {values.min():g} of {names[int(values.argmin())]!r}; counts must be 0 or more.")
    vocabulary = Vocabulary() if known is None else known
    columns = np.asarray(vocabulary.find(names), dtype=np.int64) if names else np.zeros(0, dtype=np.int64)
    if (columns < 0).any():
        # other models and the Dataset have the same vocabulary
        vocabulary = vocabulary.copy()
        columns = np.asarray(vocabulary.extend(names))
    order = np.argsort(columns)
    shape = (1, max(len(vocabulary), n_features, 1))
    row = sp.csr_matrix((values[order], columns[order], np.array([0, columns.size])), shape=shape)
    return _as_likelihood_asks(row, family), vocabulary


def _row_of_numbers(message: Any, family: int) -> sp.csr_matrix:
    row = sp.csr_matrix(np.atleast_2d(message) if isinstance(message, np.ndarray) else message, dtype=np.float64)
    if row.shape[0] != 1:
        raise BadInput(f"learn_one takes one message; got {row.shape[0]} rows. Use partial_fit for several.")
    row.sum_duplicates()
    if family != st.GAUSSIAN and row.nnz and row.data.min() < 0:
        raise BadInput(f"learn_one got {row.data.min():g}; counts must be 0 or more.")
    return row


def _count(words: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        counts[str(word)] = counts.get(str(word), 0) + 1
    return counts
