"""The one place that judges what the model is given: rows, times, single messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import Estimator, as_rows
from shoal.data import Vocabulary
from shoal.errors import BadInput
from shoal.streams.state import arrays as st


def read_rows(model: Estimator, X: Any, family: int, *, fitting: bool, growing: bool = False) -> sp.csr_matrix:
    """``X`` as float64 CSR. When growing, more columns than before are welcome: the vocabulary has grown."""
    vocabulary = getattr(X, "vocabulary", None) if hasattr(X, "X") else None
    width = getattr(getattr(X, "X", X), "shape", (0, 0))
    known = getattr(model, "n_features_in_", None)
    if growing and known is not None and len(width) == 2 and width[1] > known:
        model.n_features_in_ = width[1]  # type: ignore[attr-defined]
        if vocabulary is not None:
            model.vocabulary_ = vocabulary  # type: ignore[attr-defined]
    rows = as_rows(model, X, fitting=fitting, nonnegative=family != st.GAUSSIAN).astype(np.float64)
    if family == st.BERNOULLI:
        rows = sp.csr_matrix(rows)
        rows.eliminate_zeros()
        rows.data = np.ones_like(rows.data)
    return rows


def read_times(X: Any, times: Any, n_rows: int, first: int) -> np.ndarray:
    """One finite number for each row; without times (in the Dataset or beside it) the order of rows is the clock."""
    if times is None:
        times = getattr(X, "times", None)
    if times is None:
        return np.arange(first, first + n_rows, dtype=np.float64)
    try:
        numbers = np.asarray(times)
        if numbers.dtype.kind == "M":
            numbers = numbers.astype("datetime64[us]").astype(np.int64) / 1e6
        numbers = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"times cannot be read as numbers or datetimes: {error}. Give seconds.") from None
    if numbers.shape != (n_rows,):
        raise BadInput(f"times has shape {numbers.shape}; it needs one number for each of the {n_rows} rows.")
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        raise BadInput(
            f"times[{wrong[0]}] is {numbers[wrong[0]]}, and {wrong.size} of {n_rows} times are missing or infinite. "
            "Leave those rows out, or fill in the time of their neighbours."
        )
    return numbers


def read_one(message: Any, vocabulary: Vocabulary | None, n_features: int) -> tuple[sp.csr_matrix, Vocabulary | None]:
    """One message as a row: words, word counts, or a row of numbers. New words extend the vocabulary."""
    if isinstance(message, str):
        raise BadInput(f"learn_one got the text {message[:30]!r}; give its words, for example text.lower().split().")
    if sp.issparse(message) or isinstance(message, np.ndarray):
        row = sp.csr_matrix(np.atleast_2d(message) if isinstance(message, np.ndarray) else message, dtype=np.float64)
        if row.shape[0] != 1:
            raise BadInput(f"learn_one takes one message; got {row.shape[0]} rows. Use partial_fit for several.")
        row.sum_duplicates()
        return row, vocabulary
    counts = dict(message) if isinstance(message, Mapping) else _count(message)
    if vocabulary is None:
        if n_features:
            raise BadInput("this model was fitted on rows without names; give learn_one a row of numbers, not words.")
        vocabulary = Vocabulary()
    columns = vocabulary.extend([str(name) for name in counts]) if counts else np.zeros(0, dtype=np.int64)
    values = np.array([float(value) for value in counts.values()])
    order = np.argsort(columns)
    n = max(len(vocabulary), n_features, 1)
    row = sp.csr_matrix((values[order], columns[order], np.array([0, columns.size])), shape=(1, n))
    return row, vocabulary


def _count(words: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        counts[str(word)] = counts.get(str(word), 0) + 1
    return counts
