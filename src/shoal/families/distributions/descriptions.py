"""What one cluster says of each column of a table: means and shares with intervals, new rows, and missing values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, gammaincinv, logsumexp, stdtr, stdtrit

from shoal.families.distributions.columns import NUMBER_PRIOR, Column
from shoal.families.distributions.table import TableFamily, TableRows, TableStats

BISECTIONS = 60


class Entry(NamedTuple):
    """One thing a card can say: a number, a count, or a level of a column."""

    column: int
    level: int
    label: str


def entries(family: TableFamily) -> list[Entry]:
    """All there is to say, in the order of columns."""
    found = []
    for at, column in enumerate(family.columns):
        if column.width == 1 and column.family != "categorical":
            found.append(Entry(at, 0, column.name))
        else:
            joint = column.family in ("dirichlet", "full", "tied")
            labels = column.levels if joint else [f"{column.name} = {level}" for level in column.levels]
            found += [Entry(at, level, label) for level, label in enumerate(labels)]
    return found


def column_stats(family: TableFamily, stats: TableStats, cluster: int, at: int) -> np.ndarray:
    bounds = family.layout().stat
    return np.asarray(stats.sums[cluster, bounds[at] : bounds[at + 1]])


def dirichlet_of(column: Column, part: np.ndarray) -> np.ndarray:
    """The Dirichlet posterior of categories and words."""
    start = 1 if column.family == "categorical" else 2
    return np.asarray(column.scale * column.mean + part[start:])


def posterior_mean(column: Column, part: np.ndarray, family: TableFamily, at: int) -> np.ndarray:
    """(levels,) the cluster's mean of a column in the table's own units: numbers, rates, shares."""
    n = part[0]
    if column.family in ("gaussian", "lognormal"):
        mean = column.center + column.spread * part[1] / (NUMBER_PRIOR[0] + n)
        return np.exp(mean) if column.family == "lognormal" else mean
    if column.family == "poisson":
        return np.array([(column.scale * column.mean[0] + part[1]) / (column.scale + n)])
    if column.family in ("categorical", "multinomial"):
        a = dirichlet_of(column, part)
        return np.asarray(a / a.sum())
    if column.family == "bernoulli":
        return np.asarray((column.scale * column.mean + part[2:]) / (column.scale + n))
    d = len(column.levels)
    if column.family == "dirichlet":
        alpha = concentration_of(column, part)
        return np.asarray(alpha / alpha.sum())
    first = 1 if column.family == "full" else 2
    mean = part[first : first + d] / (NUMBER_PRIOR[0] + n)
    if column.family == "tied":
        mean = np.linalg.solve(column.whiten, mean)
    return np.asarray(column.center + column.spread * mean)


def concentration_of(column: Column, part: np.ndarray) -> np.ndarray:
    """theta*: the Dirichlet parameter of a cluster's proportions."""
    from shoal.families.kernels.dirichlet_kernels import fit_dirichlet

    alpha = np.ones(len(column.levels))
    fit_dirichlet((column.scale * column.mean + part[1:]) / (column.scale + part[0]), alpha)
    return alpha


def interval_of(column: Column, part: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Central credible interval of `posterior_mean` for each level; NaN where there is none in closed form."""
    tails, n = ((1 - share) / 2, (1 + share) / 2), part[0]
    if column.family in ("gaussian", "lognormal"):
        kappa, a = NUMBER_PRIOR[0] + n, NUMBER_PRIOR[1] + 0.5 * n
        mean = part[1] / kappa
        b = column.scale + max(0.5 * (part[2] - kappa * mean**2), 0.0)
        ends = [column.center + column.spread * (mean + stdtrit(2 * a, p) * np.sqrt(b / (a * kappa))) for p in tails]
        return tuple(np.exp(ends)) if column.family == "lognormal" else tuple(ends)  # type: ignore[return-value]
    if column.family == "poisson":
        shape, rate = column.scale * column.mean[0] + part[1], column.scale + n
        return np.array([gammaincinv(shape, tails[0]) / rate]), np.array([gammaincinv(shape, tails[1]) / rate])
    if column.family in ("categorical", "multinomial"):
        a = dirichlet_of(column, part)
        return betaincinv(a, a.sum() - a, tails[0]), betaincinv(a, a.sum() - a, tails[1])
    if column.family == "bernoulli":
        a = column.scale * column.mean + part[2:]
        return betaincinv(a, column.scale + n - a, tails[0]), betaincinv(a, column.scale + n - a, tails[1])
    if column.family == "full":
        d = len(column.levels)
        kappa, nu = NUMBER_PRIOR[0] + n, d + 2.0 + n
        mean = part[1 : 1 + d] / kappa
        scale = column.scale + np.diag(part[1 + d :].reshape(d, d)) - kappa * mean**2
        half = stdtrit(nu - d + 1, tails[1]) * np.sqrt(np.maximum(scale, 0.0) / (kappa * (nu - d + 1)))
        return column.center + column.spread * (mean - half), column.center + column.spread * (mean + half)
    unknown = np.full(len(column.levels), np.nan)
    return unknown, unknown


def salience(column: Column, part: np.ndarray, whole: np.ndarray, family: TableFamily, at: int) -> np.ndarray:
    """(levels,) how far a cluster is from all rows in each level, in nats a row."""
    mean, typical = posterior_mean(column, part, family, at), posterior_mean(column, whole, family, at)
    if column.family in ("gaussian", "lognormal", "full", "tied"):
        if column.family == "lognormal":
            mean, typical = np.log(mean), np.log(typical)
        return np.asarray(0.5 * ((mean - typical) / column.spread) ** 2)
    ratio = np.log(np.maximum(mean, 1e-300) / np.maximum(typical, 1e-300))
    return np.asarray(mean * ratio - (mean - typical if column.family == "poisson" else 0.0))


# --- new rows and missing values --------------------------------------------------------------------------------------


def draw_column(column: Column, part: np.ndarray, n: int, lengths: np.ndarray, rng: Any) -> Any:
    """``n`` values of a cluster, its parameters drawn from their posterior: an array, or lists of words."""
    seen, d = part[0], len(column.levels)
    if column.family in ("gaussian", "lognormal"):
        kappa, a = NUMBER_PRIOR[0] + seen, NUMBER_PRIOR[1] + 0.5 * seen
        mean = part[1] / kappa
        b = column.scale + max(0.5 * (part[2] - kappa * mean**2), 0.0)
        precision = rng.gamma(a) / b
        z = rng.normal(rng.normal(mean, 1 / np.sqrt(kappa * precision)), 1 / np.sqrt(precision), n)
        values = column.center[0] + column.spread[0] * z
        return np.exp(values) if column.family == "lognormal" else values
    if column.family == "poisson":
        return rng.poisson(rng.gamma(column.scale * column.mean[0] + part[1]) / (column.scale + seen), n).astype(float)
    if column.family == "categorical":
        return [column.levels[at] for at in rng.choice(d, n, p=rng.dirichlet(dirichlet_of(column, part)))]
    if column.family == "multinomial":
        shares = rng.dirichlet(dirichlet_of(column, part))
        return [[column.levels[at] for at in rng.choice(d, int(length), p=shares)] for length in lengths[:n]]
    if column.family == "bernoulli":
        a = column.scale * column.mean + part[2:]
        p = rng.beta(a, column.scale + seen - a)
        return [[column.levels[at] for at in np.flatnonzero(rng.random(d) < p)] for _ in range(n)]
    if column.family == "dirichlet":
        return rng.dirichlet(concentration_of(column, part), n)
    mean, lower = vector_posterior(column, part)
    return column.center + column.spread * (mean + rng.normal(size=(n, d)) @ lower.T)


def vector_posterior(column: Column, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and Cholesky factor of the covariance, of standardized coordinates."""
    d, n = len(column.levels), part[0]
    kappa = NUMBER_PRIOR[0] + n
    if column.family == "tied":
        back = np.linalg.inv(column.whiten)
        return back @ (part[2 : 2 + d] / kappa), back
    mean = part[1 : 1 + d] / kappa
    outer = part[1 + d :].reshape(d, d)
    scatter = np.tril(outer) + np.tril(outer, -1).T - kappa * np.outer(mean, mean) + column.scale * np.eye(d)
    return mean, np.linalg.cholesky(scatter / max(n + 1.0, 1.0))


class Imputed(NamedTuple):
    """What the missing values of one column are likely to be."""

    rows: np.ndarray  # where they are missing
    values: Any  # numbers, or names of categories
    low: np.ndarray | None  # central interval of numbers and counts
    high: np.ndarray | None
    probability: np.ndarray | None  # of the category named


def impute_column(
    family: TableFamily, stats: TableStats, X: TableRows, at: int, memberships: np.ndarray, share: float
) -> Imputed | None:
    """The posterior predictive of a column where it is missing, over the clusters a row may belong to."""
    column, rows = family.columns[at], np.flatnonzero(~X.table.present[:, at])
    if not rows.size or column.width != 1:
        return None
    parts = [column_stats(family, stats, cluster, at) for cluster in range(len(stats.size))]
    weight = memberships[rows]
    if column.family == "categorical":
        chance = weight @ np.array([posterior_mean(column, part, family, at) for part in parts])
        best = chance.argmax(axis=1)
        names = np.array([column.levels[level] for level in best], dtype=object)
        return Imputed(rows, names, None, None, chance[np.arange(len(rows)), best])
    quantiles = [mixture_quantile(column, parts, weight, p) for p in ((1 - share) / 2, 0.5, (1 + share) / 2)]
    return Imputed(rows, quantiles[1], quantiles[0], quantiles[2], None)


def mixture_quantile(column: Column, parts: list[np.ndarray], weight: np.ndarray, p: float) -> np.ndarray:
    """(n,) quantile of a mixture of Student t (numbers) or negative binomials (counts), by halving."""
    if column.family == "poisson":
        return count_quantile(column, parts, weight, p)
    kappa = np.array([NUMBER_PRIOR[0] + part[0] for part in parts])
    a = np.array([NUMBER_PRIOR[1] + 0.5 * part[0] for part in parts])
    mean = np.array([part[1] for part in parts]) / kappa
    beyond = np.array([part[2] for part in parts]) - kappa * mean**2
    spread = np.sqrt((column.scale + np.maximum(0.5 * beyond, 0.0)) * (kappa + 1) / (a * kappa))
    low, high = np.full(len(weight), (mean - 60 * spread).min()), np.full(len(weight), (mean + 60 * spread).max())
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        below = (weight * stdtr(2 * a, (middle[:, None] - mean) / spread)).sum(axis=1)
        low, high = np.where(below < p, middle, low), np.where(below < p, high, middle)
    values = column.center[0] + column.spread[0] * 0.5 * (low + high)
    return np.asarray(np.exp(values) if column.family == "lognormal" else values)


def count_quantile(column: Column, parts: list[np.ndarray], weight: np.ndarray, p: float) -> np.ndarray:
    from scipy.stats import nbinom

    shape = np.array([column.scale * column.mean[0] + part[1] for part in parts])
    rate = np.array([column.scale + part[0] for part in parts])
    largest = int(nbinom.ppf(0.9999, shape, rate / (rate + 1)).max()) + 1
    grid = np.arange(largest + 1)
    below = weight @ nbinom.cdf(grid[None, :], shape[:, None], (rate / (rate + 1))[:, None])
    return np.minimum((below < p).sum(axis=1), largest).astype(float)


def normalized(scores: np.ndarray) -> np.ndarray:
    """Probabilities from log joints."""
    return np.asarray(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))


def sentence(family: TableFamily, stats: TableStats, cluster: int, at: int) -> str:
    """What a cluster's rows have in one column: the middle half of numbers, the most salient level of others."""
    column, part = family.columns[at], column_stats(family, stats, cluster, at)
    if column.family in ("gaussian", "lognormal", "poisson"):
        one = np.ones((1, 1))
        low, high = (float(mixture_quantile(column, [part], one, p)[0]) for p in (0.25, 0.75))
        return f"{column.name} {low:.3g} to {high:.3g}"
    whole = stats.sums.sum(axis=0, keepdims=True)
    rest = column_stats(family, TableStats(stats.size.sum(keepdims=True), whole), 0, at)
    level = int(np.argmax(salience(column, part, rest, family, at)))
    mean = posterior_mean(column, part, family, at)[level]
    if column.family in ("full", "tied"):
        return f"{column.levels[level]} about {mean:.3g}"
    label = f"{column.name} {column.levels[level]}" if column.family != "dirichlet" else column.levels[level]
    return f"{label} {100 * mean:.0f} %"
