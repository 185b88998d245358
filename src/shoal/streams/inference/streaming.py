"""One pass over a stream: assignment on arrival, a short window that is re-sampled, settling, learning, retirement.

What happens depends on the documents and the options, not on how the documents were cut into calls: work that belongs
to a batch is done whenever the number of documents seen is a multiple of ``batch``.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.streams.arrivals import MESSAGES_REMEMBERED, ArrivalLearner
from shoal.streams.events import EventLog
from shoal.streams.history import ClusterHistory, History, history_of_slot
from shoal.streams.inference.parameter_learning import learn_strength
from shoal.streams.inference.rate_learning import EAGERNESS, BirthLearner, GridLearner, typical_gap
from shoal.streams.inference.stories import Stories
from shoal.streams.kernels import pass_kernels as passes
from shoal.streams.kernels.visit_kernels import close_cluster
from shoal.streams.options import Inference
from shoal.streams.state import arrays as st
from shoal.streams.state.cluster_view import log_weights, reopen, words_of
from shoal.streams.state.stored_state import from_columns, need, to_columns
from shoal.streams.state.stream_state import StreamState
from shoal.streams.time_kernels import ExponentialKernel

# This constant and FRAGMENTED were chosen on MStream's four streams of short texts. Halved or doubled they cost up to
# .03 of NMI on one of the four (benchmarks/streams_short_text.py sensitivity).
PRIOR_DOCUMENTS = 15.0  # the base measure begins as strong as so many documents
STRENGTH_EVERY = 4  # batches between looks at how strong the base measure should be
FRAGMENTED = 2.0  # one pass leaves true clusters in pieces, whose words ask for half the strength of the whole
EARLY = (16, 32, 64, 128)  # messages after which the window is looked at again, before the first batch
STORIES_EARLY, STORIES_EVERY = 10_000, 8  # messages with a merge pass every batch; batches between passes later
FARTHEST_GROWTH = 15.0  # counts that drift are brought back to scale when the scale has grown by e^15


@storable
@dataclass
class Stream:
    """A stream in progress."""

    state: StreamState
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
    stories: Stories = field(default_factory=Stories)
    n_last: int = 0  # messages of the last call
    events: EventLog = field(default_factory=EventLog)
    n_watched: int = 0  # messages that the event log has seen
    arrivals: ArrivalLearner = field(default_factory=ArrivalLearner)  # of settled messages

    def __post_init__(self) -> None:
        if isinstance(self.state, dict):  # from a model file
            self.state = from_columns(self.state)
            check_learners(self)

    def stored(self) -> Stream:
        """The same with a state of plain columns, which a model file can hold."""
        stored = copy(self)
        stored.state = to_columns(self.state)  # type: ignore[assignment]
        return stored

    def feed(self, X: sp.csr_matrix, times: np.ndarray) -> np.ndarray:
        """Documents in order of arrival; returns the ids they got on arrival."""
        got = np.empty(X.shape[0], dtype=np.int64)
        at, self.n_last = 0, X.shape[0]
        while at < X.shape[0]:
            upto = min(at + self._room(), X.shape[0])
            got[at:upto] = self._arrive(X[at:upto], times[at:upto])
            if self.n_seen % self.options.batch == 0:
                self.end_batch()
            elif self.n_seen in EARLY:
                self.resample()
            at = upto
        return got

    def _room(self) -> int:
        """How many messages come before the next work on the window."""
        soon = [at - self.n_seen for at in EARLY if at > self.n_seen]
        return min([self.options.batch - self.n_seen % self.options.batch, *soon])

    def all_labels(self) -> np.ndarray:
        """The arrival cluster of every message seen, in order of arrival (with a history folder: in the window)."""
        return self.in_order(self.history.labels, self.state.labels)

    def all_times(self) -> np.ndarray:
        """When each of these came."""
        return self.in_order(self.history.times, self.state.window.docs.time[: self.state.n_docs])

    def in_order(self, settled: np.ndarray, recent: np.ndarray) -> np.ndarray:
        """Values of settled messages and of those in the window, in order of arrival."""
        numbers = self.state.window.docs.number[: self.state.n_docs]
        if self.history.folder is not None:
            return np.asarray(recent[np.argsort(numbers, kind="stable")])
        values = np.zeros(self.n_seen, dtype=recent.dtype)
        values[: self.history.n_labels] = settled[: self.history.n_labels]
        values[numbers] = recent
        return values

    def calibrate(self) -> None:
        """After the first batch: rates around the gaps seen, and a prior worth some documents of their length."""
        state = self.state
        times = state.window.docs.time[: state.n_docs]
        self._set_strength(state.window.lengths[: state.n_docs, 0])
        if state.kind == st.WAVES:
            if self.concentration is None:
                self.births = BirthLearner.for_state(state)
                state.set_time(state.kernel, self.births.concentration)
            return
        self.learner = GridLearner.around(typical_gap(times), self.rate, self.concentration)
        shape = (len(state.clusters.record), self.learner.rates.size)
        state.clusters = state.clusters._replace(grid_u=np.zeros(shape), grid_log_w=np.zeros(shape))
        state.set_time(ExponentialKernel(self.learner.rate), self.learner.concentration)

    def _set_strength(self, lengths: np.ndarray) -> None:
        """A prior as strong as some documents of average length, but no more than 1 for each feature."""
        state = self.state
        if self.strength is None and lengths.size and state.status[0].family == st.MULTINOMIAL:
            worth = PRIOR_DOCUMENTS * max(1.0, float(lengths.mean()))
            state.set_strength(min(worth, float(state.prior.blocks.width[0])))

    def _arrive(self, X: sp.csr_matrix, times: np.ndarray) -> np.ndarray:
        state, options = self.state, self.options
        # a message older than the window's edge is taken to be as old as the edge: the past has settled
        edge = state.settled_time
        self.n_late += int((times < edge).sum())
        times = np.maximum(times, edge)
        before = np.concatenate([[self.now], np.maximum.accumulate(times)])
        self.out_of_order |= bool((times < np.maximum(before[:-1], self.now)).any())
        self.now = float(max(self.now, times.max(initial=-math.inf)))
        if self.n_seen == 0:
            state.status[0].origin = times[0]
        lo, hi = state.append(X, times, first_number=self.n_seen)
        if self.n_seen == 0:
            self._set_strength(state.window.lengths[:1, 0])
        uniforms = state.uniforms(hi - lo) if options.sample else np.full(hi - lo, -1.0)
        self._bound()
        state.arrive(lo, hi, budget=options.budget, n_best=options.candidates, running=self.running, uniforms=uniforms)
        self.n_seen += hi - lo
        return state.labels[lo:hi].copy()

    def _bound(self) -> None:
        """An upper bound on any cluster's weight, which ends walks into the future."""
        state = self.state
        settled = self.n_seen - state.n_docs
        if self.learner is not None:
            settled = float(self.learner.total_u[self.learner.at[0]])  # type: ignore[assignment]
        state.status[0].u_max = 2.0 + settled + state.n_docs

    def end_batch(self) -> None:
        """Re-sample the window, let the oldest documents settle, learn, merge stories, retire."""
        state, options = self.state, self.options
        if self.out_of_order:
            self._sort_window()
        if self.learner is None and state.n_settled == 0:
            self.calibrate()
        self.resample()
        self._watch()
        self.settle(state.n_docs - options.window)
        self._learn()
        self._rescale()
        if options.stories and (self.n_seen <= STORIES_EARLY or self.n_seen % (STORIES_EVERY * options.batch) == 0):
            self.merge_stories()
        self.retire()

    def _watch(self) -> None:
        """Tell the event log which stories the new messages belong to."""
        state = self.state
        docs = state.window.docs[: state.n_docs]
        fresh = docs.number >= self.n_watched
        stories, times = self.stories.roots(state.labels[fresh]), np.array(docs.time[fresh])
        self.events.arrived(stories, times, self.now)
        self.n_watched = self.n_seen

    def replay_events(self) -> None:
        """What the event log would have been told of the messages in the window, had they come in batches."""
        state, step = self.state, self.options.batch
        stories, times = state.labels, np.array(state.window.docs.time[: state.n_docs])
        for lo in range(0, state.n_docs, step):
            part = slice(lo, lo + step)
            self.events.arrived(stories[part], times[part], float(times[part].max()))
        self.n_watched = self.n_seen

    def merge_stories(self) -> None:
        """Which arrival clusters are one story; see :mod:`shoal.streams.inference.stories`."""
        learner, state = self.learner, self.state
        concentration = state.concentration
        if learner is not None or self.births is not None:
            concentration /= EAGERNESS
        for gone, into in self.stories.merge_pass(state, self.n_seen, state.rate, concentration):
            self.history.note_merge(gone, into, self.now)
            self.events.merge(gone, into, self.now)

    def resample(self) -> None:
        """Passes over the window, each message given all others."""
        state, options = self.state, self.options
        if self.out_of_order:
            self._sort_window()
        for sweep in range(options.resamplings if options.window > 0 else 0):
            last = sweep == options.resamplings - 1
            uniforms = np.full(state.n_docs, -1.0) if last and not options.sample else state.uniforms(state.n_docs)
            state.resample(
                0,
                state.n_docs,
                budget=options.budget,
                n_best=options.candidates,
                uniforms=uniforms,
                margin=options.margin,
            )
        self._note_merges()

    def settle(self, upto: int) -> None:
        """The first documents of the window will not change any more."""
        if upto <= 0:
            return
        state = self.state
        if self.learner is not None and state.kind != st.WAVES:
            self.learner.settle(state, upto)
        if self.births is not None:
            self.births.settle(state, upto)
        self.arrivals.learn(state.window.docs.time[:upto])
        labels, slots = np.empty(upto, dtype=np.int64), np.empty(upto, dtype=np.int64)
        passes.settle(state.clusters, state.window, state.links, state.kind, upto, labels, slots)
        state.settled_time = float(state.window.docs.time[upto - 1])
        state.n_settled += upto
        self.history.keep(state.window.docs.number[:upto], labels, state.window.docs.time[:upto])
        state.drop_first(upto)

    def _note_merges(self) -> None:
        n = int(self.state.status[0].n_events)
        for gone, into in self.state.events[:n].tolist():
            self.history.merged[gone] = into
        self.state.status[0].n_events = 0
        # only the recent ones can still be asked for by someone who saw them on arrival
        while len(self.history.merged) > 100_000:
            del self.history.merged[next(iter(self.history.merged))]

    def _sort_window(self) -> None:
        """Late arrivals take their place in time."""
        state = self.state
        n = state.n_docs
        times = state.window.docs.time[:n]
        order = np.argsort(times, kind="stable")
        self.out_of_order = False
        if (order == np.arange(n)).all():
            return
        state.reorder(order)

    def _learn(self) -> None:
        learner, state = self.learner, self.state
        if self.strength is None and self.n_seen % (STRENGTH_EVERY * self.options.batch) == 0:
            learn_strength(state, FRAGMENTED)
        if self.births is not None and state.n_settled >= self.options.batch and self.births.choose():
            state.set_time(state.kernel, self.births.concentration)
        if learner is None or state.n_settled < self.options.batch:
            return
        changed = learner.choose()
        if changed:
            state.clusters.record.base_u = np.maximum(1.0, state.clusters.grid_u[:, learner.at[0]])
            state.set_time(ExponentialKernel(learner.rate), learner.concentration)
        if self.options.rate_per_cluster and learner.rate > 0.0:
            self._learn_own_rates(learner)

    def _learn_own_rates(self, learner: GridLearner) -> None:
        """Each cluster with settled members gets the rate that suits it, drawn towards the common one."""
        state = self.state
        live = state.live
        gap = typical_gap(state.window.docs.time[: state.n_docs])
        own = learner.own_rates(state, live, self.now, gap)
        state.clusters.record.rate[live] = learner.rates[own]
        state.clusters.record.base_u[live] = np.maximum(1.0, state.clusters.grid_u[live, own])
        state.refresh()

    def _rescale(self) -> None:
        """Bring drifting counts back to a scale that float32 holds."""
        state = self.state
        grown = state.status[0].drift * (self.now - state.status[0].origin)
        if grown < FARTHEST_GROWTH:
            return
        shrink = math.exp(-grown)
        state.tables.counts[:] *= np.float32(shrink)
        state.postings.amount[:] *= np.float32(shrink)
        state.clusters.totals[:] *= shrink
        state.status[0].origin = self.now

    # --- retirement and revival ---------------------------------------------------------------------------------------

    def log_weights(self, at: float | None = None) -> np.ndarray:
        """log w(t, c) of the live clusters, in the order of state.live."""
        return log_weights(self.state, self.now if at is None else at)

    def retire(self) -> None:
        """Clusters whose weight is gone leave the state; the lightest too if there are more than allowed."""
        state, options = self.state, self.options
        live = state.live.copy()
        if live.size == 0:
            return
        record = state.clusters.record[live]
        weights = self.log_weights()
        idle = (record.first < 0) & (record.pinned == 0)
        gone = idle & (weights < math.log(options.retire_below * min(1.0, state.concentration)))
        excess = live.size - int(gone.sum()) - options.max_clusters
        if excess > 0:
            lightest = np.argsort(np.where(idle & ~gone, weights, np.inf), kind="stable")[:excess]
            gone[lightest[(idle & ~gone)[lightest]]] = True
        for slot in live[gone].tolist():
            self._retire(slot)
            close_cluster(state.clusters, state.tables, state.postings, state.status, slot)
        self._reactivate()

    def _retire(self, slot: int) -> None:
        """A cluster goes. What remains of it goes to its story, which is gone with the last of its clusters."""
        life = self._record(slot)
        story = self.stories.root(life.id)
        self.stories.looked_at.pop(life.id, None)
        self.history.retire(life, story, alone=story not in self.stories.shared)

    def _record(self, slot: int) -> ClusterHistory:
        """What is written down of a cluster that goes."""
        state = self.state
        life = history_of_slot(state, slot)
        if life.size >= st.MIN_REPORTED_SIZE or state.kind == st.WAVES:
            life.features, life.amounts = (each.tolist() for each in words_of(state, slot))
        life.base_u = float(state.clusters.record.base_u[slot])
        life.base_wave = state.clusters.base_wave[slot].ravel().tolist()
        if state.kind == st.WAVES:
            life.reactivates_at = self._reactivates_at(slot)
        return life

    def _reactivates_at(self, slot: int) -> float | None:
        """When a periodic kernel will give a silent cluster weight again, looking one period ahead."""
        state = self.state
        slowest = state.waves[2][state.waves[2] > 0]
        if slowest.size == 0:
            return None
        ahead = self.now + np.linspace(0.0, 2 * math.pi / slowest.min(), 200)[1:]
        enough = math.log(self.options.retire_below * min(1.0, state.concentration))
        heavy = np.array([log_weights(state, at, np.array([slot]))[0] for at in ahead]) > enough + 0.5
        return float(ahead[int(np.argmax(heavy))]) if heavy.any() else None

    def _reactivate(self) -> None:
        for id_ in [id_ for id_, life in self.history.retired.items() if life.reactivates_at is not None]:
            reactivates_at = self.history.retired[id_].reactivates_at
            if reactivates_at is not None and reactivates_at <= self.now:
                self.revive(id_)

    def revive(self, id_: int) -> int:
        """A retired cluster is live again, under its old id; returns its slot."""
        slot = reopen(self.state, self.history.revived(id_))
        return slot


def check_learners(stream: Stream) -> None:
    """Refuse parts of a model file that concern learning, where kernels would follow it out of their arrays."""
    learner, births, state = stream.learner, stream.births, stream.state
    if learner is not None:
        shape = (learner.rates.size, learner.log_alphas.size)
        need(learner.log_liks.shape == shape and learner.total_u.shape == shape[:1], "the grid of rates")
        need(learner.clock.shape == (1,) and state.clusters.grid_u.shape[1] == shape[0], "the grid of rates")
        need(all(0 <= at < size for at, size in zip(learner.at, shape, strict=True)), "the rate in use")
    if births is not None:
        n_waves = state.waves.shape[1]
        need(births.log_liks.shape == births.log_alphas.shape and births.clock.shape == (1,), "the concentrations")
        need(births.total_wave.shape == (n_waves, 2) and 0 <= births.at < births.log_alphas.size, "the concentrations")
    clocks = stream.arrivals
    shapes = {each.shape for each in (clocks.sums, clocks.exposures, clocks.log_probs)}
    need(shapes == {MESSAGES_REMEMBERED.shape} and clocks.clock.shape == (1,), "the rates of arrival")
    need(stream.stories.bases.ndim == 1, "the base measure of stories")
    need(0 <= stream.n_last <= stream.n_seen and state.n_docs <= stream.n_seen, "the number of messages")
