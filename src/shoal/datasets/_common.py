"""What the generators share: judging their options, their randomness, and packing a matrix as a Dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput

if TYPE_CHECKING:
    from shoal.data import Dataset


def as_generator(random_state: Any) -> np.random.Generator:
    """None, a whole number, a Generator or a RandomState -> a Generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


def require_at_least(least: float, **options: float) -> None:
    """Refuse the first option that is too small or not a number."""
    for name, value in options.items():
        if not value >= least:
            raise BadInput(f"{name} is {value!r}; it must be {least} or more.")


def require_share(**options: float) -> None:
    """Refuse the first option that is not between 0 and 1."""
    for name, value in options.items():
        if not 0 <= value <= 1:
            raise BadInput(f"{name} is {value!r}; it is a share, from 0 to 1.")


def as_dataset(X: sp.csr_matrix, word: str, labels: np.ndarray, **more: Any) -> Dataset:
    """A Dataset whose features are called ``word0``, ``word1``, ..."""
    from shoal.data import Dataset
    from shoal.data.recipe import Recipe
    from shoal.data.vocabulary import Vocabulary

    text, offsets = numbered_names(word, X.shape[1])
    vocabulary = Vocabulary.from_arrays(text, offsets)
    weighting = "binary" if X.nnz and X.data.min() == X.data.max() == 1 else "count"
    recipe = Recipe(weighting=weighting, dtype=str(X.dtype))
    summary = {
        "source": "generated",
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "non_zeros": int(X.nnz),
        "empty_rows": int((np.diff(X.indptr) == 0).sum()),
    }
    return Dataset(X=X, vocabulary=vocabulary, labels=labels, recipe=recipe, summary=summary, **more)


def numbered_names(word: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """``word0`` ... as one run of UTF-8 bytes and ``n + 1`` offsets, built without a Python string for each.

    >>> text, offsets = numbered_names("ad", 12)
    >>> text.tobytes()
    b'ad0ad1ad2ad3ad4ad5ad6ad7ad8ad9ad10ad11'
    >>> offsets.tolist()
    [0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 34, 38]
    """
    prefix = np.frombuffer(word.encode(), np.uint8)
    runs, lengths = [], []
    for digits in range(1, len(str(max(n - 1, 0))) + 1):
        numbers = np.arange(0 if digits == 1 else 10 ** (digits - 1), min(n, 10**digits))
        names = np.empty((numbers.size, prefix.size + digits), np.uint8)
        names[:, : prefix.size] = prefix
        for place in range(digits):
            names[:, -1 - place] = ord("0") + numbers // 10**place % 10
        runs.append(names.ravel())
        lengths.append(np.full(numbers.size, names.shape[1], np.int64))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])
    return np.concatenate(runs), offsets
