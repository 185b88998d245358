"""sampler="indexed": candidates from an inverted index over the clusters' features."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.families.chain import CountChain, make_workspace
from shoal.families.counts_kernels import Items
from shoal.families.indexed_kernels import Lists, Tuning, list_rows, sample_rows
from shoal.families.scores_kernels import Prior
from shoal.threads import n_threads_available, ordered_map, row_blocks


class IndexedChain(CountChain):
    """Each visit lists a few candidates, scores these exactly, and proposes one of them.

    ``refresh=1`` lists them at every visit, and the chain is then exactly right. With larger values a row that has
    settled keeps its list for a few sweeps; a row whose list holds only its own cluster is passed over meanwhile. The
    lists that are due are then made for a group of rows at a time, on threads, from the clusters as they are when the
    group begins: the groups are fixed, so the number of threads does not show in the answer. Scores are always exact.
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
        n_threads: int | None = 1,
    ) -> None:
        super().__init__(items, indexed, prior, n_clusters, seed=seed, n_candidates=n_candidates)
        n = len(items.length)
        self.n_threads, self.listed_until = n_threads, 0
        self.group_rows = int(np.clip(n // 16, 64, 8192))
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
        """Group by group: lists on threads, then visits one by one."""
        while first < last:
            end = last
            if self.tuning.refresh > 1:
                end = min(last, (first // self.group_rows + 1) * self.group_rows)
                if first >= self.listed_until:  # otherwise a visit goes on after a rebuild
                    self._list_group(first, end)
                    self.listed_until = end
            first = self._sample(first, end)
            if first < end:
                return first
        self.listed_until = 0
        return last

    def _list_group(self, first: int, last: int) -> None:
        def make_lists(block: tuple[int, int]) -> None:
            work = make_workspace(self.n_clusters, len(self.prior.shape), self.lists.candidates.shape[1])
            start, end = first + block[0], first + block[1]
            list_rows(
                self.items, self.prior, self.clusters, self.postings, self.lists, self.tuning,
                start, end, self.n_sweeps, work,
            )  # fmt: skip

        n_threads = min(self.n_threads or n_threads_available(), max(1, (last - first) // 256))
        if n_threads == 1:
            list_rows(
                self.items, self.prior, self.clusters, self.postings, self.lists, self.tuning,
                first, last, self.n_sweeps, self.work,
            )  # fmt: skip
            return
        blocks = row_blocks(last - first, -(-(last - first) // n_threads))
        for _ in ordered_map(make_lists, blocks, n_threads):
            pass

    def _sample(self, first: int, last: int) -> int:
        listed_before = self.tuning.refresh > 1
        done = sample_rows(
            self.items, self.prior, self.clusters, self.postings, self.lists, self.tuning,
            first, last, self.n_sweeps, listed_before, self.random, self.tally, self.work,
        )  # fmt: skip
        return int(done)
