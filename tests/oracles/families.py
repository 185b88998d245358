"""Slow, plainly right mixtures of exponential families: marginals by formula, posteriors over every labeling."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, logsumexp


def log_marginal(kind: str, rows: np.ndarray, shape: np.ndarray, rate: float = 1.0) -> float:
    """log p(rows of one cluster), parameters integrated out, log x! left out."""
    n, sums = len(rows), rows.sum(axis=0)
    if kind == "multinomial":
        a = shape + sums
        return float(gammaln(shape.sum()) - gammaln(a.sum()) + (gammaln(a) - gammaln(shape)).sum())
    if kind == "poisson":
        a = shape + sums
        return float((gammaln(a) - gammaln(shape) + shape * np.log(rate) - a * np.log(rate + n)).sum())
    absent = rate - shape  # Bernoulli
    up = gammaln(shape + sums) - gammaln(shape)
    down = gammaln(absent + n - sums) - gammaln(absent)
    return float((up + down).sum() - len(shape) * (gammaln(rate + n) - gammaln(rate)))


def log_labels(labels: np.ndarray, k: int, alpha: float, dp_concentration: float = 0.0) -> float:
    """log p(labels): symmetric Dirichlet weights over k clusters, or a Dirichlet process cut at k."""
    size = np.bincount(labels, minlength=k)
    n, live = len(labels), size[size > 0]
    if dp_concentration > 0:
        partition = len(live) * np.log(dp_concentration) + gammaln(live).sum() + gammaln(dp_concentration)
        partition -= gammaln(dp_concentration + n)
        return float(partition + gammaln(k - len(live) + 1) - gammaln(k + 1))
    return float(gammaln(k * alpha) - gammaln(k * alpha + n) + (gammaln(alpha + size) - gammaln(alpha)).sum())


def all_labelings(n: int, k: int) -> np.ndarray:
    return np.array(list(itertools.product(range(k), repeat=n)))


def exact_posterior(
    X: np.ndarray, k: int, marginal: Callable[[np.ndarray], float], prior: Callable[[np.ndarray], float]
) -> np.ndarray:
    """p(labels | X) for every labeling, in the order of all_labelings."""
    memory: dict[bytes, float] = {}

    def of_rows(mask: np.ndarray) -> float:
        key = mask.tobytes()
        if key not in memory:
            memory[key] = marginal(X[mask]) if mask.any() else 0.0
        return memory[key]

    log_p = np.array(
        [prior(labels) + sum(of_rows(labels == c) for c in range(k)) for labels in all_labelings(len(X), k)]
    )
    return np.exp(log_p - logsumexp(log_p))


def codes(samples: np.ndarray, k: int) -> np.ndarray:
    """Labelings as their place in all_labelings."""
    n = samples.shape[1]
    return samples @ (k ** np.arange(n - 1, -1, -1))


def gaussian_log_marginal(rows: np.ndarray, kappa: float, a: float, b: float, *, spherical: bool = False) -> float:
    """log p(rows of one cluster) under a Normal-Gamma prior around 0, one precision per coordinate or one in all."""
    n, d = rows.shape
    mean = rows.sum(axis=0) / (kappa + n)
    beyond = 0.5 * ((rows**2).sum(axis=0) - (kappa + n) * mean**2)
    out = 0.5 * d * np.log(kappa / (kappa + n)) - 0.5 * n * d * np.log(2 * np.pi)
    if spherical:
        a_n, b_n = a + 0.5 * n * d, b + beyond.sum()
        return float(out + gammaln(a_n) - gammaln(a) + a * np.log(b) - a_n * np.log(b_n))
    a_n, b_n = a + 0.5 * n, b + beyond
    return float(out + (gammaln(a_n) - gammaln(a) + a * np.log(b) - a_n * np.log(b_n)).sum())


def gsdmm_conditional(X: np.ndarray, labels: np.ndarray, row: int, k: int, alpha: float, beta: float) -> np.ndarray:
    """(k,) p(label of a document | all other labels), equation 4 of Yin and Wang (KDD 2014), factor by factor."""
    others = np.arange(len(X)) != row
    out = np.zeros(k)
    for cluster in range(k):
        members = others & (labels == cluster)
        words = X[members].sum(axis=0)
        chance = (members.sum() + alpha) / (len(X) - 1 + k * alpha)
        for word, count in enumerate(X[row].astype(int)):
            for step in range(count):
                chance *= words[word] + beta + step
        for step in range(int(X[row].sum())):
            chance /= words.sum() + X.shape[1] * beta + step
        out[cluster] = chance
    return out / out.sum()
