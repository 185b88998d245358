"""How many rows the prior is worth: the strength of most evidence (empirical Bayes)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

LEAST, MOST = 0.05, 2000.0
MOST_CELLS = 40_000  # features x clusters looked at; they stand for the others
FIRST_STRENGTH = 2.0  # before anything is learned, and while clusters are still alike
STEPS = 8  # of the golden section


def learned_strength(counts: np.ndarray, mass: np.ndarray, background: np.ndarray, strength: float) -> float:
    """The s of most evidence of all Betas with prior Beta(s b, s (1 - b)), within a factor 8 of ``strength``.

    ``counts`` is (n_features, k). The prior is never worth more than half an average cluster: while clusters are alike
    the evidence wants s without end, which would keep them alike for ever.

    >>> background = np.full(6, 0.3)
    >>> alike = np.tile(background[:, None] * 1000, 2)
    >>> apart = np.array([[900.0, 0]] * 3 + [[0, 900]] * 3)
    >>> mass = np.array([1000.0, 1000.0])
    >>> learned_strength(alike, mass, background, 2.0) > 10 * learned_strength(apart, mass, background, 2.0)
    True
    """
    most = min(MOST, max(FIRST_STRENGTH, float(mass.sum()) / (2 * mass.size)))
    n_looked = max(50, MOST_CELLS // mass.size)
    if background.size > n_looked:  # spread evenly over the features by frequency
        order = np.argsort(-background, kind="stable")
        some = order[np.linspace(0, background.size - 1, n_looked).astype(np.int64)]
        counts, background = counts[some], background[some]
    if mass.size > MOST_CELLS // 50:
        some = np.linspace(0, mass.size - 1, MOST_CELLS // 50).astype(np.int64)
        counts, mass = counts[:, some], mass[some]
    low, high = math.log(max(LEAST, strength / 8)), math.log(min(most, strength * 8))
    return math.exp(_golden_section(lambda log_s: evidence(counts, mass, background, math.exp(log_s)), low, high))


def evidence(counts: np.ndarray, mass: np.ndarray, background: np.ndarray, strength: float) -> float:
    """Log evidence of all Betas: sum of ln B(s b + h, s (1 - b) + m - h) - ln B(s b, s (1 - b))."""
    a, q = strength * background[:, None], strength * (1 - background)[:, None]
    present = gammaln(a + counts) - gammaln(a)
    absent = gammaln(q + np.maximum(mass - counts, 0.0)) - gammaln(q)
    both = background.size * (gammaln(strength) - gammaln(strength + mass))
    return float(present.sum() + absent.sum() + both.sum())


def _golden_section(value_at, low: float, high: float) -> float:  # type: ignore[no-untyped-def]
    """The maximum of a function with one peak between ``low`` and ``high``."""
    if high <= low:
        return high
    g = (5**0.5 - 1) / 2
    p, q = high - g * (high - low), low + g * (high - low)
    at_p, at_q = value_at(p), value_at(q)
    for _ in range(STEPS):
        if at_p > at_q:
            high, q, at_q = q, p, at_p
            p = high - g * (high - low)
            at_p = value_at(p)
        else:
            low, p, at_p = p, q, at_q
            q = low + g * (high - low)
            at_q = value_at(q)
    return (low + high) / 2
