"""The assignment step of Lloyd's algorithm through an index of the centers, and the bounds that make it short."""

from __future__ import annotations

import numpy as np

from shoal.kmeans.centers import CenterIndex, Centers, Update, index_centers
from shoal.kmeans.exact_kernels import all_similarities, nearest_centers, reassign_rows
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


class CenterIndexAssigner:
    """Rows pick centers through an index of the centers, and remember enough to look at few of them next time.

    With full centers the labels are those of Lloyd's algorithm (``exact``); with thinned ones (``features_kept``) the
    index is small and the assignment is exact for the thinned centers (``sparse``).
    """

    def __init__(self, rows: UnitRows, features_kept: int | None = None, n_threads: int | None = None) -> None:
        self.rows, self.features_kept, self.n_threads = rows, features_kept, n_threads
        self.labels = np.full(rows.n_rows, -1, np.int32)
        self.similarities = np.zeros(rows.n_rows)
        self.others = np.full(rows.n_rows, -np.inf)  # no cosine to a center other than its own is larger
        self.scores = 0  # computed so far; Lloyd's algorithm needs n x k a step

    def assign(self, centers: Centers, last: Update | None) -> tuple[np.ndarray, np.ndarray]:
        """Labels and cosines for these centers, which ``last`` made from the labels given before."""
        movement = np.full(len(centers), np.inf)
        if last is not None:
            repaired = np.flatnonzero(last.labels != self.labels)  # their former center is now one of the others
            self.others[repaired] = np.maximum(self.others[repaired], self.similarities[repaired])
            self.labels, self.similarities = last.labels.copy(), last.similarities.copy()
            movement = last.movement
        by_movement = np.argsort(-movement, kind="stable")
        place_of = np.empty_like(by_movement)
        place_of[by_movement] = np.arange(by_movement.size)
        index = index_centers(centers, self.rows.n_ranks, by_movement)
        movement = movement[by_movement]

        def reassign_block(block: tuple[int, int]) -> int:
            sums = np.empty(index.n_places, np.float32)
            rows = self.rows
            return int(
                reassign_rows(
                    rows.indptr, rows.ranks, rows.values, *block, *index.arrays, index.ids, place_of, movement, sums,
                    self.labels, self.similarities, self.others,
                )
            )  # fmt: skip

        self.scores += sum(ordered_map(reassign_block, self.rows.blocks(), self.n_threads))
        return self.labels.copy(), self.similarities.copy()

    def settled(self, centers: Centers) -> bool:
        """Lloyd's algorithm has settled when nothing moves, which the loop sees itself."""
        return False
