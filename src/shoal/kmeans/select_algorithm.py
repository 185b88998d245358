"""Which algorithm, and how many features of a center to keep: decided by measuring a small part of the work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.kmeans.blocks import Block, spread_rows
from shoal.kmeans.centers import CenterIndex, Centers, index_centers, own_similarities, thinned
from shoal.kmeans.exact import assign
from shoal.kmeans.rows import UnitRows, take_rows
from shoal.kmeans.statistics import Memory, Model, accumulate, update
from shoal.progress import message

ROWS_FOR_CENTERS = 20_000  # and 40 for each cluster, up to 100,000: centers like those of the real fit
STEPS_FOR_CENTERS = 3
ROWS_TO_COUNT = 1024
CANDIDATES = (50, 100, 200, 500)
ACCEPTED_LOSS = 0.0025  # of the mean similarity, by one assignment through thinned centers
QUICK_STEP_SECONDS = 1.5  # when an exact step is quicker than this on one core, exactness costs nobody anything
# Measured on one core of a 2.6 GHz machine with AVX-512, 50,000 Zipf documents, k = 1000.
LINE_NS_PER_CENTER, LIST_ENTRY_NS, LOOK_UP_NS, BEST_NS_PER_CENTER = 0.055, 2.2, 4.0, 0.15


@dataclass
class AlgorithmChoice:
    """What was measured, and what follows from it."""

    algorithm: str
    features_kept: int | None
    exact_seconds: float = 0.0  # predicted, for assigning all rows once
    seconds: float = 0.0  # the same for the chosen way
    loss: float = 0.0  # relative loss of mean similarity by the chosen way, on the sample

    def __str__(self) -> str:
        if self.features_kept is None:
            return f"{self.algorithm}: an exact step takes about {self.exact_seconds:.2g} s"
        return (
            f"{self.algorithm} with {self.features_kept} features for each center: a step takes about "
            f"{self.seconds:.2g} s instead of {self.exact_seconds:.2g} s, and loses about {self.loss:.2%} of psi"
        )


def choose(blocks: list[Block], seeds: Centers, algorithm: str, n_threads: int | None = None) -> AlgorithmChoice:
    """Decide between exact and thinned centers; for ``sparse`` and ``wand`` only the number of features is open.

    Measured: a few steps on a sample of rows give centers of the right kind; for a few rows the work against all of
    them, full and thinned, is counted. ``wand`` is never chosen: in every measurement thinned centers were faster.
    """
    n_rows = sum(block.n_rows for block in blocks)
    sample = spread_rows(blocks, max(ROWS_FOR_CENTERS, min(40 * len(seeds), 100_000)))
    centers = _typical_centers(sample, seeds, n_threads)
    few = _spread(sample, ROWS_TO_COUNT)
    exact = _Trial(few, centers, centers, n_rows, n_threads)
    if algorithm == "auto" and exact.seconds < QUICK_STEP_SECONDS:
        choice = AlgorithmChoice("exact", None, exact.seconds, exact.seconds, 0.0)
    else:
        choice = AlgorithmChoice("exact" if algorithm == "auto" else algorithm, None, exact.seconds, exact.seconds, 0.0)
        for features_kept in CANDIDATES:
            trial = _Trial(few, thinned(centers, features_kept), centers, n_rows, n_threads)
            loss = max(0.0, 1.0 - trial.mean_similarity / max(exact.mean_similarity, 1e-300))
            if loss <= ACCEPTED_LOSS and (trial.seconds < 0.7 * exact.seconds or algorithm != "auto"):
                name = "sparse" if algorithm == "auto" else algorithm
                choice = AlgorithmChoice(name, features_kept, exact.seconds, trial.seconds, loss)
                break
    if exact.seconds >= QUICK_STEP_SECONDS:
        message(f"algorithm: {choice}")
    return choice


class _Trial:
    """A few rows assigned through some centers: the time for all rows, and the similarity to the full centers."""

    def __init__(self, few: UnitRows, through: Centers, full: Centers, n_rows: int, n_threads: int | None) -> None:
        index = index_centers(through, few.n_ranks)
        labels, _ = assign(few, index, n_threads)
        self.seconds = cost(few, index) * n_rows / max(few.n_rows, 1)
        self.mean_similarity = float(own_similarities(few, labels, full).mean())


def cost(rows: UnitRows, index: CenterIndex) -> float:
    """Seconds on one core to score these rows, from counting what there is to do.

    The time of each kind of step was measured once. A clock would make the choice, and so the answer, depend on what
    else the machine is doing.
    """
    where = index.ptr[rows.ranks]
    sizes = (index.ptr[1:][rows.ranks] >> 1) - (where >> 1)
    lines = np.count_nonzero(where & 1)
    list_entries = int(sizes.sum()) - lines
    return 1e-9 * (
        LINE_NS_PER_CENTER * lines * index.n_places
        + LIST_ENTRY_NS * list_entries
        + LOOK_UP_NS * rows.ranks.size
        + BEST_NS_PER_CENTER * rows.n_rows * index.n_places
    )


def _spread(rows: UnitRows, n: int) -> UnitRows:
    """About ``n`` rows, evenly spread over all."""
    if rows.n_rows <= n:
        return rows
    return take_rows(rows, np.linspace(0, rows.n_rows - 1, n).astype(np.int64))


def _typical_centers(sample: UnitRows, seeds: Centers, n_threads: int | None) -> Centers:
    """Centers after a few steps on the sample; a seed that wins no row stays as it is.

    The first steps are not typical: losses by thinning fall fivefold from the first to the third.
    """
    block, centers = Block(sample, np.ones(sample.n_rows)), seeds
    for _ in range(STEPS_FOR_CENTERS):
        labels, similarities = assign(sample, index_centers(thinned(centers, 100), sample.n_ranks), n_threads)
        model = Model(centers, sample.n_ranks)
        stats, _ = accumulate(block, model, Memory(labels, similarities, similarities), n_threads=n_threads)
        centers = update(model, stats, n_threads=n_threads).centers
    return centers
