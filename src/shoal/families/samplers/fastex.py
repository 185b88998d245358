"""sampler="fastex": proposals from binary hashes, as published, or with hashes that only rank candidates.

As published the estimate is far too noisy for text: from a random start at 32 to 128 bits almost no proposal is
accepted and the chain stands still (it also stands still where it is right, if it starts there). Hashes that only rank
candidates for exact scores, centered and scaled, need some 512 bits on text; they suit dense measurements better.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.families.kernels.counts_kernels import Items
from shoal.families.kernels.fastex_kernels import Hashes, hash_clusters, hash_rows, hash_sample_rows, project_center
from shoal.families.kernels.indexed_kernels import Tuning
from shoal.families.kernels.scores_kernels import Prior
from shoal.families.samplers.count_chain import CountChain
from shoal.families.samplers.hashing import bound_slack, cosine_table, random_signs


class FastExChain(CountChain):
    """A popcount for each cluster, and exact scores for the proposal (or the best-ranked few) only."""

    def __init__(
        self,
        items: Items,
        indexed: np.ndarray,
        prior: Prior,
        n_clusters: int,
        *,
        seed: int,
        n_bits: int,
        published: bool,
        n_candidates: int = 8,
        share_uniform: float = 0.01,
    ) -> None:
        self.n_bits, self.published, self.seed = n_bits, published, seed
        self.scores = np.zeros(n_clusters)
        self.tuning = Tuning(refresh=1, fixed=False, stable_after=1 << 30, share_uniform=share_uniform, keep=0.0)
        self.signs = random_signs(len(prior.shape), n_bits, seed)
        self.hashes: Hashes | None = None
        super().__init__(items, np.zeros_like(indexed), prior, n_clusters, seed=seed, n_candidates=n_candidates)

    def _make_hashes(self) -> Hashes:
        """The rows' hashes, and room for the clusters'. Centre and scale come from the rows alone, not from the state
        of the chain, so the proposal stays a function of the other rows."""
        n, k, d, n_words = len(self.labels), self.n_clusters, len(self.prior.shape), self.signs.shape[1]
        scale, center = np.ones(d), np.zeros(d)
        if not self.published:
            items, shape = self.items, self.prior.shape
            total = np.bincount(items.features, items.counts * self.prior.unit, minlength=d)
            rows = np.bincount(items.features, minlength=d)
            holds = np.minimum(rows / k, 1.0)  # the share of clusters that hold a feature, were they all alike
            inside = np.log1p(total / np.maximum(k * holds, 1e-12) / shape)
            center = holds * inside
            spread = holds * (1 - holds) * inside**2 + 1e-3
            scale = (spread / np.maximum(rows / n, 1.0 / n)) ** 0.25
        slack = bound_slack(k, self.n_bits) if self.published else 0.0
        hashes = Hashes(
            self.published, self.signs, scale, np.zeros((n, n_words), np.int64), np.zeros(n),
            np.zeros((k + 1, self.n_bits)), np.zeros((k + 1, n_words), np.int64), np.zeros(k + 1), np.zeros(k + 1),
            center, np.zeros(self.n_bits), float(((center / scale) ** 2).sum()), cosine_table(self.n_bits, slack),
        )  # fmt: skip
        project_center(hashes)
        hash_rows(self.items, hashes, self.prior.unit)
        return hashes

    def state(self) -> dict[str, Any]:
        return super().state() | {"seed": self.seed}

    @property
    def layout_matters(self) -> bool:
        return True  # projections are sums over whole tables

    def set_prior(self, prior: Prior) -> None:
        super().set_prior(prior)
        self.hashes = None

    def after_split_merge(self, moved: np.ndarray) -> None:
        self.rebuild()

    def rebuild(self, *, list_empty: bool = True) -> None:
        super().rebuild(list_empty=list_empty)
        if self.hashes is not None:
            hash_clusters(self.prior, self.clusters, self.hashes)

    def visit(self, first: int, last: int) -> int:
        if self.hashes is None:
            self.hashes = self._make_hashes()
            hash_clusters(self.prior, self.clusters, self.hashes)
        return int(
            hash_sample_rows(
                self.items,
                self.prior,
                self.clusters,
                self.postings,
                self.hashes,
                self.tuning,
                first,
                last,
                self.scores,
                self.random,
                self.tally,
                self.work,
            )
        )
