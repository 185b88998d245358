"""Rows that are shares of a whole: Dirichlet with an unknown parameter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import polygamma, psi

from shoal.base import storable
from shoal.errors import BadInput
from shoal.families.distributions.columns.base import Column
from shoal.families.kernels.column_kernels import PROPORTIONS
from shoal.families.kernels.dirichlet_kernels import fit_dirichlet

DRAWS = 400


@storable
@dataclass
class ProportionsColumn(Column):
    """Dirichlet rows; the prior is one pseudo-row that is spread more than the whole data."""

    mean: np.ndarray = field(default_factory=lambda: np.zeros(0))  # of log shares

    family: ClassVar[str] = "dirichlet"
    kind: ClassVar[int] = PROPORTIONS
    is_joint: ClassVar[bool] = True
    is_learned: ClassVar[bool] = False

    @classmethod
    def learn(cls, name: str, sources: list[str], values: Any) -> Column:
        column = cls(name, sources, list(sources), len(values))
        logs = column.encode(values)
        known = logs[~np.isnan(logs[:, 0])]
        alpha = np.ones(len(sources))
        if len(known):
            fit_dirichlet(known.mean(axis=0) - 1e-9, alpha)
        alpha *= 0.5  # so that any cluster's posterior has a maximum
        column.mean = psi(alpha) - psi(alpha.sum())
        return column

    def encode(self, values: Any) -> np.ndarray:
        """log p with shares of 0 moved off the border (Smithson and Verkuilen 2006)."""
        known = ~np.isnan(values).any(axis=1)
        wrong = np.flatnonzero(known & ((values < 0).any(axis=1) | (np.abs(values.sum(axis=1) - 1) > 1e-6)))
        if wrong.size:
            total = values[wrong[0]].sum()
            raise BadInput(
                f"row {wrong[0]} of {self.name!r} sums to {total:.6g}, and {wrong.size} rows are no proportions: "
                "shares of 0 or more that sum to 1. Divide each row by its sum first."
            )
        n = max(self.n_rows, 2)
        out = np.log((values * (n - 1) + 1 / values.shape[1]) / n)
        out[~known] = np.nan
        return np.asarray(out)

    @property
    def width(self) -> int:
        return len(self.levels)

    @property
    def n_stats(self) -> int:
        return 1 + len(self.levels)

    @property
    def n_kept(self) -> int:
        return 1 + len(self.levels)

    @property
    def n_parameters(self) -> int:
        return len(self.levels)

    def hyperparameters(self) -> np.ndarray:
        return np.concatenate([[self.scale], self.mean])

    def labels(self) -> list[str]:
        return self.levels

    def concentration_of(self, part: np.ndarray) -> np.ndarray:
        """theta*: the Dirichlet parameter of a cluster's rows."""
        alpha = np.ones(len(self.levels))
        fit_dirichlet((self.scale * self.mean + part[1:]) / (self.scale + part[0]), alpha)
        return alpha

    def mean_of(self, part: np.ndarray) -> np.ndarray:
        alpha = self.concentration_of(part)
        return np.asarray(alpha / alpha.sum())

    def interval_of(self, part: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
        """By draws of log alpha from Laplace's approximation."""
        alpha, m = self.concentration_of(part), self.scale + part[0]
        curvature = m * (np.diag(polygamma(1, alpha)) - polygamma(1, alpha.sum())) * np.outer(alpha, alpha)
        draws = np.exp(np.random.default_rng(0).multivariate_normal(np.log(alpha), np.linalg.inv(curvature), DRAWS))
        low, high = np.quantile(draws / draws.sum(axis=1, keepdims=True), [(1 - share) / 2, (1 + share) / 2], axis=0)
        return low, high

    def sentence(self, part: np.ndarray, whole: np.ndarray) -> str:
        level = int(np.argmax(self.salience(part, whole)))
        return f"{self.levels[level]} {100 * self.mean_of(part)[level]:.0f} %"

    def draw(self, part: np.ndarray, n: int, lengths: np.ndarray, rng: Any) -> Any:
        return rng.dirichlet(self.concentration_of(part), n)
