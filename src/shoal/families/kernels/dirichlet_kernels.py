"""Rows that are proportions: Dirichlet with an unknown parameter, and the digamma functions it needs."""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from shoal.jit import kernel

LOG_2PI = math.log(2 * math.pi)
NEWTON_STEPS, NEWTON_TOL = 30, 1e-9


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
