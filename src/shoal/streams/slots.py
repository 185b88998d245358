"""Looking at single clusters of an engine, and putting one back."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from shoal.base import TopFeatures
from shoal.streams import state as st
from shoal.streams.engine import Engine
from shoal.streams.lives import Life
from shoal.streams.priors import base_measure
from shoal.streams.table_kernels import add_term
from shoal.streams.visit_kernels import open_cluster
from shoal.streams.weight_kernels import log_weight, refresh_tail


def words_of(engine: Engine, slot: int) -> tuple[np.ndarray, np.ndarray]:
    """A cluster's features and their amounts, on the scale in which they are kept."""
    start = int(engine.clusters.whole[slot, st.START])
    size = st.SMALLEST_TABLE << int(engine.clusters.whole[slot, st.SIZE_CLASS])
    keys, counts = engine.tables.keys[start : start + size], engine.tables.counts[start : start + size]
    held = (keys >= 0) & (counts > 0)
    order = np.argsort(keys[held])
    return keys[held][order].astype(np.int64), counts[held][order].astype(np.float64)


def log_weights(engine: Engine, at: float, slots: np.ndarray | None = None) -> np.ndarray:
    """log w(t, c) of these slots, or of all live ones in the order of ``engine.live``."""
    slots = engine.live if slots is None else slots
    whole, real = engine.clusters.whole[slots], engine.clusters.real[slots]
    if engine.kind == st.STEP:
        return np.asarray(np.log(np.maximum(whole[:, st.COUNT], 1)))
    if engine.kind == st.EXPONENTIAL:
        return np.asarray(real[:, st.LOG_U] - real[:, st.RATE] * np.maximum(0.0, at - real[:, st.LAST_TIME]))
    links = engine.links
    return np.array([log_weight(links, engine.kind, slot, int(links.whole[slot, st.LAST]), at) for slot in slots])


def top_features(engine: Engine, slot: int, n: int) -> TopFeatures:
    """The features that set a cluster apart from the background."""
    if engine.counters[st.FAMILY] == st.GAUSSIAN:
        mean = engine.clusters.moments[slot, :, 0] / max(1, int(engine.clusters.whole[slot, st.COUNT]))
        prior = engine.prior.gaussian
        away = (mean - prior[:, 0]) / np.sqrt(prior[:, 3] / prior[:, 2])
        order = np.argsort(-np.abs(away), kind="stable")[:n]
        return TopFeatures(order, away[order], "standard deviations from the mean of all")
    features, amounts = words_of(engine, slot)
    return lift(engine, features, amounts, n)


def lift(engine: Engine, features: np.ndarray, amounts: np.ndarray, n: int) -> TopFeatures:
    """Features ranked by count times log (share in the cluster / share in the background)."""
    base = base_measure(engine.prior, float(engine.numbers[st.FLOOR]))[features]
    strength = engine.prior.block_real[engine.prior.block[features], st.STRENGTH]
    total = np.bincount(engine.prior.block[features], weights=amounts, minlength=len(engine.prior.block_real))
    share = (amounts + base) / (total[engine.prior.block[features]] + strength)
    telling = amounts * np.log(share * strength / base)
    order = np.argsort(-telling, kind="stable")[:n]
    return TopFeatures(features[order], telling[order], "count times log of how much commoner than usual")


def reopen(engine: Engine, life: Life) -> int:
    """A retired cluster becomes live again under its old id; returns its slot."""
    engine.make_room_for(np.asarray(life.features, dtype=np.int64))
    next_id = int(engine.counters[st.NEXT_ID])
    engine.counters[st.NEXT_ID] = life.id
    slot = int(open_cluster(engine.clusters, engine.tables, engine.counters, life.born, engine.rate))
    engine.counters[st.NEXT_ID] = max(next_id, life.id + 1)
    clusters, prior = engine.clusters, engine.prior
    for feature, amount in zip(life.features, life.amounts, strict=True):
        add_term(clusters.whole, engine.tables, engine.postings, engine.counters, slot, feature, amount)
        clusters.totals[slot, prior.block[feature]] += amount
    clusters.log_gamma[slot] = gammaln(clusters.totals[slot] + prior.block_real[:, st.STRENGTH])
    clusters.log_unit[slot] = np.log1p(clusters.totals[slot] / prior.block_real[:, st.STRENGTH])
    clusters.whole[slot, [st.COUNT, st.N_BASE]] = life.size
    clusters.real[slot, st.BASE_U], clusters.real[slot, st.BASE_TIME] = max(1.0, life.base_u), life.last_seen
    clusters.real[slot, st.BIN_WIDTH] = life.step
    clusters.real[slot, st.ROSE] = math.nan if life.rose is None else life.rose
    clusters.life[slot, : len(life.counts)] = life.counts[: st.LIFE_BINS]
    clusters.grid_u[slot] = max(1.0, life.base_u)
    clusters.real[slot, st.RATE] = engine.rate
    if len(life.base_wave) == clusters.base_wave[slot].size:
        clusters.base_wave[slot] = np.reshape(life.base_wave, clusters.base_wave[slot].shape)
    refresh_tail(engine.links, engine.kind, slot)
    return slot
