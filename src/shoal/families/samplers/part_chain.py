"""Chains with additional rows that are never visited: what the rest of the data holds, a row for a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.families.distributions.counts import CountFamily, CountStats
from shoal.families.kernels.counts_kernels import Items
from shoal.families.kernels.initialization_kernels import place_rows
from shoal.families.kernels.scores_kernels import Prior, refresh_clusters
from shoal.families.options import Settings
from shoal.families.samplers.count_chain import CountChain
from shoal.families.samplers.indexed import IndexedChain
from shoal.families.samplers.items import as_items


def sums_as_items(stats: CountStats, slots: np.ndarray, unit: float) -> Items:
    """The sums of some clusters, as rows."""
    sums = sp.csr_matrix(stats.sums[slots])
    counts = np.rint(sums.data / unit).astype(np.int32)
    length = np.diff(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[sums.indptr])
    n = len(slots)
    return Items(
        sums.indptr.astype(np.int64), sums.indices.astype(np.int32), counts, length, np.zeros(n, np.int64), np.zeros(n)
    )


def stacked(one: Items, two: Items) -> Items:
    """The rows of both."""
    ptr = np.concatenate([one.ptr, one.ptr[-1] + two.ptr[1:]])
    return Items(ptr, *(np.concatenate(pair) for pair in zip(one[1:], two[1:], strict=True)))


class PartChain(IndexedChain):
    """The rows of a part are visited; the rest of the data is added to the sums.

    ``local`` numbers the slots anew. Candidates are listed at every visit, so each step is one of the exact chain over
    these rows, given the others.
    """

    def __init__(
        self, X: sp.csr_matrix, others: CountStats, local: np.ndarray, prior: Prior, family: CountFamily,
        settings: Settings, seed: int,
    ) -> None:  # fmt: skip
        own, indexed, unit = as_items(
            X, binary=family.binary, n_clusters=settings.n_clusters, budget=settings.budget, least=settings.least
        )
        slots = np.flatnonzero(others.size)
        self.local, self.n_own = local, X.shape[0]
        self.other_labels = local[slots]  # labels of the rows of the other parts
        self.more = np.zeros(len(local), np.int64)  # rows that these stand for, besides themselves
        self.more[self.other_labels] = others.size[slots] - 1
        n_candidates = int(np.clip(400 / max(X.nnz / max(X.shape[0], 1), 1.0), 4, 32))
        super().__init__(
            stacked(own, sums_as_items(others, slots, unit)), indexed, prior._replace(unit=unit), len(local), seed=seed,
            n_candidates=n_candidates, refresh=1, n_threads=1,
        )  # fmt: skip
        self.runs = [(0, self.n_own)]

    def rebuild(self, *, list_empty: bool = True) -> None:
        super().rebuild(list_empty=list_empty)
        live = self.clusters.size > 0
        self.clusters.size[live] += self.more[live]
        refresh_clusters(self.prior, self.clusters, self.work.marked)

    def placed(self) -> np.ndarray:
        """The slots of the rows, each placed in its best cluster so far or a new one, in random order."""
        self.begin(np.full(self.n_own, -1))
        order = np.random.default_rng(int(self.random[0])).permutation(self.n_own)
        at = 0
        while at < self.n_own:
            self.post()
            at = place_rows(
                self.items, self.prior, self.clusters, self.postings, self.lists, self.tuning.keep, order, at,
                self.n_own, self.random, self.work,
            )  # fmt: skip
            self.rebuild()
        return self._slots()

    def drawn(self, labels: np.ndarray) -> np.ndarray:
        """The slots of the rows after one visit to each, which are in these slots now."""
        self.begin(self.local[labels])
        self.sweep()
        return self._slots()

    @property
    def labels(self) -> np.ndarray:
        """Of the rows of the part."""
        return self.clusters.labels[: self.n_own]

    def begin(self, labels: np.ndarray) -> None:
        """Set the rows on their way from these labels."""
        self.set_labels(np.concatenate([labels, self.other_labels]).astype(np.int32))

    def _slots(self) -> np.ndarray:
        back = np.empty_like(self.local)
        back[self.local] = np.arange(len(self.local))
        return np.asarray(back[self.labels])


class SumsChain(CountChain):
    """All clusters as one row each: what is asked of the sums alone, without the rows."""

    def __init__(self, stats: CountStats, family: CountFamily, prior: Prior, n_rows: int) -> None:
        slots = np.flatnonzero(stats.size)
        self.sizes, self.n_rows = stats.size, n_rows
        unit = 1.0 if np.array_equal(stats.sums.data, np.rint(stats.sums.data)) else 1.0 / 1024
        items = sums_as_items(stats, slots, unit)
        super().__init__(
            items, np.zeros(len(prior.shape), np.bool_), prior._replace(unit=unit), len(stats.size), seed=0
        )
        self.set_labels(slots.astype(np.int32))

    def rebuild(self, *, list_empty: bool = True) -> None:
        super().rebuild(list_empty=list_empty)
        live = self.clusters.size > 0
        self.clusters.size[live] = self.sizes[live]
        refresh_clusters(self.prior, self.clusters, self.work.marked)

    def set_prior(self, prior: Prior) -> None:
        super().set_prior(prior._replace(unit=self.prior.unit))

    @property
    def labels(self) -> Any:
        """As many as there are rows; which they are, the sums do not say."""
        return np.broadcast_to(np.int32(0), (self.n_rows,))
