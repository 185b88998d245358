"""What the columns of a table are: numbers, counts, categories, proportions, vectors, words or sets, and their priors.

A column says how its values are encoded as numbers, which hyperparameters it starts with, and what one cluster's
posterior says of it. The compiled side of each kind is in ``kernels/column_kernels.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import psi

from shoal.base import storable
from shoal.errors import BadInput
from shoal.families.kernels.column_kernels import (
    CATEGORY,
    COUNT,
    NUMBER,
    PROPORTIONS,
    SETS,
    VECTOR,
    WHITENED,
    WORDS,
)
from shoal.families.kernels.dirichlet_kernels import fit_dirichlet

KINDS = {
    "gaussian": NUMBER,
    "lognormal": NUMBER,
    "poisson": COUNT,
    "categorical": CATEGORY,
    "dirichlet": PROPORTIONS,
    "full": VECTOR,
    "tied": WHITENED,
    "multinomial": WORDS,
    "bernoulli": SETS,
}
SPARSE = ("multinomial", "bernoulli")
SEVERAL = ("dirichlet", "full", "tied")  # families of several columns of the table at once
NUMBER_PRIOR = (0.05, 2.0, 0.5)  # kappa, a, b, in units of the whole column's variance
FARTHEST = 1e50  # standard deviations


@storable
@dataclass
class Column:
    """One column of a table, or several that have one distribution together.

    ``scale`` is the number by which the prior is learned: of numbers and vectors the variance expected within a
    cluster, of all others how many rows the prior is worth.
    """

    name: str
    family: str
    sources: list[str]  # the table's own columns
    levels: list[str] = field(default_factory=list)  # categories, words or names of coordinates
    center: np.ndarray = field(default_factory=lambda: np.zeros(1))
    spread: np.ndarray = field(default_factory=lambda: np.ones(1))
    mean: np.ndarray = field(default_factory=lambda: np.zeros(0))  # prior mean: shares, rates, or mean log shares
    whiten: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # "tied": standardized -> whitened coordinates
    n_rows: int = 1
    scale: float = 1.0

    @property
    def kind(self) -> int:
        return KINDS[self.family]

    @property
    def width(self) -> int:
        """Values of a row (dense), or features there are (sparse)."""
        return 1 if self.family in ("gaussian", "lognormal", "poisson", "categorical") else len(self.levels)

    @property
    def n_stats(self) -> int:
        d = len(self.levels)
        sizes = {NUMBER: 3, COUNT: 2, CATEGORY: 1 + d, PROPORTIONS: 1 + d, VECTOR: 1 + d + d * d, WHITENED: 2 + d}
        return sizes.get(self.kind, 2 + d)

    @property
    def n_kept(self) -> int:
        d = len(self.levels)
        sizes = {NUMBER: 4, COUNT: 3, CATEGORY: d, PROPORTIONS: d + 1, VECTOR: 4 + d + d * d, WHITENED: 2 + d}
        return sizes.get(self.kind, 1)

    def hyperparameters(self) -> np.ndarray:
        """The prior as kernels read it."""
        d = len(self.levels)
        if self.kind == NUMBER:
            return np.array([NUMBER_PRIOR[0], NUMBER_PRIOR[1], self.scale])
        if self.kind == COUNT:
            return np.array([self.scale * self.mean[0], self.scale])
        if self.kind == PROPORTIONS:
            return np.concatenate([[self.scale], self.mean])
        if self.kind == VECTOR:
            return np.concatenate([[NUMBER_PRIOR[0], d + 2.0], np.full(d, self.scale)])
        if self.kind == WHITENED:
            return np.array([self.scale])
        if self.kind == SETS:
            return np.concatenate([[self.scale], self.scale * self.mean])
        return np.asarray(self.scale * self.mean)

    @property
    def is_learned(self) -> bool:
        """Whether ``scale`` is learned from the clusters."""
        return self.kind not in (PROPORTIONS, WHITENED)

    def standardized(self, values: np.ndarray) -> np.ndarray:
        """Numbers as kernels see them; their squares are finite, however far a value is from all others."""
        with np.errstate(over="ignore"):
            standard = (self.transformed(values) - self.center) / self.spread
        return np.asarray(np.clip(standard, -FARTHEST, FARTHEST))

    def transformed(self, values: np.ndarray) -> np.ndarray:
        """Logarithms for a lognormal column."""
        if self.family != "lognormal":
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(values))

    def log_jacobian(self, values: np.ndarray) -> np.ndarray:
        """What turns the density of encoded values into that of the table's own; ``values``: (n, width) encoded."""
        if self.kind == NUMBER:
            own = -np.log(self.spread[0])
            if self.family == "lognormal":
                return np.asarray(own - (values[:, 0] * self.spread[0] + self.center[0]))
            return np.full(len(values), own)
        if self.kind == VECTOR:
            return np.full(len(values), -np.log(self.spread).sum())
        if self.kind == WHITENED:
            return np.full(len(values), -np.log(self.spread).sum() + np.linalg.slogdet(self.whiten)[1])
        return np.zeros(len(values))


# --- from values to columns -------------------------------------------------------------------------------------------


def number_column(name: str, family: str, values: np.ndarray) -> Column:
    """Numbers, standardized by the whole column; NaN is missing."""
    column = Column(name, family, [name], n_rows=len(values), scale=NUMBER_PRIOR[2])
    known = values[~np.isnan(values)]
    if family == "lognormal" and (known <= 0).any():
        raise BadInput(f"column {name!r} has values that are 0 or less; family='lognormal' needs positive numbers.")
    raw = column.transformed(known)
    center, spread = centered(raw[:, None])
    return replace(column, center=center, spread=spread)


def centered(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each coordinate, in units of the largest value so that neither overflows."""
    unit = np.maximum(np.abs(rows).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)
    scaled = rows / unit
    center = scaled.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])
    spread = (scaled - center).std(axis=0) if len(rows) else np.zeros(rows.shape[1])
    return center * unit, np.where(spread > 1e-14, spread * unit, 1.0)


def count_column(name: str, values: np.ndarray) -> Column:
    known = values[~np.isnan(values)]
    if (known < 0).any() or (known != np.rint(known)).any():
        raise BadInput(
            f"column {name!r} has values that are no counts; family='poisson' needs whole numbers from 0 up."
        )
    mean = (known.sum() + 0.5) / (len(known) + 1)
    return Column(name, "poisson", [name], mean=np.array([mean]), n_rows=len(values), scale=0.5)


def category_column(name: str, values: list[Any]) -> Column:
    """Categories by their names; None is missing."""
    known = [str(value) for value in values if value is not None]
    levels, counts = np.unique(np.array(known, dtype=object).astype(str), return_counts=True)
    if not len(levels):
        levels, counts = np.array(["(none)"]), np.array([0])
    share = (counts + 0.5) / (counts.sum() + 0.5 * len(levels))
    return Column(name, "categorical", [name], levels=levels.tolist(), mean=share, n_rows=len(values))


def sparse_column(name: str, family: str, values: list[Any]) -> Column:
    """Lists of words; None is missing."""
    words: dict[str, int] = {}
    n_known = 0
    for row in values:
        if row is not None:
            n_known += 1
            for word in set(row) if family == "bernoulli" else row:
                words[str(word)] = words.get(str(word), 0) + 1
    names = sorted(words)
    counts = np.array([words[word] for word in names], dtype=np.float64)
    if family == "bernoulli":
        mean, scale = np.minimum((counts + 0.5) / (n_known + 1), 0.95), 1.0
    else:
        mean, scale = (counts + 0.5) / max(counts.sum() + 0.5 * len(counts), 1.0), 0.1 * max(len(names), 1)
    return Column(name, family, [name], levels=names, mean=mean, n_rows=len(values), scale=scale)


def proportions_column(name: str, sources: list[str], rows: np.ndarray) -> Column:
    """Rows that are shares of a whole; a row with NaN is missing."""
    column = Column(name, "dirichlet", sources, levels=sources, n_rows=len(rows))
    logs = log_shares(column, rows)
    known = logs[~np.isnan(logs[:, 0])]
    alpha = np.ones(len(sources))
    if len(known):
        fit_dirichlet(known.mean(axis=0) - 1e-9, alpha)
    alpha *= 0.5  # one pseudo-row that is spread more than the whole data: any cluster's posterior has a maximum
    return replace(column, mean=psi(alpha) - psi(alpha.sum()))


def log_shares(column: Column, rows: np.ndarray) -> np.ndarray:
    """log p with shares of 0 moved off the border (Smithson and Verkuilen 2006)."""
    known = ~np.isnan(rows).any(axis=1)
    wrong = np.flatnonzero(known & ((rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1) - 1) > 1e-6)))
    if wrong.size:
        total = rows[wrong[0]].sum()
        raise BadInput(
            f"row {wrong[0]} of {column.name!r} sums to {total:.6g}, and {wrong.size} rows are no proportions: shares "
            "of 0 or more that sum to 1. Divide each row by its sum first."
        )
    n = max(column.n_rows, 2)
    out = np.log((rows * (n - 1) + 1 / rows.shape[1]) / n)
    out[~known] = np.nan
    return np.asarray(out)


def vector_column(name: str, family: str, sources: list[str], rows: np.ndarray) -> Column:
    """Measurements with a covariance; a row with NaN is missing."""
    known = rows[~np.isnan(rows).any(axis=1)]
    center, spread = centered(known)
    column = Column(name, family, sources, levels=sources, center=center, spread=spread, n_rows=len(rows))
    if family == "full":
        return replace(column, scale=0.25)
    standard = (known - center) / spread
    return replace(column, whiten=whitening(standard.T @ standard / max(len(standard), 1), len(sources)), scale=0.05)


def whitening(covariance: np.ndarray, d: int) -> np.ndarray:
    """W such that W x has unit covariance."""
    covariance = covariance + 1e-6 * max(float(np.trace(covariance)) / max(d, 1), 1e-12) * np.eye(d)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariance)))
