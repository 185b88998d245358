"""The index of a fitted model, built at the first prediction and kept while the centers stay the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from shoal.kmeans.centers import CenterIndex, Centers, centers_from_csr, index_centers, thinned
from shoal.kmeans.exact import assign
from shoal.kmeans.rows import Ranking, UnitRows, by_frequency, take_rows, unit_rows

# Kept outside the estimators, not in them: predicting must not change a model, and an index is not saved.
_PREPARED: WeakKeyDictionary[Any, PreparedCenters] = WeakKeyDictionary()


@dataclass
class PreparedCenters:
    """Centers ready to be asked."""

    matrix: sp.csr_matrix
    features_kept: int | None
    ranking: Ranking = field(init=False)

    def __post_init__(self) -> None:
        self.ranking = Ranking.of(by_frequency(self.matrix), self.matrix.shape[1])

    @cached_property
    def centers(self) -> Centers:
        return centers_from_csr(self.matrix, self.ranking)

    @cached_property
    def full(self) -> CenterIndex:
        return index_centers(self.centers, self.ranking.columns.size)

    @cached_property
    def thin(self) -> CenterIndex:
        if self.features_kept is None:
            return self.full
        return index_centers(thinned(self.centers, self.features_kept), self.ranking.columns.size)

    def rows(self, X: sp.csr_matrix, n_threads: int | None) -> UnitRows:
        """Unit rows over the features that the centers have."""
        return unit_rows(X, self.ranking, n_threads)

    def labels(self, rows: UnitRows, n_threads: int | None) -> np.ndarray:
        """The nearest center, through thinned centers if the model was fitted so, and full ones where those miss."""
        labels, _ = assign(rows, self.thin, n_threads)
        missed = np.flatnonzero((labels < 0) & (np.diff(rows.indptr) > 0))
        if self.features_kept is not None and missed.size:
            labels[missed] = assign(take_rows(rows, missed), self.full, n_threads)[0]
        return labels


def prepared(model: Any, matrix: sp.csr_matrix, features_kept: int | None) -> PreparedCenters:
    """The index for this model's centers."""
    known = _PREPARED.get(model)
    if known is None or known.matrix is not matrix or known.features_kept != features_kept:
        known = _PREPARED[model] = PreparedCenters(matrix, features_kept)
    return known
