"""Suggestion in the limit of very many clusters: every remembered row, and every keyword, is a profile of its own.

Two voices, both the mixture's own formula for suggestion:

- rows: as many clusters as rows, each with the Betas that one row teaches a prior of ``strength`` rows. What is not
  given is mostly absent, so it counts as absent in part;
- keywords: for every keyword, the cluster of rows that have it against those that have not.

Their probabilities are pooled as a weighted geometric mean. How strong the priors are, and how much each voice is
trusted, is chosen by suggesting hidden keywords of rows set aside.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.bernoulli.exemplars_kernels import suggest_by_voices
from shoal.bernoulli.profiles import background_of

MOST_PAIRS = 50_000_000  # keyword pairs remembered; beyond it, rare pairs are dropped
GRID = {  # settings that are tried: see suggest_by_voices
    "strength": (0.3, 1.0),
    "absent": (0.2, 0.5, 0.9),
    "keyword_strength": (2.0, 20.0, 100.0),
    "trust": (0.5, 0.75, 1.0),
    "blend": (0.35, 0.5, 0.65, 0.9),
}


@storable
class Exemplars(NamedTuple):
    """Remembered rows by row and by keyword, and how often keywords meet."""

    background: np.ndarray  # (n_features,)
    seen: np.ndarray  # (n_features + 1,) rows with each keyword; last, rows in all
    feature_ptr: np.ndarray  # rows as CSR without values
    features: np.ndarray
    row_ptr: np.ndarray  # the same by keyword
    rows: np.ndarray
    pair_ptr: np.ndarray  # how many rows have both keywords, as CSR
    pair_features: np.ndarray
    pair_counts: np.ndarray
    settings: np.ndarray  # (5,) chosen

    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


def remember(rows: sp.csr_matrix, settings: np.ndarray) -> Exemplars:
    """Index the rows."""
    ones = sp.csr_matrix((np.ones(rows.nnz, dtype=np.float32), rows.indices, rows.indptr), shape=rows.shape)
    by_keyword = ones.T.tocsr()
    seen = np.append(np.diff(by_keyword.indptr), rows.shape[0]).astype(np.float64)
    pairs = _pairs(ones, by_keyword)
    return Exemplars(
        background=background_of(seen, flat=False), seen=seen,
        feature_ptr=rows.indptr.astype(np.int64), features=rows.indices.astype(np.int32),
        row_ptr=by_keyword.indptr.astype(np.int64), rows=by_keyword.indices.astype(np.int32),
        pair_ptr=pairs.indptr.astype(np.int64), pair_features=pairs.indices.astype(np.int32), pair_counts=pairs.data,
        settings=settings,
    )  # fmt: skip


def _pairs(ones: sp.csr_matrix, by_keyword: sp.csr_matrix) -> sp.csr_matrix:
    """How many rows have both keywords; from a sample of rows when all would be too many pairs."""
    lengths = np.diff(ones.indptr).astype(np.float64)
    share = min(1.0, 4 * MOST_PAIRS / max(float((lengths**2).sum()), 1.0))
    if share == 1.0:
        return (by_keyword @ ones).tocsr()
    step = int(np.ceil(1 / share))
    some = ones[::step]
    return (some.T.tocsr() @ some).tocsr() * np.float32(step)


def suggest_by_exemplars(
    memory: Exemplars,
    observed: sp.csr_matrix,
    rejected: sp.csr_matrix | None,
    n: int,
    settings: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The ``n`` likeliest other keywords of each row, -1 where there are fewer, and their probabilities."""
    if rejected is None:
        rejected = sp.csr_matrix(observed.shape)
    features = np.zeros((observed.shape[0], min(n, memory.background.size)), dtype=np.int64)
    probabilities = np.zeros(features.shape)
    suggest_by_voices(
        observed.indptr, observed.indices, rejected.indptr, rejected.indices, memory,
        memory.settings if settings is None else settings, np.argsort(-memory.background, kind="stable"),
        features, probabilities,
    )  # fmt: skip
    return features, probabilities


def tuned(rows: sp.csr_matrix, rng: np.random.Generator, *, n_trials: int = 1000, n: int = 10) -> np.ndarray:
    """Settings that find most hidden keywords of rows set aside, one setting after the other, twice round."""
    settings = np.array([values[len(values) // 2] for values in GRID.values()])
    long_enough = np.flatnonzero(np.diff(rows.indptr) >= 2)
    aside = rng.permutation(long_enough)[: min(n_trials, max(rows.shape[0] // 5, 1))]
    if aside.size < 10:
        return settings
    given, hidden = hide_part(rows[np.sort(aside)], rng)
    memory = remember(rows[np.setdiff1d(np.arange(rows.shape[0]), aside)], settings)

    def found(choice: np.ndarray) -> float:
        features, _ = suggest_by_exemplars(memory, given, None, n, choice)
        got = [np.isin(wanted, features[row]).mean() for row, wanted in enumerate(hidden)]
        return float(np.mean(got))

    best = found(settings)
    for _, at in product(range(2), range(settings.size)):
        for value in list(GRID.values())[at]:
            choice = settings.copy()
            choice[at] = value
            if choice[at] != settings[at] and (score := found(choice)) > best:
                best, settings = score, choice
    return settings


def hide_part(rows: sp.csr_matrix, rng: np.random.Generator) -> tuple[sp.csr_matrix, list[np.ndarray]]:
    """Hide a third of each row's keywords, at least one; what stays, and what was hidden."""
    stays, hidden = [], []
    for row in range(rows.shape[0]):
        features = rng.permutation(rows.indices[rows.indptr[row] : rows.indptr[row + 1]])
        n_hidden = max(1, features.size // 3)
        hidden.append(features[:n_hidden])
        stays.append(np.sort(features[n_hidden:]))
    indptr = np.cumsum([0, *(part.size for part in stays)])
    flat = np.concatenate(stays)
    return sp.csr_matrix((np.ones(flat.size), flat, indptr), shape=rows.shape), hidden
