"""The index of a fitted model, built at the first prediction and kept while the centres stay the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from shoal.kmeans.centres import CentreIndex, Centres, centres_from_csr, index_centres, thinned
from shoal.kmeans.exact import assign
from shoal.kmeans.rows import Ranking, UnitRows, by_frequency, take_rows, unit_rows

# Kept beside the estimators, not in them: predicting must not change a model, and an index is not saved.
_PREPARED: WeakKeyDictionary[Any, Prepared] = WeakKeyDictionary()


@dataclass
class Prepared:
    """Centres ready to be asked."""

    matrix: sp.csr_matrix
    features_kept: int | None
    ranking: Ranking = field(init=False)

    def __post_init__(self) -> None:
        self.ranking = Ranking.of(by_frequency(self.matrix), self.matrix.shape[1])

    @cached_property
    def centres(self) -> Centres:
        return centres_from_csr(self.matrix, self.ranking)

    @cached_property
    def full(self) -> CentreIndex:
        return index_centres(self.centres, self.ranking.columns.size)

    @cached_property
    def thin(self) -> CentreIndex:
        if self.features_kept is None:
            return self.full
        return index_centres(thinned(self.centres, self.features_kept), self.ranking.columns.size)

    def rows(self, X: sp.csr_matrix, n_threads: int | None) -> UnitRows:
        """Unit rows over the features that the centres have."""
        return unit_rows(X, self.ranking, n_threads)

    def labels(self, rows: UnitRows, n_threads: int | None) -> np.ndarray:
        """The nearest centre, through thinned centres if the model was fitted so, and full ones where those miss."""
        labels, _ = assign(rows, self.thin, n_threads)
        missed = np.flatnonzero((labels < 0) & (np.diff(rows.indptr) > 0))
        if self.features_kept is not None and missed.size:
            labels[missed] = assign(take_rows(rows, missed), self.full, n_threads)[0]
        return labels


def prepared(model: Any, matrix: sp.csr_matrix, features_kept: int | None) -> Prepared:
    """The index for this model's centres."""
    known = _PREPARED.get(model)
    if known is None or known.matrix is not matrix or known.features_kept != features_kept:
        known = _PREPARED[model] = Prepared(matrix, features_kept)
    return known
