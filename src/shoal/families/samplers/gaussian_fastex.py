"""sampler="fastex" for measurements."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.families.kernels.gaussian_fastex_kernels import (
    GaussHashes,
    hash_all_gauss,
    hash_rows_gauss,
    hash_sample_gauss,
)
from shoal.families.kernels.gaussian_kernels import GaussPrior
from shoal.families.kernels.hashing_kernels import BITS_PER_WORD
from shoal.families.samplers.count_chain import make_workspace
from shoal.families.samplers.gaussian_gibbs import GaussianChain
from shoal.families.samplers.hashing import bound_slack, cosine_table


class GaussianFastExChain(GaussianChain):
    """A popcount for each cluster; exact scores for the proposal, or the best-ranked few, only."""

    def __init__(
        self,
        X: np.ndarray,
        prior: GaussPrior,
        n_clusters: int,
        *,
        seed: int,
        n_bits: int,
        published: bool,
        n_candidates: int = 8,
        share_uniform: float = 0.01,
    ) -> None:
        (n, d), k = X.shape, n_clusters
        self.seed, self.share_uniform = seed, share_uniform
        n_words = -(-n_bits // BITS_PER_WORD)
        directions = np.random.default_rng(seed).standard_normal((2 * d, n_bits))
        # Squares of standardized values are 1 on average: as published, most of every hash is spent on that.
        shift, center = (0.0, np.zeros(2 * d)) if published else (1.0, np.repeat([0.0, -0.5 * prior.a / prior.b], d))
        slack = bound_slack(k, n_bits) if published else 0.0
        self.hashes = GaussHashes(
            published, directions, shift, center, np.zeros((n, n_words), np.int64), np.zeros(n),
            np.zeros((k + 1, n_words), np.int64), np.zeros(k + 1), np.zeros(k + 1), cosine_table(n_bits, slack),
        )  # fmt: skip
        self.scratch = (np.zeros(2 * d), np.zeros(n_bits), np.zeros(n_bits), np.zeros(d))
        self.scores, self.ranked = np.zeros(k), make_workspace(k, 1, n_candidates)
        hash_rows_gauss(X, self.hashes)
        super().__init__(X, prior, n_clusters, seed=seed)

    def rebuild(self) -> None:
        super().rebuild()
        hash_all_gauss(self.prior, self.clusters, self.hashes, *self.scratch[:3])

    def visit(self) -> None:
        hash_sample_gauss(
            self.X, self.prior, self.clusters, self.hashes, self.share_uniform, 0, len(self.X), self.scores,
            self.scratch, self.random, self.tally, self.ranked,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        return super().state() | {"seed": self.seed}
