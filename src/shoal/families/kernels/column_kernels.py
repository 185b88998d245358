"""The distributions a column of a table can have: one registry of small compiled functions.

A column is a slice of a row's values, of a cluster's statistics, of what is kept of its posterior, and of the
hyperparameters. Each kind says how a row enters the statistics (`add_*`), what is kept of the posterior (`refresh_*`),
the log predictive of a value (`score_*`) and the log marginal of a cluster's values (`marginal_*`). Nothing else in the
package knows the kinds: to add one, write the four and name them in `add_value`, `refresh_column`, `score_value` and
`log_marginal_of`.

The first statistic is always the number of rows that have a value. Missing values are left out of everything.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.families.kernels.matrix_kernels import add_outer, cholesky, solve_squared, update_cholesky
from shoal.families.kernels.scores_kernels import log_gamma_ratio
from shoal.jit import kernel

NUMBER, COUNT, CATEGORY, PROPORTIONS, VECTOR, WHITENED, WORDS, SETS = range(8)
LOG_2PI = math.log(2 * math.pi)
NEWTON_STEPS, NEWTON_TOL = 30, 1e-9


class Layout(NamedTuple):
    """Where the columns of a table are. All arrays but the last have one entry for each column, and one for the end."""

    kind: np.ndarray  # (c,) int64
    value: np.ndarray  # (c + 1,) int64: first of a row's values (dense kinds) or features (sparse kinds)
    stat: np.ndarray  # (c + 1,) int64: first of a cluster's statistics
    kept: np.ndarray  # (c + 1,) int64: first of what is kept of a cluster's posterior
    hyper: np.ndarray  # (c + 1,) int64: first of the hyperparameters
    sparse: np.ndarray  # (c,) int64: number among the sparse columns, -1 for the dense
    prior: np.ndarray  # (h,) hyperparameters


class Table(NamedTuple):
    """Rows of a table, encoded."""

    values: np.ndarray  # (n, p) float64, dense columns
    present: np.ndarray  # (n, c) bool: whether a row has a value in the column
    starts: np.ndarray  # (n, s + 1) int64: where each sparse column of a row begins in `features`
    features: np.ndarray  # int64, within the column
    counts: np.ndarray  # float64


# --- special functions ------------------------------------------------------------------------------------------------


@kernel
def digamma(x):
    """psi(x) for x > 0: recurrence up to 8, then the asymptotic series."""
    shift = 0.0
    while x < 8.0:
        shift -= 1.0 / x
        x += 1.0
    t = 1.0 / (x * x)
    series = t * (1 / 12 - t * (1 / 120 - t * (1 / 252 - t * (1 / 240 - t / 132))))
    return shift + math.log(x) - 0.5 / x - series


@kernel
def trigamma(x):
    """psi'(x) for x > 0."""
    shift = 0.0
    while x < 8.0:
        shift += 1.0 / (x * x)
        x += 1.0
    t = 1.0 / (x * x)
    return shift + 1.0 / x + 0.5 * t + t / x * (1 / 6 - t * (1 / 30 - t * (1 / 42 - t / 30)))


# --- numbers: Gaussian, mean and variance unknown (hyperparameters kappa, a, b around 0) ------------------------------


@kernel
def number_posterior(stats, prior):
    """(kappa, mean, a, b) of the Normal-Gamma posterior."""
    kappa = prior[0] + stats[0]
    mean = stats[1] / kappa
    beyond = max(0.5 * (stats[2] - kappa * mean * mean), 0.0)
    return kappa, mean, prior[1] + 0.5 * stats[0], prior[2] + beyond


@kernel
def refresh_number(stats, prior, kept):
    """Student t: constant, power, location, 1 / (degrees of freedom * scale^2)."""
    kappa, mean, a, b = number_posterior(stats, prior)
    kept[0] = math.lgamma(a + 0.5) - math.lgamma(a) - 0.5 * (LOG_2PI + math.log(b * (kappa + 1) / kappa))
    kept[1], kept[2], kept[3] = a + 0.5, mean, kappa / (2 * (kappa + 1) * b)


@kernel
def score_number(x, kept):
    gap = x - kept[2]
    return kept[0] - kept[1] * math.log1p(gap * gap * kept[3])


@kernel
def marginal_number(stats, prior):
    kappa, _, a, b = number_posterior(stats, prior)
    value = 0.5 * (math.log(prior[0] / kappa) - stats[0] * LOG_2PI)
    return value + math.lgamma(a) - math.lgamma(prior[1]) + prior[1] * math.log(prior[2]) - a * math.log(b)


# --- counts: Poisson with a Gamma prior (hyperparameters shape, rate) -------------------------------------------------


@kernel
def refresh_count(stats, prior, kept):
    """Negative binomial: shape, constant, log(rate + 1)."""
    shape, rate = prior[0] + stats[1], prior[1] + stats[0]
    kept[0], kept[2] = shape, math.log(rate + 1)
    kept[1] = shape * (math.log(rate) - kept[2])


@kernel
def score_count(x, kept):
    return log_gamma_ratio(kept[0], x) + kept[1] - x * kept[2] - math.lgamma(x + 1)


@kernel
def marginal_count(stats, prior):
    """Without the sum of log x! over the rows."""
    shape, rate = prior[0], prior[1]
    value = log_gamma_ratio(shape, stats[1]) + shape * math.log(rate)
    return value - (shape + stats[1]) * math.log(rate + stats[0])


# --- categories: a Dirichlet prior over the levels (one hyperparameter a level) ---------------------------------------


@kernel
def refresh_category(stats, prior, kept):
    total = math.log(prior.sum() + stats[0])
    for level in range(len(prior)):
        kept[level] = math.log(prior[level] + stats[1 + level]) - total


@kernel
def marginal_category(stats, prior):
    value = -log_gamma_ratio(prior.sum(), stats[0])
    for level in range(len(prior)):
        value += log_gamma_ratio(prior[level], stats[1 + level])
    return value


# --- proportions: Dirichlet rows with an unknown parameter, whose conjugate prior has no normalizer in closed form ----
#
# phi(p) = log p, theta = alpha - 1, g(alpha) = sum lnG(alpha_v) - lnG(sum alpha). Hyperparameters: m0 pseudo-rows, and
# the d means of log p they have. h(m, s), the log of the integral of exp(<alpha, s> - m g(alpha)), is intractable.


@kernel
def fit_dirichlet(mean_log, alpha):
    """theta*: the alpha with psi(alpha_v) - psi(sum alpha) = mean log p_v, by Newton's steps (Minka) from `alpha`."""
    d = len(alpha)
    slope, gradient = np.empty(d), np.empty(d)
    for _ in range(NEWTON_STEPS):
        total = alpha.sum()
        whole, both, weight = digamma(total), 0.0, 0.0
        for v in range(d):
            gradient[v] = whole - digamma(alpha[v]) + mean_log[v]
            slope[v] = -trigamma(alpha[v])
            both += gradient[v] / slope[v]
            weight += 1.0 / slope[v]
        shared = both / (1.0 / trigamma(total) + weight)
        largest = 0.0
        for v in range(d):
            step = (gradient[v] - shared) / slope[v]
            after = alpha[v] - step
            if after <= 0.1 * alpha[v]:
                after = 0.1 * alpha[v]  # Newton's step leaves the region of positive numbers
            after = min(after, 1e8)
            largest = max(largest, abs(after - alpha[v]) / alpha[v])
            alpha[v] = after
        if largest < NEWTON_TOL:
            break


@kernel
def log_partition(alpha):
    """g(alpha)"""
    value = -math.lgamma(alpha.sum())
    for v in range(len(alpha)):
        value += math.lgamma(alpha[v])
    return value


@kernel
def refresh_proportions(stats, prior, kept):
    """theta* and g(theta*), for the first-order expansion of h: h(m + 1, s + phi) - h(m, s) ~ <phi, theta*> - g(theta*)
    (equation 6)."""
    d = len(prior) - 1
    mean_log = (prior[0] * prior[1:] + stats[1:]) / (prior[0] + stats[0])
    alpha = kept[:d]
    alpha[:] = 1.0
    fit_dirichlet(mean_log, alpha)
    kept[d] = log_partition(alpha)


@kernel
def score_proportions(log_shares, kept):
    d = len(log_shares)
    value = -kept[d]
    for v in range(d):
        value += (kept[v] - 1.0) * log_shares[v]
    return value


@kernel
def log_integral(m, total_log, alpha):
    """h(m, s) by Laplace's approximation around its maximum `alpha`."""
    d, value, determinant, weight = len(alpha), -m * log_partition(alpha), 0.0, 0.0
    for v in range(d):
        curve = trigamma(alpha[v])
        value += alpha[v] * total_log[v]
        determinant += math.log(m * curve)
        weight += 1.0 / curve
    determinant += math.log(max(1.0 - trigamma(alpha.sum()) * weight, 1e-300))
    return value + 0.5 * d * LOG_2PI - 0.5 * determinant


@kernel
def marginal_proportions(stats, prior):
    alpha, before = np.ones(len(prior) - 1), prior[0] * prior[1:]
    fit_dirichlet(prior[1:], alpha)
    value = -log_integral(prior[0], before, alpha)
    after, m = before + stats[1:], prior[0] + stats[0]
    fit_dirichlet(after / m, alpha)
    return value + log_integral(m, after, alpha) - stats[1:].sum()


# --- vectors: Gaussian with a full covariance (hyperparameters kappa, nu, the prior scale of each coordinate) ---------


@kernel
def vector_shape(prior):
    return len(prior) - 2


@kernel
def refresh_vector(stats, prior, kept):
    """Mean, then the lower triangle L of the posterior scale matrix L L', from the statistics."""
    d = vector_shape(prior)
    kappa = prior[0] + stats[0]
    mean, lower = kept[4 : 4 + d], kept[4 + d :].reshape(d, d)
    mean[:] = stats[1 : 1 + d] / kappa
    outer = stats[1 + d :].reshape(d, d)
    for i in range(d):
        for j in range(i + 1):
            lower[i, j] = outer[i, j] - kappa * mean[i] * mean[j]
        lower[i, i] += prior[2 + i]
    cholesky(lower)
    finish_vector(stats, prior, kept)


@kernel
def finish_vector(stats, prior, kept):
    """Multivariate t: constant, power, and 1 / (degrees of freedom * scale)."""
    d = vector_shape(prior)
    kappa, nu = prior[0] + stats[0], prior[1] + stats[0]
    lower = kept[4 + d :].reshape(d, d)
    log_determinant = 0.0
    for i in range(d):
        log_determinant += math.log(lower[i, i])
    kept[1] = 0.5 * (nu + 1)
    kept[2] = kappa / (kappa + 1)
    kept[0] = math.lgamma(kept[1]) - math.lgamma(0.5 * (nu + 1 - d)) - log_determinant
    kept[0] += 0.5 * d * (math.log(kept[2]) - math.log(math.pi))


@kernel
def score_vector(x, kept):
    d = len(x)
    return kept[0] - kept[1] * math.log1p(kept[2] * solve_squared(kept[4 + d :].reshape(d, d), x, kept[4 : 4 + d]))


@kernel
def shift_vector(x, sign, stats, prior, kept):
    """A row more or less: a step of rank one (`stats` have it already), O(d^2) where a refresh is O(d^3)."""
    d = len(x)
    kappa = prior[0] + stats[0]
    mean = kept[4 : 4 + d]
    gap = np.empty(d)
    if sign > 0:
        share = math.sqrt((kappa - 1) / kappa)
        for i in range(d):
            gap[i] = share * (x[i] - mean[i])
            mean[i] += (x[i] - mean[i]) / kappa
    else:
        share = math.sqrt(kappa / (kappa + 1))
        for i in range(d):
            mean[i] -= (x[i] - mean[i]) / kappa
            gap[i] = share * (x[i] - mean[i])
    if update_cholesky(kept[4 + d :].reshape(d, d), gap, sign):
        finish_vector(stats, prior, kept)
    else:
        refresh_vector(stats, prior, kept)


@kernel
def log_gamma_of_dimension(d, x):
    """Multivariate log gamma."""
    value = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        value += math.lgamma(x - 0.5 * j)
    return value


@kernel
def marginal_vector(stats, prior):
    d, n = vector_shape(prior), stats[0]
    kept = np.empty(4 + d + d * d)
    refresh_vector(stats, prior, kept)
    lower = kept[4 + d :].reshape(d, d)
    before, after = 0.0, 0.0
    for i in range(d):
        before += math.log(prior[2 + i])
        after += 2 * math.log(lower[i, i])
    nu = prior[1]
    value = 0.5 * d * (math.log(prior[0] / (prior[0] + n)) - n * math.log(math.pi))
    value += log_gamma_of_dimension(d, 0.5 * (nu + n)) - log_gamma_of_dimension(d, 0.5 * nu)
    return value + 0.5 * nu * before - 0.5 * (nu + n) * after


# --- whitened vectors: Gaussian of unit covariance, mean unknown (hyperparameter kappa): one covariance for all -------


@kernel
def refresh_whitened(stats, prior, kept):
    kappa = prior[0] + stats[0]
    d = len(kept) - 2
    kept[2:] = stats[2 : 2 + d] / kappa
    kept[1] = 0.5 * kappa / (kappa + 1)
    kept[0] = 0.5 * d * (math.log(kappa / (kappa + 1)) - LOG_2PI)


@kernel
def score_whitened(x, kept):
    apart = 0.0
    for j in range(len(x)):
        gap = x[j] - kept[2 + j]
        apart += gap * gap
    return kept[0] - kept[1] * apart


@kernel
def marginal_whitened(stats, prior):
    d = len(stats) - 2
    kappa = prior[0] + stats[0]
    total = stats[2:]
    value = 0.5 * d * (math.log(prior[0] / kappa) - stats[0] * LOG_2PI)
    return value - 0.5 * (stats[1] - (total * total).sum() / kappa)


# --- words: multinomial with a Dirichlet prior, sparse (one hyperparameter a word) ------------------------------------


@kernel
def score_words(features, counts, stats, prior_total, prior):
    length, value = 0.0, 0.0
    for at in range(len(features)):
        length += counts[at]
        value += log_gamma_ratio(prior[features[at]] + stats[2 + features[at]], counts[at])
    return value - log_gamma_ratio(prior_total + stats[1], length)


@kernel
def marginal_words(stats, prior_total, prior):
    value = -log_gamma_ratio(prior_total, stats[1])
    for v in range(len(prior)):
        if stats[2 + v] > 0:
            value += log_gamma_ratio(prior[v], stats[2 + v])
    return value


# --- sets: a Beta for each feature, sparse (hyperparameters: the strength, then a pseudo-count for each) --------------


@kernel
def refresh_sets(stats, prior, kept):
    """The log probability that none is present."""
    strength, n = prior[0], stats[0]
    value = 0.0
    for v in range(len(prior) - 1):
        a = prior[1 + v]
        value += math.log((strength - a + n - stats[2 + v]) / (strength + n))
    kept[0] = value


@kernel
def score_sets(features, stats, prior, kept):
    value = kept[0]
    for at in range(len(features)):
        a, seen = prior[1 + features[at]], stats[2 + features[at]]
        value += math.log((a + seen) / (prior[0] - a + stats[0] - seen))
    return value


@kernel
def marginal_sets(stats, prior):
    strength, n = prior[0], stats[0]
    value = -(len(prior) - 1) * log_gamma_ratio(strength, n)
    for v in range(len(prior) - 1):
        a, seen = prior[1 + v], stats[2 + v]
        value += log_gamma_ratio(a, seen) + log_gamma_ratio(strength - a, n - seen)
    return value


# --- the registry -----------------------------------------------------------------------------------------------------


@kernel
def sparse_part(layout, table, row, column):
    """(features, counts) of a row in a sparse column."""
    at = layout.sparse[column]
    first, last = table.starts[row, at], table.starts[row, at + 1]
    return table.features[first:last], table.counts[first:last]


@kernel
def add_value(layout, table, row, column, sign, stats):
    """A row enters (sign 1) or leaves (-1) a cluster's statistics."""
    kind, part = layout.kind[column], stats[layout.stat[column] : layout.stat[column + 1]]
    part[0] += sign
    if kind in (WORDS, SETS):
        features, counts = sparse_part(layout, table, row, column)
        for at in range(len(features)):
            more = counts[at] if kind == WORDS else 1.0
            part[1] += sign * more
            part[2 + features[at]] += sign * more
        return
    x = table.values[row, layout.value[column] : layout.value[column + 1]]
    if kind == NUMBER:
        part[1] += sign * x[0]
        part[2] += sign * x[0] * x[0]
    elif kind == COUNT:
        part[1] += sign * x[0]
    elif kind == CATEGORY:
        part[1 + np.int64(x[0])] += sign
    elif kind == VECTOR:
        add_outer(x, sign, part[1 : 1 + len(x)], part[1 + len(x) :].reshape(len(x), len(x)))
    elif kind == WHITENED:
        for j in range(len(x)):
            part[1] += sign * x[j] * x[j]
            part[2 + j] += sign * x[j]
    else:
        for j in range(len(x)):
            part[1 + j] += sign * x[j]


@kernel
def refresh_column(layout, column, stats, kept):
    """What is kept of a cluster's posterior, from its statistics."""
    kind = layout.kind[column]
    part = stats[layout.stat[column] : layout.stat[column + 1]]
    prior = layout.prior[layout.hyper[column] : layout.hyper[column + 1]]
    own = kept[layout.kept[column] : layout.kept[column + 1]]
    if kind == NUMBER:
        refresh_number(part, prior, own)
    elif kind == COUNT:
        refresh_count(part, prior, own)
    elif kind == CATEGORY:
        refresh_category(part, prior, own)
    elif kind == PROPORTIONS:
        refresh_proportions(part, prior, own)
    elif kind == VECTOR:
        refresh_vector(part, prior, own)
    elif kind == WHITENED:
        refresh_whitened(part, prior, own)
    elif kind == SETS:
        refresh_sets(part, prior, own)
    elif kind == WORDS:
        own[0] = prior.sum()


@kernel
def score_value(layout, table, row, column, stats, kept):
    """Log predictive of a row's value in a column under a cluster."""
    kind = layout.kind[column]
    own = kept[layout.kept[column] : layout.kept[column + 1]]
    if kind in (WORDS, SETS):
        features, counts = sparse_part(layout, table, row, column)
        part = stats[layout.stat[column] : layout.stat[column + 1]]
        prior = layout.prior[layout.hyper[column] : layout.hyper[column + 1]]
        if kind == WORDS:
            return score_words(features, counts, part, own[0], prior)
        return score_sets(features, part, prior, own)
    x = table.values[row, layout.value[column] : layout.value[column + 1]]
    if kind == NUMBER:
        return score_number(x[0], own)
    if kind == COUNT:
        return score_count(x[0], own)
    if kind == CATEGORY:
        return own[np.int64(x[0])]
    if kind == VECTOR:
        return score_vector(x, own)
    if kind == WHITENED:
        return score_whitened(x, own)
    return score_proportions(x, own)


@kernel
def shift_column(layout, table, row, column, sign, stats, kept):
    """A row enters or leaves a cluster: statistics, and what is kept of the posterior."""
    add_value(layout, table, row, column, sign, stats)
    if layout.kind[column] == VECTOR:
        part = stats[layout.stat[column] : layout.stat[column + 1]]
        prior = layout.prior[layout.hyper[column] : layout.hyper[column + 1]]
        x = table.values[row, layout.value[column] : layout.value[column + 1]]
        shift_vector(x, sign, part, prior, kept[layout.kept[column] : layout.kept[column + 1]])
    elif layout.kind[column] != WORDS:  # what is kept of words is the prior's alone
        refresh_column(layout, column, stats, kept)


@kernel
def log_marginal_of(layout, column, stats):
    """Log marginal of a cluster's values in a column; of counts, without log x!."""
    kind = layout.kind[column]
    part = stats[layout.stat[column] : layout.stat[column + 1]]
    prior = layout.prior[layout.hyper[column] : layout.hyper[column + 1]]
    if part[0] == 0:
        return 0.0
    if kind == NUMBER:
        return marginal_number(part, prior)
    if kind == COUNT:
        return marginal_count(part, prior)
    if kind == CATEGORY:
        return marginal_category(part, prior)
    if kind == PROPORTIONS:
        return marginal_proportions(part, prior)
    if kind == VECTOR:
        return marginal_vector(part, prior)
    if kind == WHITENED:
        return marginal_whitened(part, prior)
    if kind == WORDS:
        return marginal_words(part, prior.sum(), prior)
    return marginal_sets(part, prior)
