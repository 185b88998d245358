"""wand-k-means: centers pick rows. Every center is a query to an inverted index over the rows of a block.

After "Scalable K-Means by Ranked Retrieval" (WSDM 2014). Rows that no center retrieves stay out of the centers; they
are given their nearest center once, at the end. Queries run as WAND or, where that is faster, as MaxScore.
"""

from __future__ import annotations

import numpy as np

from shoal.kmeans.blocks import Block
from shoal.kmeans.inverted_index import postings_of
from shoal.kmeans.maxscore_kernels import centers_pick_rows
from shoal.kmeans.statistics import Memory, Model, Moves, moves_of
from shoal.threads import ordered_map

# The table of best offers is shared by the centers of a group only, and groups run on threads. Their number is fixed,
# so that the answer does not depend on the threads.
GROUPS = 4


def retrieve(
    block: Block, model: Model, memory: Memory | None = None, *, top: int, thresholds: str, n_threads: int | None = 1
) -> tuple[Moves, Memory]:
    """Each center retrieves its ``top`` rows; every row scored on the way goes to the best center that met it.

    ``thresholds`` says where the threshold of a center starts: ``safe`` lowers the one reached before by the movement
    of the center (no row can have gained or lost more), ``carried`` leaves it, ``cold`` starts from 0.
    """
    n_rows, k, centers = block.n_rows, model.k, model.centers
    postings = block.postings if block.postings is not None else postings_of(block.open())
    bounds = np.zeros(k, np.float32)
    if memory is not None and memory.thresholds is not None and thresholds != "cold":
        lowered = model.movement if thresholds == "safe" else 0.0
        bounds = np.maximum(memory.thresholds - lowered, 0.0).astype(np.float32)
    scored = np.zeros(k, np.int64)

    def pick(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        table, offers = np.full(n_rows, -1, np.int32), np.zeros(n_rows, np.float32)
        centers_pick_rows(
            centers.indptr, centers.ranks, centers.weights, group[0], group[-1] + 1, postings, top, bounds, scored,
            table, offers,
        )  # fmt: skip
        return table, offers

    groups = [group for group in np.array_split(np.arange(k), GROUPS) if group.size]
    labels, similarities = np.full(n_rows, -1, np.int32), np.zeros(n_rows, np.float32)
    for table, offers in ordered_map(pick, groups, n_threads):
        better = (table >= 0) & ((labels < 0) | (offers > similarities))
        labels[better], similarities[better] = table[better], offers[better]
    found = Memory(labels, similarities.astype(np.float64), np.full(n_rows, np.inf), thresholds=bounds)
    before = None if memory is None else memory.labels
    return moves_of(block, before, labels, found.similarities, k)._replace(n_scored=int(scored.sum())), found
