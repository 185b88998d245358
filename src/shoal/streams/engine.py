"""The engine under batch and streaming inference: it owns the arrays, enlarges them, and calls the kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from shoal.base import storable
from shoal.errors import ShoalError
from shoal.streams import state as st
from shoal.streams import stream_kernels as passes
from shoal.streams.kernels_over_time import StepKernel, TimeKernel
from shoal.streams.state import Clusters, Links, Postings, Prior, Scratch, Tables, Window
from shoal.streams.table_kernels import room_for
from shoal.streams.visit_kernels import open_cluster, put_in, take_out

EXHAUSTIVE = -1  # as a budget: score every live cluster


@storable
@dataclass
class Engine:
    """Clusters and recent documents, ready to go on. See :mod:`shoal.streams.state` for the arrays."""

    kernel: TimeKernel
    concentration: float
    clusters: Clusters
    tables: Tables
    postings: Postings
    window: Window
    prior: Prior
    waves: np.ndarray
    counters: np.ndarray
    numbers: np.ndarray
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
        for name in ("waves", "counters", "numbers", "events"):
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
    ) -> Engine:
        n_features, n_blocks = len(prior.seen), len(prior.block_real)
        dense = n_features if family == st.GAUSSIAN else 0
        counters, numbers = np.zeros(16, dtype=np.int64), np.zeros(16)
        counters[st.N_FREE], counters[st.FAMILY] = slots, family
        numbers[[st.EPS, st.TOL, st.DRIFT, st.FLOOR]] = eps, 1e-13, drift, floor
        numbers[[st.HITS, st.MISSES]] = pseudo
        engine = cls(
            kernel=StepKernel(),
            concentration=concentration,
            clusters=st.empty_clusters(slots, n_blocks, 1, dense, n_rates),
            tables=st.empty_tables(1 << 12),
            postings=st.empty_postings(n_features, 1 << 12),
            window=st.empty_window(64, 1024, n_blocks, 1, dense),
            prior=prior,
            waves=np.zeros((3, 1)),
            counters=counters,
            numbers=numbers,
            events=np.zeros((256, 2), dtype=np.int64),
            seed=seed,
        )
        engine.set_time(kernel, concentration)
        return engine

    def set_time(self, kernel: TimeKernel, concentration: float) -> None:
        """Use another kernel over time or concentration from now on; sums over the window are recomputed.

        What settled members left behind (their base) is kept as it is unless the caller replaces it.
        """
        waves = kernel.waves()
        single = waves.decay.size == 1 and waves.frequency[0] == 0.0 and waves.amplitude[0] == 1.0
        self.counters[st.KIND] = (st.STEP if waves.decay[0] == 0.0 else st.EXPONENTIAL) if single else st.WAVES
        self.kernel, self.concentration = kernel, float(concentration)
        self.rate = float(waves.decay[0]) if single else 0.0
        self.waves = np.ascontiguousarray(np.stack(waves))
        n_waves = self.waves.shape[1]
        if self.clusters.base_wave.shape[1] != n_waves:
            self.clusters = self.clusters._replace(base_wave=np.zeros((len(self.clusters.whole), n_waves, 2)))
            self.window = self.window._replace(doc_wave=np.zeros((len(self.window.doc), n_waves, 2)))
        self.clusters.real[:, st.RATE] = self.rate
        self.numbers[st.LOG_ALPHA] = math.log(self.concentration)
        self.refresh()

    def set_strength(self, strength: float) -> None:
        """Another number of pseudo-counts for the base measure of the words."""
        self.prior.block_real[0, st.STRENGTH] = strength
        strengths, totals = self.prior.block_real[:, st.STRENGTH], self.clusters.totals[self.live]
        self.clusters.log_gamma[self.live] = gammaln(totals + strengths)
        self.clusters.log_unit[self.live] = np.log1p(totals / strengths)

    def refresh(self) -> None:
        """Recompute every sum over time, and the bound on them that ends the walks into the future."""
        times = self.window.doc_real[: self.n_docs, st.TIME]
        decay = max(self.rate, 0.0)
        base = float(np.exp(self.base_log_weights()).sum()) if self.n_live else 0.0
        self.numbers[st.U_MAX] = 1.0 + base + passes.largest_total(times, decay)
        passes.recompute(self.links, self.kind, self.clusters.live, self.n_live)

    def base_log_weights(self) -> np.ndarray:
        """An upper bound on what the settled members of each live cluster still weigh."""
        live = self.live
        settled = self.clusters.whole[live, st.N_BASE] > 0
        return np.where(settled, np.log(np.maximum(self.clusters.real[live, st.BASE_U], 1e-300)), -np.inf)

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> int:
        return int(self.counters[st.KIND])

    @property
    def n_docs(self) -> int:
        """Documents in the window."""
        return int(self.counters[st.N_DOCS])

    @property
    def n_live(self) -> int:
        return int(self.counters[st.N_LIVE])

    @property
    def live(self) -> np.ndarray:
        """The live slots."""
        return self.clusters.live[: self.n_live]

    @property
    def labels(self) -> np.ndarray:
        """Ids of the clusters of the documents in the window."""
        return np.asarray(self.clusters.whole[self.window.doc[: self.n_docs, st.SLOT], st.ID])

    @property
    def links(self) -> Links:
        clusters, window = self.clusters, self.window
        return Links(
            clusters.whole,
            clusters.real,
            clusters.base_wave,
            window.doc,
            window.doc_real,
            window.doc_wave,
            self.waves,
        )

    @property
    def scratch(self) -> Scratch:
        longest = int(np.diff(self.window.starts[: self.n_docs + 1]).max(initial=0))
        slots = len(self.clusters.whole)
        if self._scratch is None or len(self._scratch.gain) < slots or len(self._scratch.order) <= longest:
            self._scratch = st.empty_scratch(slots, 2 * longest + 16, len(self.prior.block_real))
        return self._scratch

    # --- documents ----------------------------------------------------------------------------------------------------

    def append(self, X: sp.csr_matrix, times: np.ndarray, *, first_number: int) -> tuple[int, int]:
        """Put documents at the end of the window, as yet without a cluster; returns their range."""
        lo, n = self.n_docs, X.shape[0]
        hi, used = lo + n, int(self.window.starts[lo])
        self._room_in_window(hi, used + X.nnz)
        window = self.window
        window.doc[lo:hi] = -1
        window.doc[lo:hi, st.NUMBER] = np.arange(first_number, first_number + n)
        window.doc_real[lo:hi] = [0.0, 1.0, 1.0, 0.0]
        window.doc_real[lo:hi, st.TIME] = times
        window.starts[lo : hi + 1] = used + X.indptr
        window.features[used : used + X.nnz] = X.indices
        window.counts[used : used + X.nnz] = X.data
        if self.counters[st.FAMILY] == st.GAUSSIAN:
            window.rows[lo:hi] = X.toarray()
        block = self.prior.block[X.indices]
        row = np.repeat(np.arange(n), np.diff(X.indptr))
        for at in range(window.lengths.shape[1]):
            window.lengths[lo:hi, at] = np.bincount(row, weights=X.data * (block == at), minlength=n)
        self.counters[st.N_DOCS] = hi
        return lo, hi

    def _room_in_window(self, n_docs: int, n_entries: int) -> None:
        window = self.window
        if n_docs > len(window.doc):
            size = max(n_docs, 2 * len(window.doc))
            window = window._replace(
                doc=st.longer(window.doc, size, -1),
                doc_real=st.longer(window.doc_real, size),
                doc_wave=st.longer(window.doc_wave, size),
                starts=st.longer(window.starts, size + 1),
                lengths=st.longer(window.lengths, size),
                rows=st.longer(window.rows, size),
            )
        if n_entries > len(window.features):
            size = max(n_entries, 2 * len(window.features))
            window = window._replace(features=st.longer(window.features, size), counts=st.longer(window.counts, size))
        self.window = window

    def drop_first(self, upto: int) -> None:
        """Forget the first documents of the window, which are settled or moved away."""
        n, window = self.n_docs, self.window
        entries, used = int(window.starts[upto]), int(window.starts[n])
        for array in (window.doc, window.doc_real, window.doc_wave, window.lengths, window.rows):
            array[: n - upto] = array[upto:n].copy()
        window.starts[: n - upto + 1] = window.starts[upto : n + 1] - entries
        window.features[: used - entries] = window.features[entries:used].copy()
        window.counts[: used - entries] = window.counts[entries:used].copy()
        self.counters[st.N_DOCS] = n - upto
        passes.shift_lists(self.clusters, self.counters, window, n - upto, upto)

    def widen(self, n_features: int, block: int = 0) -> None:
        """More features than before: the new ones belong to this block of evidence."""
        old = len(self.prior.seen)
        if n_features <= old:
            return
        self.prior.block_real[block, st.WIDTH] += n_features - old
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
        for array in (window.doc, window.doc_real, window.doc_wave, window.lengths, window.rows):
            array[:n] = array[:n][order]
        window.starts[1 : n + 1] = np.cumsum(lengths)
        window.features[:used], window.counts[:used] = window.features[entries], window.counts[entries]
        for column in (st.PREV, st.NEXT):
            window.doc[:n, column] = place[window.doc[:n, column]]
        for column in (st.FIRST, st.LAST):
            self.clusters.whole[self.live, column] = place[self.clusters.whole[self.live, column]]

    def place(self, labels: np.ndarray) -> None:
        """Put every document of the window into the cluster with this number: 0 and on, in order of their births."""
        at = 0
        slots = np.full(int(labels.max(initial=-1)) + 1, -1, dtype=np.int64)
        while True:
            at = passes.place(*self.arrays(), self.events, at, self.n_docs, self.rate, labels, slots)
            if at == self.n_docs:
                break
            self._enlarge()
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
            self._enlarge()

    def resample(
        self, lo: int, hi: int, *, budget: int, n_best: int, uniforms: np.ndarray, sure: float = math.inf
    ) -> None:
        """One Gibbs pass over documents lo..hi-1, but those that are sure of their cluster."""
        self.counters[st.STAMP_NOW] += 1
        at = lo
        while True:
            at = passes.resample(
                *self.arrays(), self.events, at, hi, self.rate, budget, n_best, sure, uniforms[at - lo :]
            )
            if at == hi:
                return
            self._enlarge()

    def sweep(self, uniforms: np.ndarray, *, reach: float, watched: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """One Gibbs sweep over the whole window; returns the conditional of the watched document (log p, ids)."""
        self.counters[st.STAMP_NOW] += 1
        progress = np.zeros(3, dtype=np.int64)
        slots = len(self.clusters.whole)
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
            self._enlarge()
            slots = len(self.clusters.whole)
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
            self.counters,
            self.numbers,
            self.scratch,
        )

    def open(self, born: float) -> int:
        """A new, empty cluster; its slot."""
        self.make_room_for(np.zeros(0, dtype=np.int64))
        return int(open_cluster(self.clusters, self.tables, self.counters, born, self.rate))

    def move(self, docs: np.ndarray, target: int) -> None:
        """Documents of the window go to this slot, whatever they had before."""
        for i in docs.tolist():
            entries = slice(int(self.window.starts[i]), int(self.window.starts[i + 1]))
            self.make_room_for(self.window.features[entries])
            clusters, tables, postings, prior, window, links, counters, numbers, _ = self.arrays()
            take_out(clusters, tables, postings, prior, window, links, counters, numbers, i)
            put_in(clusters, tables, postings, prior, window, links, counters, numbers, target, i, True)

    def make_room_for(self, features: np.ndarray) -> None:
        """Room for one more cluster with these features."""
        while self.counters[st.N_FREE] < 1:
            self.counters[st.NEED] = st.SLOTS
            self._enlarge()
        features = features.astype(np.int32)
        while True:
            lack = room_for(self.tables, self.postings, self.counters, features, 0, len(features))
            if lack == 0:
                return
            self.counters[st.NEED] = st.TABLES if lack == 1 else st.POSTINGS
            self._enlarge()

    def _enlarge(self) -> None:
        """More room for whatever the last kernel asked for; in the large arenas little more than is needed."""
        need = int(self.counters[st.NEED])
        if need == st.SLOTS:
            self.clusters = st.more_slots(self.clusters, 2 * len(self.clusters.whole), self.counters)
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
    return array if array.flags.writeable and array.flags.c_contiguous else np.array(array, order="C")
