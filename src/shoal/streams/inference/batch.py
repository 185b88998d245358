"""Batch inference: the answer of one pass of the stream, then only moves that raise the log joint.

The joint is log P(labels | times) + log P(documents | labels). Moves of one document at a time (sweeps) cannot join the
pieces of a cluster, nor part what two clusters share; merges of whole clusters and splits by sequential allocation can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from shoal.progress import Monitor
from shoal.streams.inference.base_learning import learn_base
from shoal.streams.inference.parameter_learning import best_concentration, dense_labels, log_prior_of, maximize
from shoal.streams.kernels import learning_kernels
from shoal.streams.kernels.evidence_kernels import total_evidence
from shoal.streams.kernels.merge_kernels import merge_pass
from shoal.streams.kernels.split_kernels import all_bases, split_merge, unlike_members
from shoal.streams.state import arrays as st
from shoal.streams.state.stream_state import EXHAUSTIVE, StreamState
from shoal.streams.time_kernels import ExponentialKernel

SPLIT_SHARE = 0.2  # see granularity in TimeSensitiveMixture; a heuristic, chosen on sets of stories and logs
PARTNERS, PARTNER_BUDGET = 8, 20_000  # clusters a merge is scored with, index entries looked at to find them
ANCHORS_PER_CLUSTER, ANCHOR_TRIES = 2, 16
MOST_ROUNDS, COARSE_ROUNDS = 4, 5
ENOUGH = 1e-5  # rounds end when the joint rises by less than this share of itself
MANY_PIECES = 0.2  # so many clusters a document, and the coarse start is tried as well


@dataclass(frozen=True)
class Learned:
    """Which parameters are learned; the others were given."""

    kernel: bool = True
    concentration: bool = True
    mean: bool = True
    strength: bool = True


@dataclass
class Batch:
    """All documents in the window of a state, and the moves that raise the joint."""

    state: StreamState
    times: np.ndarray
    learned: Learned
    share: float = SPLIT_SHARE  # of their words in which the sides of a greedy split must differ at least
    seed: int = 0
    _order: np.ndarray = field(init=False)
    _rest: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        n, state = self.state.n_docs, self.state
        self._order, self._rest = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self._bases = np.zeros(len(state.prior.seen))
        self._random = np.array([self.seed], dtype=np.uint64)
        self._generator = np.random.default_rng(self.seed)

    # --- the joint and its parameters ---------------------------------------------------------------------------------

    def log_joint(self) -> float:
        """log P(labels | times) + log P(documents | labels), without multinomial coefficients."""
        state = self.state
        dense, n_clusters = dense_labels(state.labels)
        prior = log_prior_of(self.times, dense, n_clusters, state.kernel, math.log(state.concentration))
        return prior + float(total_evidence(state.clusters, state.tables, state.prior, state.status))

    def learn(self, base_rounds: int = 2) -> None:
        """The base measure, the rate and the concentration that suit the present clusters best."""
        learn_base(self.state, mean=self.learned.mean, strength=self.learned.strength, rounds=base_rounds)
        self._learn_time()

    def _learn_time(self) -> None:
        state = self.state
        if self.learned.kernel:
            kernel, concentration = maximize(self.times, [state.labels], state.kernel)
        elif self.learned.concentration:
            kernel, waves = state.kernel, np.ascontiguousarray(np.stack(state.kernel.waves()))
            totals = np.zeros(len(self.times))
            learning_kernels.wave_totals(self.times, waves, totals)
            concentration = best_concentration(totals, float(state.n_live))
        else:
            return
        state.set_time(kernel, concentration if self.learned.concentration else state.concentration)

    @property
    def splits_words(self) -> bool:
        """Whether splits are defined: counts of words that do not drift."""
        return bool(self.state.status[0].family == st.MULTINOMIAL and self.state.status[0].drift == 0.0)

    # --- moves --------------------------------------------------------------------------------------------------------

    def merge(self) -> int:
        """Clusters, smallest first, join the partner that raises the joint most; how many did."""
        state = self.state
        if state.status[0].drift > 0.0:
            return 0
        slots = state.live[np.argsort(state.clusters.record.n_members[state.live], kind="stable")]
        ids, at, won = state.clusters.record.id[slots].copy(), 0, np.zeros(2)
        while True:
            clusters, tables, postings, prior, _, links, status, scratch = state.arrays()
            at = merge_pass(
                clusters, tables, postings, prior, links, status, scratch,
                (slots, ids), at, (PARTNER_BUDGET, PARTNERS), self._order, won,
            )  # fmt: skip
            if at == len(slots):
                return int(won[0])
            state.enlarge()

    def sweep(self) -> None:
        """Every document moves to its best cluster; a cluster is begun only by a document that is alone."""
        state = self.state
        n, budget = state.n_docs, EXHAUSTIVE if state.status[0].family == st.GAUSSIAN else 1000
        state.resample(0, n, budget=budget, n_best=8, uniforms=np.full(n, -1.0), births=False)
        state.status[0].n_events = 0

    def split(self) -> int:
        """A few splits of every cluster, taken where the sides differ enough; how many were."""
        if not self.splits_words:
            return 0
        anchors = self._anchors()
        pairs = np.zeros((anchors.size, 2), dtype=np.int64)
        unlike_members(
            self.state.window, self.state.links, anchors, ANCHOR_TRIES, np.zeros(self._bases.size), self._random, pairs
        )
        return int(self._propose(pairs, greedy=True)[0])

    def _anchors(self) -> np.ndarray:
        """A few random members of every cluster of three or more."""
        state = self.state
        mixed = self._generator.permutation(state.n_docs)
        slots = state.window.docs.slot[mixed]
        by_slot = np.argsort(slots, kind="stable")
        first = np.searchsorted(slots[by_slot], slots[by_slot])
        few = np.arange(state.n_docs) - first < ANCHORS_PER_CLUSTER
        large = state.clusters.record.n_members[slots[by_slot]] > 2
        return np.ascontiguousarray(mixed[by_slot[few & large]])

    def split_merge(self, n_pairs: int) -> np.ndarray:
        """Metropolis-Hastings splits and merges of random pairs of documents: exact; (splits, merges, nats)."""
        if not self.splits_words or self.state.n_docs < 2:
            return np.zeros(3)
        return self._propose(self._generator.integers(0, self.state.n_docs, (n_pairs, 2)), greedy=False)

    def _propose(self, pairs: np.ndarray, *, greedy: bool) -> np.ndarray:
        state, at, won = self.state, 0, np.zeros(3)
        all_bases(state.prior, state.status, self._bases)
        sides = st.empty_sides(self._bases.size, len(state.prior.blocks), state.waves.shape[1], state.n_docs)
        while True:
            clusters, tables, postings, prior, window, links, status, _ = state.arrays()
            at = split_merge(
                clusters, tables, postings, prior, window, links, status, pairs, at,
                (self._bases, sides, self._order, self._rest), (greedy, self.share, self._random), won,
            )  # fmt: skip
            if at == len(pairs):
                return won
            state.enlarge()

    # --- schedules ----------------------------------------------------------------------------------------------------

    def round(self, running: Callable[[], bool]) -> None:
        """Merges, a sweep, splits, a sweep, and the parameters; it may end after any of them."""
        for step in (self.merge, self.sweep, self.split, self.sweep, self.learn):
            if not running():
                return
            step()

    def coarsen(self) -> None:
        """For a while clusters join readily: few births, no fading, a stronger base measure. What was given stays."""
        state, learned = self.state, self.learned
        span = float(self.times[-1] - self.times[0]) or 1.0
        slow = ExponentialKernel(1e-6 * len(self.times) / span)
        state.set_time(
            slow if learned.kernel and isinstance(state.kernel, ExponentialKernel) else state.kernel,
            1.0 if learned.concentration else state.concentration,
        )
        if learned.strength:
            state.set_strength(2.0 * float(state.prior.blocks.strength[0]))
        self.merge()
        self.sweep()
        learn_base(state, mean=learned.mean, strength=learned.strength)


def improve(batch: Batch, monitor: Monitor, *, coarse: bool) -> float:
    """Raise the joint of a batch in place until it hardly rises; the joint reached. Stops where the monitor says."""
    batch.learn(base_rounds=3)
    for _ in range(COARSE_ROUNDS if coarse else 0):
        if monitor.running:
            batch.coarsen()
            monitor.report(batch.log_joint(), clusters=batch.state.n_live)
    if coarse:
        batch.learn()
    joint = batch.log_joint()
    for _ in range(MOST_ROUNDS):
        if not monitor.running:
            break
        before = joint
        batch.round(lambda: monitor.running)
        joint = batch.log_joint()
        monitor.report(joint, clusters=batch.state.n_live)
        if joint - before < ENOUGH * abs(joint):
            break
    return joint


def best_batch(start: Callable[[], Batch], monitor: Monitor) -> Batch:
    """The fine start, and the coarse one too where the stream left most documents in pieces; the larger joint wins."""
    fine = start()
    n_pieces = fine.state.n_live
    top = improve(fine, monitor, coarse=False)
    if n_pieces <= MANY_PIECES * fine.state.n_docs or not monitor.running:
        return fine
    other = start()
    joint = improve(other, monitor, coarse=True)
    # a start that was interrupted may be anywhere between its beginning and its end
    return other if joint > top and monitor.running else fine
