"""Divergences written out term by term, one pair at a time. Slow, and plainly right."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln


def kl_gaussian(p, q):
    """Equation (7), summed over independent coordinates; rows are means then variances."""
    (mp, vp), (mq, vq) = np.split(np.asarray(p), 2), np.split(np.asarray(q), 2)
    return 0.5 * ((mp - mq) ** 2 / vq + vp / vq - np.log(vp / vq) - 1).sum()


def kl_mixture(p, q, n_components=2):
    """D(pi || omega) + sum_z pi_z D(p_z || q_z): the divergence of the joint of component and value."""
    d = (len(p) - n_components) // (2 * n_components)
    total = 0.0
    for z in range(n_components):
        if p[z] == 0:
            continue
        at = n_components + z * d
        spread = n_components + n_components * d + z * d
        part_p = np.r_[p[at : at + d], p[spread : spread + d]]
        part_q = np.r_[q[at : at + d], q[spread : spread + d]]
        total += p[z] * (np.log(p[z] / q[z]) + kl_gaussian(part_p, part_q))
    return total


def kl_dirichlet(a, b):
    a, b = np.asarray(a), np.asarray(b)
    logs = digamma(a) - digamma(a.sum())
    return gammaln(a.sum()) - gammaln(a).sum() - gammaln(b.sum()) + gammaln(b).sum() + ((a - b) * logs).sum()


def kl_beta(p, q):
    d = len(p) // 2
    return sum(kl_dirichlet([p[i], p[d + i]], [q[i], q[d + i]]) for i in range(d))


def kl_gamma(p, q):
    (kp, bp), (kq, bq) = np.split(np.asarray(p), 2), np.split(np.asarray(q), 2)
    terms = (kp - kq) * digamma(kp) - gammaln(kp) + gammaln(kq) + kq * (np.log(bp) - np.log(bq)) + kp * (bq - bp) / bp
    return terms.sum()


def kl_categorical(p, q):
    return sum(a * np.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def kl_poisson(p, q):
    return sum((a * np.log(a / b) if a > 0 else 0.0) - a + b for a, b in zip(p, q, strict=True))


KL = {
    "gaussian": kl_gaussian,
    "gaussian_mixture": kl_mixture,
    "beta": kl_beta,
    "gamma": kl_gamma,
    "dirichlet": kl_dirichlet,
    "categorical": kl_categorical,
    "poisson": kl_poisson,
}


def table(family, P, Q):
    """KL(P || Q) for every pair."""
    return np.array([[KL[family](p, q) for q in Q] for p in P])


def rows_of(family, n, rng):
    """Random parameters of each family."""
    if family == "gaussian":
        return np.column_stack([rng.normal(1, 0.5, (n, 2)), rng.gamma(2, 0.1, (n, 2)) + 0.01])
    if family == "gaussian_mixture":
        means = np.column_stack([rng.normal(0.8, 0.2, n), rng.normal(0.2, 0.05, n)])
        variances = np.column_stack([rng.gamma(3, 0.01, n) + 0.005, rng.gamma(3, 0.001, n) + 0.0005])
        return np.column_stack([rng.dirichlet([3, 5], n), means, variances])
    if family in ("beta", "gamma"):
        return rng.gamma(2, 2, (n, 4)) + 0.2
    if family == "dirichlet":
        return rng.gamma(2, 2, (n, 4)) + 0.2
    if family == "categorical":
        return rng.dirichlet([2, 3, 1, 2], n)
    return rng.gamma(2, 2, (n, 3)) + 0.05


def lloyd(family, direction, X, weights, centers, average, n_iter):
    """K-means with every divergence computed on its own; ``average`` makes a center of a cluster's rows and weights."""
    history = []
    for _ in range(n_iter):
        D = table(family, centers, X).T if direction == "center" else table(family, X, centers)
        labels = D.argmin(1)
        history.append((weights * D.min(1)).sum())
        centers = np.array(
            [
                average(X[labels == c], weights[labels == c]) if (labels == c).any() else centers[c]
                for c in range(len(centers))
            ]
        )
    return labels, history
