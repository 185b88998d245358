"""Branch and bound with the Lagrangian dual in every node, for few classes, where rounding leaves a gap."""

from __future__ import annotations

import heapq
import itertools
import time

import numpy as np

from shoal.auction.solver.dual import Dual, minimize
from shoal.auction.solver.problem import Problem, Row
from shoal.auction.solver.rounding import Best, improve_by_swaps


def close_the_gap(problem: Problem, root: Dual, best: Best, *, tol: float, seconds: float) -> tuple[float, int]:
    """Search until ``best`` is within ``tol`` of the bound or time is up; the certified bound and the nodes looked at.

    A node fixes the items of some classes. Its children fix one class more, the one on which the assignments that make
    up the node's relaxation disagree most. Children wait in a heap under a bound that costs nothing (the parent's, less
    the priced loss of their item) and pay for their own dual only when their turn comes, so no child is ever forgotten.
    """
    small, kept = without_hopeless_items(problem, root, best)
    ends = time.monotonic() + seconds
    counter = itertools.count()
    heap: list[tuple[float, int, dict[int, int], np.ndarray]] = [(-root.bound, next(counter), {}, root.prices)]
    nodes = 0
    while heap:
        bound = -heap[0][0]
        if bound <= best.value + tol * abs(bound) or time.monotonic() > ends:
            return max(bound, best.value), nodes
        _, _, fixed, prices = heapq.heappop(heap)
        nodes += 1
        expanded = _expand(small, kept, fixed, prices, best, tol)
        for child_bound, item_fixed, child_prices in expanded:
            heapq.heappush(heap, (-min(child_bound, bound), next(counter), item_fixed, child_prices))
    return best.value, nodes


def _expand(
    small: Problem, kept: np.ndarray, fixed: dict[int, int], prices: np.ndarray, best: Best, tol: float
) -> list[tuple[float, dict[int, int], np.ndarray]]:
    """Bound one node, look for a better choice in it, and list its children."""
    free = np.array([klass for klass in range(small.n_classes) if klass not in fixed])
    at, items = np.array(list(fixed), int), np.array(list(fixed.values()), int)
    held = float(small.value[at, items].sum())
    spent = np.array([row.amounts[at, items].sum() for row in small.rows])

    def offer(part: np.ndarray) -> None:
        whole = np.empty(small.n_classes, np.int64)
        whole[free], whole[at] = part, items
        best.offer(kept[np.arange(small.n_classes), whole])

    if not free.size:
        best.offer(kept[np.arange(small.n_classes), items[np.argsort(at)]])
        return []
    node = small.only(free, spent)
    enough = best.value + tol * abs(best.value) - held if best.choice is not None else -np.inf
    dual = minimize(node, tol=1e-7, start=prices, enough=enough, max_passes=60)
    if dual.unbounded or dual.bound <= enough:
        return []
    if dual.best is not None:
        offer(dual.best)
    assignments = [node.best_items(p).choice for p in dual.active]
    offer(improve_by_swaps(node, dual.prices, assignments[0], n_moves=400, max_rounds=30))
    spread = np.zeros(free.size)
    for row, scale in zip(node.rows, node.scales, strict=True):
        amounts = np.array([row.amounts[np.arange(free.size), choice] for choice in assignments])
        spread += (amounts.max(0) - amounts.min(0)) / scale
    which = int(np.argmax(spread)) if spread.max() > 0 else int(np.argmax(_second_best(node, dual.prices)))
    coefficients = node.coefficients(dual.prices)
    priced = node.value[which] + sum(c * row.amounts[which] for c, row in zip(coefficients, node.rows, strict=False))
    limit = best.value + tol * abs(best.value) if best.choice is not None else -np.inf
    loss = priced.max() - priced
    return [
        (held + dual.bound - float(loss[item]), {**fixed, int(free[which]): int(item)}, dual.prices)
        for item in np.argsort(loss, kind="stable")
        if held + dual.bound - loss[item] > limit
    ]


def _second_best(node: Problem, prices: np.ndarray) -> np.ndarray:
    """Minus the loss of each class's second-best item: largest where the decision is closest."""
    coefficients = node.coefficients(prices)
    priced = node.value + sum(c * row.amounts for c, row in zip(coefficients, node.rows, strict=False))
    if priced.shape[1] < 2:
        return np.zeros(priced.shape[0])
    two = np.partition(priced, -2, axis=1)[:, -2:]
    return np.asarray(-(two[:, 1] - two[:, 0]))


def without_hopeless_items(problem: Problem, dual: Dual, best: Best) -> tuple[Problem, np.ndarray]:
    """Drop every item whose priced loss exceeds the gap: no better choice can hold it. Also the old item numbers."""
    coefficients = problem.coefficients(dual.prices)
    priced = problem.value.astype(float)
    for c, row in zip(coefficients, problem.rows, strict=False):
        priced = priced + c * row.amounts
    loss = priced.max(1, keepdims=True) - priced
    gap = dual.bound - best.value if best.choice is not None else np.inf
    hopeful = loss <= max(gap, 0.0) * (1 + 1e-9) + 1e-12 * abs(dual.bound)
    widest = max(int(hopeful.sum(1).max()), 1)
    order = np.argsort(np.where(hopeful, loss, np.inf), axis=1, kind="stable")[:, :widest]
    there = np.take_along_axis(hopeful, order, axis=1)
    pick = lambda table: np.take_along_axis(table.astype(float), order, axis=1)  # noqa: E731
    value = np.where(there, pick(problem.value), -np.inf)
    rows = [Row(row.name, np.where(there, pick(row.amounts), 0.0), row.bound, row.at_least) for row in problem.rows]
    smaller = Problem(value, rows)
    smaller.scales, smaller.has_gaps = problem.scales, True
    return smaller, order
