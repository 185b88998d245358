"""Looking at single clusters of an state, and putting one back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from shoal.base import TopFeatures
from shoal.errors import BadInput
from shoal.streams.base_measures import base_measure
from shoal.streams.history import ClusterHistory, history_of_slot, joined
from shoal.streams.kernels.table_kernels import add_term
from shoal.streams.kernels.visit_kernels import open_cluster
from shoal.streams.kernels.weight_kernels import log_weight, refresh_tail
from shoal.streams.state import arrays as st
from shoal.streams.state.stream_state import StreamState

if TYPE_CHECKING:
    from shoal.streams.inference.streaming import Stream


def words_of(state: StreamState, slot: int) -> tuple[np.ndarray, np.ndarray]:
    """A cluster's features and their amounts, on the scale in which they are kept."""
    start = int(state.clusters.record.table_start[slot])
    size = st.SMALLEST_TABLE << int(state.clusters.record.size_class[slot])
    keys, counts = state.tables.keys[start : start + size], state.tables.counts[start : start + size]
    held = (keys >= 0) & (counts > 0)
    order = np.argsort(keys[held])
    return keys[held][order].astype(np.int64), counts[held][order].astype(np.float64)


def log_weights(state: StreamState, at: float, slots: np.ndarray | None = None) -> np.ndarray:
    """log w(t, c) of these slots, or of all live ones in the order of ``state.live``."""
    slots = state.live if slots is None else slots
    record = state.clusters.record[slots]
    if state.kind == st.STEP:
        return np.asarray(np.log(np.maximum(record.n_members, 1)))
    if state.kind == st.EXPONENTIAL:
        return np.asarray(record.log_u - record.rate * np.maximum(0.0, at - record.last_time))
    links = state.links
    return np.array([log_weight(links, state.kind, slot, int(links.record.last[slot]), at) for slot in slots])


def top_features(stream: Stream, cluster: int, n: int) -> TopFeatures:
    """The features that set a story, live or retired, apart from the background."""
    if stream.state.status[0].family == st.GAUSSIAN:
        return _top_columns(stream.state, _live_slots(stream, cluster), cluster, n)
    return lift(stream.state, *words_of_story(stream, cluster), n)


def _live_slots(stream: Stream, cluster: int) -> np.ndarray:
    state = stream.state
    return np.asarray(state.live[stream.stories.roots(state.clusters.record.id[state.live]) == cluster])


def words_of_story(stream: Stream, cluster: int) -> tuple[np.ndarray, np.ndarray]:
    """The features of a story, live or retired, and their amounts."""
    state, slots = stream.state, _live_slots(stream, cluster)
    parts = [words_of(state, slot) for slot in slots.tolist()]
    gone = stream.history.stories(stream.stories.root).get(cluster)
    if gone is not None:
        parts.append((np.asarray(gone.features, dtype=np.int64), np.asarray(gone.amounts)))
    if not parts:
        raise BadInput(f"no cluster has id {cluster} (below {st.MIN_REPORTED_SIZE} members none is remembered).")
    features, place = np.unique(np.concatenate([each for each, _ in parts]), return_inverse=True)
    return features, np.bincount(place, weights=np.concatenate([each for _, each in parts]), minlength=features.size)


def _top_columns(state: StreamState, slots: np.ndarray, cluster: int, n: int) -> TopFeatures:
    if not slots.size:
        raise BadInput(f"no live cluster has id {cluster}.")
    # sums are kept about the prior's mean
    mean = state.clusters.moments[slots, :, 0].sum(axis=0) / max(1, state.clusters.record.n_members[slots].sum())
    prior = state.prior.gaussian
    away = mean / np.sqrt(prior[:, 3] / prior[:, 2])
    order = np.argsort(-np.abs(away), kind="stable")[:n]
    return TopFeatures(order, away[order], "standard deviations from the mean of all")


def story_history(stream: Stream, cluster: int) -> ClusterHistory:
    """The history of one story."""
    found = stream.history.stories(stream.stories.root).get(cluster)
    for slot in _live_slots(stream, cluster).tolist():
        found = joined(history_of_slot(stream.state, slot), found, cluster)
    if found is None:
        raise BadInput(f"no cluster has id {cluster} (below {st.MIN_REPORTED_SIZE} members none is remembered).")
    return found


def story_histories(stream: Stream) -> list[ClusterHistory]:
    """The history of every story: its live clusters and those that are gone."""
    state = stream.state
    found = dict(stream.history.stories(stream.stories.root))
    times, slots = state.window.docs.time[: state.n_docs], state.window.docs.slot[: state.n_docs]
    by_slot = np.argsort(slots, kind="stable")
    bounds = np.searchsorted(slots[by_slot], np.arange(len(state.clusters.record) + 1))
    for slot in state.live.tolist():
        life = history_of_slot(state, slot, times[by_slot[bounds[slot] : bounds[slot + 1]]])
        story = stream.stories.root(life.id)
        found[story] = joined(life, found.get(story), story)
    return list(found.values())


def lift(state: StreamState, features: np.ndarray, amounts: np.ndarray, n: int) -> TopFeatures:
    """Features ranked by count times log (share in the cluster / share in the background)."""
    base = base_measure(state.prior, float(state.status[0].floor))[features]
    strength = state.prior.blocks.strength[state.prior.block[features]]
    total = np.bincount(state.prior.block[features], weights=amounts, minlength=len(state.prior.blocks))
    share = (amounts + base) / (total[state.prior.block[features]] + strength)
    salience = amounts * np.log(share * strength / base)
    order = np.argsort(-salience, kind="stable")[:n]
    return TopFeatures(features[order], salience[order], "count times log of how much commoner than usual")


def reopen(state: StreamState, life: ClusterHistory) -> int:
    """A retired cluster becomes live again under its old id; returns its slot."""
    state.make_room_for(np.asarray(life.features, dtype=np.int64))
    next_id = int(state.status[0].next_id)
    state.status[0].next_id = life.id
    slot = int(open_cluster(state.clusters, state.tables, state.status, life.born, state.rate))
    state.status[0].next_id = max(next_id, life.id + 1)
    clusters, prior = state.clusters, state.prior
    for feature, amount in zip(life.features, life.amounts, strict=True):
        add_term(clusters.record, state.tables, state.postings, state.status, slot, feature, amount)
        clusters.totals[slot, prior.block[feature]] += amount
    clusters.log_gamma[slot] = gammaln(clusters.totals[slot] + prior.blocks.strength)
    clusters.log_unit[slot] = np.log1p(clusters.totals[slot] / prior.blocks.strength)
    clusters.record[slot].n_members = clusters.record[slot].n_settled = life.size
    clusters.record.base_u[slot], clusters.record.base_time[slot] = max(1.0, life.base_u), life.last_seen
    clusters.record.bin_width[slot] = life.step
    clusters.record.established_at[slot] = math.nan if life.established_at is None else life.established_at
    clusters.activity[slot, : len(life.counts)] = life.counts[: st.HISTORY_BINS]
    clusters.grid_u[slot] = max(1.0, life.base_u)
    clusters.record.rate[slot] = state.rate
    if len(life.base_wave) == clusters.base_wave[slot].size:
        clusters.base_wave[slot] = np.reshape(life.base_wave, clusters.base_wave[slot].shape)
    refresh_tail(state.links, state.kind, slot)
    return slot
