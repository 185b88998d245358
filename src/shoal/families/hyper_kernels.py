"""Sums over the clusters' counts that learning the prior needs."""

# mypy: ignore-errors
from __future__ import annotations

import math

from shoal.jit import kernel


@kernel
def digamma(x):
    """psi(x) for x > 0."""
    shift = 0.0
    while x < 6.0:
        shift -= 1 / x
        x += 1
    inverse = 1 / (x * x)
    return shift + math.log(x) - 0.5 / x - inverse * (1 / 12 - inverse * (1 / 120 - inverse / 252))


@kernel
def digamma_rise(a, x):
    """psi(a + x) - psi(a)"""
    if x == 1.0:
        return 1 / a
    if x == 2.0:
        return 1 / a + 1 / (a + 1)
    return digamma(a + x) - digamma(a)


@kernel
def shape_gradient(prior, clusters, mean):
    """(sum of psi(a_v + f_cv) - psi(a_v), the same weighted by mean_v) over all clusters' counts."""
    plain, weighted = 0.0, 0.0
    for cluster in range(len(clusters.size)):
        if clusters.size[cluster] == 0:
            continue
        start = clusters.start[cluster]
        for at in range(start, start + (1 << clusters.bits[cluster])):
            feature, seen = clusters.slots[at, 0], clusters.slots[at, 1]
            if feature >= 0 and seen > 0:
                rise = digamma_rise(prior.shape[feature], seen * prior.unit)
                plain += rise
                weighted += rise * mean[feature]
    return plain, weighted
