"""The whole search: prices and bound, rounding, swaps, core, branching; each step only while a gap remains."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from shoal.auction.solver.branch import close_the_gap
from shoal.auction.solver.dual import minimize
from shoal.auction.solver.problem import Problem
from shoal.auction.solver.rounding import Best, improve_by_swaps, round_along_paths, solve_core

# With few classes branching closes the gap faster than the core program does; with many it is the other way round.
FEW_CLASSES, MOST_CLASSES_TO_BRANCH = 500, 5_000
CORE_SIZES = (300, 1_500, 6_000)


@dataclass
class Solution:
    """A choice with a certificate: no feasible choice is worth more than ``bound``."""

    choice: np.ndarray | None  # (n_classes,) items, or None if no feasible choice was found
    value: float
    bound: float
    prices: np.ndarray  # per unit of each row's scale
    seconds: float
    passes: int
    infeasible: bool = False  # proven: no mixture of choices keeps all bounds
    steps: dict[str, float] = field(default_factory=dict)  # the gap after each step

    @property
    def gap(self) -> float:
        if self.choice is None:
            return float("inf")
        return max(self.bound - self.value, 0.0) / max(abs(self.bound), 1e-300)


def solve(problem: Problem, *, tol: float = 1e-5, seconds: float = 20.0) -> Solution:
    """Choose one item per class; stop as soon as the certified gap is at most ``tol``, or after about ``seconds``."""
    began = time.monotonic()
    dual = minimize(problem, tol=tol * 1e-3)
    best = Best(problem, dual)
    bound, steps = dual.bound, {"dual": 0.0}

    def left() -> float:
        return seconds - (time.monotonic() - began)

    def unfinished(step: str) -> bool:
        steps[step] = best.gap(bound)
        return best.gap(bound) > tol and left() > 0

    if not dual.unbounded and problem.rows:
        round_along_paths(problem, dual, best)
        starts = [best.choice, *(problem.best_items(prices).choice for prices in [dual.prices, *dual.active])]
        for at, start in enumerate(starts):
            if unfinished("paths" if at == 0 else f"swaps {at}") and start is not None:
                best.offer(improve_by_swaps(problem, dual.prices, start))
        if problem.n_classes <= FEW_CLASSES and unfinished("swaps"):
            bound, _ = close_the_gap(problem, dual, best, tol=tol, seconds=left() / 2)
        for n_moves in CORE_SIZES:
            if unfinished(f"before core of {n_moves}"):
                allowed = min(max(left(), 0.1), 5.0)
                best.offer(
                    solve_core(problem, dual, n_moves=n_moves, tolerance=0.3 * tol * abs(bound), seconds=allowed)
                )
        if FEW_CLASSES < problem.n_classes <= MOST_CLASSES_TO_BRANCH and unfinished("core"):
            bound, _ = close_the_gap(problem, dual, best, tol=tol, seconds=left())
        steps["end"] = best.gap(bound)
    infeasible = dual.unbounded and best.choice is None
    return Solution(
        best.choice, best.value, bound, dual.prices, time.monotonic() - began, dual.n_passes, infeasible, steps
    )
