"""The Lagrangian dual: prices for the constraints, and with them a certified bound on what can be reached.

phi(prices) = sum over classes of the best priced item, plus the bounds paid at these prices. phi is convex, one pass to
evaluate, and never below the best feasible value. It is minimized by Kelley's cutting planes; the small linear program
over the cuts is solved in its dual form, where every new cut is a new column (:class:`Master`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.auction.solver.problem import Problem, is_feasible


@dataclass
class Dual:
    """The result of :func:`minimize`."""

    bound: float  # no feasible choice is worth more
    prices: np.ndarray  # (n_rows,) per unit of the row's scale
    active: list[np.ndarray]  # prices whose choices mix to the optimum of the relaxation
    best: np.ndarray | None  # the best feasible choice met on the way
    best_value: float
    n_passes: int
    unbounded: bool = False  # no mixture of choices keeps all bounds


class Master:
    """max sum_t mu_t f_t - box * violation,  sum_t mu_t = 1,  sum_t mu_t slack_t + violation >= 0,  by revised simplex.

    The basis has one column for each row and one more, so a pivot is a few products of tiny matrices. The multipliers
    of the slack rows are the next prices.
    """

    def __init__(self, n_rows: int, box: float) -> None:
        self.n_rows, self.box = n_rows, box
        eye = np.eye(n_rows)
        self.columns = [np.append(eye[row], 0.0) for row in range(n_rows)]  # violation of a row
        self.columns += [np.append(-eye[row], 0.0) for row in range(n_rows)]  # surplus of a row
        self.gains = [-box] * n_rows + [0.0] * n_rows
        self.basis: list[int] = []
        self.right = np.append(np.zeros(n_rows), 1.0)

    def add(self, gain: float, slack: np.ndarray) -> None:
        """A new assignment: its value, and its slack in each row."""
        if not self.basis:
            self.basis = [row if slack[row] < 0 else self.n_rows + row for row in range(self.n_rows)]
            self.basis.append(len(self.columns))
        self.columns.append(np.append(slack, 1.0))
        self.gains.append(gain)

    def widen(self, factor: float) -> None:
        """Let prices grow further."""
        self.box *= factor
        self.gains[: self.n_rows] = [-self.box] * self.n_rows

    def solve(self) -> tuple[np.ndarray, float, np.ndarray]:
        """The prices, the least value of the cuts, and the weight of every assignment in the mixture."""
        columns, gains = np.array(self.columns).T, np.array(self.gains)
        for pivot in range(400):
            inverse = np.linalg.inv(columns[:, self.basis])
            multipliers = gains[self.basis] @ inverse
            reduced = gains - multipliers @ columns
            reduced[self.basis] = 0.0
            # The largest reduced gain at first; the first positive one later, which cannot run in circles.
            entering = int(np.argmax(reduced)) if pivot < 60 else int(np.argmax(reduced > 1e-12))
            if reduced[entering] <= 1e-12:
                break
            direction, level = inverse @ columns[:, entering], inverse @ self.right
            usable = direction > 1e-12
            if not usable.any():
                break
            ratios = np.where(usable, np.maximum(level, 0.0) / np.where(usable, direction, 1.0), np.inf)
            ties = np.flatnonzero(ratios <= ratios.min() + 1e-15)
            leaving = min(ties, key=lambda place: self.basis[place]) if pivot >= 60 else ties[0]
            self.basis[int(leaving)] = entering
        inverse = np.linalg.inv(columns[:, self.basis])
        multipliers = gains[self.basis] @ inverse
        mixture = np.zeros(columns.shape[1])
        mixture[self.basis] = np.maximum(inverse @ self.right, 0.0)
        return np.clip(-multipliers[:-1], 0.0, self.box), float(multipliers[-1]), mixture[2 * self.n_rows :]


def minimize(
    problem: Problem,
    *,
    tol: float = 1e-9,
    max_passes: int = 200,
    start: np.ndarray | None = None,
    enough: float = -np.inf,
) -> Dual:
    """Minimize phi until bound and cuts agree to ``tol``, or the bound falls to ``enough`` (a node to be pruned)."""
    n_rows = len(problem.rows)
    prices = np.zeros(n_rows) if start is None else start.copy()
    bound, best_prices, best, best_value = np.inf, prices, None, -np.inf
    scale, master, tried, mixture = 0.0, Master(n_rows, 8.0), [], np.ones(1)
    unbounded = False
    least_value = problem.least_value()
    for passes in range(1, max_passes + 1):
        answer = problem.best_items(prices)
        scale = scale or max(abs(answer.value), 1e-300)
        phi = answer.value + float(prices @ answer.slack)
        if is_feasible(answer.slack) and answer.value > best_value:
            best, best_value = answer.choice, answer.value
        if phi < bound:
            bound, best_prices = phi, prices
        tried.append(prices)
        master.add(answer.value / scale, answer.slack)
        if n_rows == 0 or bound <= enough:
            break
        ahead, least, mixture = master.solve()
        if bound / scale - least <= tol * max(abs(bound) / scale, 1e-12):
            if ahead.max() < 0.999 * master.box:
                break
            # Prices stand at their limit and would rise further. A bound below everything that can be chosen proves
            # that
            # nothing keeps all rows; otherwise the limit was too tight.
            unbounded = bound < least_value or master.box > 1e9
            if unbounded:
                break
            master.widen(16.0)
            ahead, least, mixture = master.solve()
        ahead = ahead * scale
        prices = ahead if passes < 4 else 0.8 * ahead + 0.2 * best_prices
    active = [tried[at] for at in np.flatnonzero(mixture > 1e-9)] if len(mixture) == len(tried) else [tried[-1]]
    return Dual(bound, best_prices, active, best, best_value, passes, unbounded)
