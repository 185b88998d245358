"""Vectors of measurements: Gaussians with a covariance of their own, or one that all clusters share."""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from shoal.families.kernels.matrix_kernels import cholesky, solve_squared, update_cholesky
from shoal.jit import kernel

LOG_2PI = math.log(2 * math.pi)


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
