"""One pass over a stream: assignment on arrival, a short window that is re-sampled, settling, learning, retirement.

What happens depends on the documents and the options, not on how the documents were cut into calls: work that belongs
to a batch is done whenever the number of documents seen is a multiple of ``batch``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.streams import state as st
from shoal.streams import stream_kernels as passes
from shoal.streams.engine import Engine
from shoal.streams.kernels_over_time import ExponentialKernel
from shoal.streams.learning import learn_strength
from shoal.streams.lives import History, Life, life_of_slot
from shoal.streams.online import BirthLearner, GridLearner, typical_gap
from shoal.streams.options import Inference
from shoal.streams.slots import log_weights, reopen, words_of
from shoal.streams.visit_kernels import close_cluster

# This constant and FRAGMENTED were chosen on MStream's four streams of short texts. Halved or doubled they cost up to
# .03 of NMI on one of the four (benchmarks/streams_short_text.py sensitivity).
PRIOR_DOCUMENTS = 15.0  # the base measure begins as strong as so many documents
STRENGTH_EVERY = 4  # batches between looks at how strong the base measure should be
FRAGMENTED = 2.0  # one pass leaves true clusters in pieces, whose words ask for half the strength of the whole
FARTHEST_GROWTH = 15.0  # counts that drift are brought back to scale when the scale has grown by e^15


@storable
@dataclass
class Stream:
    """A stream in progress."""

    engine: Engine
    options: Inference
    history: History
    running: bool = True  # the base measure follows the background
    rate: float | None = None  # given, or None to learn it
    concentration: float | None = None
    strength: float | None = None
    learner: GridLearner | None = None
    births: BirthLearner | None = None  # instead of the learner, where the kernel is neither exponential nor a step
    n_seen: int = 0
    now: float = -math.inf
    n_late: int = 0
    out_of_order: bool = False

    def feed(self, X: sp.csr_matrix, times: np.ndarray) -> np.ndarray:
        """Documents in order of arrival; returns the ids they got on arrival."""
        got = np.empty(X.shape[0], dtype=np.int64)
        at = 0
        while at < X.shape[0]:
            room = self.options.batch - self.n_seen % self.options.batch
            upto = min(at + room, X.shape[0])
            got[at:upto] = self._arrive(X[at:upto], times[at:upto])
            if self.n_seen % self.options.batch == 0:
                self.end_batch()
            at = upto
        return got

    def calibrate(self) -> None:
        """After the first batch: rates around the gaps seen, and a prior worth some documents of their length."""
        engine = self.engine
        times = engine.window.doc_real[: engine.n_docs, st.TIME]
        self._set_strength(engine.window.lengths[: engine.n_docs, 0])
        if engine.kind == st.WAVES:
            if self.concentration is None:
                self.births = BirthLearner.beside(engine)
                engine.set_time(engine.kernel, self.births.concentration)
            return
        self.learner = GridLearner.around(typical_gap(times), self.rate, self.concentration)
        shape = (len(engine.clusters.whole), self.learner.rates.size)
        engine.clusters = engine.clusters._replace(grid_u=np.zeros(shape), grid_log_w=np.zeros(shape))
        engine.set_time(ExponentialKernel(self.learner.rate), self.learner.concentration)

    def _set_strength(self, lengths: np.ndarray) -> None:
        """A prior as strong as some documents of average length, but no more than 1 for each feature."""
        engine = self.engine
        if self.strength is None and lengths.size and engine.counters[st.FAMILY] == st.MULTINOMIAL:
            worth = PRIOR_DOCUMENTS * max(1.0, float(lengths.mean()))
            engine.set_strength(min(worth, float(engine.prior.block_real[0, st.WIDTH])))

    def _arrive(self, X: sp.csr_matrix, times: np.ndarray) -> np.ndarray:
        engine, options = self.engine, self.options
        # a message older than the window's edge is taken to be as old as the edge: the past has settled
        edge = engine.settled_time
        self.n_late += int((times < edge).sum())
        times = np.maximum(times, edge)
        before = np.concatenate([[self.now], np.maximum.accumulate(times)])
        self.out_of_order |= bool((times < np.maximum(before[:-1], self.now)).any())
        self.now = float(max(self.now, times.max(initial=-math.inf)))
        if engine.numbers[st.DRIFT] > 0.0 and self.n_seen == 0:
            engine.numbers[st.ORIGIN] = times[0]
        lo, hi = engine.append(X, times, first_number=self.n_seen)
        if self.n_seen == 0:
            self._set_strength(engine.window.lengths[:1, 0])
        uniforms = engine.uniforms(hi - lo) if options.sample else np.full(hi - lo, -1.0)
        self._bound()
        engine.arrive(lo, hi, budget=options.budget, n_best=options.candidates, running=self.running, uniforms=uniforms)
        self.n_seen += hi - lo
        return engine.labels[lo:hi].copy()

    def _bound(self) -> None:
        """An upper bound on any cluster's weight, which ends walks into the future."""
        engine = self.engine
        settled = self.n_seen - engine.n_docs
        if self.learner is not None:
            settled = float(self.learner.total_u[self.learner.at[0]])  # type: ignore[assignment]
        engine.numbers[st.U_MAX] = 2.0 + settled + engine.n_docs

    def end_batch(self) -> None:
        """Re-sample the window, let the oldest documents settle, learn, retire."""
        engine, options = self.engine, self.options
        if self.out_of_order:
            self._sort_window()
        if self.learner is None and engine.n_settled == 0:
            self.calibrate()
        for sweep in range(options.resamplings if options.window > 0 else 0):
            last = sweep == options.resamplings - 1
            uniforms = np.full(engine.n_docs, -1.0) if last and not options.sample else engine.uniforms(engine.n_docs)
            engine.resample(
                0, engine.n_docs, budget=options.budget, n_best=options.candidates, uniforms=uniforms, sure=options.sure
            )
        self._note_merges()
        self.settle(engine.n_docs - options.window)
        self._learn()
        self._rescale()
        self.retire()

    def settle(self, upto: int) -> None:
        """The first documents of the window will not change any more."""
        if upto <= 0:
            return
        engine = self.engine
        if self.learner is not None and engine.kind != st.WAVES:
            self.learner.settle(engine, upto)
        if self.births is not None:
            self.births.settle(engine, upto)
        labels, slots = np.empty(upto, dtype=np.int64), np.empty(upto, dtype=np.int64)
        passes.settle(engine.clusters, engine.window, engine.links, engine.kind, upto, labels, slots)
        engine.settled_time = float(engine.window.doc_real[upto - 1, st.TIME])
        engine.n_settled += upto
        self.history.keep(engine.window.doc[:upto, st.NUMBER], labels, engine.window.doc_real[:upto, st.TIME])
        engine.drop_first(upto)

    def _note_merges(self) -> None:
        n = int(self.engine.counters[st.N_EVENTS])
        for gone, into in self.engine.events[:n].tolist():
            self.history.merged[gone] = into
        self.engine.counters[st.N_EVENTS] = 0
        # only the recent ones can still be asked for by someone who saw them on arrival
        while len(self.history.merged) > 100_000:
            del self.history.merged[next(iter(self.history.merged))]

    def _sort_window(self) -> None:
        """Late arrivals take their place in time."""
        engine = self.engine
        n = engine.n_docs
        times = engine.window.doc_real[:n, st.TIME]
        order = np.argsort(times, kind="stable")
        self.out_of_order = False
        if (order == np.arange(n)).all():
            return
        engine.reorder(order)

    def _learn(self) -> None:
        learner, engine = self.learner, self.engine
        if self.strength is None and self.n_seen % (STRENGTH_EVERY * self.options.batch) == 0:
            learn_strength(engine, FRAGMENTED)
        if self.births is not None and engine.n_settled >= self.options.batch and self.births.choose():
            engine.set_time(engine.kernel, self.births.concentration)
        if learner is None or engine.n_settled < self.options.batch:
            return
        changed = learner.choose()
        if changed:
            engine.clusters.real[:, st.BASE_U] = np.maximum(1.0, engine.clusters.grid_u[:, learner.at[0]])
            engine.set_time(ExponentialKernel(learner.rate), learner.concentration)
        if self.options.rate_per_cluster and learner.rate > 0.0:
            self._learn_own_rates(learner)

    def _learn_own_rates(self, learner: GridLearner) -> None:
        """Each cluster with settled members gets the rate that suits it, drawn towards the common one."""
        engine = self.engine
        live = engine.live
        gap = typical_gap(engine.window.doc_real[: engine.n_docs, st.TIME])
        own = learner.own_rates(engine, live, self.now, gap)
        engine.clusters.real[live, st.RATE] = learner.rates[own]
        engine.clusters.real[live, st.BASE_U] = np.maximum(1.0, engine.clusters.grid_u[live, own])
        engine.refresh()

    def _rescale(self) -> None:
        """Bring drifting counts back to a scale that float32 holds."""
        engine = self.engine
        grown = engine.numbers[st.DRIFT] * (self.now - engine.numbers[st.ORIGIN])
        if grown < FARTHEST_GROWTH:
            return
        shrink = math.exp(-grown)
        engine.tables.counts[:] *= np.float32(shrink)
        engine.postings.amount[:] *= np.float32(shrink)
        engine.clusters.totals[:] *= shrink
        engine.numbers[st.ORIGIN] = self.now

    # --- retirement and revival ---------------------------------------------------------------------------------------

    def log_weights(self, at: float | None = None) -> np.ndarray:
        """log w(t, c) of the live clusters, in the order of engine.live."""
        return log_weights(self.engine, self.now if at is None else at)

    def retire(self) -> None:
        """Clusters whose weight is gone leave the engine; the lightest too if there are more than allowed."""
        engine, options = self.engine, self.options
        live = engine.live.copy()
        if live.size == 0:
            return
        whole = engine.clusters.whole[live]
        weights = self.log_weights()
        idle = (whole[:, st.FIRST] < 0) & (whole[:, st.PINNED] == 0)
        gone = idle & (weights < math.log(options.retire_below * min(1.0, engine.concentration)))
        excess = live.size - int(gone.sum()) - options.max_clusters
        if excess > 0:
            lightest = np.argsort(np.where(idle & ~gone, weights, np.inf), kind="stable")[:excess]
            gone[lightest[(idle & ~gone)[lightest]]] = True
        for slot in live[gone].tolist():
            self.history.retire(self._record(slot))
            close_cluster(engine.clusters, engine.tables, engine.postings, engine.counters, slot)
        self._wake()

    def _record(self, slot: int) -> Life:
        """What is written down of a cluster that goes."""
        engine = self.engine
        life = life_of_slot(engine, slot)
        if life.size >= st.WORTH_TELLING or engine.kind == st.WAVES:
            life.features, life.amounts = (each.tolist() for each in words_of(engine, slot))
        life.base_u = float(engine.clusters.real[slot, st.BASE_U])
        life.base_wave = engine.clusters.base_wave[slot].ravel().tolist()
        life.name = self.history.names.get(life.id)
        if engine.kind == st.WAVES:
            life.wakes = self._wakes(slot)
        return life

    def _wakes(self, slot: int) -> float | None:
        """When a periodic kernel will give a silent cluster weight again, looking one period ahead."""
        engine = self.engine
        slowest = engine.waves[2][engine.waves[2] > 0]
        if slowest.size == 0:
            return None
        ahead = self.now + np.linspace(0.0, 2 * math.pi / slowest.min(), 200)[1:]
        enough = math.log(self.options.retire_below * min(1.0, engine.concentration))
        heavy = np.array([log_weights(engine, at, np.array([slot]))[0] for at in ahead]) > enough + 0.5
        return float(ahead[int(np.argmax(heavy))]) if heavy.any() else None

    def _wake(self) -> None:
        for id_ in [id_ for id_, life in self.history.lives.items() if life.wakes is not None]:
            wakes = self.history.lives[id_].wakes
            if wakes is not None and wakes <= self.now:
                self.revive(id_)

    def revive(self, id_: int) -> int:
        """A retired cluster lives again, under its old id; returns its slot."""
        slot = reopen(self.engine, self.history.life(id_))
        self.history.lives.pop(id_, None)
        return slot
