"""sampler="indexed": candidates from an inverted index over the clusters' features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.families.kernels.candidates_kernels import KNOWN, Lists, Workspace
from shoal.families.kernels.counts_kernels import Items, count_postings, fill_postings
from shoal.families.kernels.indexed_kernels import Tuning, list_rows, sample_rows
from shoal.families.kernels.initialization_kernels import place_rows
from shoal.families.kernels.metropolis_hastings_kernels import N_TALLIES
from shoal.families.kernels.parallel_kernels import LATER, carry_out, decide_rows
from shoal.families.kernels.random_kernels import next_word
from shoal.families.kernels.scores_kernels import UNKNOWN_SCORE, Prior
from shoal.families.samplers.count_chain import CountChain, make_workspace
from shoal.threads import n_threads_available, ordered_map, row_blocks

# Candidates so many nats below the best are not kept in a list: one draw in 500 million would take them.
KEEP = 20.0
RESTLESS = 20  # rows are decided side by side once fewer than one in so many moves in a sweep
KEPT = ("candidates", "stable", "lead")  # the parts of its lists that a chain's future depends on
SMALL = 8  # rows a cluster holds, on average, before lists made in a one-pass start are worth keeping


class IndexedChain(CountChain):
    """Each visit lists a few candidates, scores these exactly, and proposes one of them.

    ``refresh=1`` lists them at every visit, from the other rows alone: every step then leaves the posterior unchanged.

    With larger values a row that has settled keeps its list for ``refresh`` sweeps, and is passed over meanwhile if its
    cluster is far ahead of all others, or most of the time if it is clearly ahead. Lists that are due are made for a
    group of rows at a time, on threads, from the clusters as they are when the group begins (groups are fixed, so the
    number of threads does not show in the answer). Proposals then depend on the chain's past, and the chain is only
    nearly right. ``freeze_adaptation`` ends that: the lists stay as they are, and now and then each row is visited with
    a list of the moment, at times that depend on nothing but the numbers of row and sweep. A proposal is then either
    fixed or a function of the other rows, and every step leaves the posterior unchanged again. Scores are exact
    throughout.

    ``parallel`` also decides visits on threads, a group at a time; see parallel_kernels.
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
        parallel: bool = False,
    ) -> None:
        n = len(items.length)
        self.posted = False  # whether the postings are those of the tables
        candidates, scores = (
            np.full((n, n_candidates), -1, np.int32),
            np.full((n, min(n_candidates, KNOWN)), UNKNOWN_SCORE),
        )
        self.lists = Lists(candidates, np.zeros(n, np.int32), np.zeros(n, np.float32), scores, np.full(n, -1))
        super().__init__(items, indexed, prior, n_clusters, seed=seed, n_candidates=n_candidates)
        self.n_threads, self.listed_until = n_threads, 0
        self.parallel, self.stream = parallel, self.random.copy()
        self.targets, self.began = np.full(n, LATER, np.int64), 0  # where a group's rows go, and when it was decided
        self.group_rows = int(np.clip(n // 16, 64, 8192))
        self.works = [self.work]  # one for each thread
        self.tuning = Tuning(
            refresh=refresh,
            fixed=False,
            stable_after=1 if refresh > 1 else 1 << 30,
            share_uniform=share_uniform,
            keep=KEEP,
        )

    def start_one_pass(self, order: np.ndarray) -> None:
        """Place all rows in this order, each to its best cluster so far or a new one."""
        self.set_labels(np.full(len(self.labels), -1, np.int32))
        at, n = 0, len(order)
        while at < n:
            self.post()
            at = place_rows(
                self.items, self.prior, self.clusters, self.postings, self.lists, self.tuning.keep, order, at, n,
                self.random, self.work,
            )  # fmt: skip
            self.rebuild()
        # Rows placed while clusters were still small found poor lists: they are listed again in the first sweep.
        self.lists.stable[:] = 1
        self.lists.stable[order[: SMALL * int((self.clusters.size > 0).sum())]] = 0

    def adopt(self, lists: Lists) -> None:
        """Go on with lists made elsewhere for the same labels."""
        for name in KEPT:
            getattr(self.lists, name)[:] = getattr(lists, name)
        self.lists.scored[:] = -1

    def rebuild(self, *, list_empty: bool = True) -> None:
        super().rebuild(list_empty=list_empty)
        self.posted = False
        if self.layout_matters:
            self.lists.scored[:] = -1

    def post(self) -> None:
        """Make the postings anew where the tables have been, where rows moved without their notice, or where some had
        to be left out."""
        if self.posted and self.postings.left_out[0] == 0:
            return
        room = 2 * count_postings(self.clusters, self.postings) + 4096
        if room > len(self.entries):
            self.entries = np.zeros(room + room // 4, np.int32)
        if len(self.postings.entries) != room:
            self.postings = self.postings._replace(entries=self.entries[:room])
        fill_postings(self.clusters, self.postings)
        self.posted = True

    def after_split_merge(self, moved: np.ndarray) -> None:
        self.lists.stable[moved] = 0
        self.posted = False

    def near_pairs(self) -> np.ndarray | None:
        """Clusters that stand in one another's rows' lists: at least for a quarter of the smaller one's rows."""
        listed, k = self.lists.candidates, self.n_clusters
        row, column = np.nonzero(listed >= 0)
        own, other = self.labels[row].astype(np.int64), listed[row, column].astype(np.int64)
        code, n_rows = np.unique(
            (np.minimum(own, other) * k + np.maximum(own, other))[own != other], return_counts=True
        )
        one, two = code // k, code % k
        smaller = np.minimum(self.clusters.size[one], self.clusters.size[two])
        near = np.flatnonzero((smaller > 0) & (4 * n_rows >= smaller))
        if len(near) > k // 2:  # those that share most of their rows are plenty
            near = near[np.argsort(-n_rows[near] / smaller[near], kind="stable")[: k // 2]]
        return np.column_stack([one[near], two[near]])

    def freeze_adaptation(self) -> None:
        self.tuning = self.tuning._replace(fixed=self.tuning.refresh > 1)

    def state(self) -> dict[str, Any]:
        lists = {name: getattr(self.lists, name).copy() for name in KEPT}
        return super().state() | lists | {"n_moved": self.n_moved}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        for name in KEPT:
            if name in state:
                getattr(self.lists, name)[:] = state[name]
        self.n_moved = int(state.get("n_moved", self.n_moved))

    @property
    def lists_by_group(self) -> bool:
        return self.tuning.refresh > 1 and not self.tuning.fixed

    def visit(self, first: int, last: int) -> int:
        """Group by group: lists (and, if parallel, decisions) on threads, then visits one by one."""
        if not self.lists_by_group:
            self.post()
        in_parallel = self.parallel and self.tuning.refresh > 1
        if first == 0 and self.listed_until == 0 and in_parallel:  # otherwise row 0 itself found no room
            self.stream[:] = self.random
            next_word(self.random)
        while first < last:
            end = last
            if self.lists_by_group or in_parallel:
                end = min(last, (first // self.group_rows + 1) * self.group_rows)
                if first >= self.listed_until:  # otherwise a visit goes on after a rebuild
                    if self.lists_by_group:
                        self._list_group(first, end)
                    if in_parallel:
                        self._decide_group(first, end)
                    self.listed_until = end
            first = self._carry_out(first, end) if in_parallel else self._sample(first, end)
            if first < end:
                return first
        self.listed_until = 0
        return last

    def _list_group(self, first: int, last: int) -> None:
        def make_lists(start: int, end: int, work: Workspace) -> None:
            list_rows(
                self.items, self.prior, self.clusters, self.postings, self.lists, self.tuning,
                start, end, self.n_sweeps, work,
            )  # fmt: skip

        self.post()
        self._on_threads(make_lists, first, last)

    def _decide_group(self, first: int, last: int) -> None:
        self.began = int(self.clusters.clock[0])
        self.targets[first:last] = LATER
        if self.n_moved * RESTLESS > len(self.labels):  # most decisions would have to be taken again
            return

        def decide(start: int, end: int, work: Workspace) -> np.ndarray:
            tally = np.zeros(N_TALLIES, np.int64)
            decide_rows(
                self.items, self.prior, self.clusters, self.lists, self.tuning, start, end, self.n_sweeps, self.stream,
                self.targets, tally, work,
            )  # fmt: skip
            return tally

        self.tally += np.sum(self._on_threads(decide, first, last), axis=0)

    def _on_threads(self, task: Callable[[int, int, Workspace], Any], first: int, last: int) -> list[Any]:
        """Rows first .. last - 1 in as many parts as there are threads; the parts do not show in what a task does."""
        n_threads = min(self.n_threads or n_threads_available(), max(1, (last - first) // 256))
        while len(self.works) < n_threads:
            self.works.append(make_workspace(self.n_clusters, len(self.prior.shape), self.lists.candidates.shape[1]))
        blocks = row_blocks(last - first, -(-(last - first) // n_threads))
        parts = [(first + start, first + end, work) for (start, end), work in zip(blocks, self.works, strict=False)]
        return list(ordered_map(lambda part: task(*part), parts, n_threads))

    def _carry_out(self, first: int, last: int) -> int:
        done = carry_out(
            self.items, self.prior, self.clusters, self.postings, self.lists, self.tuning, first, last, self.n_sweeps,
            (self.stream, self.targets, self.began), self.tally, self.work,
        )  # fmt: skip
        return int(done)

    def _sample(self, first: int, last: int) -> int:
        done = sample_rows(
            self.items, self.prior, self.clusters, self.postings, self.lists, self.tuning,
            first, last, (self.n_sweeps, self.lists_by_group), self.random, self.tally, self.work,
        )  # fmt: skip
        return int(done)
