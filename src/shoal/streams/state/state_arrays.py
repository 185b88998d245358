"""The arrays under batch and streaming inference: who makes and enlarges them, and sets what all kernels read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import gammaln

from shoal.errors import ShoalError
from shoal.streams.kernels import pass_kernels as passes
from shoal.streams.kernels.table_kernels import room_for
from shoal.streams.state import arrays as st
from shoal.streams.state.arrays import Clusters, Links, Postings, Prior, Scratch, Tables, Window
from shoal.streams.time_kernels import StepKernel, TimeKernel

EXHAUSTIVE = -1  # as a budget: score every live cluster


@dataclass
class StateArrays:
    """The arrays of a stream, made and enlarged; what is done with them is in :class:`StreamState`."""

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
    ) -> Self:
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

    def empty_copy(self, seed: int) -> Self:
        """A state with the same parameters and base measure, a copy, and no documents."""
        now = self.status[0]
        fresh = type(self).start(
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

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        groups = (self.clusters, self.tables, self.postings, self.window, self.prior)
        return sum(array.nbytes for group in groups for array in group)

    # --- room ---------------------------------------------------------------------------------------------------------

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
