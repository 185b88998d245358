"""What a suggester knows: counts, ridge weights, and the weights that join them into a probability."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.suggestion.calibration import Calibration, uncalibrated
from shoal.suggestion.candidate_kernels import N_PREDICTORS, POPULARITY
from shoal.suggestion.factors import Factors, no_factors
from shoal.suggestion.ridge import Ridge
from shoal.suggestion.statistics import SuggestionStats, read_only


@storable
class Settings(NamedTuple):
    """Options of learning, as the model keeps them."""

    n_sample: int = 1500
    n_candidates: int = 50
    ridge: str = "auto"
    seed: int = 0
    n_threads: int | None = None


@storable
class Postings(NamedTuple):
    """The remembered rows by feature."""

    ptr: np.ndarray  # (n_features + 1,)
    rows: np.ndarray  # (n_entries,)


@storable
class SuggestionModel(NamedTuple):
    """Everything that answers a query; a function of the statistics and the settings."""

    settings: Settings
    stats: SuggestionStats
    postings: Postings
    way: str  # "dense", "dual" or "local"
    penalty: float
    ridge: Ridge | None  # None: nothing has been learned
    factors: Factors
    weights: np.ndarray  # (N_PREDICTORS + 1,) of the predictors, and the intercept
    calibration: Calibration
    n_rows_learned: int  # rows there were when weights, penalty and calibration were learned


def postings_of(stats: SuggestionStats) -> Postings:
    """The index of the remembered rows."""
    columns = stats.rows().tocsc()
    return Postings(columns.indptr.astype(np.int64), columns.indices.astype(np.int32))


def popularity_weights() -> np.ndarray:
    """The score is the logit of popularity: for models with too few rows to learn from."""
    weights = np.zeros(N_PREDICTORS + 1)
    weights[POPULARITY] = 1.0
    return weights


def empty_model(stats: SuggestionStats, settings: Settings) -> SuggestionModel:
    """A model of no rows; ``stats`` gives the number of features."""
    return SuggestionModel(
        settings=settings,
        stats=stats,
        postings=postings_of(stats),
        way="local",
        penalty=1.0,
        ridge=None,
        factors=no_factors(stats.n_features),
        weights=popularity_weights(),
        calibration=uncalibrated(),
        n_rows_learned=0,
    )


class Counts(NamedTuple):
    """What kernels read of a model, in the order in which they take it.

    Every array is a read-only view: a model from a file is mapped read-only, and the compiler would otherwise compile
    every kernel once more for it.
    """

    frequency: np.ndarray
    n_rows: float
    row_ptr: np.ndarray
    row_features: np.ndarray
    posting_ptr: np.ndarray
    posting_rows: np.ndarray


def counts_of(model: SuggestionModel) -> Counts:
    """The counts and remembered rows of a model, for kernels."""
    stats, postings = model.stats, model.postings
    frequency, *index = map(
        read_only, (stats.frequency, stats.row_ptr, stats.row_features, postings.ptr, postings.rows)
    )
    return Counts(frequency, float(stats.n_rows), *index)


class Queries(NamedTuple):
    """Sets to complete, and what is known of each."""

    given: sp.csr_matrix  # zeros and ones
    refused: sp.csr_matrix
    own: np.ndarray  # the remembered row that each was made from, to be forgotten; -1: none
    log_hidden: np.ndarray
    fold: np.ndarray  # which of several factorizations has not seen the row; 0 where there is one

    @property
    def is_empty(self) -> np.ndarray:
        """Sets of which nothing is given."""
        return np.diff(self.given.indptr) == 0

    @property
    def log_given(self) -> np.ndarray:
        return np.log1p(np.diff(self.given.indptr))

    def part(self, start: int, end: int) -> Queries:
        """Some of the queries."""
        return Queries(*(values[start:end] for values in self))


def new_queries(given: sp.csr_matrix, refused: sp.csr_matrix, log_hidden: np.ndarray) -> Queries:
    """Sets that were not made from remembered rows."""
    n = given.shape[0]
    return Queries(given, refused, np.full(n, -1, np.int64), log_hidden, np.zeros(n, np.int64))
