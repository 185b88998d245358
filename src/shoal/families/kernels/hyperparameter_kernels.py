"""Sums over the clusters' counts that learning the prior needs."""

# mypy: ignore-errors
from __future__ import annotations

from shoal.jit import kernel


@kernel
def shape_gradient(prior, clusters, mean):
    """(sum of f_cv / (f_cv - 1 + a_v), the same weighted by mean_v) over all clusters' counts."""
    plain, weighted = 0.0, 0.0
    for cluster in range(len(clusters.size)):
        if clusters.size[cluster] == 0:
            continue
        start = clusters.start[cluster]
        for at in range(start, start + (1 << clusters.bits[cluster])):
            feature, seen = clusters.slots[at, 0], clusters.slots[at, 1]
            if feature >= 0 and seen > 0:
                count = seen * prior.unit
                pull = count / (max(count - 1.0, 0.0) + prior.shape[feature])
                plain += pull
                weighted += pull * mean[feature]
    return plain, weighted
