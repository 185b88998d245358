"""What users may do to the clusters of a stream: merge, split, bring back."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from shoal.errors import BadInput
from shoal.streams.inference.streaming import Stream
from shoal.streams.kernels.weight_kernels import refresh_tail


def live_slots(stream: Stream, cluster: int) -> np.ndarray:
    """The slots of a story's live arrival clusters."""
    state = stream.state
    stories = stream.stories.roots(state.clusters.record.id[state.live])
    found = state.live[stories == cluster] if isinstance(cluster, Integral) else state.live[:0]
    if not found.size:
        n = np.unique(stories).size
        raise BadInput(f"no live cluster has id {cluster!r}; {n} are live. A retired one can be revived.")
    return np.asarray(found)


def stories_to_merge(stream: Stream, clusters: Any, into: int) -> list[int]:
    """The distinct ids of ``clusters`` but for ``into``; all must be live, and one at least be left."""
    asked = np.atleast_1d(np.asarray(clusters)).tolist()
    for cluster in (*asked, into):
        live_slots(stream, cluster)
    gone = [cluster for cluster in dict.fromkeys(asked) if cluster != into]
    if not gone:
        raise BadInput(f"there is nothing to merge into cluster {into} but itself; name other clusters.")
    return gone


def merge_stories(stream: Stream, gone: int, into: int) -> None:
    """Merge two stories; arrival clusters are unchanged."""
    for cluster in (gone, into):
        live_slots(stream, cluster)
    if gone == into:
        raise BadInput(f"cluster {gone} cannot be merged into itself.")
    stream.stories.merge(gone, into)
    stream.history.note_merge(gone, into, stream.now)


def split_story(stream: Stream, cluster: int, numbers: np.ndarray) -> int:
    """These messages of the window leave their cluster for a new one, which only a person may merge; its id."""
    state = stream.state
    slots = live_slots(stream, cluster)
    docs = state.window.docs[: state.n_docs]
    chosen = np.flatnonzero(np.isin(docs.number, numbers) & np.isin(docs.slot, slots))
    size = int(state.clusters.record.n_members[slots].sum())
    if not 0 < chosen.size < size:
        raise BadInput(
            f"split_cluster({cluster}): {chosen.size} of the {numbers.size} items are messages of this cluster that "
            f"can still move, and the cluster has {size}; give some of them, but not all."
        )
    target = state.open(float(state.window.docs.time[chosen[0]]))
    state.move(chosen, target)
    fresh = int(state.clusters.record.id[target])
    stream.stories.locked.append(fresh)
    for slot in slots[state.clusters.record.n_members[slots] == 0].tolist():
        state.close(slot)
    return fresh


def pin(stream: Stream, cluster: int, pinned: bool) -> None:
    """A pinned cluster is not retired, and not merged by the model."""
    stream.state.clusters.record.pinned[live_slots(stream, cluster)] = int(pinned)
    locked = [id_ for id_ in stream.stories.locked if id_ != cluster]
    stream.stories.locked = [*locked, cluster] if pinned else locked


def revive(stream: Stream, cluster: int) -> None:
    """Bring a retired cluster back under its old id, with its words, as if one of its messages had come now."""
    slot = stream.revive(cluster)
    state = stream.state
    state.clusters.record.base_u[slot], state.clusters.record.base_time[slot] = 1.0, stream.now
    state.clusters.base_wave[slot] = [1.0, 0.0]
    state.clusters.grid_u[slot] = 1.0
    refresh_tail(state.links, state.kind, slot)


def numbers_of(items: Any, order: np.ndarray, first: int) -> np.ndarray:
    """Places in ``labels_`` as numbers of arrival."""
    asked = np.atleast_1d(np.asarray(items if isinstance(items, Sequence | np.ndarray | int | np.integer) else [None]))
    if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iu"):
        raise BadInput(f"items is {items!r:.80}; give the places of messages in labels_, such as [0, 5].")
    asked = asked.astype(np.int64)
    if asked.size and (asked.min() < 0 or (order.size and asked.max() >= order.size)):
        raise BadInput(f"items run from {asked.min()} to {asked.max()}; they are places in labels_.")
    return np.asarray(order[asked]) if order.size else asked + first
