"""Two clusters made one: by the evidence of what was learned, or by the likelihood of rows not learned yet.

Evidence only ranks pairs (merging down from more seeds than clusters). In learning, new rows decide: the likelihood of
a row sums over the clusters, so nothing is lost where two overlap, and no label has to be explained.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import betaln, logit

from shoal.bernoulli.adf import Block
from shoal.bernoulli.entries_kernels import GRID
from shoal.bernoulli.merging_kernels import clutter_gains, evidence_losses, merger_gains
from shoal.bernoulli.profiles import CLUSTER_FIELDS, SLOT_FIELDS, Profiles, copied, dense_lines, linked

EARNED = 3.0  # nats that two clusters must earn over one, on rows not learned yet, to stay two
ENOUGH = 100.0  # rows for each cluster that it is earned on
LEAST_COSINE, PER_CLUSTER = 0.5, 4  # candidates: pairs of similar means, at most so many for each cluster
LEAST_ROWS = 10.0  # new rows of a cluster without which it cannot be found to be clutter
MOST_CLUTTER = 0.5  # share of all rows: what most rows do is no clutter


class Merger(NamedTuple):
    """One step of merging, by rows of the model at that moment."""

    kept: int
    gone: int


# --- by evidence ------------------------------------------------------------------------------------------------------


def merged_down(
    counts: np.ndarray, mass: np.ndarray, background: np.ndarray, strength: float, k: int, near: int = 6
) -> tuple[np.ndarray, np.ndarray]:
    """Merge clusters two by two, those that lose least evidence first, until ``k`` are left.

    ``counts`` is (n_features, n_clusters). Only the ``near`` nearest of each cluster by chi-square distance are looked
    at.
    """
    counts, mass = np.ascontiguousarray(counts.T), mass.copy()
    scaled = (counts + strength * background) / (strength + mass)[:, None] / np.sqrt(background)
    lengths = (scaled**2).sum(axis=1)
    alive = np.ones(mass.size, dtype=np.bool_)
    pairs, losses = np.zeros((0, 2), dtype=np.int64), np.zeros(0)
    fresh = np.arange(mass.size)
    while alive.sum() > max(k, 1):
        new = _nearest(scaled, lengths, mass, alive, fresh, near)
        lost = np.zeros(len(new))
        evidence_losses(counts, mass, background, strength, new, lost)
        pairs, losses = np.concatenate([pairs, new]), np.concatenate([losses, lost])
        i, j = pairs[int(np.argmin(losses))]
        counts[i] += counts[j]
        mass[i] += mass[j]
        scaled[i] = (counts[i] + strength * background) / (strength + mass[i]) / np.sqrt(background)
        lengths[i] = (scaled[i] ** 2).sum()
        alive[j] = False
        stays = ~np.isin(pairs, (i, j)).any(axis=1)
        pairs, losses, fresh = pairs[stays], losses[stays], np.array([i])
    return np.ascontiguousarray(counts[alive].T), mass[alive]


def _nearest(
    scaled: np.ndarray, lengths: np.ndarray, mass: np.ndarray, alive: np.ndarray, rows: np.ndarray, near: int
) -> np.ndarray:
    """Pairs of these clusters with their nearest, each once."""
    others = np.flatnonzero(alive)
    gap = lengths[rows][:, None] + lengths[others] - 2 * scaled[rows] @ scaled[others].T
    gap *= mass[rows][:, None] * mass[others] / np.maximum(mass[rows][:, None] + mass[others], 1e-9)
    gap[rows[:, None] == others] = np.inf
    n = min(near, others.size - 1)
    order = np.argpartition(gap, n - 1, axis=1)[:, :n] if n < others.size - 1 else np.argsort(gap, axis=1)[:, :n]
    pairs = np.stack([np.repeat(rows, n), others[order].ravel()], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)


# --- by new rows ------------------------------------------------------------------------------------------------------


def merged_by_new_rows(
    profiles: Profiles, block: Block, pinned: np.ndarray | None = None
) -> tuple[Profiles, list[Merger]]:
    """Merge pairs until every two clusters earn their keep on rows not learned yet.

    ``pinned`` marks rows of the model that are not merged into others.
    """
    pinned = np.zeros(profiles.n_rows, dtype=np.bool_) if pinned is None else pinned.copy()
    pinned[: profiles.n_clutter] = True  # takes others in, and stays
    steps: list[Merger] = []
    while block.rows.shape[0]:
        pairs = _without_need(profiles, block, pinned)
        if not pairs:
            break
        profiles, pinned = merged_rows(profiles, pairs), _after(pinned, pairs)
        steps += in_sequence(pairs)
    return profiles, steps


def _without_need(profiles: Profiles, block: Block, pinned: np.ndarray) -> list[Merger]:
    """Disjoint pairs of which new rows are hardly likelier under two clusters than under one; the best first."""
    first, second = near_pairs(profiles, clutter=True)  # the clutter takes in what is no different from it
    return disjoint(profiles, first, second, gains_of(profiles, first, second, block), pinned, block.weights.sum())


def gains_of(profiles: Profiles, first: np.ndarray, second: np.ndarray, block: Block) -> np.ndarray:
    """For each pair, how much likelier the rows are when its two clusters are one, in nats."""
    gains = np.zeros(first.size)
    if not first.size:
        return gains
    merged = pair_profiles(profiles, first, second)
    order = np.argsort(np.concatenate([first, second]), kind="stable")
    of = np.concatenate([np.arange(first.size), np.arange(first.size)])[order]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(np.concatenate([first, second]), minlength=profiles.n_rows))])
    merger_gains(
        block.rows.indptr, block.rows.indices, block.weights, profiles, dense_lines(profiles), ptr, of, first, second,
        merged, dense_lines(merged), gains,
    )  # fmt: skip
    return gains


def disjoint(
    profiles: Profiles, first: np.ndarray, second: np.ndarray, gains: np.ndarray, pinned: np.ndarray, n_rows: float
) -> list[Merger]:
    """The pairs to merge now, by falling gain on ``n_rows`` rows; no cluster is in two, and no pinned one goes.

    Fewer rows than :data:`ENOUGH` for each cluster give two clusters less room to earn: they have to earn less.
    """
    earned = EARNED * min(1.0, n_rows / (ENOUGH * max(profiles.n_clusters, 1)))
    taken: set[int] = set()
    pairs: list[Merger] = []
    for at in np.argsort(-gains, kind="stable"):
        if gains[at] < -earned:
            break
        a, b = int(first[at]), int(second[at])
        if a in taken or b in taken or (pinned[a] and pinned[b]):
            continue
        taken |= {a, b}
        keeps = pinned[a] or (not pinned[b] and profiles.mass[a] >= profiles.mass[b])
        pairs.append(Merger(a, b) if keeps else Merger(b, a))
    return pairs


def evidence_lost(profiles: Profiles, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Log evidence of all Betas lost when the clusters of each pair become one.

    Over the features of which either has an entry; what a default holds of them counts as its own.
    """
    pair, feature, hits = _hits_of(profiles, first, second)
    b, s = profiles.background[feature], profiles.strength

    def evidence(hits: np.ndarray, mass: np.ndarray) -> np.ndarray:
        absent = np.maximum(mass - hits, 0.0)
        return np.asarray(betaln(s * b + hits, s * (1 - b) + absent) - betaln(s * b, s * (1 - b)))

    masses = [profiles.mass[side][pair] for side in (first, second)]
    lost = evidence(hits[0], masses[0]) + evidence(hits[1], masses[1])
    lost -= evidence(hits[0] + hits[1], masses[0] + masses[1])
    return np.bincount(pair, weights=lost, minlength=first.size)


def near_pairs(
    profiles: Profiles, least_cosine: float = LEAST_COSINE, *, clutter: bool = False
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Pairs of clusters with similar means, the most similar first; on demand with a clutter that was found."""
    means = entries_by_row(profiles, profiles.means())
    lengths = np.sqrt(np.asarray(means.multiply(means).sum(axis=1)).ravel())
    units = sp.diags_array(1 / np.maximum(lengths, 1e-300)) @ means
    cosine = sp.triu(sp.coo_matrix(units @ units.T), k=1).tocoo()
    allowed = profiles.has_entries.copy()
    allowed[: profiles.n_clutter] &= clutter
    close = np.flatnonzero((cosine.data > least_cosine) & allowed[cosine.row])
    close = close[np.argsort(-cosine.data[close], kind="stable")][: PER_CLUSTER * profiles.n_rows]
    return cosine.row[close].astype(np.int64), cosine.col[close].astype(np.int64)


def entries_by_row(profiles: Profiles, values: np.ndarray) -> sp.csr_matrix:
    """A value of every entry, one row for each cluster."""
    used = profiles.n_entries
    spot = profiles.cluster[:used], profiles.feature[:used]
    matrix = sp.csr_matrix((values, spot), shape=(profiles.n_rows, profiles.n_features))
    matrix.sort_indices()
    return matrix


# --- the clutter ------------------------------------------------------------------------------------------------------


def clutter_among(profiles: Profiles, block: Block) -> np.ndarray:
    """Rows of clusters whose own Betas do not earn :data:`EARNED` nats over a single parameter for all features."""
    return clutter_by(profiles, *clutter_evidence(profiles, block), np.zeros(profiles.n_rows, dtype=np.bool_))


def clutter_evidence(profiles: Profiles, block: Block) -> tuple[np.ndarray, np.ndarray]:
    """What each cluster's own Betas earn over a single parameter, (n_rows, 2), and its number of rows.

    The single parameter is the paper's clutter cluster: each feature is so many times as probable as in all rows, or
    every feature is as probable as every other.
    """
    gains, rows_of = np.zeros((profiles.n_rows, 2)), np.zeros(profiles.n_rows)
    clutter_gains(
        block.rows.indptr, block.rows.indices, block.weights, profiles, dense_lines(profiles),
        *_one_parameter(profiles), gains, rows_of,
    )  # fmt: skip
    return gains, rows_of


def clutter_by(profiles: Profiles, gains: np.ndarray, rows_of: np.ndarray, pinned: np.ndarray) -> np.ndarray:
    """The clusters that are clutter by this evidence. What holds for most rows is none, and one cluster stays."""
    found = (gains.min(axis=1) < EARNED) & (rows_of >= LEAST_ROWS) & ~pinned
    found[: profiles.n_clutter] = False
    rows = np.flatnonzero(found)
    if not rows.size or rows.size == profiles.n_clusters:
        return rows[:0]
    rows = rows[np.argsort(profiles.mass[rows], kind="stable")]
    already = profiles.mass[: profiles.n_clutter].sum()
    return rows[already + np.cumsum(profiles.mass[rows]) <= MOST_CLUTTER * profiles.mass.sum()]


def _one_parameter(profiles: Profiles) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores with one parameter for all features: the scaled background, then the same mean everywhere."""
    strength, weight = profiles.prior[:2]
    log_weight = np.log(weight + profiles.mass)
    hits = profiles.default_hits + np.bincount(
        profiles.cluster[: profiles.n_entries], weights=profiles.hits[: profiles.n_entries], minlength=profiles.n_rows
    )
    alone = copied(profiles)._replace(default_hits=hits, used=np.zeros(1, dtype=np.int64))
    alone = linked(alone)
    b = profiles.background[~profiles.uninformative]
    n = max(b.size, 1)
    mean = np.clip((hits + strength * b.sum()) / n / (strength + profiles.mass), 1e-9, 0.95)
    flat = log_weight + n * np.log1p(-mean) - np.log1p(-b).sum()
    return log_weight - alone.default_absent, alone.log_ratio, flat, logit(mean)


def with_clutter(profiles: Profiles, rows: np.ndarray) -> tuple[Profiles, list[Merger]]:
    """These clusters become part of the clutter, row 0; their Betas stay, only the label is -1."""
    has_entries = profiles.has_entries.copy()
    has_entries[0] = True
    profiles = profiles._replace(has_entries=has_entries)
    steps = in_sequence([Merger(0, int(row)) for row in np.sort(rows)])
    for step in steps:
        profiles = merged_rows(profiles, [step])
    return profiles, steps


# --- merging ----------------------------------------------------------------------------------------------------------


def in_sequence(pairs: list[Merger]) -> list[Merger]:
    """The same mergers, in row numbers that hold when those before have been carried out."""
    steps: list[Merger] = []
    gone: list[int] = []
    for kept, row in pairs:
        steps.append(Merger(kept - sum(g < kept for g in gone), row - sum(g < row for g in gone)))
        gone.append(row)
    return steps


def _after(values: np.ndarray, pairs: list[Merger]) -> np.ndarray:
    """Values by row once the pairs are merged: what held for either holds for both."""
    values = values.copy()
    for kept, gone in pairs:
        values[kept] |= values[gone]
    return np.delete(values, [gone for _, gone in pairs])


def pair_profiles(profiles: Profiles, first: np.ndarray, second: np.ndarray) -> Profiles:
    """One cluster for each pair: counts add up, and an entry that one of them lacks comes out of its default."""
    union = _union(profiles, first, second)
    pair, feature = union.row, union.col
    sums = {
        name: _at(profiles, name, first, union) + _at(profiles, name, second, union)
        for name in ("hits", "hits_from_default", "loss")
    }
    default_hits = profiles.default_hits[first] + profiles.default_hits[second]
    for side, lacking in ((first, 2), (second, 1)):
        spots = np.flatnonzero(union.data == lacking)
        handed = _from_default(profiles, side[pair[spots]], feature[spots])
        sums["hits"][spots] += handed
        sums["hits_from_default"][spots] += handed
        np.subtract.at(default_hits, pair[spots], handed)
    n, n_pairs = pair.size, first.size
    slots = {name: np.zeros_like(getattr(profiles, name), shape=n + 16) for name in SLOT_FIELDS}
    slots["cluster"][:n], slots["feature"][:n] = pair, feature
    for name, values in sums.items():
        slots[name][:n] = values
    by_row = {name: getattr(profiles, name)[first] for name in CLUSTER_FIELDS} | {
        "mass": profiles.mass[first] + profiles.mass[second],
        "default_hits": default_hits,
        "has_entries": np.ones(n_pairs, dtype=np.bool_),
    }
    head = np.full(profiles.n_features, -1, dtype=np.int64)
    return linked(profiles._replace(**slots, **by_row, head=head, used=np.array([n])))


def _union(profiles: Profiles, first: np.ndarray, second: np.ndarray) -> sp.coo_matrix:
    """The features of each pair; 1: only the first has an entry, 2: only the second, 3: both."""
    own = entries_by_row(profiles, np.ones(profiles.n_entries))
    return (own[first] + 2 * own[second]).tocoo()


def _hits_of(
    profiles: Profiles, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """For each feature of each pair, the hits of either cluster, where it has no entry out of its default."""
    union = _union(profiles, first, second)
    hits = []
    for side, lacking in ((first, 2), (second, 1)):
        values = _at(profiles, "hits", side, union)
        spots = np.flatnonzero(union.data == lacking)
        values[spots] = _from_default(profiles, side[union.row[spots]], union.col[spots])
        hits.append(values)
    return union.row, union.col, hits


def _at(profiles: Profiles, name: str, rows: np.ndarray, union: sp.coo_matrix) -> np.ndarray:
    """A field of the entries of one cluster for each pair, at the features of ``union``, whose order is kept."""
    key = union.row.astype(np.int64) * profiles.n_features + union.col
    order = np.argsort(key, kind="stable")
    part = entries_by_row(profiles, getattr(profiles, name)[: profiles.n_entries])[rows].tocoo()
    found = np.searchsorted(key[order], part.row.astype(np.int64) * profiles.n_features + part.col)
    values = np.zeros(key.size)
    values[order[found]] = part.data
    return values


def _from_default(profiles: Profiles, rows: np.ndarray, features: np.ndarray) -> np.ndarray:
    """The occurrences that a cluster's default holds of a feature, as multiples of the grid."""
    b = profiles.background[features]
    share = b / (1.0 + (profiles.ratio[rows] - 1.0) * b) / np.maximum(profiles.default_mass[rows], 1e-12)
    handed = np.maximum(profiles.default_hits[rows], 0.0) * np.minimum(share, 1.0)
    return np.asarray(np.rint(handed * GRID) / GRID)


def merged_rows(profiles: Profiles, pairs: list[Merger]) -> Profiles:
    """Each pair's second cluster merged into its first; then the emptied rows are taken out."""
    if not pairs:
        return profiles
    kept, gone = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    merged = pair_profiles(profiles, kept, gone)
    staying = np.setdiff1d(np.arange(profiles.n_rows), gone)
    new_row = np.full(profiles.n_rows, -1, dtype=np.int64)
    new_row[staying] = np.arange(staying.size)
    used = profiles.n_entries
    others = np.flatnonzero(~np.isin(profiles.cluster[:used], np.concatenate([kept, gone])))
    cluster = np.concatenate([new_row[profiles.cluster[others]], new_row[kept][merged.cluster[: merged.n_entries]]])
    n = cluster.size
    slots = {name: np.zeros_like(getattr(profiles, name), shape=n + 1024) for name in SLOT_FIELDS}
    slots["cluster"][:n] = cluster
    for name in ("feature", "hits", "hits_from_default", "loss"):
        slots[name][:n] = np.concatenate(
            [getattr(profiles, name)[others], getattr(merged, name)[: merged.n_entries]]
        )  # fmt: skip
    by_row = {name: getattr(profiles, name)[staying] for name in CLUSTER_FIELDS}
    for name in ("mass", "default_hits"):
        by_row[name][new_row[kept]] = getattr(merged, name)
    head = np.full(profiles.n_features, -1, dtype=np.int64)
    return linked(profiles._replace(**slots, **by_row, head=head, used=np.array([n])))
