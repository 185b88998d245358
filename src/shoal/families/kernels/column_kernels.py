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

from shoal.families.kernels.dirichlet_kernels import marginal_proportions, refresh_proportions, score_proportions
from shoal.families.kernels.matrix_kernels import add_outer
from shoal.families.kernels.scores_kernels import log_gamma_ratio
from shoal.families.kernels.vector_kernels import (
    marginal_vector,
    marginal_whitened,
    refresh_vector,
    refresh_whitened,
    score_vector,
    score_whitened,
    shift_vector,
)
from shoal.jit import kernel

NUMBER, COUNT, CATEGORY, PROPORTIONS, VECTOR, WHITENED, WORDS, SETS = range(8)
LOG_2PI = math.log(2 * math.pi)


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
