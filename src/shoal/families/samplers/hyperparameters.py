"""Learning the prior from the clusters: pseudo-counts of words, pseudo-rows, and the weight of empty clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import psi

from shoal.families.distributions.counts import CountFamily
from shoal.families.kernels.hyperparameter_kernels import shape_gradient
from shoal.families.samplers.count_chain import CountChain
from shoal.families.samplers.held_out import learn_smoothing

LEAST_SMOOTHING, LEAST_STRENGTH = 1e-5, 1e-3
# Smoothing is exponential a priori, 0.1 on average. Any real corpus outvotes that; a handful of rows does not, and
# without it all of them in one cluster under endless smoothing would be likelier than what anybody would call a group.
SMOOTHING_RATE = 10.0


def learn_family(chain: CountChain, family: CountFamily, n_steps: int = 3, *, by_rows: bool = True) -> CountFamily:
    """A prior that suits the chain's clusters better than that of ``family``: of documents each word is predicted
    better, other clusters are likelier."""
    if by_rows and family.length_given and family.strength == 0:
        return learn_smoothing(chain, family, SMOOTHING_RATE, LEAST_SMOOTHING)
    if family.length_given:
        return _learn_dirichlet(chain, family, n_steps)
    return _learn_strength(chain, family)


def _learn_dirichlet(chain: CountChain, family: CountFamily, n_steps: int) -> CountFamily:
    """Minka's fixed point for pseudo-counts b + s m_v by which each word is predicted best from all others of its
    cluster: a part grows by its share in prediction (for b, under its exponential prior).

    The likelihood of the clusters themselves would ask how they were when they were small: real words go on being new
    for longer than a Dirichlet has it, and the smoothing it finds is too little for the clusters as they are."""
    clusters, mean = chain.clusters, family.mean
    totals = clusters.total[clusters.size > 0] * chain.prior.unit
    smoothing, strength = family.smoothing, family.strength
    for _ in range(n_steps):
        shape = smoothing + strength * mean
        total = float(shape.sum())
        trial = chain.prior._replace(shape=shape, shape_total=total)
        plain, weighted = shape_gradient(trial, clusters, mean)
        tokens = float((totals / (np.maximum(totals - 1, 0) + total)).sum())
        if tokens <= 0:
            break
        smoothing = (
            max(smoothing * plain / (len(mean) * tokens + SMOOTHING_RATE), LEAST_SMOOTHING) if smoothing > 0 else 0.0
        )
        strength = max(strength * weighted / (tokens * mean.sum()), LEAST_STRENGTH) if strength > 0 else 0.0
    return replace(family, smoothing=float(smoothing), strength=float(strength))


def _learn_strength(chain: CountChain, family: CountFamily) -> CountFamily:
    """Pseudo-rows of the prior (Poisson, Bernoulli): climb the log marginal in steps of half as much again."""

    def value(strength: float) -> float:
        trial = replace(family, strength=strength).prior(
            alpha=chain.prior.alpha,
            dp_concentration=chain.prior.dp_concentration,
            unit=chain.prior.unit,
            n_rows=len(chain.labels),
        )
        return float(chain.log_marginals(trial).sum())

    # While clusters are alike the evidence asks for strength without end, and endless strength keeps them alike.
    limit = max(len(chain.labels) / (2 * chain.n_clusters), 1.0)
    start = min(family.strength, limit)
    best, best_value = start, value(start)
    for factor in (1.5, 1 / 1.5):
        while LEAST_STRENGTH < best * factor < limit and (trial := value(best * factor)) > best_value:
            best, best_value = best * factor, trial
    return replace(family, strength=best)


def learn_alpha(size: np.ndarray, alpha: float, n_steps: int = 5) -> float:
    """Minka's fixed point for the symmetric Dirichlet over weights."""
    live, n, k = size[size > 0], size.sum(), len(size)
    for _ in range(n_steps):
        grown = (psi(live + alpha) - psi(alpha)).sum() / (k * (psi(n + k * alpha) - psi(k * alpha)))
        alpha = float(np.clip(alpha * grown, 1e-4, 10.0))
    return alpha


def learn_process(size: np.ndarray, concentration: float, n_steps: int = 20) -> float:
    """Concentration of the Dirichlet process under which this many clusters are expected (the likeliest one)."""
    n, live = float(size.sum()), int((size > 0).sum())
    for _ in range(n_steps):
        concentration = float(np.clip(live / (psi(concentration + n) - psi(concentration)), 1e-3, 1e6))
    return concentration
