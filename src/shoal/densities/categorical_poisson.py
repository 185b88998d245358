"""Categorical and Poisson distributions: geometric means one way, arithmetic means the other."""

from __future__ import annotations

import numpy as np

from shoal.densities.family import Family, Smoother, require_columns, require_nonnegative, safe_log, weighted_mean
from shoal.errors import BadInput


class Categorical(Family):
    """Shares of d outcomes. Rows may be counts: they are divided by their sums."""

    name = "categorical"
    layout = "the probability (or count) of each of d outcomes"
    normalized = True

    def check(self, X: np.ndarray) -> None:
        require_columns(X, 1, 2, self.layout, self.name)
        require_nonnegative(X, slice(0, X.shape[1]), "a probability", self.name)
        empty = np.flatnonzero(X.sum(1) <= 0)
        if empty.size:
            raise BadInput(f"row {empty[0]} of X is all zeros, and {empty.size} rows are. Leave such rows out.")

    def smoother(self, X: np.ndarray, weights: np.ndarray, amount: float) -> Smoother:
        shares = X / X.sum(1, keepdims=True)
        typical = (weighted_mean(shares, weights) + 1e-9) / (1 + 1e-9 * X.shape[1])
        return Smoother(np.full(X.shape[1], amount), typical, np.zeros(X.shape[1]))

    def natural(self, X: np.ndarray) -> np.ndarray:
        return safe_log(X)

    def expectation(self, X: np.ndarray) -> np.ndarray:
        return X

    def log_normalizer(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(X.shape[0])

    def negative_entropy(self, X: np.ndarray) -> np.ndarray:
        return np.asarray((X * safe_log(X)).sum(1))

    def from_natural(self, theta: np.ndarray) -> np.ndarray:
        shares = np.exp(theta - theta.max(1, keepdims=True))
        return np.asarray(shares / shares.sum(1, keepdims=True))

    def from_expectation(self, eta: np.ndarray) -> np.ndarray:
        return np.asarray(eta / eta.sum(1, keepdims=True))


class Poisson(Family):
    """``d`` independent Poisson distributions, by their rates."""

    name = "poisson"
    layout = "d rates (mean counts)"

    def check(self, X: np.ndarray) -> None:
        require_nonnegative(X, slice(0, X.shape[1]), "a rate", self.name)

    def smoother(self, X: np.ndarray, weights: np.ndarray, amount: float) -> Smoother:
        typical = weighted_mean(X, weights)
        return Smoother(
            np.full(X.shape[1], amount), typical + 1e-9 * max(float(typical.max()), 1.0), np.zeros(X.shape[1])
        )

    def natural(self, X: np.ndarray) -> np.ndarray:
        return safe_log(X)

    def expectation(self, X: np.ndarray) -> np.ndarray:
        return X

    def log_normalizer(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X.sum(1))

    def negative_entropy(self, X: np.ndarray) -> np.ndarray:
        return np.asarray((X * safe_log(X) - X).sum(1))

    def from_natural(self, theta: np.ndarray) -> np.ndarray:
        return np.exp(theta)

    def from_expectation(self, eta: np.ndarray) -> np.ndarray:
        return eta
