"""The exact assignment step of Lloyd's algorithm: every row to its most similar centre."""

from __future__ import annotations

import numpy as np

from shoal.kmeans.centres import CentreIndex, Centres, index_centres
from shoal.kmeans.exact_kernels import all_similarities, nearest_centres
from shoal.kmeans.lloyd import Step
from shoal.kmeans.rows import UnitRows
from shoal.threads import ordered_map


def assign(rows: UnitRows, index: CentreIndex, n_threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The most similar centre of each row and the cosine to it; -1 and 0 where no feature is shared with any centre."""
    labels, similarities = np.empty(rows.n_rows, np.int32), np.empty(rows.n_rows)

    def assign_block(block: tuple[int, int]) -> None:
        sums = np.empty(index.n_clusters, np.float32)
        nearest_centres(
            rows.indptr, rows.ranks, rows.values, *block, index.hot, index.ptr, index.centres, index.weights, sums,
            labels, similarities,
        )  # fmt: skip

    for _ in ordered_map(assign_block, rows.blocks(), n_threads):
        pass
    return labels, similarities


class ExactAssigner:
    """Every row to its most similar centre."""

    features_kept: int | None = None

    def __init__(self, rows: UnitRows, n_threads: int | None = None) -> None:
        self.rows, self.n_threads = rows, n_threads

    def assign(self, centres: Centres, last: Step | None) -> tuple[np.ndarray, np.ndarray]:
        return assign(self.rows, index_centres(centres, self.rows.n_ranks), self.n_threads)


def similarity_matrix(rows: UnitRows, index: CentreIndex, n_threads: int | None = None) -> np.ndarray:
    """The cosine of every row to every centre (n_rows, k)."""
    out = np.empty((rows.n_rows, index.n_clusters))

    def fill_block(block: tuple[int, int]) -> None:
        sums = np.empty(index.n_clusters, np.float32)
        all_similarities(
            rows.indptr, rows.ranks, rows.values, *block, index.hot, index.ptr, index.centres, index.weights, sums, out
        )

    for _ in ordered_map(fill_block, rows.blocks(), n_threads):
        pass
    return out
