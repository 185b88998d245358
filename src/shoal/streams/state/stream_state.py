"""The state under batch and streaming inference: documents come, move and go, by kernels over its arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.streams.kernels import pass_kernels as passes
from shoal.streams.kernels.visit_kernels import close_cluster, open_cluster, put_in, take_out
from shoal.streams.state import arrays as st
from shoal.streams.state.arrays import Scratch, Window
from shoal.streams.state.state_arrays import StateArrays

EXHAUSTIVE = -1  # as a budget: score every live cluster


@storable
@dataclass
class StreamState(StateArrays):
    """Clusters and recent documents, ready to go on. See :mod:`shoal.streams.state` for the arrays."""

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
