"""Beta, Dirichlet and Gamma: averaged natural parameters in closed form, averaged mean parameters by a short solve."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from shoal.densities.family import Family, require_columns, require_positive
from shoal.densities.special import dirichlet_from_mean_logs, gamma_from_moments

LEAST_SHAPE = 1e-12  # the natural parameter is a shape less 1, which would lose the digits of a smaller one


class Dirichlet(Family):
    """theta = alpha - 1, so a center's alpha is the mean of its rows' alphas; eta = psi(alpha) - psi(sum alpha)."""

    name = "dirichlet"
    layout = "alpha_1 ... alpha_d"

    def check(self, X: np.ndarray) -> None:
        require_columns(X, 1, 2, self.layout, self.name)
        require_positive(X, slice(0, X.shape[1]), "an alpha", self.name, least=LEAST_SHAPE)

    def natural(self, X: np.ndarray) -> np.ndarray:
        return X - 1.0

    def expectation(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(digamma(X) - digamma(X.sum(1))[:, None])

    def log_normalizer(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(gammaln(X).sum(1) - gammaln(X.sum(1)))

    def from_natural(self, theta: np.ndarray) -> np.ndarray:
        return theta + 1.0

    def from_expectation(self, eta: np.ndarray) -> np.ndarray:
        return dirichlet_from_mean_logs(eta)


class Beta(Family):
    """``d`` independent Beta distributions, each a Dirichlet over two outcomes."""

    name = "beta"
    layout = "d numbers a, then d numbers b"

    def __init__(self) -> None:
        self.pair = Dirichlet()

    def _pairs(self, X: np.ndarray) -> np.ndarray:
        """(n * d, 2): the pairs (a, b) one after the other."""
        return np.stack([half.ravel() for half in np.hsplit(X, 2)], axis=1)

    def _rows(self, pairs: np.ndarray, n: int) -> np.ndarray:
        return np.concatenate([pairs[:, side].reshape(n, -1) for side in (0, 1)], axis=1)

    def check(self, X: np.ndarray) -> None:
        require_columns(X, 2, 2, self.layout, self.name)
        require_positive(X, slice(0, X.shape[1]), "a and b", self.name, least=LEAST_SHAPE)

    def natural(self, X: np.ndarray) -> np.ndarray:
        return X - 1.0

    def expectation(self, X: np.ndarray) -> np.ndarray:
        return self._rows(self.pair.expectation(self._pairs(X)), X.shape[0])

    def log_normalizer(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.pair.log_normalizer(self._pairs(X)).reshape(X.shape[0], -1).sum(1))

    def from_natural(self, theta: np.ndarray) -> np.ndarray:
        return theta + 1.0

    def from_expectation(self, eta: np.ndarray) -> np.ndarray:
        return self._rows(self.pair.from_expectation(self._pairs(eta)), eta.shape[0])


class Gamma(Family):
    """``d`` independent Gammas by shape k and RATE b: theta = (k - 1, -b), eta = (psi(k) - log b, k / b).

    Averaging scales instead of rates would not be the minimizer.
    """

    name = "gamma"
    layout = "d shapes, then d rates (1 / scale)"

    def check(self, X: np.ndarray) -> None:
        require_columns(X, 2, 2, self.layout, self.name)
        require_positive(X, slice(0, X.shape[1]), "a shape or rate", self.name)
        require_positive(X, slice(0, X.shape[1] // 2), "a shape", self.name, least=LEAST_SHAPE)

    def natural(self, X: np.ndarray) -> np.ndarray:
        shapes, rates = np.hsplit(X, 2)
        return np.concatenate([shapes - 1.0, -rates], axis=1)

    def expectation(self, X: np.ndarray) -> np.ndarray:
        shapes, rates = np.hsplit(X, 2)
        return np.concatenate([digamma(shapes) - np.log(rates), shapes / rates], axis=1)

    def log_normalizer(self, X: np.ndarray) -> np.ndarray:
        shapes, rates = np.hsplit(X, 2)
        return np.asarray((gammaln(shapes) - shapes * np.log(rates)).sum(1))

    def from_natural(self, theta: np.ndarray) -> np.ndarray:
        shapes, rates = np.hsplit(theta, 2)
        return np.concatenate([shapes + 1.0, -rates], axis=1)

    def from_expectation(self, eta: np.ndarray) -> np.ndarray:
        mean_logs, means = np.hsplit(eta, 2)
        shapes = gamma_from_moments(means, mean_logs)
        return np.concatenate([shapes, shapes / means], axis=1)
