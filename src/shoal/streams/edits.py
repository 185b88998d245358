"""What users may do to clusters: merge, split, pin, name, bring back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from shoal.errors import BadInput
from shoal.streams import state as st
from shoal.streams.slots import words_of
from shoal.streams.table_kernels import add_term
from shoal.streams.visit_kernels import close_cluster
from shoal.streams.weight_kernels import carry_wave, refresh_tail

if TYPE_CHECKING:
    from shoal.streams.streaming import Stream


class Edits:
    """Mixed into the estimator; every edit is also an event."""

    stream_: Stream

    def name_cluster(self, cluster: int, name: str) -> None:
        """Give a cluster a name; it stays with the id for good."""
        self.stream_.history.names[int(cluster)] = name

    def pin(self, cluster: int, pinned: bool = True) -> None:
        """A pinned cluster is not retired, however long it is silent."""
        self.stream_.engine.clusters.whole[self._slot(cluster), st.PINNED] = int(pinned)

    def revive(self, cluster: int) -> None:
        """Bring a retired cluster back under its old id, with its words, as if one of its messages had come now."""
        slot = self.stream_.revive(int(cluster))
        engine = self.stream_.engine
        real = engine.clusters.real[slot]
        real[st.BASE_U], real[st.BASE_TIME] = 1.0, self.stream_.now
        engine.clusters.base_wave[slot] = [1.0, 0.0]
        engine.clusters.grid_u[slot] = 1.0
        refresh_tail(engine.links, engine.kind, slot)
        self._note("revival", cluster)

    def merge_clusters(self, cluster: int, into: int) -> None:
        """All messages of one cluster go to another; the first id is gone for good."""
        if cluster == into:
            raise BadInput(f"cluster {cluster} cannot be merged into itself.")
        source, target = self._slot(cluster), self._slot(into)
        engine, history = self.stream_.engine, self.stream_.history
        engine.move(np.flatnonzero(engine.window.doc[: engine.n_docs, st.SLOT] == source), target)
        if engine.clusters.whole[source, st.N_BASE] > 0:
            self._move_settled(source, target)
        close_cluster(engine.clusters, engine.tables, engine.postings, engine.counters, source)
        engine.refresh()
        history.merged[int(cluster)] = int(into)
        labels = history.labels[: history.n_labels]
        labels[labels == cluster] = into
        self._note("merge", cluster, int(into))

    def split_cluster(self, cluster: int, items: Any) -> int:
        """These messages (numbers in ``labels_``, still in the window) leave their cluster for a new one; its id."""
        slot = self._slot(cluster)
        engine = self.stream_.engine
        asked = np.atleast_1d(np.asarray(items, dtype=np.int64))
        order = getattr(self, "order_", np.zeros(0, dtype=np.int64))
        numbers = asked.copy()
        of_fit = asked < len(order)
        numbers[of_fit] = order[asked[of_fit]]
        doc = engine.window.doc[: engine.n_docs]
        chosen = np.flatnonzero(np.isin(doc[:, st.NUMBER], numbers) & (doc[:, st.SLOT] == slot))
        size = int(engine.clusters.whole[slot, st.COUNT])
        if not 0 < chosen.size < size:
            raise BadInput(
                f"split_cluster({cluster}): {chosen.size} of the {asked.size} items are messages of this cluster that "
                f"can still move, and the cluster has {size}; give some of them, but not all."
            )
        target = engine.open(float(engine.window.doc_real[chosen[0], st.TIME]))
        engine.move(chosen, target)
        fresh = int(engine.clusters.whole[target, st.ID])
        self._note("split", fresh, int(cluster))
        return fresh

    def _slot(self, cluster: int) -> int:
        engine = self.stream_.engine
        ids = engine.clusters.whole[engine.live, st.ID]
        found = np.flatnonzero(ids == cluster)
        if not found.size:
            raise BadInput(f"no live cluster has id {cluster}; {ids.size} are live. A retired one can be revived.")
        return int(engine.live[found[0]])

    def _note(self, kind: str, cluster: int, into: int | None = None) -> None:
        self.stream_.history.edits.append({"kind": kind, "id": int(cluster), "into": into, "at": self.stream_.now})

    def _move_settled(self, source: int, target: int) -> None:
        """Settled members go over as sums: words, numbers, lives, and the weight they have left."""
        engine = self.stream_.engine
        features, amounts = words_of(engine, source)
        engine.make_room_for(features)
        clusters = engine.clusters
        for feature, amount in zip(features.tolist(), amounts.tolist(), strict=True):
            add_term(clusters.whole, engine.tables, engine.postings, engine.counters, target, feature, amount)
        clusters.totals[target] += clusters.totals[source]
        clusters.moments[target] += clusters.moments[source]
        strengths = engine.prior.block_real[:, st.STRENGTH]
        clusters.log_gamma[target] = gammaln(clusters.totals[target] + strengths)
        clusters.log_unit[target] = np.log1p(clusters.totals[target] / strengths)
        self._join_weights(source, target)
        moved = clusters.whole[source, st.N_BASE]
        clusters.whole[target, st.COUNT] += moved
        clusters.whole[target, st.N_BASE] += moved
        clusters.life[target, 0] += clusters.life[source].sum()
        clusters.real[target, st.BORN] = min(clusters.real[target, st.BORN], clusters.real[source, st.BORN])

    def _join_weights(self, source: int, target: int) -> None:
        """Sums over settled members of two clusters, brought to the later of their times and added."""
        engine, learner = self.stream_.engine, self.stream_.learner
        clusters = engine.clusters
        both = (source, target) if clusters.whole[target, st.N_BASE] > 0 else (source,)
        later = max(float(clusters.real[slot, st.BASE_TIME]) for slot in both)
        u, wave, grid = 0.0, np.zeros_like(clusters.base_wave[target]), np.zeros_like(clusters.grid_u[target])
        for slot in both:
            gap = later - float(clusters.real[slot, st.BASE_TIME])
            u += float(clusters.real[slot, st.BASE_U]) * math.exp(-engine.rate * gap)
            moved = np.zeros_like(wave)
            carry_wave(engine.waves, clusters.base_wave[slot], gap, moved)
            moved[:, 0] -= 1.0  # carry_wave adds the newcomer, and there is none
            wave += moved
            if learner is not None:
                grid += clusters.grid_u[slot] * np.exp(-learner.rates * gap)
        clusters.real[target, st.BASE_U], clusters.real[target, st.BASE_TIME] = u, later
        clusters.base_wave[target], clusters.grid_u[target] = wave, grid
