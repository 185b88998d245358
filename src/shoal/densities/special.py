"""Inverse maps without a closed form: from averaged logarithms back to Dirichlet and Gamma parameters."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, polygamma

EULER = 0.5772156649015329


def inverse_digamma(y: np.ndarray, steps: int = 6) -> np.ndarray:
    """The x > 0 with psi(x) = y, by Newton from Minka's start.

    >>> inverse_digamma(digamma(np.array([0.01, 1.0, 300.0]))).round(10)
    array([1.e-02, 1.e+00, 3.e+02])
    """
    y = np.asarray(y, dtype=float)
    with np.errstate(over="ignore"):
        x = np.where(y >= -2.22, np.exp(np.minimum(y, 700.0)) + 0.5, -1.0 / (np.minimum(y, -2.22) + EULER))
    for _ in range(steps):
        x = x - (digamma(x) - y) / polygamma(1, x)
    return x


def dirichlet_from_mean_logs(mean_logs: np.ndarray, max_iter: int = 100) -> np.ndarray:
    """alpha with ``psi(alpha_i) - psi(sum alpha) = mean_logs_i``, row by row.

    For a guess s of the sum, alpha(s)_i = psi^-1(l_i + psi(s)); the root of log sum alpha(s) = log s is unique.
    Bisection in log s brackets it (it cannot run away, as Newton does for nearly degenerate rows), Newton on all
    alphas polishes.
    """
    low, high = np.full(mean_logs.shape[0], -12.0), np.full(mean_logs.shape[0], 24.0)
    for _ in range(30):
        middle = 0.5 * (low + high)
        alphas = inverse_digamma(mean_logs + digamma(np.exp(middle))[:, None])
        too_small = np.log(alphas.sum(1)) > middle
        low, high = np.where(too_small, middle, low), np.where(too_small, high, middle)
    alphas = inverse_digamma(mean_logs + digamma(np.exp(0.5 * (low + high)))[:, None])
    for _ in range(max_iter):
        # The Hessian is diagonal plus a rank-one term, so a Newton step costs O(d) (Minka 2000).
        total = alphas.sum(1, keepdims=True)
        gradient = digamma(total) - digamma(alphas) + mean_logs
        diagonal, common = -polygamma(1, alphas), polygamma(1, total)
        shared = (gradient / diagonal).sum(1, keepdims=True) / (1 / common + (1 / diagonal).sum(1, keepdims=True))
        step = (gradient - shared) / diagonal
        moved = alphas - step
        alphas = np.where(moved > 0, moved, alphas / 2)
        if np.abs(step).max() <= 1e-13 * np.abs(alphas).max():
            break
    return np.asarray(alphas)


def gamma_from_moments(means: np.ndarray, mean_logs: np.ndarray, max_iter: int = 60) -> np.ndarray:
    """Shapes k with ``log k - psi(k) = log(mean) - mean_log``, by Newton from Minka's start.

    >>> k = np.array([0.3, 2.0, 50.0])
    >>> gamma_from_moments(k / 4, digamma(k) - np.log(4)).round(9)
    array([ 0.3,  2. , 50. ])
    """
    spread = np.maximum(np.log(means) - mean_logs, 1e-14)
    shapes = (3 - spread + np.sqrt((spread - 3) ** 2 + 24 * spread)) / (12 * spread)
    for _ in range(max_iter):
        moved = shapes - (np.log(shapes) - digamma(shapes) - spread) / (1 / shapes - polygamma(1, shapes))
        moved = np.where(moved > 0, moved, shapes / 2)
        settled = np.abs(moved - shapes) <= 1e-14 * shapes
        shapes = moved
        if settled.all():
            break
    return np.asarray(shapes)
