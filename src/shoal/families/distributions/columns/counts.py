"""Counts: Poisson with an unknown rate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import nbinom

from shoal.base import storable
from shoal.errors import BadInput
from shoal.families.distributions.columns.base import Column, Imputed
from shoal.families.kernels.column_kernels import COUNT


@storable
@dataclass
class CountColumn(Column):
    """Poisson with a Gamma prior that is worth ``scale`` rows of the whole column's mean."""

    scale: float = 0.5
    mean: np.ndarray = field(default_factory=lambda: np.zeros(1))

    family: ClassVar[str] = "poisson"
    kind: ClassVar[int] = COUNT

    @classmethod
    def learn(cls, name: str, sources: list[str], values: Any) -> Column:
        known = cls(name, sources).encode(values)
        known = known[~np.isnan(known)]
        return cls(name, sources, n_rows=len(values), mean=np.array([(known.sum() + 0.5) / (len(known) + 1)]))

    def encode(self, values: Any) -> np.ndarray:
        wrong = np.flatnonzero(((values < 0) | (values != np.rint(values)) & ~np.isnan(values))[:, 0])
        if wrong.size:
            raise BadInput(
                f"row {wrong[0]} of column {self.name!r} is {values[wrong[0], 0]:g}, which is no count: "
                "family='poisson' needs whole numbers from 0 up."
            )
        return np.asarray(values)

    def points(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        return np.sqrt(values), 1

    @property
    def n_stats(self) -> int:
        return 2

    @property
    def n_kept(self) -> int:
        return 3

    @property
    def n_parameters(self) -> int:
        return 1

    def hyperparameters(self) -> np.ndarray:
        return np.array([self.scale * self.mean[0], self.scale])

    def posterior(self, part: np.ndarray) -> tuple[float, float]:
        """(shape, rate) of the Gamma posterior."""
        return self.scale * self.mean[0] + part[1], self.scale + part[0]

    def mean_of(self, part: np.ndarray) -> np.ndarray:
        shape, rate = self.posterior(part)
        return np.array([shape / rate])

    def interval_of(self, part: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
        shape, rate = self.posterior(part)
        low, high = (np.array([gammaincinv(shape, p) / rate]) for p in ((1 - share) / 2, (1 + share) / 2))
        return low, high

    def salience(self, part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        return np.asarray(super().salience(part, whole) - self.mean_of(part) + self.mean_of(whole))

    def sentence(self, part: np.ndarray, whole: np.ndarray) -> str:
        """The middle half of the cluster's rows."""
        low, high = (self.quantile([part], np.ones((1, 1)), p)[0] for p in (0.25, 0.75))
        return f"{self.name} {low:.3g} to {high:.3g}"

    def draw(self, part: np.ndarray, n: int, lengths: np.ndarray, rng: Any) -> Any:
        shape, rate = self.posterior(part)
        return rng.poisson(rng.gamma(shape) / rate, n).astype(float)

    def impute(self, rows: np.ndarray, parts: list[np.ndarray], weight: np.ndarray, share: float) -> Imputed | None:
        low, middle, high = (self.quantile(parts, weight, p) for p in ((1 - share) / 2, 0.5, (1 + share) / 2))
        return Imputed(rows, middle, low, high, None)

    def quantile(self, parts: list[np.ndarray], weight: np.ndarray, p: float) -> np.ndarray:
        """(n,) quantile of a mixture of negative binomials."""
        shape, rate = np.array([self.posterior(part) for part in parts]).T
        largest = int(nbinom.ppf(0.9999, shape, rate / (rate + 1)).max()) + 1
        grid = np.arange(largest + 1)
        below = weight @ nbinom.cdf(grid[None, :], shape[:, None], (rate / (rate + 1))[:, None])
        return np.minimum((below < p).sum(axis=1), largest).astype(float)
