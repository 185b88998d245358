"""Lloyd's loop as folds: rows pick centers, changed clusters are summed, centers are updated, until nothing moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from shoal.engine import fold
from shoal.kmeans.blocks import Block
from shoal.kmeans.statistics import (
    Memory,
    Model,
    Moves,
    accumulate,
    merge,
    merge_moves,
    merge_worst_rows,
    reassign,
    replaced,
    update,
    worst_rows,
)
from shoal.progress import Monitor, message

Assign = Callable[..., tuple[Moves, Memory]]  # how rows find centers: ``reassign``, or ``retrieve`` of wand
STEPS_BETWEEN_FULL_COSTS = 50


@dataclass
class Run:
    """A finished run: the labels in ``memories`` are those of the centers of ``model``."""

    model: Model
    memories: list[Memory]
    history: list[float]
    converged: bool
    seconds: list[float]  # of each iteration

    @property
    def objective(self) -> float:
        """The mean similarity reached."""
        return self.history[-1]


def lloyd(
    blocks: list[Block],
    model: Model,
    assign: Assign = reassign,
    *,
    max_iter: int,
    tol: float,
    n_threads: int | None = None,
) -> Run:
    """Run Lloyd's algorithm from the centers of the model."""
    memories: list[Memory] | None = None
    seconds: list[float] = []
    moves: Moves | None = None
    full_cost = FullCost()
    with Monitor("k-means", max_iter, tol) as monitor:
        while monitor.running:
            began = time.perf_counter()
            moves, memories = assignment(blocks, model, assign, memories, n_threads)
            if moves.n_moved:
                model, memories = improved(blocks, model, moves, memories, n_threads)
            seconds.append(time.perf_counter() - began)
            psi = moves.similarity / max(moves.weight, 1e-300)
            stop = moves.n_moved == 0 or (assign is not reassign and full_cost.settled(blocks, model, n_threads))
            monitor.report(
                psi, settled=stop, psi=psi, moved=moves.n_moved, outliers=moves.n_outliers, seconds=seconds[-1]
            )
    if moves is None or moves.n_moved:
        _, memories = assignment(blocks, model, assign, memories, n_threads)
    assert memories is not None
    return Run(model, memories, monitor.history, monitor.converged, seconds)


def assignment(
    blocks: list[Block], model: Model, assign: Assign, memories: Any, n_threads: int | None
) -> tuple[Moves, list[Memory]]:
    """One pass in which rows pick centers."""
    inner = inner_threads(blocks, n_threads)
    indexed = model.indexed() if assign is reassign else model
    found = fold(blocks, partial(assign, n_threads=inner), merge_moves, indexed, memories=memories, n_threads=n_threads)
    assert found.memories is not None
    return found.stats, found.memories


def improved(
    blocks: list[Block], model: Model, moves: Moves, memories: list[Memory], n_threads: int | None
) -> tuple[Model, list[Memory]]:
    """New centers for the clusters that changed; an empty cluster gets the worst-served row of the others."""
    inner = inner_threads(blocks, n_threads)
    changed = replace(model, changed=moves.changed, index=None)
    step = partial(accumulate, whole=len(blocks) == 1, n_threads=inner)
    found = fold(blocks, step, merge, changed, memories=memories, n_threads=n_threads)
    assert found.memories is not None
    model = update(changed, found.stats, n_threads=n_threads)
    empty = np.flatnonzero((moves.sizes == 0) | (moves.changed & (found.stats.mass <= 0)))
    return repaired(blocks, model, moves, empty, found.memories), found.memories


def repaired(blocks: list[Block], model: Model, moves: Moves, empty: np.ndarray, memories: list[Memory]) -> Model:
    """Empty clusters start anew at the worst-served rows."""
    if not empty.size:
        return model
    wanted = (int(empty.size), moves.sizes)
    worst = fold(blocks, worst_rows, merge_worst_rows, wanted, memories=memories, n_threads=1).stats
    n = min(len(worst.centers), empty.size)
    return replaced(model, empty[:n], worst.centers.take(np.arange(n))) if n else model


def inner_threads(blocks: list[Block], n_threads: int | None) -> int | None:
    """Threads inside a block: all of them when there is one block, one when blocks themselves run on threads."""
    return n_threads if len(blocks) == 1 else 1


class FullCost:
    """Every 50 steps: has the cost over all rows, those that no center retrieved too, stopped improving?"""

    def __init__(self) -> None:
        self.steps, self.best = 0, -np.inf

    def settled(self, blocks: list[Block], model: Model, n_threads: int | None) -> bool:
        """Call after every step."""
        self.steps += 1
        if self.steps % STEPS_BETWEEN_FULL_COSTS:
            return False
        moves, _ = assignment(blocks, model, reassign, None, n_threads)
        before, self.best = self.best, moves.similarity / max(moves.weight, 1e-300)
        message(f"full cost after {self.steps} steps: {self.best:.5f}")
        return self.best <= before
