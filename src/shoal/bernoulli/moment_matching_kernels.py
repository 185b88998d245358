# mypy: ignore-errors
"""Moment matching: a mixture of two Betas is projected to one with the same mean and variance."""

from __future__ import annotations

from shoal.jit import kernel


@kernel
def match_moments(alpha, n, share):
    """Project r Beta(alpha + 1, .) + (1 - r) Beta(alpha, .) onto one Beta; return its alpha and alpha + beta."""
    r, q = share, 1.0 - share
    m1 = r * (alpha + 1.0) / (n + 1.0) + q * alpha / n
    m2 = r * (alpha + 1.0) * (alpha + 2.0) / ((n + 1.0) * (n + 2.0)) + q * alpha * (alpha + 1.0) / (n * (n + 1.0))
    after = (m1 - m2) / (m2 - m1 * m1)
    return m1 * after, after
