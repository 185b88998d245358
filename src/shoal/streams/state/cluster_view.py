"""Looking at single clusters of an state, and putting one back."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from shoal.base import TopFeatures
from shoal.streams.history import ClusterHistory
from shoal.streams.kernels.table_kernels import add_term
from shoal.streams.kernels.visit_kernels import open_cluster
from shoal.streams.kernels.weight_kernels import log_weight, refresh_tail
from shoal.streams.priors import base_measure
from shoal.streams.state import arrays as st
from shoal.streams.state.stream_state import StreamState


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


def top_features(state: StreamState, slot: int, n: int) -> TopFeatures:
    """The features that set a cluster apart from the background."""
    if state.status[0].family == st.GAUSSIAN:
        mean = state.clusters.moments[slot, :, 0] / max(1, int(state.clusters.record.n_members[slot]))
        prior = state.prior.gaussian
        away = (mean - prior[:, 0]) / np.sqrt(prior[:, 3] / prior[:, 2])
        order = np.argsort(-np.abs(away), kind="stable")[:n]
        return TopFeatures(order, away[order], "standard deviations from the mean of all")
    features, amounts = words_of(state, slot)
    return lift(state, features, amounts, n)


def lift(state: StreamState, features: np.ndarray, amounts: np.ndarray, n: int) -> TopFeatures:
    """Features ranked by count times log (share in the cluster / share in the background)."""
    base = base_measure(state.prior, float(state.status[0].floor))[features]
    strength = state.prior.blocks.strength[state.prior.block[features]]
    total = np.bincount(state.prior.block[features], weights=amounts, minlength=len(state.prior.blocks))
    share = (amounts + base) / (total[state.prior.block[features]] + strength)
    telling = amounts * np.log(share * strength / base)
    order = np.argsort(-telling, kind="stable")[:n]
    return TopFeatures(features[order], telling[order], "count times log of how much commoner than usual")


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
