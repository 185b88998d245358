"""The prior over cluster sizes: a symmetric Dirichlet over ``n_clusters`` weights, or a Dirichlet process.

With the weights integrated out, a row joins a cluster of n other rows with weight n + alpha, and each empty cluster
with weight alpha. For a Dirichlet process alpha is 0, and all empty clusters together have the weight
``dp_concentration``.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from shoal.jit import inline_kernel, kernel

LOG_ZERO = -1e300  # the score of what cannot be


@kernel
def log_rows_weight(prior, n):
    """Log prior weight of a cluster with n > 0 other rows."""
    return math.log(n + prior.alpha)


@inline_kernel
def empty_weight(prior, n_empty):
    """Prior weight of all empty clusters together."""
    return prior.dp_concentration if prior.dp_concentration > 0 else n_empty * prior.alpha


@kernel
def log_empty_weight(prior, n_empty):
    """Log prior weight of all empty clusters together."""
    weight = empty_weight(prior, n_empty)
    return math.log(weight) if n_empty > 0 and weight > 0 else LOG_ZERO


@kernel
def log_prior_pair(prior, a, b):
    """log p(labels) with clusters of a and b rows as one, minus that with two."""
    if prior.dp_concentration > 0:
        return math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - math.log(prior.dp_concentration)
    alpha = prior.alpha
    return math.lgamma(alpha + a + b) + math.lgamma(alpha) - math.lgamma(alpha + a) - math.lgamma(alpha + b)
