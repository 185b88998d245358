"""Lloyd's loop as folds: rows pick centers, clusters are averaged, until nothing moves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.densities.statistics import (
    Block,
    Centers,
    Memory,
    accumulate,
    centers_of,
    merge,
    merge_worst_rows,
    update,
    worst_rows,
)
from shoal.engine import fold
from shoal.progress import Monitor


class Run(NamedTuple):
    """One fit from one set of first centers."""

    centers: Centers
    memory: Memory  # of all rows
    mass: np.ndarray
    history: list[float]
    n_iter: int
    converged: bool


def lloyd(
    blocks: list[Block], model: Centers, what: str, *, max_iter: int, tol: float, n_threads: int | None = None
) -> Run:
    """Assign and average until nothing moves."""
    memories: Any = None
    with Monitor(what, max_iter, tol) as monitor:
        while monitor.running:
            stats, memories = fold(blocks, accumulate, merge, model, memories=memories, n_threads=n_threads)
            monitor.report(stats.cost, settled=stats.n_moved == 0, moved=stats.n_moved)
            if stats.n_moved == 0:
                break
            model = repaired(update(model, stats), stats.mass <= 0, blocks, memories)
    history = list(monitor.history)
    if stats.n_moved:  # the centers moved once more after the last assignment
        stats, memories = fold(blocks, accumulate, merge, model, memories=memories, n_threads=n_threads)
        history.append(stats.cost)
    return Run(model, joined(memories), stats.mass, history, monitor.n_iter, monitor.converged)


def repaired(model: Centers, empty: np.ndarray, blocks: list[Block], memories: list[Memory]) -> Centers:
    """An empty cluster starts anew at the worst-served row."""
    places = np.flatnonzero(empty)
    if not places.size:
        return model
    worst = fold(blocks, worst_rows, merge_worst_rows, places.size, memories=memories, n_threads=1).stats
    parameters = model.parameters.copy()
    parameters[places[: len(worst.X)]] = worst.X
    return centers_of(model.family, model.direction, parameters)


def joined(memories: list[Memory] | None) -> Memory:
    """The memories of all blocks, as one."""
    assert memories is not None
    return Memory(*(np.concatenate(part) for part in zip(*memories, strict=True)))
