"""Choose one item in every class: the most value, while a few totals stay above or below their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.auction.solver.solver_kernels import best_items
from shoal.errors import BadInput
from shoal.threads import ordered_map, row_blocks

MAX_ROWS = 3
CLASSES_PER_BLOCK = 16_384
FEASIBLE = 1e-9  # a bound may be missed by this fraction: sums of many numbers are not exact


@dataclass
class Row:
    """One coupling constraint: the total of ``amounts`` over the chosen items against a bound."""

    name: str
    amounts: np.ndarray  # (n_classes, n_items)
    bound: float
    at_least: bool  # True: total >= bound; False: total <= bound

    @property
    def sign(self) -> float:
        return 1.0 if self.at_least else -1.0


class Answer(NamedTuple):
    """The best items at given prices."""

    choice: np.ndarray  # (n_classes,)
    priced: float  # the total with constraints priced in, bounds not yet paid
    value: float
    slack: np.ndarray  # (n_rows,) how far each bound is kept (negative: missed), in units of the row's scale


class Problem:
    """A multiple-choice knapsack with up to three coupling rows."""

    def __init__(self, value: np.ndarray, rows: list[Row]) -> None:
        if len(rows) > MAX_ROWS:
            raise BadInput(f"at most {MAX_ROWS} constraints can be held at once, got {len(rows)}.")
        self.value, self.rows = value, rows
        self.n_classes, self.n_items = value.shape
        self.has_gaps = False  # some places hold -inf: no item there
        # Unused rows are the value itself with price 0, so that one kernel serves one, two and three rows.
        self.tables = [row.amounts for row in rows] + [value] * (MAX_ROWS - len(rows))
        self.scales = np.array([max(abs(row.bound), 1e-9 * _size(row.amounts), 1e-300) for row in rows])
        self.signs = np.array([row.sign for row in rows])
        self.bounds = np.array([row.bound for row in rows])

    def coefficients(self, prices: np.ndarray) -> np.ndarray:
        """What one unit of each row adds to an item's priced value; ``prices`` are per unit of the row's scale."""
        full = np.zeros(MAX_ROWS)
        full[: len(self.rows)] = self.signs * prices / self.scales
        return full

    def best_items(self, prices: np.ndarray) -> Answer:
        """Every class takes its best item at these prices."""
        choice = np.empty(self.n_classes, np.int32)
        coefficients = self.coefficients(prices)

        def one_block(block: tuple[int, int]) -> np.ndarray:
            sums = np.empty(2 + MAX_ROWS)
            best_items(*block, self.value, *self.tables, *coefficients, choice, sums)
            return sums

        sums = np.sum(list(ordered_map(one_block, row_blocks(self.n_classes, CLASSES_PER_BLOCK))), axis=0)
        return Answer(choice, float(sums[0]), float(sums[1]), self.slack_of(sums[2 : 2 + len(self.rows)]))

    def least_value(self) -> float:
        """No choice is worth less."""
        finite = np.where(np.isfinite(self.value), self.value, np.inf) if self.has_gaps else self.value
        return float(finite.min(axis=1).sum(dtype=float))

    def slack_of(self, totals: np.ndarray) -> np.ndarray:
        return np.asarray(self.signs * (totals - self.bounds) / self.scales)

    def value_of(self, choice: np.ndarray) -> float:
        return float(self.value[np.arange(self.n_classes), choice].sum(dtype=float))

    def slack(self, choice: np.ndarray) -> np.ndarray:
        """How far each bound is kept, in units of its scale."""
        at = np.arange(self.n_classes)
        return self.slack_of(np.array([row.amounts[at, choice].sum(dtype=float) for row in self.rows]))

    def changes(self, classes: np.ndarray, items: np.ndarray, choice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gain in value and change of slack when these classes change to these items."""
        held = choice[classes]
        gain = self.value[classes, items].astype(float) - self.value[classes, held]
        moved = np.empty((classes.size, len(self.rows)))
        for at, row in enumerate(self.rows):
            difference = row.amounts[classes, items].astype(float) - row.amounts[classes, held]
            moved[:, at] = self.signs[at] * difference / self.scales[at]
        return gain, moved

    def only(self, classes: np.ndarray, spent: np.ndarray) -> Problem:
        """The problem of these classes when the others have already brought the row totals ``spent``."""
        rows = [
            Row(row.name, row.amounts[classes], row.bound - float(spent[at]), row.at_least)
            for at, row in enumerate(self.rows)
        ]
        smaller = Problem(self.value[classes], rows)
        smaller.scales, smaller.has_gaps = self.scales, self.has_gaps
        return smaller


def is_feasible(slack: np.ndarray) -> bool:
    """Every bound is kept, up to rounding."""
    return bool((slack >= -FEASIBLE).all())


def _size(amounts: np.ndarray) -> float:
    return float(np.abs(amounts).max(axis=1, initial=0).sum(dtype=float))
