"""Rows against centers through an index of the centers: the nearest one, the nearest few, or all."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from shoal.kmeans.centers import CenterIndex
from shoal.kmeans.exact_kernels import all_similarities, nearest_centers, nearest_few
from shoal.kmeans.rows import UnitRows
from shoal.threads import ordered_map


def assign(rows: UnitRows, index: CenterIndex, n_threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The most similar center of each row and the cosine to it; -1 and 0 where no feature is shared with any center."""
    labels, similarities = np.empty(rows.n_rows, np.int32), np.empty(rows.n_rows)

    def assign_block(block: tuple[int, int]) -> None:
        sums = np.empty(index.n_places, np.float32)
        nearest_centers(
            rows.indptr, rows.ranks, rows.values, *block, *index.arrays, index.ids, sums, labels, similarities
        )

    for _ in ordered_map(assign_block, rows.blocks(), n_threads):
        pass
    return labels, similarities


def similarity_matrix(rows: UnitRows, index: CenterIndex, n_threads: int | None = None) -> np.ndarray:
    """The cosine of every row to every center (n_rows, k)."""
    out = np.empty((rows.n_rows, index.n_places))

    def fill_block(block: tuple[int, int]) -> None:
        sums = np.empty(index.n_places, np.float32)
        all_similarities(rows.indptr, rows.ranks, rows.values, *block, *index.arrays, index.ids, sums, out)

    for _ in ordered_map(fill_block, rows.blocks(), n_threads):
        pass
    return out


def nearest_similarities(rows: UnitRows, index: CenterIndex, top: int, n_threads: int | None = None) -> sp.csr_matrix:
    """The ``top`` largest cosines above 0 of each row, as a sparse matrix (n_rows, k)."""
    top = min(top, index.n_places)
    found, scores = np.empty((rows.n_rows, top), np.int32), np.empty((rows.n_rows, top), np.float32)
    sizes = np.empty(rows.n_rows, np.int64)

    def fill_block(block: tuple[int, int]) -> None:
        sums = np.empty(index.n_places, np.float32)
        nearest_few(rows.indptr, rows.ranks, rows.values, *block, *index.arrays, index.ids, sums, found, scores, sizes)

    for _ in ordered_map(fill_block, rows.blocks(), n_threads):
        pass
    stored = np.arange(top)[None, :] < sizes[:, None]
    matrix = sp.csr_matrix(
        (scores[stored].astype(np.float64), found[stored], np.concatenate([[0], np.cumsum(sizes)])),
        shape=(rows.n_rows, index.n_places),
    )
    matrix.sort_indices()
    return matrix
