"""Measured rows, family and prior bound together: what a fit of a Gaussian mixture is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from shoal.families.distributions.gaussian import Gaussian, GaussStats
from shoal.families.kernels.gaussian_kernels import GaussPrior, marginals_gauss
from shoal.families.kernels.random_kernels import new_state
from shoal.families.kernels.seeding_kernels import lloyd_steps, nearest_centers, seed_centers
from shoal.families.options import Settings
from shoal.families.samplers.gaussian_fastex import GaussianFastExChain
from shoal.families.samplers.gaussian_gibbs import GaussianChain
from shoal.families.samplers.hyperparameters import learn_alpha, learn_process

SEEDING_ROWS, SEEDING_STEPS = 20_000, 50


def merge_while_it_gains(problem: Any, chain: Any) -> int:
    """Merge the pair of clusters that gains most log joint, again and again, while one gains; how many were merged."""
    merged = 0
    while (pair := problem.best_merge(chain)) is not None:
        labels = chain.labels.copy()
        labels[labels == pair[1]] = pair[0]
        chain.set_labels(labels)
        merged += 1
    return merged


def merged_while_it_gains(problem: Any, chain: Any, labels: np.ndarray) -> np.ndarray:
    """These labels with clusters merged; the chain is left with them."""
    chain.set_labels(labels)
    merge_while_it_gains(problem, chain)
    return np.asarray(chain.labels.copy())


class GaussianProblem:
    """A mixture of measurements to be sampled."""

    def __init__(self, X: sp.csr_matrix, settings: Settings, family: Gaussian | None = None) -> None:
        self.settings, self.X = settings, X
        given = Gaussian.for_rows(X, spherical=settings.covariance == "spherical") if family is None else family
        self.family = given if settings.smoothing in ("auto", "learn") else replace(given, b=float(settings.smoothing))
        self.rows = self.family.standardize(X)
        start = 1.0 if settings.weights == "dirichlet_process" else 0.1
        self.concentration = start if settings.concentration == "learn" else float(settings.concentration)

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def default_inits(self) -> list[str]:
        return ["one-pass"]

    def part_in_two(self) -> np.ndarray:
        """Labels of k-means with two clusters."""
        return self.first_labels(0)

    @property
    def prior(self) -> GaussPrior:
        process = self.settings.weights == "dirichlet_process"
        alpha, dp_concentration = (0.0, self.concentration) if process else (self.concentration, 0.0)
        return self.family.prior(alpha=alpha, dp_concentration=dp_concentration)

    def choose_sampler(self) -> tuple[str, str]:
        k, d = self.settings.n_clusters, self.rows.shape[1]
        return "gibbs", f"{k} clusters x {d} coordinates: every cluster is looked at, in single precision first"

    def chain(self, sampler: str, seed: int) -> GaussianChain:
        k = self.settings.n_clusters
        if sampler == "fastex":
            published = self.settings.hashes == "published"
            return GaussianFastExChain(
                self.rows, self.prior, k, seed=seed, n_bits=self.settings.n_bits, published=published
            )
        return GaussianChain(self.rows, self.prior, k, seed=seed)

    def learn(self, chain: GaussianChain) -> None:
        """The variance expected within clusters (the prior's b), by climbing the log marginal."""
        if self.settings.smoothing in ("auto", "learn"):
            best, value = self.family.b, float(chain.log_marginals().sum())
            for factor in (1.4, 1 / 1.4):
                while 1e-6 < best * factor < 1e3:
                    trial = float(chain.log_marginals(chain.prior._replace(b=best * factor)).sum())
                    if trial <= value:
                        break
                    best, value = best * factor, trial
            self.family = replace(self.family, b=best)
        if self.settings.concentration == "learn":
            learner = learn_process if self.settings.weights == "dirichlet_process" else learn_alpha
            self.concentration = learner(chain.clusters.size, self.concentration)
        chain.set_prior(self.prior)

    def begin(self, chain: GaussianChain, labels: np.ndarray) -> None:
        chain.set_labels(labels)

    def first_labels(self, seed: int) -> np.ndarray:
        """k-means with all the clusters there may be; merging and sampling take the needless ones away."""
        n = len(self.rows)
        sample = self.rows
        if n > SEEDING_ROWS:
            sample = self.rows[np.sort(np.random.default_rng(seed).permutation(n)[:SEEDING_ROWS])]
        centers = np.zeros((min(self.settings.n_clusters, n), self.rows.shape[1]))
        centers = centers[: seed_centers(sample, new_state(seed), centers)]
        lloyd_steps(sample, centers, np.full(len(sample), -1, np.int32), SEEDING_STEPS)
        labels = np.full(n, -1, np.int32)
        nearest_centers(self.rows, centers, labels)
        return labels

    def split_merge(self, chain: GaussianChain) -> tuple[int, int]:
        """Merge pairs of clusters, best first, while the log joint gains."""
        return merge_while_it_gains(self, chain), 0

    def best_merge(self, chain: GaussianChain) -> tuple[int, int] | None:
        live = np.flatnonzero(chain.clusters.size)
        if len(live) < 2:
            return None
        clusters, prior = chain.clusters, chain.prior
        size, sums, squares = clusters.size[live], clusters.sums[live], clusters.squares[live]
        alone = np.zeros(len(live))
        marginals_gauss(prior, size, sums, squares, alone)
        left, right = nearest_pairs(sums / size[:, None])
        together = np.zeros(len(left))
        marginals_gauss(
            prior, size[left] + size[right], sums[left] + sums[right], squares[left] + squares[right], together
        )
        gain = together - alone[left] - alone[right] + label_gain(prior, size[left], size[right])
        best = int(np.argmax(gain))
        return (int(live[left[best]]), int(live[right[best]])) if gain[best] > 0 else None

    def statistics(self, labels: np.ndarray, n_clusters: int) -> GaussStats:
        return self.family.statistics(self.X, labels, n_clusters)

    def hyperparameters(self) -> dict[str, Any]:
        return {"variance_rate": self.family.b, "concentration": self.concentration}

    def restore_hyperparameters(self, hyperparameters: dict[str, Any], family: Gaussian) -> None:
        self.family, self.concentration = family, hyperparameters["concentration"]
        self.rows = family.standardize(self.X)


def nearest_pairs(means: np.ndarray, per_cluster: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of clusters with near means: all of a few, the nearest of many."""
    k = len(means)
    if k <= 64:
        return np.triu_indices(k, 1)
    apart = (means**2).sum(axis=1)[:, None] - 2 * means @ means.T + (means**2).sum(axis=1)
    np.fill_diagonal(apart, np.inf)
    near = np.argpartition(apart, per_cluster, axis=1)[:, :per_cluster]
    pairs = np.sort(np.column_stack([np.repeat(np.arange(k), per_cluster), near.ravel()]), axis=1)
    pairs = np.unique(pairs, axis=0)
    return pairs[:, 0], pairs[:, 1]


def label_gain(prior: Any, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """log p(labels) with two clusters as one, minus that with both."""
    if prior.dp_concentration > 0:
        return np.asarray(gammaln(one + two) - gammaln(one) - gammaln(two) - np.log(prior.dp_concentration))
    alpha = prior.alpha
    return np.asarray(gammaln(alpha + one + two) + gammaln(alpha) - gammaln(alpha + one) - gammaln(alpha + two))
