"""Textbook assumed density filtering and EM for Bernoulli mixtures: dense, slow, plainly right."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, logsumexp


class DenseADF:
    """Every cluster has a Beta for every keyword, and every Beta is updated on every ad."""

    def __init__(self, alpha: np.ndarray, beta: np.ndarray, gamma: np.ndarray) -> None:
        self.alpha, self.beta, self.gamma = alpha.copy(), beta.copy(), gamma.copy()

    def scores(self, x: np.ndarray) -> np.ndarray:
        mu = self.alpha / (self.alpha + self.beta)
        return np.log(self.gamma) + (x * np.log(mu) + (1 - x) * np.log1p(-mu)).sum(axis=1)

    def responsibilities(self, x: np.ndarray) -> np.ndarray:
        scores = self.scores(x)
        return np.exp(scores - logsumexp(scores))

    def learn(self, x: np.ndarray, *, negligible: float = 0.0) -> np.ndarray:
        r = self.responsibilities(x)
        r = np.where(r >= negligible * r.max(), r, 0.0)
        r /= r.sum()
        self.alpha, self.beta = moment_match(self.alpha, self.beta, x[None, :], r[:, None])
        self.gamma += r
        return r

    def log_likelihood(self, x: np.ndarray) -> float:
        return float(logsumexp(self.scores(x)) - np.log(self.gamma.sum()))


def moment_match(alpha, beta, x, r):
    """The Beta with the mean and the second moment of r Beta(alpha + x, beta + 1 - x) + (1 - r) Beta(alpha, beta)."""
    n = alpha + beta
    m1 = r * (alpha + x) / (n + 1) + (1 - r) * alpha / n
    m2 = r * (alpha + x) * (alpha + x + 1) / ((n + 1) * (n + 2)) + (1 - r) * alpha * (alpha + 1) / (n * (n + 1))
    after = (m1 - m2) / (m2 - m1**2)
    return m1 * after, (1 - m1) * after


def em_step(X, theta, weights):
    """One step of maximum likelihood by EM: new theta, new weights, and the log likelihood of the old ones."""
    scores = X @ np.log(theta).T + (1 - X) @ np.log1p(-theta).T + np.log(weights)
    norms = logsumexp(scores, axis=1)
    r = np.exp(scores - norms[:, None])
    mass = r.sum(axis=0)
    return (r.T @ X) / mass[:, None], mass / mass.sum(), float(norms.sum()), r


def suggestion_probabilities(mu, weights, observed, rejected=()):
    """p(x_d = 1 | observed, rejected) for every d, all else unknown."""
    log_r = np.log(weights) + np.log(mu[:, list(observed)]).sum(axis=1) + np.log1p(-mu[:, list(rejected)]).sum(axis=1)
    r = np.exp(log_r - logsumexp(log_r))
    return r @ mu, r


def beta_evidence(present, absent, alpha, beta):
    """log of the integral of t^present (1 - t)^absent over Beta(t; alpha, beta)."""
    return float(betaln(alpha + present, beta + absent) - betaln(alpha, beta))


def merger_gain(log_weights, log_probs, a, b, log_merged):
    """Log likelihood gained when clusters a and b, of these log weights and log p(x | l), become one."""
    together = logsumexp(log_weights[[a, b]])
    others = np.delete(np.arange(log_weights.size), [a, b])
    after = np.concatenate([log_probs[:, others] + log_weights[others], (log_merged + together)[:, None]], axis=1)
    return float((logsumexp(after, axis=1) - logsumexp(log_probs + log_weights, axis=1)).sum())
