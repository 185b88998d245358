"""From prices to a choice that keeps every bound: along a path, then by swaps, then by a small integer program."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from shoal.auction.solver.dual import Dual
from shoal.auction.solver.problem import Problem, is_feasible
from shoal.auction.solver.solver_kernels import N_BINS, best_pair, collect_moves, count_moves

# HiGHS tests feasibility in absolute terms; with rows scaled to 1 it missed most of the value on real tables.
ROW_SIZE = 1e4
_ONE_AT_A_TIME = threading.Lock()


class Best:
    """The best feasible choice so far."""

    def __init__(self, problem: Problem, dual: Dual) -> None:
        self.problem, self.choice, self.value = problem, dual.best, dual.best_value

    def offer(self, choice: np.ndarray | None) -> bool:
        """Keep the choice if it is feasible and better."""
        if choice is None or not is_feasible(self.problem.slack(choice)):
            return False
        value = self.problem.value_of(choice)
        if value > self.value:
            self.choice, self.value = np.asarray(choice, np.int32).copy(), value
            return True
        return False

    def gap(self, bound: float) -> float:
        """How much more there could be, as a fraction."""
        return np.inf if self.choice is None else max(bound - self.value, 0.0) / max(abs(bound), 1e-300)


def round_along_paths(problem: Problem, dual: Dual, best: Best) -> None:
    """Walk from good infeasible choices towards feasible ones, cheapest steps first, and stop when feasible."""
    starts = [problem.best_items(prices).choice for prices in [dual.prices, *dual.active]]
    ends = []
    for factor in (1.0005, 1.002, 1.01, 1.05, 1.2, 1.5, 3.0):
        for tilt in _tilts(len(problem.rows)):
            answer = problem.best_items(dual.prices * np.where(tilt, factor, 1.0))
            if is_feasible(answer.slack):
                ends.append(answer.choice)
                best.offer(answer.choice)
        if ends:
            break
    if best.choice is not None:
        ends.append(best.choice)
    for start in starts:
        if not best.offer(start):
            for end in ends:
                best.offer(_first_feasible(problem, dual.prices, start, end))


def _tilts(n_rows: int) -> list[np.ndarray]:
    """All rows dearer together, then each alone."""
    return [np.ones(n_rows, bool), *(np.arange(n_rows) == row for row in range(n_rows if n_rows > 1 else 0))]


def _first_feasible(problem: Problem, prices: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray | None:
    """Change classes from ``start`` to ``end`` in the order of priced loss per violation removed, until feasible."""
    classes = np.flatnonzero(start != end)
    slack = problem.slack(start)
    gain, moved = problem.changes(classes, end[classes], start)
    violation = np.maximum(-slack, 0.0)
    loss = -(gain + moved @ prices)
    helped = moved @ (violation / max(violation.sum(), 1e-300))
    order = np.argsort(np.where(helped > 0, loss / np.maximum(helped, 1e-300), 1e300), kind="stable")
    after = slack + np.cumsum(moved[order], axis=0)
    good = np.flatnonzero((after >= -0.5e-9).all(1))
    if not good.size:
        return None
    choice = start.copy()
    there = classes[order[: good[0] + 1]]
    choice[there] = end[there]
    return choice


def cheapest_moves(
    problem: Problem, prices: np.ndarray, choice: np.ndarray, n_moves: int, *, per_movement: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Classes and items of the ``n_moves`` cheapest changes, by loss or by loss per movement of the rows."""
    coefficients, units = problem.coefficients(prices), np.zeros(3)
    units[: len(problem.rows)] = 1.0 / problem.scales
    unit = 1e-18 * max(abs(problem.value_of(choice)), 1e-300)
    counts = np.zeros(N_BINS, np.int64)
    arguments = (problem.value, *problem.tables, *coefficients, choice, *units, per_movement)
    count_moves(*arguments, unit, counts)
    enough = np.flatnonzero(np.cumsum(counts) >= n_moves)
    power = int(enough[0]) if enough.size else N_BINS - 1
    capacity = int(min(counts[: power + 1].sum(), max(200_000, 40 * n_moves)))
    classes, items, keys = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity)
    # The bins are powers of two by a logarithm; a little slack absorbs its rounding.
    found = min(collect_moves(*arguments, unit * 2.0**power * (1 + 1e-9), classes, items, keys), capacity)
    order = np.argsort(keys[:found], kind="stable")[:n_moves]
    return classes[order], items[order]


def improve_by_swaps(
    problem: Problem, prices: np.ndarray, choice: np.ndarray, *, n_moves: int = 1200, max_rounds: int = 60
) -> np.ndarray:
    """Change one or two classes at a time while that helps; an infeasible choice is repaired if it can be."""
    choice = np.asarray(choice, np.int32).copy()
    fresh = False
    classes = items = np.empty(0, np.int64)
    for turn in range(max_rounds):
        if turn % 8 == 0 or not fresh:
            by_loss = cheapest_moves(problem, prices, choice, n_moves // 2, per_movement=False)
            by_movement = cheapest_moves(problem, prices, choice, n_moves // 2, per_movement=True)
            keys = np.unique(np.concatenate([c * problem.n_items + i for c, i in (by_loss, by_movement)]))
            classes, items = keys // problem.n_items, keys % problem.n_items
            fresh = True
        moves = np.flatnonzero(choice[classes] != items)
        gain, moved = problem.changes(classes[moves], items[moves], choice)
        order = np.argsort(-gain, kind="stable")
        moves, gain, moved = moves[order], gain[order], moved[order]
        slack, value = problem.slack(choice), problem.value_of(choice)
        feasible = is_feasible(slack)
        slack = np.where(slack >= -1e-9, np.maximum(slack, 0.0), slack)
        loss = -(gain + moved @ prices)
        one, two = best_pair(classes[moves], gain, moved, slack, feasible, loss, 1e-12 * abs(value))
        if one < 0:
            if turn % 8 == 0:
                break
            fresh = False
            if not feasible:
                break
            continue
        for at in {one, two}:
            choice[classes[moves[at]]] = items[moves[at]]
    return choice


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """HiGHS writes stray lines to the process's standard output, where results belong; send them to standard error."""
    with _ONE_AT_A_TIME:
        sys.stdout.flush()
        kept = os.dup(1)
        try:
            os.dup2(2, 1)
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def solve_core(problem: Problem, dual: Dual, *, n_moves: int, tolerance: float, seconds: float) -> np.ndarray | None:
    """An integer program over the most efficient changes of the dual's choice; all other classes stay."""
    start = problem.best_items(dual.prices).choice
    classes, items = cheapest_moves(problem, dual.prices, start, n_moves, per_movement=True)
    if not classes.size:
        return None
    inside, place = np.unique(classes, return_inverse=True)
    classes = np.concatenate([classes, inside])
    items = np.concatenate([items, start[inside]])
    place = np.concatenate([place, np.arange(inside.size)])
    _, moved = problem.changes(classes, items, start)
    one_each = sp.csr_matrix((np.ones(classes.size), (place, np.arange(classes.size))), (inside.size, classes.size))
    slack = problem.slack(start)
    # Values as they stand, not as gains: HiGHS stops by a gap relative to the objective.
    value = problem.value[classes, items].astype(float)
    held = float(problem.value[inside, start[inside]].sum(dtype=float))
    unit = max(abs(held), 1e-300) / ROW_SIZE
    limits = [
        LinearConstraint(one_each, 1, 1),
        LinearConstraint(sp.csr_matrix(moved.T * ROW_SIZE), -slack * ROW_SIZE, np.inf),
    ]
    options = {"mip_rel_gap": max(tolerance / max(abs(held), 1e-300), 1e-9), "time_limit": seconds}
    with _stdout_to_stderr():
        whole = np.ones(classes.size)
        solved = milp(-value / unit, integrality=whole, bounds=Bounds(0, 1), constraints=limits, options=options)
    if solved.x is None:
        return None
    taken = np.flatnonzero(solved.x > 0.5)
    choice = start.copy()
    choice[classes[taken]] = items[taken]
    return choice
