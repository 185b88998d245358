"""Numbers: Gaussian or log-normal with unknown mean and variance, and dates, which are numbers of days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaincinv, stdtr, stdtrit

from shoal.base import storable
from shoal.errors import BadInput
from shoal.families.distributions.columns.base import (
    KAPPA,
    MOST_VARIANCE,
    SHAPE,
    Column,
    Imputed,
    centered,
    moved_stats,
    standardized,
)
from shoal.families.kernels.column_kernels import NUMBER

BISECTIONS = 60


@storable
@dataclass
class NumberColumn(Column):
    """Gaussian with a Normal-Gamma prior, standardized by the whole column."""

    scale: float = 0.5
    center: float = 0.0
    spread: float = 1.0

    family: ClassVar[str] = "gaussian"
    kind: ClassVar[int] = NUMBER

    def gaussian_of(self, values: np.ndarray) -> np.ndarray:
        """The table's numbers on the scale where they are Gaussian."""
        return values

    def numbers_of(self, gaussian: np.ndarray) -> np.ndarray:
        """The inverse of `gaussian_of`."""
        return gaussian

    @classmethod
    def learn(cls, name: str, sources: list[str], values: Any) -> Column:
        column = cls(name, sources, n_rows=len(values))
        center, spread = centered(column.gaussian_of(values[~np.isnan(values[:, 0])]))
        column.center, column.spread = float(center[0]), float(spread[0])
        return column

    def encode(self, values: Any) -> np.ndarray:
        return standardized(self.gaussian_of(values), self.center, self.spread)

    def converted(self, other: Any, stats: np.ndarray) -> np.ndarray:
        scale, shift = other.spread / self.spread, (other.center - self.center) / self.spread
        return moved_stats(np.array([scale]), np.array([shift]), stats)

    def log_jacobian(self, values: np.ndarray) -> np.ndarray:
        return np.full(len(values), -np.log(self.spread))

    @property
    def n_stats(self) -> int:
        return 3

    @property
    def n_kept(self) -> int:
        return 4

    @property
    def n_parameters(self) -> int:
        return 2

    def hyperparameters(self) -> np.ndarray:
        return np.array([KAPPA, SHAPE, self.scale])

    def most_scale(self, rows_per_cluster: float) -> float:
        return MOST_VARIANCE

    def posterior(self, part: np.ndarray) -> tuple[float, float, float, float]:
        """(kappa, mean, a, b) of standardized values."""
        kappa = KAPPA + part[0]
        mean = part[1] / kappa
        return kappa, mean, SHAPE + 0.5 * part[0], self.scale + max(0.5 * (part[2] - kappa * mean**2), 0.0)

    def _own_units(self, standard: Any) -> np.ndarray:
        return self.numbers_of(self.center + self.spread * np.atleast_1d(standard))

    def mean_of(self, part: np.ndarray) -> np.ndarray:
        return self._own_units(self.posterior(part)[1])

    def interval_of(self, part: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
        kappa, mean, a, b = self.posterior(part)
        half = stdtrit(2 * a, (1 + share) / 2) * np.sqrt(b / (a * kappa))
        return self._own_units(mean - half), self._own_units(mean + half)

    def variance_interval(self, part: np.ndarray, share: float) -> tuple[float, float, float]:
        """(mean, low, high) of the variance on the scale where values are Gaussian."""
        _, _, a, b = self.posterior(part)
        low, high = (b / gammaincinv(a, p) for p in ((1 + share) / 2, (1 - share) / 2))
        unit = self.spread**2
        return b / (a - 1) * unit, low * unit, high * unit

    def salience(self, part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        return np.array([0.5 * (self.posterior(part)[1] - self.posterior(whole)[1]) ** 2])

    def sentence(self, part: np.ndarray, whole: np.ndarray) -> str:
        """The middle half of the cluster's rows."""
        low, high = (self.quantile([part], np.ones((1, 1)), p)[0] for p in (0.25, 0.75))
        return f"{self.name} {self.in_words(low)} to {self.in_words(high)}"

    def in_words(self, value: Any) -> str:
        return f"{value:.3g}"

    def draw(self, part: np.ndarray, n: int, lengths: np.ndarray, rng: Any) -> Any:
        kappa, mean, a, b = self.posterior(part)
        precision = rng.gamma(a) / b
        center = rng.normal(mean, 1 / np.sqrt(kappa * precision))
        return self._own_units(rng.normal(center, 1 / np.sqrt(precision), n))

    def impute(self, rows: np.ndarray, parts: list[np.ndarray], weight: np.ndarray, share: float) -> Imputed | None:
        low, middle, high = (self.quantile(parts, weight, p) for p in ((1 - share) / 2, 0.5, (1 + share) / 2))
        return Imputed(rows, middle, low, high, None)

    def quantile(self, parts: list[np.ndarray], weight: np.ndarray, p: float) -> np.ndarray:
        """(n,) quantile of a mixture of Student t, by halving."""
        kappa, mean, a, b = np.array([self.posterior(part) for part in parts]).T
        spread = np.sqrt(b * (kappa + 1) / (a * kappa))
        low, high = np.full(len(weight), (mean - 60 * spread).min()), np.full(len(weight), (mean + 60 * spread).max())
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            below = (weight * stdtr(2 * a, (middle[:, None] - mean) / spread)).sum(axis=1)
            low, high = np.where(below < p, middle, low), np.where(below < p, high, middle)
        return self._own_units(0.5 * (low + high))


@storable
@dataclass
class LogNormalColumn(NumberColumn):
    """Positive numbers whose logarithms are Gaussian; means and intervals are medians of the numbers."""

    family: ClassVar[str] = "lognormal"

    def gaussian_of(self, values: np.ndarray) -> np.ndarray:
        wrong = np.flatnonzero((values <= 0).any(axis=1))
        if wrong.size:
            raise BadInput(
                f"row {wrong[0]} of column {self.name!r} is {values[wrong[0], 0]:g}: 0 or less, where "
                "family='lognormal' needs positive numbers."
            )
        return np.log(values)

    def numbers_of(self, gaussian: np.ndarray) -> np.ndarray:
        return np.exp(gaussian)

    def log_jacobian(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(-np.log(self.spread) - (values[:, 0] * self.spread + self.center))


@storable
@dataclass
class DateColumn(NumberColumn):
    """Dates and times as days since 1970, Gaussian."""

    family: ClassVar[str] = "date"

    def in_words(self, value: Any) -> str:
        return str(as_dates(np.array([value]))[0].astype("datetime64[D]"))

    def draw(self, part: np.ndarray, n: int, lengths: np.ndarray, rng: Any) -> Any:
        return as_dates(super().draw(part, n, lengths, rng))

    def impute(self, rows: np.ndarray, parts: list[np.ndarray], weight: np.ndarray, share: float) -> Imputed | None:
        low, middle, high = (as_dates(self.quantile(parts, weight, p)) for p in ((1 - share) / 2, 0.5, (1 + share) / 2))
        return Imputed(rows, middle, low, high, None)


def as_dates(days: np.ndarray) -> np.ndarray:
    return np.asarray(np.datetime64(0, "s") + np.rint(days * 86_400).astype("timedelta64[s]"))
