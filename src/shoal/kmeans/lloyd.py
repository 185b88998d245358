"""Lloyd's loop: assign, repair, update, until nothing moves. How rows find centers is the assigner's business."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shoal.kmeans.centers import Centers, Update, update_centers
from shoal.kmeans.rows import UnitRows
from shoal.progress import Monitor


class Assigner(Protocol):
    """One way for rows to find their centers. It may remember what it saw in the step before."""

    features_kept: int | None

    def assign(self, centers: Centers, last: Update | None) -> tuple[np.ndarray, np.ndarray]:
        """Labels (-1: no center) and cosines, given the centers and the update that made them."""

    def settled(self, centers: Centers) -> bool:
        """After a step: stop now, for a reason of the assigner's own?"""


@dataclass
class Outcome:
    """A finished run."""

    centers: Centers
    labels: np.ndarray
    similarities: np.ndarray
    history: list[float]
    converged: bool
    seconds: list[float]  # of each iteration

    @property
    def objective(self) -> float:
        return self.history[-1]


def lloyd(
    rows: UnitRows,
    row_weights: np.ndarray,
    centers: Centers,
    assigner: Assigner,
    *,
    max_iter: int,
    tol: float,
    n_threads: int | None = None,
) -> Outcome:
    """Run Lloyd's algorithm from the given centers; the labels of the outcome are those of its centers."""
    total_weight = max(row_weights.sum(), 1e-300)
    last: Update | None = None
    moved = rows.n_rows
    seconds = []
    with Monitor("k-means", max_iter, tol) as monitor:
        while monitor.running:
            began = time.perf_counter()
            labels, similarities = assigner.assign(centers, last)
            moved = rows.n_rows if last is None else int(np.count_nonzero(labels != last.labels))
            if moved:
                last = improve(
                    rows, row_weights, labels, similarities, len(centers), assigner.features_kept, last, n_threads
                )
                centers = last.centers
            seconds.append(time.perf_counter() - began)
            psi = float(row_weights @ similarities / total_weight)
            outliers = int(np.count_nonzero(labels < 0))
            settled = not moved or assigner.settled(centers)
            monitor.report(psi, settled=settled, psi=psi, moved=moved, outliers=outliers, seconds=seconds[-1])
    if moved:
        labels, similarities = assigner.assign(centers, last)
    return Outcome(centers, labels, similarities, monitor.history, monitor.converged, seconds)


def improve(
    rows: UnitRows,
    row_weights: np.ndarray,
    labels: np.ndarray,
    similarities: np.ndarray,
    n_clusters: int,
    features_kept: int | None,
    before: Update | None,
    n_threads: int | None,
) -> Update:
    """New centers for these labels. A cluster left without rows gets the worst-served row of the others."""
    labels = labels.copy()
    empty = np.flatnonzero(np.bincount(labels[labels >= 0], row_weights[labels >= 0], n_clusters) <= 0)
    while True:
        repaired = repair(labels, similarities, rows, row_weights, empty) if empty.size else 0
        update = update_centers(
            rows, row_weights, labels, n_clusters, features_kept=features_kept, before=before, n_threads=n_threads
        )
        empty = update.centers.without_direction()  # also clusters whose rows cancel out
        if not empty.size or (repaired == 0 and update.centers.nnz):
            return update


def repair(
    labels: np.ndarray, similarities: np.ndarray, rows: UnitRows, row_weights: np.ndarray, empty: np.ndarray
) -> int:
    """Give each empty cluster the worst-served row that is not alone in its cluster; returns how many were served."""
    sizes = np.bincount(labels[labels >= 0], minlength=int(labels.max(initial=0)) + 1)
    usable = np.flatnonzero((rows.lengths > 0) & (row_weights > 0) & (similarities < 1 - 1e-6))
    worst_first = iter(usable[np.argsort(similarities[usable], kind="stable")])
    served = 0
    for cluster in empty:
        for row in worst_first:
            if labels[row] < 0 or sizes[labels[row]] > 1:
                if labels[row] >= 0:
                    sizes[labels[row]] -= 1
                labels[row] = cluster
                served += 1
                break
    return served
