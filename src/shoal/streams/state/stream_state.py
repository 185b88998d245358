"""The state under batch and streaming inference: it owns the arrays, enlarges them, and calls the kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from shoal.base import storable
from shoal.errors import ShoalError
from shoal.streams.kernels import pass_kernels as passes
from shoal.streams.kernels.table_kernels import room_for
from shoal.streams.kernels.visit_kernels import close_cluster, open_cluster, put_in, take_out
from shoal.streams.state import arrays as st
from shoal.streams.state.arrays import Clusters, Links, Postings, Prior, Scratch, Tables, Window
from shoal.streams.time_kernels import StepKernel, TimeKernel

EXHAUSTIVE = -1  # as a budget: score every live cluster


@storable
@dataclass
class StreamState:
    """Clusters and recent documents, ready to go on. See :mod:`shoal.streams.state` for the arrays."""

    kernel: TimeKernel
    concentration: float
    clusters: Clusters
    tables: Tables
    postings: Postings
    window: Window
    prior: Prior
    waves: np.ndarray
    status: st.Records  # (1,) of STATUS: counts, options and what the last kernel ran out of
    events: np.ndarray  # (n, 2) emptied clusters and who got their last document
    seed: int
    n_draws: int = 0  # how often random numbers were drawn: with the seed, the whole state of the generator
    n_settled: int = 0  # documents that have left the window
    settled_time: float = -math.inf
    rate: float = 0.0

    def __post_init__(self) -> None:
        # a model file is mapped read-only; learning goes on in a copy
        for name in ("clusters", "tables", "postings", "window", "prior"):
            group = getattr(self, name)
            setattr(self, name, type(group)(*(writable(array) for array in group)))
        for name in ("waves", "status", "events"):
            setattr(self, name, writable(getattr(self, name)))
        self._scratch: Scratch | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    # --- making -------------------------------------------------------------------------------------------------------

    @classmethod
    def start(
        cls,
        *,
        kernel: TimeKernel,
        concentration: float,
        family: int,
        prior: Prior,
        seed: int,
        slots: int = 256,
        n_rates: int = 0,
        eps: float = 1e-9,
        drift: float = 0.0,
        floor: float = 0.5,
        pseudo: tuple[float, float] = (0.5, 0.5),
    ) -> StreamState:
        n_features, n_blocks = len(prior.seen), len(prior.blocks)
        dense = n_features if family == st.GAUSSIAN else 0
        status = st.records(1, st.STATUS)
        now = status[0]
        now.n_free, now.family = slots, family
        now.eps, now.tol, now.drift, now.floor = eps, 1e-13, drift, floor
        now.hits, now.misses = pseudo
        state = cls(
            kernel=StepKernel(),
            concentration=concentration,
            clusters=st.empty_clusters(slots, n_blocks, 1, dense, n_rates),
            tables=st.empty_tables(1 << 12),
            postings=st.empty_postings(n_features, 1 << 12),
            window=st.empty_window(64, 1024, n_blocks, 1, dense),
            prior=prior,
            waves=np.zeros((3, 1)),
            status=status,
            events=np.zeros((256, 2), dtype=np.int64),
            seed=seed,
        )
        state.set_time(kernel, concentration)
        return state

    def empty_copy(self, seed: int) -> StreamState:
        """A state with the same parameters and base measure, a copy, and no documents."""
        now = self.status[0]
        fresh = StreamState.start(
            kernel=self.kernel,
            concentration=self.concentration,
            family=int(now.family),
            prior=Prior(*(array.copy() for array in self.prior)),
            seed=seed,
            eps=float(now.eps),
            drift=float(now.drift),
            floor=float(now.floor),
            pseudo=(float(now.hits), float(now.misses)),
        )
        fresh.status[0].origin = now.origin
        return fresh

    def set_time(self, kernel: TimeKernel, concentration: float) -> None:
        """Use another kernel over time or concentration from now on; sums over the window are recomputed.

        What settled members left behind (their base) is kept as it is unless the caller replaces it.
        """
        waves = kernel.waves()
        single = waves.decay.size == 1 and waves.frequency[0] == 0.0 and waves.amplitude[0] == 1.0
        self.status[0].kind = (st.STEP if waves.decay[0] == 0.0 else st.EXPONENTIAL) if single else st.WAVES
        self.kernel, self.concentration = kernel, float(concentration)
        self.rate = float(waves.decay[0]) if single else 0.0
        self.waves = np.ascontiguousarray(np.stack(waves))
        n_waves = self.waves.shape[1]
        if self.clusters.base_wave.shape[1] != n_waves:
            self.clusters = self.clusters._replace(base_wave=np.zeros((len(self.clusters.record), n_waves, 2)))
            self.window = self.window._replace(doc_wave=np.zeros((len(self.window.docs), n_waves, 2)))
        self.clusters.record.rate = self.rate
        self.status[0].log_alpha = math.log(self.concentration)
        self.refresh()

    def set_strength(self, strength: float) -> None:
        """Another number of pseudo-counts for the base measure of the words."""
        self.prior.blocks.strength[0] = strength
        strengths, totals = self.prior.blocks.strength, self.clusters.totals[self.live]
        self.clusters.log_gamma[self.live] = gammaln(totals + strengths)
        self.clusters.log_unit[self.live] = np.log1p(totals / strengths)

    def refresh(self) -> None:
        """Recompute every sum over time, and the bound on them that ends the walks into the future."""
        times = self.window.docs.time[: self.n_docs]
        decay = max(self.rate, 0.0)
        base = float(np.exp(self.base_log_weights()).sum()) if self.n_live else 0.0
        self.status[0].u_max = 1.0 + base + passes.largest_total(times, decay)
        passes.recompute(self.links, self.kind, self.clusters.live, self.n_live)

    def base_log_weights(self) -> np.ndarray:
        """An upper bound on what the settled members of each live cluster still weigh."""
        live = self.live
        settled = self.clusters.record.n_settled[live] > 0
        return np.where(settled, np.log(np.maximum(self.clusters.record.base_u[live], 1e-300)), -np.inf)

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> int:
        return int(self.status[0].kind)

    @property
    def n_docs(self) -> int:
        """Documents in the window."""
        return int(self.status[0].n_docs)

    @property
    def n_live(self) -> int:
        return int(self.status[0].n_live)

    @property
    def live(self) -> np.ndarray:
        """The live slots."""
        return self.clusters.live[: self.n_live]

    @property
    def labels(self) -> np.ndarray:
        """Ids of the clusters of the documents in the window."""
        return np.asarray(self.clusters.record.id[self.window.docs.slot[: self.n_docs]])

    @property
    def links(self) -> Links:
        clusters, window = self.clusters, self.window
        return Links(
            clusters.record,
            clusters.base_wave,
            window.docs,
            window.doc_wave,
            self.waves,
        )

    @property
    def scratch(self) -> Scratch:
        longest = int(np.diff(self.window.starts[: self.n_docs + 1]).max(initial=0))
        slots = len(self.clusters.record)
        if self._scratch is None or len(self._scratch.gain) < slots or len(self._scratch.order) <= longest:
            self._scratch = st.empty_scratch(slots, 2 * longest + 16, len(self.prior.blocks))
        return self._scratch

    # --- documents ----------------------------------------------------------------------------------------------------

    def append(self, X: sp.csr_matrix, times: np.ndarray, *, first_number: int) -> tuple[int, int]:
        """Put documents at the end of the window, as yet without a cluster; returns their range."""
        lo, n = self.n_docs, X.shape[0]
        hi = lo + n
        self._room_in_window(hi, int(self.window.starts[lo]) + X.nnz)
        self._fill(self.window, lo, X, times, first_number)
        self.status[0].n_docs = hi
        return lo, hi

    def query(self, X: sp.csr_matrix, times: np.ndarray) -> tuple[Window, Scratch]:
        """Documents that are only asked about, in a window of their own, and work space of their own."""
        n, n_blocks = X.shape[0], len(self.prior.blocks)
        window = st.empty_window(n, X.nnz, n_blocks, self.waves.shape[1], self.window.dense.shape[1])
        self._fill(window, 0, X, times, 0)
        longest = int(np.diff(X.indptr).max(initial=0))
        return window, st.empty_scratch(len(self.clusters.record), longest + 1, n_blocks)

    def _fill(self, window: Window, lo: int, X: sp.csr_matrix, times: np.ndarray, first_number: int) -> None:
        n = X.shape[0]
        hi, used = lo + n, int(window.starts[lo])
        docs = window.docs[lo:hi]
        docs.previous = docs.next = docs.slot = -1
        docs.number = np.arange(first_number, first_number + n)
        docs.time, docs.u, docs.weight, docs.margin = times, 1.0, 1.0, 0.0
        window.starts[lo : hi + 1] = used + X.indptr
        window.features[used : used + X.nnz] = X.indices
        window.counts[used : used + X.nnz] = X.data
        if self.status[0].family == st.GAUSSIAN:
            window.dense[lo:hi] = X.toarray()
        block = self.prior.block[X.indices]
        row = np.repeat(np.arange(n), np.diff(X.indptr))
        for at in range(window.lengths.shape[1]):
            window.lengths[lo:hi, at] = np.bincount(row, weights=X.data * (block == at), minlength=n)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        groups = (self.clusters, self.tables, self.postings, self.window, self.prior)
        return sum(array.nbytes for group in groups for array in group)

    def _room_in_window(self, n_docs: int, n_entries: int) -> None:
        window = self.window
        if n_docs > len(window.docs):
            size = max(n_docs, 2 * len(window.docs))
            window = window._replace(
                docs=st.longer(window.docs, size),
                doc_wave=st.longer(window.doc_wave, size),
                starts=st.longer(window.starts, size + 1),
                lengths=st.longer(window.lengths, size),
                dense=st.longer(window.dense, size),
            )
        if n_entries > len(window.features):
            size = max(n_entries, 2 * len(window.features))
            window = window._replace(features=st.longer(window.features, size), counts=st.longer(window.counts, size))
        self.window = window

    def drop_first(self, upto: int) -> None:
        """Forget the first documents of the window, which are settled or moved away."""
        n, window = self.n_docs, self.window
        entries, used = int(window.starts[upto]), int(window.starts[n])
        for array in (window.docs, window.doc_wave, window.lengths, window.dense):
            array[: n - upto] = array[upto:n].copy()
        window.starts[: n - upto + 1] = window.starts[upto : n + 1] - entries
        window.features[: used - entries] = window.features[entries:used].copy()
        window.counts[: used - entries] = window.counts[entries:used].copy()
        self.status[0].n_docs = n - upto
        passes.shift_lists(self.clusters, self.status, window, n - upto, upto)

    def widen(self, n_features: int, block: int = 0) -> None:
        """More features than before: the new ones belong to this block of evidence."""
        old = len(self.prior.seen)
        if n_features <= old:
            return
        self.prior.blocks.width[block] += n_features - old
        self.postings = st.more_features(self.postings, n_features)
        self.prior = self.prior._replace(
            seen=st.longer(self.prior.seen, n_features), block=st.longer(self.prior.block, n_features, block)
        )

    def reorder(self, order: np.ndarray) -> None:
        """Put the window's documents into another order (that of time); lists follow."""
        n, window = self.n_docs, self.window
        place = np.empty(n + 1, dtype=np.int64)
        place[order], place[-1] = np.arange(n), -1  # place[-1]: nobody stays nobody
        lengths = np.diff(window.starts[: n + 1])[order]
        entries = np.concatenate([np.arange(window.starts[i], window.starts[i + 1]) for i in order])
        used = len(entries)
        for array in (window.docs, window.doc_wave, window.lengths, window.dense):
            array[:n] = array[:n][order]
        window.starts[1 : n + 1] = np.cumsum(lengths)
        window.features[:used], window.counts[:used] = window.features[entries], window.counts[entries]
        docs, record, live = window.docs[:n], self.clusters.record, self.live
        docs.previous, docs.next = place[docs.previous], place[docs.next]
        record.first[live], record.last[live] = place[record.first[live]], place[record.last[live]]

    def place(self, labels: np.ndarray) -> None:
        """Put every document of the window into the cluster with this number: 0 and on, in order of their births."""
        at = 0
        slots = np.full(int(labels.max(initial=-1)) + 1, -1, dtype=np.int64)
        while True:
            at = passes.place(*self.arrays(), self.events, at, self.n_docs, self.rate, labels, slots)
            if at == self.n_docs:
                break
            self.enlarge()
        self.refresh()

    # --- passes -------------------------------------------------------------------------------------------------------

    def uniforms(self, n: int) -> np.ndarray:
        """Random numbers that depend on the seed and on how many draws came before, and on nothing else."""
        generator = np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, 0, self.n_draws]))
        self.n_draws += 1
        return generator.random(n)

    def arrive(self, lo: int, hi: int, *, budget: int, n_best: int, running: bool, uniforms: np.ndarray) -> None:
        """Documents lo..hi-1 of the window get their clusters."""
        at = lo
        while True:
            at = passes.arrive(
                *self.arrays(), self.events, at, hi, self.rate, budget, n_best, running, uniforms[at - lo :]
            )
            if at == hi:
                return
            self.enlarge()

    def resample(
        self,
        lo: int,
        hi: int,
        *,
        budget: int,
        n_best: int,
        uniforms: np.ndarray,
        margin: float = math.inf,
        births: bool = True,
    ) -> None:
        """One Gibbs pass over documents lo..hi-1, but those whose cluster won by more than the margin."""
        self.status[0].stamp_now += 1
        at = lo
        while True:
            at = passes.resample(
                *self.arrays(), self.events, at, hi, self.rate, budget, n_best, margin, births, uniforms[at - lo :]
            )
            if at == hi:
                return
            self.enlarge()

    def sweep(self, uniforms: np.ndarray, *, reach: float, watched: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """One Gibbs sweep over the whole window; returns the conditional of the watched document (log p, ids)."""
        self.status[0].stamp_now += 1
        progress = np.zeros(3, dtype=np.int64)
        slots = len(self.clusters.record)
        active, active_at = np.zeros(slots, dtype=np.int64), np.full(slots, -1, dtype=np.int64)
        log_probs, ids = np.zeros(slots + 2), np.zeros(slots + 2, dtype=np.int64)
        written = 0
        while True:
            written = max(
                written,
                passes.gibbs(
                    *self.arrays(),
                    active,
                    active_at,
                    progress,
                    self.n_docs,
                    self.rate,
                    reach,
                    uniforms,
                    watched,
                    log_probs,
                    ids,
                ),
            )
            if progress[0] == self.n_docs:
                return log_probs[:written], ids[:written]
            self.enlarge()
            slots = len(self.clusters.record)
            active, active_at = st.longer(active, slots), st.longer(active_at, slots, -1)
            log_probs, ids = st.longer(log_probs, slots + 2), st.longer(ids, slots + 2)

    def arrays(self) -> tuple[Any, ...]:
        """What most kernels take, in their order."""
        return (
            self.clusters,
            self.tables,
            self.postings,
            self.prior,
            self.window,
            self.links,
            self.status,
            self.scratch,
        )

    def open(self, born: float) -> int:
        """A new, empty cluster; its slot."""
        self.make_room_for(np.zeros(0, dtype=np.int64))
        return int(open_cluster(self.clusters, self.tables, self.status, born, self.rate))

    def close(self, slot: int) -> None:
        """An empty cluster is gone."""
        close_cluster(self.clusters, self.tables, self.postings, self.status, slot)

    def move(self, docs: np.ndarray, target: int) -> None:
        """Documents of the window go to this slot, whatever they had before."""
        for i in docs.tolist():
            entries = slice(int(self.window.starts[i]), int(self.window.starts[i + 1]))
            self.make_room_for(self.window.features[entries])
            clusters, tables, postings, prior, window, links, status, _ = self.arrays()
            take_out(clusters, tables, postings, prior, window, links, status, i)
            put_in(clusters, tables, postings, prior, window, links, status, target, i, True)

    def make_room_for(self, features: np.ndarray) -> None:
        """Room for one more cluster with these features."""
        while self.status[0].n_free < 1:
            self.status[0].need = st.SLOTS
            self.enlarge()
        features = features.astype(np.int32)
        while True:
            lack = room_for(self.tables, self.postings, self.status, features, 0, len(features))
            if lack == 0:
                return
            self.status[0].need = st.TABLES if lack == 1 else st.POSTINGS
            self.enlarge()

    def enlarge(self) -> None:
        """More room for whatever the last kernel asked for; in the large arenas little more than is needed."""
        need = int(self.status[0].need)
        if need == st.SLOTS:
            self.clusters = st.more_slots(self.clusters, 2 * len(self.clusters.record), self.status)
        elif need == st.TABLES:
            self.tables = st.more_tables(self.tables, st.more_than(len(self.tables.keys)))
        elif need == st.POSTINGS:
            self.postings = st.more_postings(self.postings, st.more_than(len(self.postings.slot)))
        elif need == st.EVENTS:
            self.events = st.longer(self.events, 2 * len(self.events))
        else:
            raise ShoalError(f"a kernel stopped without saying what it needs (code {need}); this is a bug in shoal.")


def writable(array: np.ndarray) -> np.ndarray:
    """The array itself if it may be changed, otherwise a copy."""
    return array if array.flags.writeable and array.flags.c_contiguous else array.copy(order="C")
