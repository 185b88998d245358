"""A Markov chain over the labels of sparse rows: the state every sampler of counts shares."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from shoal.families.distributions.counts import falling_table
from shoal.families.kernels.candidates_kernels import RUN, Workspace, fill_gains
from shoal.families.kernels.counts_kernels import (
    ROOM,
    Clusters,
    Items,
    Postings,
    copy_tables,
    group_rows,
    rebuild_empty,
    rebuild_tables,
)
from shoal.families.kernels.metropolis_hastings_kernels import N_TALLIES
from shoal.families.kernels.random_kernels import new_state
from shoal.families.kernels.scores_kernels import Prior, fill_base, log_marginals, refresh_clusters


class SweepFacts(NamedTuple):
    """What one sweep did."""

    moved: int
    proposed: int
    scored: int
    listed: int
    skipped: int


class CountChain:
    """Labels, statistics and random state of a mixture of counts. Subclasses say how a sweep is done."""

    def __init__(
        self, items: Items, indexed: np.ndarray, prior: Prior, n_clusters: int, *, seed: int, n_candidates: int = 8
    ) -> None:
        n, k, d = len(items.length), n_clusters, len(prior.shape)
        self.items, self.prior, self.n_clusters = items, prior, k
        self.random = new_state(seed)
        self.tally = np.zeros(N_TALLIES, np.int64)
        self.n_sweeps, self.runs = 0, [(0, n)]  # runs: the rows that a sweep visits
        self.n_moved = n
        self.is_rebuilt = False  # whether nothing has moved since the last rebuild
        self.longest_room = ROOM * (int(np.diff(items.ptr).max(initial=0)) + 1)
        self.slots = np.zeros((64 * k + 4096, 2), np.int32)
        self.entries = np.zeros(4096, np.int32)
        self.first, self.order = np.zeros(k + 1, np.int64), np.zeros(n, np.int64)
        self.scratch, self.seen = np.zeros(d, np.int64), np.zeros(d, np.int64)
        longs = [np.zeros(k, np.int64) for _ in range(6)]
        self.clusters = Clusters(
            np.full(n, -1, np.int32), longs[0], longs[1], self.slots, longs[2], longs[3], longs[4],
            np.zeros(1, np.int64), np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k + 1, np.int64), longs[5],
            np.zeros(k, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64),
        )  # fmt: skip
        self.marginals, self.marginals_at = np.zeros(k), -1
        levels = np.where(indexed, top_levels(items, d), -1)
        gain_start = np.concatenate([[0], np.cumsum(levels + 1)])
        start, length, ordered, room = (np.zeros(d, np.int64) for _ in range(4))
        gains, top, left_out = np.zeros(gain_start[-1]), np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.postings = Postings(indexed, gain_start, gains, start, length, ordered, room, self.entries, top, left_out)
        self.nothing_indexed = np.zeros(d, np.bool_)
        self.work = make_workspace(k, d, n_candidates)
        self.falling = falling_table(prior)
        fill_base(items, prior)
        fill_gains(prior, self.postings)
        self.rebuild()

    @property
    def labels(self) -> np.ndarray:
        return self.clusters.labels

    @property
    def layout_matters(self) -> bool:
        """Whether the order of the tables can show in the last digits: sums over a whole table (Bernoulli) do."""
        return self.prior.sets

    def set_labels(self, labels: np.ndarray) -> None:
        self.n_moved = len(labels)
        self.clusters.labels[:] = labels
        self.all_changed()
        self.rebuild()

    def set_prior(self, prior: Prior) -> None:
        """Go on under another prior."""
        self.prior, self.falling = prior, falling_table(prior)
        fill_base(self.items, prior)
        fill_gains(prior, self.postings)
        refresh_clusters(prior, self.clusters, self.work.marked)
        self.all_changed()

    def all_changed(self) -> None:
        self.clusters.clock[0] += 1
        self.clusters.changed[:] = self.clusters.clock[0]

    def rebuild(self, *, list_empty: bool = True) -> None:
        """Lay the statistics out afresh from the labels, in one fixed order.

        The arenas' sizes depend on the labels alone, so a chain that was stored and taken up again behaves, to the
        last bit, like one that never stopped."""
        group_rows(self.clusters.labels, self.n_clusters, self.first, self.order)
        need = rebuild_tables(self.items, self.clusters, self.first, self.order, self.scratch, self.seen)
        if need > len(self.clusters.slots):
            self.clusters = self.clusters._replace(slots=np.zeros((need, 2), np.int32))
            rebuild_tables(self.items, self.clusters, self.first, self.order, self.scratch, self.seen)
        room = 2 * need + 64 * self.n_clusters + 4096 + self.longest_room
        if room > len(self.slots):
            self.slots = np.zeros((room + room // 4, 2), np.int32)
        if len(self.clusters.slots) != room or self.clusters.slots.base is not self.slots:
            self.slots[:need] = self.clusters.slots[:need]
            self.clusters = self.clusters._replace(slots=self.slots[:room])
        if list_empty:
            rebuild_empty(self.clusters)
        refresh_clusters(self.prior, self.clusters, self.work.marked)
        self.is_rebuilt = True

    def sweep(self) -> SweepFacts:
        """Visit every row once."""
        if not self.is_rebuilt and (self.layout_matters or self.n_moved * 100 > len(self.labels)):
            self.rebuild()
        else:
            rebuild_empty(self.clusters)
        self.tally[:] = 0
        for first, last in self.runs:
            while first < last:
                first = self.visit(first, last)
                if first < last:
                    self.rebuild(list_empty=False)
        self.n_sweeps += 1
        self.is_rebuilt = False
        proposed, moved, listed, scored, skipped = (int(value) for value in self.tally)
        self.n_moved = moved
        return SweepFacts(moved, proposed, scored, listed, skipped)

    def after_split_merge(self, moved: np.ndarray) -> None:
        """These rows (a mask) have been moved otherwise than by a sweep. The statistics know; what else a sampler keeps
        does not."""

    def near_pairs(self) -> np.ndarray | None:
        """(m, 2) pairs of clusters that might say the same, where the chain knows such pairs."""
        return None

    def freeze_adaptation(self) -> None:
        """From here on states are samples: a chain that tuned its proposals to its own past stops doing so."""

    def state(self) -> dict[str, Any]:
        """Everything the chain's future depends on, besides the rows and the prior."""
        return {"labels": self.labels.copy(), "random": self.random.copy(), "n_sweeps": self.n_sweeps}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a chain where :meth:`state` left it."""
        self.set_labels(state["labels"])
        self.random[:] = state["random"]
        self.n_sweeps = int(state["n_sweeps"])

    def visit(self, first: int, last: int) -> int:
        """Visit rows first .. last - 1; the row to go on with after a rebuild."""
        raise NotImplementedError

    def log_marginals(self, prior: Prior | None = None) -> np.ndarray:
        """For each cluster, the log probability of its rows, constants of the data left out."""
        if prior is None:
            wanted = self.clusters.changed > self.marginals_at
            log_marginals(self.prior, self.clusters, wanted, self.falling, self.marginals)
            self.marginals_at = int(self.clusters.clock[0])
            return self.marginals.copy()
        out, wanted = np.zeros(self.n_clusters), np.ones(self.n_clusters, np.bool_)
        log_marginals(prior, self.clusters, wanted, falling_table(prior), out)
        return out

    def log_joint(self) -> float:
        """log p(rows, labels | prior), the weights and parameters integrated out."""
        return float(self.log_marginals().sum()) + log_labels(self.clusters.size, self.prior)

    def sums(self, least: float) -> sp.csr_matrix:
        """(n_clusters, n_features): the clusters' counts, without those below ``least``."""
        room = int(self.clusters.used.sum())
        ptr, features, counts = np.zeros(self.n_clusters + 1, np.int64), np.zeros(room, np.int32), np.zeros(room)
        copy_tables(self.clusters, least / self.prior.unit, ptr, features, counts)
        entries = (counts[: ptr[-1]] * self.prior.unit, features[: ptr[-1]], ptr)
        return sp.csr_matrix(entries, shape=(self.n_clusters, len(self.prior.shape)))


def make_workspace(n_clusters: int, n_features: int, n_candidates: int) -> Workspace:
    return Workspace(
        np.zeros(n_clusters, np.float32), np.zeros(n_clusters + 1, np.int64), np.zeros(n_features, np.bool_),
        np.zeros(n_candidates + 2, np.int64), np.zeros(n_candidates + 2), np.zeros(n_candidates + 2),
        np.zeros(32, np.float32), np.zeros(RUN),
    )  # fmt: skip


def top_levels(items: Items, n_features: int) -> np.ndarray:
    """floor(log2) of each feature's count over all rows, in units."""
    total = np.bincount(items.features, items.counts, minlength=n_features).astype(np.int64)
    return np.asarray(np.frexp(np.maximum(total, 1).astype(np.float64))[1] - 1, dtype=np.int64)


def log_labels(size: np.ndarray, prior: Any) -> float:
    """log p(labels), the weights integrated out: symmetric Dirichlet, or the limit of a Dirichlet process."""
    n, k, live = size.sum(), len(size), size[size > 0]
    if prior.dp_concentration > 0:
        # Exchangeable labels of the partition: the k! / (k - K)! ways to number K groups are equally likely.
        a = prior.dp_concentration
        partition = len(live) * np.log(a) + gammaln(live).sum() + gammaln(a) - gammaln(a + n)
        return float(partition + gammaln(k - len(live) + 1) - gammaln(k + 1))
    alpha = prior.alpha
    total = gammaln(k * alpha) - gammaln(k * alpha + n)
    return float(total + (gammaln(alpha + live) - gammaln(alpha)).sum())
