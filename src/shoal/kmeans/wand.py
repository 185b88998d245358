"""wand-k-means: centers pick rows. Every center is a query to one inverted index over the rows.

After "Scalable K-Means by Ranked Retrieval" (WSDM 2014). Rows that no center retrieves stay out of the centers; they
are given their nearest center once, at the end.
"""

from __future__ import annotations

import numpy as np

from shoal.kmeans.centers import Centers, Update, index_centers
from shoal.kmeans.exact import assign
from shoal.kmeans.maxscore_kernels import centers_pick_rows
from shoal.kmeans.rows import UnitRows
from shoal.kmeans.wand_kernels import Postings
from shoal.progress import say
from shoal.threads import ordered_map

# The table of best offers is shared by the centers of a group only, and groups run on threads. Their number is fixed,
# so that the answer does not depend on the threads.
GROUPS = 4
STEPS_BETWEEN_FULL_COSTS = 50


class WandAssigner:
    """Each center retrieves its ``top`` rows; whatever is scored on the way may be won.

    ``thresholds`` says where the bar of a center starts in the next step: ``safe`` lowers the bar reached by the
    movement of the center (no row can have gained or lost more), ``carried`` leaves it, ``cold`` starts from 0.
    """

    def __init__(
        self,
        rows: UnitRows,
        postings: Postings,
        *,
        top: int,
        features_kept: int | None,
        thresholds: str,
        n_threads: int | None = None,
    ) -> None:
        self.rows, self.postings = rows, postings
        self.top, self.features_kept, self.thresholds, self.n_threads = top, features_kept, thresholds, n_threads
        self.bars = np.zeros(0, np.float32)
        self.scores = 0  # rows scored in full so far
        self.steps = 0
        self.full_cost = -np.inf

    def assign(self, centers: Centers, last: Update | None) -> tuple[np.ndarray, np.ndarray]:
        """One retrieval for each center; rows that nobody retrieved have label -1."""
        n_clusters = len(centers)
        bars = np.zeros(n_clusters, np.float32)
        if last is not None and self.bars.size and self.thresholds != "cold":
            lowered = last.movement if self.thresholds == "safe" else 0.0
            bars = np.maximum(self.bars - lowered, 0.0).astype(np.float32)
        scored = np.zeros(n_clusters, np.int64)

        def pick(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            table = np.full(self.rows.n_rows, -1, np.int32)
            offers = np.zeros(self.rows.n_rows, np.float32)
            centers_pick_rows(
                centers.indptr, centers.ranks, centers.weights, group[0], group[-1] + 1, self.postings, self.top, bars,
                scored, table, offers,
            )  # fmt: skip
            return table, offers

        groups = [group for group in np.array_split(np.arange(n_clusters), GROUPS) if group.size]
        labels, offers = np.full(self.rows.n_rows, -1, np.int32), np.zeros(self.rows.n_rows, np.float32)
        for table, theirs in ordered_map(pick, groups, self.n_threads):
            better = (table >= 0) & ((labels < 0) | (theirs > offers))
            labels[better], offers[better] = table[better], theirs[better]
        self.bars = bars
        self.scores += int(scored.sum())
        return labels, offers.astype(np.float64)

    def settled(self, centers: Centers) -> bool:
        """Every 50 steps: has the cost over all rows, the unassigned ones too, stopped improving?"""
        self.steps += 1
        if self.steps % STEPS_BETWEEN_FULL_COSTS:
            return False
        before = self.full_cost
        self.full_cost = float(assign(self.rows, index_centers(centers, self.rows.n_ranks), self.n_threads)[1].mean())
        say(f"full cost after {self.steps} steps: {self.full_cost:.5f}")
        return self.full_cost <= before
