"""A model from a file is checked before kernels follow its indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import BadModelFile
from shoal.suggestion.candidate_kernels import N_PREDICTORS
from shoal.suggestion.factors import RANK
from shoal.suggestion.model import SuggestionModel
from shoal.suggestion.ridge import DenseRidge, DualRidge, LocalRidge


def check_model(model: SuggestionModel, n_features: int) -> None:
    """Refuse a model whose parts do not fit together."""
    stats = model.stats
    n_rows, n_entries = stats.row_ptr.size - 1, stats.row_features.size
    wrong = [
        what
        for what, sound in (
            ("count", stats.frequency.shape == (n_features,) and stats.frequency.dtype == np.float64),
            ("pairs", stats.pairs.shape == (n_features, n_features)),
            ("rows", _is_index(stats.row_ptr, stats.row_features, n_rows, n_features, n_entries)),
            ("postings", _is_index(model.postings.ptr, model.postings.rows, n_features, n_rows, n_entries)),
            ("ridge", _fits(model.ridge, n_rows, n_features)),
            ("factors", _squares(model.factors, n_features)),
            ("weights", model.weights.shape == (N_PREDICTORS + 1,) and bool(np.isfinite(model.weights).all())),
            ("calibration", _numbers(model.calibration.knots, 3) and _numbers(model.calibration.weights, 9)),
        )
        if not sound
    ]
    if wrong:
        raise BadModelFile(f"the {wrong[0]} of the Suggester in this file do not fit its other parts. Save it again.")


def _numbers(values: np.ndarray, size: int) -> bool:
    return bool(values.shape == (size,) and values.dtype == np.float64 and np.isfinite(values).all())


def _is_index(ptr: np.ndarray, values: np.ndarray, n: int, below: int, n_entries: int) -> bool:
    """Offsets of ``n`` lists into ``n_entries`` values, all from 0 up to ``below``."""
    return bool(
        ptr.shape == (n + 1,)
        and ptr.dtype == np.int64
        and values.dtype == np.int32
        and values.shape == (n_entries,)
        and ptr[0] == 0
        and ptr[-1] == n_entries
        and (np.diff(ptr) >= 0).all()
        and (not n_entries or (values.min() >= 0 and values.max() < below))
    )


def _squares(factors: Any, n_features: int) -> bool:
    """One vector for each feature, and their inner products."""
    return bool(factors.features.shape == (n_features, RANK) and factors.gram.shape == (RANK, RANK))


def _fits(ridge: Any, n_rows: int, n_features: int) -> bool:
    if isinstance(ridge, DenseRidge):
        return bool(ridge.inverse.shape == (n_features, n_features))
    if isinstance(ridge, DualRidge):
        return bool(ridge.kernel.shape == (n_rows, n_rows) and ridge.diagonal.shape == (n_features,))
    return ridge is None or (isinstance(ridge, LocalRidge) and ridge.weights.shape == (n_features, n_features))
