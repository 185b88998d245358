"""Slow, plainly right tables: marginals by scipy's densities, chain rule and numerical integration."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp


def number_predictive(values: np.ndarray, x: float, kappa: float, a: float, b: float) -> float:
    """Student t of a Normal-Gamma posterior around 0."""
    n = len(values)
    mean = values.sum() / (kappa + n)
    rate = b + 0.5 * ((values**2).sum() - (kappa + n) * mean**2)
    shape = a + n / 2
    scale = np.sqrt(rate * (kappa + n + 1) / (shape * (kappa + n)))
    return float(stats.t.logpdf(x, 2 * shape, mean, scale))


def count_predictive(values: np.ndarray, x: float, shape: float, rate: float) -> float:
    """Negative binomial of a Gamma posterior."""
    total = rate + len(values)
    return float(stats.nbinom.logpmf(x, shape + values.sum(), total / (total + 1)))


def category_predictive(values: np.ndarray, x: float, prior: np.ndarray) -> float:
    seen = prior + np.bincount(values.astype(int), minlength=len(prior))
    return float(np.log(seen[int(x)] / seen.sum()))


def vector_predictive(rows: np.ndarray, x: np.ndarray, kappa: float, nu: float, scale: float) -> float:
    """Multivariate t of a Normal-inverse-Wishart posterior around 0."""
    (n, d), kn = rows.shape, kappa + len(rows)
    mean = rows.sum(axis=0) / kn
    scatter = scale * np.eye(d) + rows.T @ rows - kn * np.outer(mean, mean)
    freedom = nu + n - d + 1
    return float(stats.multivariate_t.logpdf(x, mean, scatter * (kn + 1) / (kn * freedom), freedom))


def log_integral_of_two(m: float, total_log: np.ndarray) -> float:
    """h(m, s) of Dirichlet rows of two parts: the log of the integral of exp(<alpha, s> - m g(alpha)), numerically."""
    logs = np.linspace(-6, 9, 500)
    grid = np.exp(logs)
    one, two = np.meshgrid(grid, grid)
    g = gammaln(one) + gammaln(two) - gammaln(one + two)
    values = one * total_log[0] + two * total_log[1] - m * g + np.log(one) + np.log(two)
    return float(logsumexp(values) + 2 * np.log(logs[1] - logs[0]))
