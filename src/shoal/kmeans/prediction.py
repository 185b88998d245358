"""The index of a fitted model, built at the first prediction and kept while the centers stay the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from shoal.kmeans.bisecting import Tree, descend
from shoal.kmeans.centers import CenterIndex, Centers, centers_from_csr, index_centers, own_similarities, thinned
from shoal.kmeans.exact import assign
from shoal.kmeans.rows import Ranking, UnitRows, by_frequency, take_rows, unit_rows
from shoal.threads import row_blocks

ROWS_AT_ONCE = 65_536  # unit rows take 12 bytes an entry: predicting a large matrix makes those of a part at a time

# Kept outside the estimators: predicting must not change a model, and an index is not saved.
_PREPARED: WeakKeyDictionary[Any, PreparedCenters] = WeakKeyDictionary()


@dataclass
class PreparedCenters:
    """Centers ready to be asked."""

    matrix: sp.csr_matrix
    features_kept: int | None
    ranking: Ranking = field(init=False)

    def __post_init__(self) -> None:
        self.ranking = Ranking(by_frequency(self.matrix), self.matrix.shape[1])

    @cached_property
    def centers(self) -> Centers:
        """The centers over ranks."""
        return centers_from_csr(self.matrix, self.ranking)

    @cached_property
    def full(self) -> CenterIndex:
        """Index of all features."""
        return index_centers(self.centers, self.ranking.columns.size)

    @cached_property
    def thin(self) -> CenterIndex:
        """Index of the heaviest features."""
        if self.features_kept is None:
            return self.full
        return index_centers(thinned(self.centers, self.features_kept), self.ranking.columns.size)

    def parts(self, X: sp.csr_matrix, n_threads: int | None) -> Iterator[UnitRows]:
        """Unit rows over the features that the centers have, a part at a time."""
        for start, stop in row_blocks(X.shape[0], ROWS_AT_ONCE):
            yield unit_rows(X[start:stop] if stop - start < X.shape[0] else X, self.ranking, n_threads)

    def nearest(self, rows: UnitRows, n_threads: int | None) -> tuple[np.ndarray, np.ndarray]:
        """The nearest center and the cosine to it, through thinned centers if the model was fitted so."""
        labels, similarities = assign(rows, self.thin, n_threads)
        if self.features_kept is None:
            return labels, similarities
        missed = np.flatnonzero((labels < 0) & (np.diff(rows.indptr) > 0))
        if missed.size:
            labels[missed] = assign(take_rows(rows, missed), self.full, n_threads)[0]
        return labels, own_similarities(rows, labels, self.centers)


def prepared(model: Any, matrix: sp.csr_matrix, features_kept: int | None) -> PreparedCenters:
    """The index for this model's centers."""
    known = _PREPARED.get(model)
    if known is None or known.matrix is not matrix or known.features_kept != features_kept:
        known = _PREPARED[model] = PreparedCenters(matrix, features_kept)
    return known


def nearest_clusters(model: Any, X: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """The place of each row's center, -1 for none, and the cosine to it: by the tree where there is one."""
    if model.tree_ is None:
        ready = prepared(model, model.cluster_centers_, model.features_kept_)
        return _over(ready.parts(X, model.n_threads), lambda rows: ready.nearest(rows, model.n_threads))
    nodes = prepared(model, model.node_centers_, None)
    tree = Tree(model.tree_[:, 0], nodes.centers, model.leaves_)
    leaves = nodes.centers.take(model.leaves_)

    def by_tree(rows: UnitRows) -> tuple[np.ndarray, np.ndarray]:
        labels = descend(rows, tree, model.n_threads)
        return labels, own_similarities(rows, labels, leaves)

    return _over(nodes.parts(X, model.n_threads), by_tree)


def _over(
    parts: Iterator[UnitRows], nearest: Callable[[UnitRows], tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    found = [nearest(rows) for rows in parts]
    return (
        np.concatenate([np.zeros(0, np.int32), *(labels for labels, _ in found)]),
        np.concatenate([np.zeros(0), *(similarities for _, similarities in found)]),
    )
