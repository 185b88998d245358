"""Gaussians with independent coordinates, alone or as mixtures whose components are labelled."""

from __future__ import annotations

import numpy as np

from shoal.densities.family import (
    Family,
    Smoother,
    require,
    require_columns,
    require_positive,
    safe_log,
    weighted_mean,
)
from shoal.errors import BadInput

LOG_2_PI = float(np.log(2 * np.pi))


class GaussianMixture(Family):
    """A mixture of ``n_components`` Gaussians whose components mean something (mainline and sidebar; day and night).

    Because a component of one row is matched with the same component of another, the divergence is that of the joint
    distribution of (component z, value x), exactly. The statistics are ``1[z], 1[z] x, 1[z] x^2``; the parameters

        theta_z0 = log w_z - sum_d ( mu^2 / 2 s^2 + log(2 pi s^2) / 2 ),  theta_z1 = mu / s^2,  theta_z2 = -1 / 2 s^2

    are over-complete and normalized, so F = 0.
    """

    name = "gaussian_mixture"
    layout = "weights of the Z components, then Z*d means, then Z*d variances (component by component)"
    positive = False
    normalized = True

    def __init__(self, n_components: int = 2) -> None:
        self.n_components = n_components

    # A lone Gaussian is the same mathematics with one component whose weight is not written down.
    has_weights = True

    def n_dimensions(self, X: np.ndarray) -> int:
        n_weights = self.n_components if self.has_weights else 0
        return (X.shape[1] - n_weights) // (2 * self.n_components)

    def split(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights (n, Z), means (n, Z, d) and variances (n, Z, d)."""
        n, n_components, d = X.shape[0], self.n_components, self.n_dimensions(X)
        start = n_components if self.has_weights else 0
        weights = X[:, :start] if self.has_weights else np.ones((n, 1))
        means = X[:, start : start + n_components * d].reshape(n, n_components, d)
        return weights, means, X[:, start + n_components * d :].reshape(n, n_components, d)

    def join(self, weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
        n = weights.shape[0]
        written = [weights] if self.has_weights else []
        return np.concatenate([*written, means.reshape(n, -1), variances.reshape(n, -1)], axis=1)

    def check(self, X: np.ndarray) -> None:
        n_weights = self.n_components if self.has_weights else 0
        rest = X.shape[1] - n_weights
        if rest <= 0 or rest % (2 * self.n_components):
            raise BadInput(
                f"X has {X.shape[1]} feature(s) (columns), but family {self.name!r} with n_components="
                f"{self.n_components} needs {n_weights} + {2 * self.n_components} * d columns: {self.layout}."
            )
        require_positive(X, slice(n_weights + rest // 2, X.shape[1]), "a variance", self.name)
        if self.has_weights:
            weights = slice(0, n_weights)
            require(X, weights, X[:, weights] >= 0, "a component's weight must be 0 or more", self.name)
            totals = X[:, weights].sum(1)
            wrong = np.flatnonzero(np.abs(totals - 1) > 1e-4)
            if wrong.size:
                raise BadInput(
                    f"the {n_weights} component weights of row {wrong[0]} sum to {totals[wrong[0]]:.6g}, and those of "
                    f"{wrong.size} of {X.shape[0]} rows do not sum to 1. Divide each row's weights by their sum first."
                )

    def origin(self, X: np.ndarray, weights: np.ndarray) -> np.ndarray:
        # Divergences do not change when all values move together, so the middle of the data is taken as 0.
        w, means, _ = self.split(X)
        middle = np.einsum("n,nz,nzd->d", weights, w, means) / max(float(weights @ w.sum(1)), 1e-300)
        zero = np.zeros_like(X[:1])
        w0, m0, v0 = self.split(zero)
        return np.asarray(self.join(w0 * 0, m0 + middle, v0)[0])

    def smoother(self, X: np.ndarray, weights: np.ndarray, amount: float) -> Smoother:
        """Variances get the given quantile of the non-zero variances added; weights move a little to the average."""
        share, added = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        first_variance = X.shape[1] - self.n_components * self.n_dimensions(X)
        if amount > 0:
            for column in range(first_variance, X.shape[1]):
                added[column] = np.quantile(X[weights > 0, column], amount)
            if self.has_weights:
                share[: self.n_components] = amount
        return Smoother(share, weighted_mean(X, weights), added)

    def natural(self, X: np.ndarray) -> np.ndarray:
        weights, means, variances = self.split(X)
        constant = safe_log(weights) - 0.5 * (means**2 / variances + np.log(variances) + LOG_2_PI).sum(2)
        n = X.shape[0]
        return np.concatenate([constant, (means / variances).reshape(n, -1), (-0.5 / variances).reshape(n, -1)], axis=1)

    def expectation(self, X: np.ndarray) -> np.ndarray:
        weights, means, variances = self.split(X)
        w, n = weights[:, :, None], X.shape[0]
        second = w * (means**2 + variances)
        return np.concatenate([weights, (w * means).reshape(n, -1), second.reshape(n, -1)], axis=1)

    def log_normalizer(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(X.shape[0])

    def negative_entropy(self, X: np.ndarray) -> np.ndarray:
        weights, _, variances = self.split(X)
        return np.asarray((weights * (safe_log(weights) - 0.5 * (1 + LOG_2_PI + np.log(variances)).sum(2))).sum(1))

    def _unpack(self, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n, n_components = statistics.shape[0], self.n_components
        d = (statistics.shape[1] - n_components) // (2 * n_components)
        first = statistics[:, n_components : n_components * (1 + d)].reshape(n, n_components, d)
        second = statistics[:, n_components * (1 + d) :].reshape(n, n_components, d)
        return statistics[:, :n_components], first, second

    def from_natural(self, theta: np.ndarray) -> np.ndarray:
        # Equations (23)-(25): averaged precisions, precision-weighted means, and weights that pay for disagreement.
        constant, first, second = self._unpack(theta)
        variances = -0.5 / second
        means = first * variances
        log_weight = constant + 0.5 * (means**2 / variances + np.log(variances) + LOG_2_PI).sum(2)
        weights = np.exp(log_weight - log_weight.max(1, keepdims=True))
        return self.join(weights / weights.sum(1, keepdims=True), means, variances)

    def from_expectation(self, eta: np.ndarray) -> np.ndarray:
        # Moment matching. A component nobody uses keeps weight 0; its mean and variance are then never looked at.
        weights, first, second = self._unpack(eta)
        mass = np.where(weights > 0, weights, 1.0)[:, :, None]
        means = first / mass
        spread = second / mass - means**2
        floor = 1e-12 * np.maximum(1.0, second / mass)
        variances = np.where(weights[:, :, None] > 0, np.maximum(spread, floor), 1.0)
        return self.join(weights / weights.sum(1, keepdims=True), means, variances)


class Gaussian(GaussianMixture):
    """One Gaussian with independent coordinates."""

    name = "gaussian"
    layout = "d means, then d variances"
    has_weights = False

    def __init__(self) -> None:
        super().__init__(n_components=1)

    def check(self, X: np.ndarray) -> None:
        require_columns(X, 2, 2, self.layout, self.name)
        super().check(X)
