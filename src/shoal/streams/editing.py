"""What users may do to clusters: merge, split, pin, name, bring back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from shoal.errors import BadInput
from shoal.streams.kernels.table_kernels import add_term
from shoal.streams.kernels.visit_kernels import close_cluster
from shoal.streams.kernels.weight_kernels import carry_wave, refresh_tail
from shoal.streams.state.cluster_view import words_of

if TYPE_CHECKING:
    from shoal.streams.inference.streaming import Stream


class Edits:
    """Mixed into the estimator; every edit is also an event."""

    stream_: Stream

    def name_cluster(self, cluster: int, name: str | None) -> None:
        """Give a cluster a name; it stays with the id for good."""
        self.stream_.history.names[int(cluster)] = name or ""

    def pin(self, cluster: int, pinned: bool = True) -> None:
        """A pinned cluster is not retired, however long it is silent."""
        self.stream_.state.clusters.record.pinned[self._slot(cluster)] = int(pinned)

    def revive(self, cluster: int) -> None:
        """Bring a retired cluster back under its old id, with its words, as if one of its messages had come now."""
        slot = self.stream_.revive(int(cluster))
        state = self.stream_.state
        record = state.clusters.record[slot]
        record.base_u, record.base_time = 1.0, self.stream_.now
        state.clusters.base_wave[slot] = [1.0, 0.0]
        state.clusters.grid_u[slot] = 1.0
        refresh_tail(state.links, state.kind, slot)
        self._note("revival", cluster)

    def merge_clusters(self, cluster: int, into: int) -> None:
        """All messages of one cluster go to another; the first id is gone for good."""
        if cluster == into:
            raise BadInput(f"cluster {cluster} cannot be merged into itself.")
        source, target = self._slot(cluster), self._slot(into)
        state, history = self.stream_.state, self.stream_.history
        state.move(np.flatnonzero(state.window.docs.slot[: state.n_docs] == source), target)
        if state.clusters.record.n_settled[source] > 0:
            self._move_settled(source, target)
        close_cluster(state.clusters, state.tables, state.postings, state.status, source)
        state.refresh()
        history.merged[int(cluster)] = int(into)
        labels = history.labels[: history.n_labels]
        labels[labels == cluster] = into
        self._note("merge", cluster, int(into))

    def split_cluster(self, cluster: int, items: Any) -> int:
        """These messages (numbers in ``labels_``, still in the window) leave their cluster for a new one; its id."""
        slot = self._slot(cluster)
        state = self.stream_.state
        asked = np.atleast_1d(np.asarray(items, dtype=np.int64))
        order = getattr(self, "order_", np.zeros(0, dtype=np.int64))
        numbers = asked.copy()
        of_fit = asked < len(order)
        numbers[of_fit] = order[asked[of_fit]]
        docs = state.window.docs[: state.n_docs]
        chosen = np.flatnonzero(np.isin(docs.number, numbers) & (docs.slot == slot))
        size = int(state.clusters.record.n_members[slot])
        if not 0 < chosen.size < size:
            raise BadInput(
                f"split_cluster({cluster}): {chosen.size} of the {asked.size} items are messages of this cluster that "
                f"can still move, and the cluster has {size}; give some of them, but not all."
            )
        target = state.open(float(state.window.docs.time[chosen[0]]))
        state.move(chosen, target)
        fresh = int(state.clusters.record.id[target])
        self._note("split", fresh, int(cluster))
        return fresh

    def _slot(self, cluster: int) -> int:
        state = self.stream_.state
        ids = state.clusters.record.id[state.live]
        found = np.flatnonzero(ids == cluster)
        if not found.size:
            raise BadInput(f"no live cluster has id {cluster}; {ids.size} are live. A retired one can be revived.")
        return int(state.live[found[0]])

    def _note(self, kind: str, cluster: int, into: int | None = None) -> None:
        self.stream_.history.edits.append({"kind": kind, "id": int(cluster), "into": into, "at": self.stream_.now})

    def _move_settled(self, source: int, target: int) -> None:
        """Settled members go over as sums: words, numbers, lives, and the weight they have left."""
        state = self.stream_.state
        features, amounts = words_of(state, source)
        state.make_room_for(features)
        clusters = state.clusters
        for feature, amount in zip(features.tolist(), amounts.tolist(), strict=True):
            add_term(clusters.record, state.tables, state.postings, state.status, target, feature, amount)
        clusters.totals[target] += clusters.totals[source]
        clusters.moments[target] += clusters.moments[source]
        strengths = state.prior.blocks.strength
        clusters.log_gamma[target] = gammaln(clusters.totals[target] + strengths)
        clusters.log_unit[target] = np.log1p(clusters.totals[target] / strengths)
        self._join_weights(source, target)
        moved = clusters.record.n_settled[source]
        clusters.record.n_members[target] += moved
        clusters.record.n_settled[target] += moved
        clusters.activity[target, 0] += clusters.activity[source].sum()
        clusters.record.born[target] = min(clusters.record.born[target], clusters.record.born[source])

    def _join_weights(self, source: int, target: int) -> None:
        """Sums over settled members of two clusters, brought to the later of their times and added."""
        state, learner = self.stream_.state, self.stream_.learner
        clusters = state.clusters
        both = (source, target) if clusters.record.n_settled[target] > 0 else (source,)
        later = max(float(clusters.record.base_time[slot]) for slot in both)
        u, wave, grid = 0.0, np.zeros_like(clusters.base_wave[target]), np.zeros_like(clusters.grid_u[target])
        for slot in both:
            gap = later - float(clusters.record.base_time[slot])
            u += float(clusters.record.base_u[slot]) * math.exp(-state.rate * gap)
            moved = np.zeros_like(wave)
            carry_wave(state.waves, clusters.base_wave[slot], gap, moved)
            moved[:, 0] -= 1.0  # carry_wave adds the newcomer, and there is none
            wave += moved
            if learner is not None:
                grid += clusters.grid_u[slot] * np.exp(-learner.rates * gap)
        clusters.record.base_u[target], clusters.record.base_time[target] = u, later
        clusters.base_wave[target], clusters.grid_u[target] = wave, grid
