"""A Markov chain over the labels of measured rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.families.kernels.counts_kernels import rebuild_empty
from shoal.families.kernels.gaussian_kernels import GaussClusters, GaussPrior, fill_gauss, gibbs_gauss, marginals_gauss
from shoal.families.kernels.random_kernels import new_state
from shoal.families.samplers.count_chain import SweepFacts, log_labels


class GaussianChain:
    """Labels, sums and random state of a Gaussian mixture; a sweep draws every label from its exact conditional."""

    def __init__(self, X: np.ndarray, prior: GaussPrior, n_clusters: int, *, seed: int) -> None:
        (n, d), k = X.shape, n_clusters
        self.X, self.prior, self.n_clusters = X, prior, k
        self.random, self.tally, self.n_sweeps = new_state(seed), np.zeros(5, np.int64), 0
        self.runs = [(0, n)]  # the rows that a sweep visits
        self.is_rebuilt = False  # whether nothing has moved since the last rebuild
        self.clusters = GaussClusters(
            np.zeros(n, np.int32), np.zeros(k, np.int64), np.zeros((k, d)), np.zeros((k, d)), np.zeros(k), np.zeros(k),
            np.zeros((d, k), np.float32), np.zeros((d, k), np.float32),
            np.zeros(k + 1, np.int64), np.zeros(k, np.int64),
        )  # fmt: skip
        product = np.ones(k, np.float32)
        self.work = (product, product.view(np.int32), np.zeros(k, np.int32), np.zeros(k), np.zeros(d))
        self.rebuild()

    @property
    def labels(self) -> np.ndarray:
        return self.clusters.labels

    def set_labels(self, labels: np.ndarray) -> None:
        self.clusters.labels[:] = labels
        self.rebuild()

    def set_prior(self, prior: GaussPrior) -> None:
        self.prior = prior
        self.rebuild()

    def rebuild(self) -> None:
        """Sums from the labels in one fixed order: rounding never depends on how the chain came here."""
        fill_gauss(self.X, self.prior, self.clusters)
        rebuild_empty(self.clusters)
        self.is_rebuilt = True

    def sweep(self) -> SweepFacts:
        """Visit every row once."""
        if not self.is_rebuilt:
            self.rebuild()
        self.tally[:] = 0
        self.visit()
        self.is_rebuilt = False
        self.n_sweeps += 1
        proposed, moved, listed, scored, skipped = (int(value) for value in self.tally)
        return SweepFacts(moved, proposed, scored, listed, skipped)

    def freeze_adaptation(self) -> None:
        """Nothing is tuned to the chain's past."""

    def visit(self) -> None:
        for first, last in self.runs:
            gibbs_gauss(self.X, self.prior, self.clusters, first, last, self.random, self.tally, self.work)

    def log_marginals(self, prior: GaussPrior | None = None) -> np.ndarray:
        out = np.zeros(self.n_clusters)
        clusters = self.clusters
        marginals_gauss(prior or self.prior, clusters.size, clusters.sums, clusters.squares, out)
        return out

    def log_joint(self) -> float:
        """log p(rows, labels | prior), of standardized coordinates."""
        return float(self.log_marginals().sum()) + log_labels(self.clusters.size, self.prior)

    def state(self) -> dict[str, Any]:
        return {"labels": self.labels.copy(), "random": self.random.copy(), "n_sweeps": self.n_sweeps}

    def restore(self, state: dict[str, Any]) -> None:
        self.set_labels(state["labels"])
        self.random[:] = state["random"]
        self.n_sweeps = int(state["n_sweeps"])
