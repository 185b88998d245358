"""sampler="indexed": candidates from an inverted index over the clusters' features."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.families.chain import CountChain
from shoal.families.counts_kernels import Items
from shoal.families.indexed_kernels import Lists, Tuning, sample_rows
from shoal.families.scores_kernels import Prior


class IndexedChain(CountChain):
    """Each visit lists a few candidates, scores these exactly, and proposes one of them.

    ``refresh=1`` lists them at every visit, and the chain is then exactly right. With larger values a row that has
    settled keeps its list for a few sweeps; a row whose list holds only its own cluster is passed over meanwhile.
    """

    def __init__(
        self,
        items: Items,
        indexed: np.ndarray,
        prior: Prior,
        n_clusters: int,
        *,
        seed: int,
        n_candidates: int = 8,
        refresh: int = 10,
        share_uniform: float = 0.002,
    ) -> None:
        super().__init__(items, indexed, prior, n_clusters, seed=seed, n_candidates=n_candidates)
        n = len(items.length)
        candidates = np.full((n, n_candidates), -1, np.int32)
        self.lists = Lists(candidates, np.zeros(n, np.int32), np.zeros(n, np.bool_))
        self.tuning = Tuning(
            refresh=refresh, settle=1 if refresh > 1 else 1 << 30, share_uniform=share_uniform, keep=40.0
        )

    def state(self) -> dict[str, Any]:
        return super().state() | {name: part.copy() for name, part in self.lists._asdict().items()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        for name, part in self.lists._asdict().items():
            if name in state:
                part[:] = state[name]

    def visit(self, first: int, last: int) -> int:
        return int(
            sample_rows(
                self.items,
                self.prior,
                self.clusters,
                self.postings,
                self.lists,
                self.tuning,
                first,
                last,
                self.n_sweeps,
                self.random,
                self.tally,
                self.work,
            )  # fmt: skip
        )
