"""Changes to a fitted model that a person asks for, and models trained apart made one."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.adf import Block, counted, responsibilities_of, wholly
from shoal.bernoulli.entries_kernels import GRID
from shoal.bernoulli.merging import Merger, evidence_lost, in_sequence, merged_rows, near_pairs
from shoal.bernoulli.profiles import (
    Profiles,
    background_of,
    seen_added,
    with_background,
    with_entries,
    with_new_rows,
)
from shoal.bernoulli.reservoir import Prior, started
from shoal.bernoulli.scoring import scored


def split_in_two(
    profiles: Profiles, row: int, rows: sp.csr_matrix, rng: np.random.Generator
) -> tuple[Profiles, int]:  # fmt: skip
    """Move the half of a cluster's rows that differs from the other into a new last row of the model.

    Returns the profiles and how many of the rows belong to the cluster; with fewer than two nothing is changed.
    """
    inside = rows[np.flatnonzero(scored(profiles, rows).rows == row)]
    if inside.shape[0] < 2:
        return profiles, inside.shape[0]
    block = Block(inside, np.ones(inside.shape[0]))
    prior = Prior(profiles.seen, profiles.background, profiles.strength, False, False)
    halves = started(block, 2, prior, "spread", rng)
    second = responsibilities_of(halves, block, width=1).rows[:, 0] == halves.n_rows - 1
    if second.all() or not second.any():
        second = np.arange(inside.shape[0]) % 2 == 1
    moving = Block(inside[second], np.ones(int(second.sum())))
    profiles = with_new_rows(profiles, 1)
    old, new = np.full(moving.rows.shape[0], row), np.full(moving.rows.shape[0], profiles.n_rows - 1)
    return counted(counted(profiles, moving, wholly(old), sign=-1.0), moving, wholly(new)), inside.shape[0]


def appended(profiles: Profiles, other: Profiles, *, flat: bool) -> Profiles:
    """The clusters of ``other`` after those of ``profiles``; what was seen, and the clutter, add up."""
    n_clutter, n_rows = profiles.n_clutter, profiles.n_rows
    # A feature stays without entries only where both models found it uninformative.
    profiles = _with_entries_of(profiles, profiles.uninformative & ~other.uninformative)
    other = _with_entries_of(other, other.uninformative & ~profiles.uninformative)
    joint = with_new_rows(profiles, other.n_rows - n_clutter)
    parts = {
        name: np.concatenate([getattr(profiles, name)[: profiles.n_entries], getattr(other, name)[: other.n_entries]])
        for name in ("feature", "hits", "loss", "hits_from_default")
    }
    shifted = other.cluster[: other.n_entries] + np.where(
        other.cluster[: other.n_entries] < n_clutter, 0, n_rows - n_clutter
    )
    for name in ("mass", "default_hits"):
        getattr(joint, name)[n_rows:] = getattr(other, name)[n_clutter:]
        getattr(joint, name)[:n_clutter] += getattr(other, name)[:n_clutter]
    joint.has_entries[:n_clutter] |= other.has_entries[:n_clutter]
    seen = seen_added(np.maximum(profiles.seen, 0), other.seen)
    joint = joint._replace(seen=seen, uninformative=profiles.uninformative & other.uninformative)
    cluster = np.concatenate([profiles.cluster[: profiles.n_entries], shifted])
    cluster, feature, (hits, loss) = _summed(cluster, parts["feature"], parts["hits"], parts["loss"])
    joint = with_entries(joint, cluster, feature, hits, loss)
    return with_background(joint, background_of(seen, flat=flat))


def _with_entries_of(profiles: Profiles, features: np.ndarray) -> Profiles:
    """Entries for features (a mask) that had none because they are as probable in every cluster: as in all rows."""
    if not features.any():
        return profiles
    used, chosen = profiles.n_entries, np.flatnonzero(features)
    share = np.maximum(profiles.seen[chosen], 0.0) / max(float(profiles.seen[-1]), 1e-300)
    rows = np.flatnonzero((profiles.mass > 0) & profiles.has_entries)
    hits = np.rint(profiles.mass[rows][:, None] * np.minimum(share, 1.0) * GRID) / GRID
    old = ~features[profiles.feature[:used]]  # what little was counted before is in the rest
    parts = {name: getattr(profiles, name)[:used][old] for name in ("cluster", "feature", "hits", "loss")}
    wide = with_entries(
        profiles._replace(uninformative=profiles.uninformative & ~features),
        np.concatenate([parts["cluster"], np.repeat(rows, chosen.size)]),
        np.concatenate([parts["feature"], np.tile(chosen, rows.size)]),
        np.concatenate([parts["hits"], hits.ravel()]),
        np.concatenate([parts["loss"], np.zeros(hits.size)]),
    )
    wide.hits_from_default[: int(old.sum())] = profiles.hits_from_default[:used][old]
    return wide


def _summed(
    cluster: np.ndarray, feature: np.ndarray, *values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:  # fmt: skip
    """Entries of the same cluster and feature (both models' clutter) added up."""
    width = int(feature.max(initial=0)) + 1
    spots, place = np.unique(cluster.astype(np.int64) * width + feature, return_inverse=True)
    return spots // width, spots % width, [np.bincount(place, weights=v, minlength=spots.size) for v in values]


def joined(profiles: Profiles, n_clusters: int, pinned: np.ndarray) -> tuple[Profiles, list[Merger]]:
    """Merge clusters that the evidence takes for one, then those that lose least, down to ``n_clusters``."""
    mergers: list[Merger] = []
    while True:
        first, second = near_pairs(profiles, least_cosine=0.02)
        lost = evidence_lost(profiles, first, second) if first.size else np.zeros(0)
        few = max(profiles.n_clusters - n_clusters + 7, 0) // 8  # of those that lose: a merger changes the others
        pairs: list[Merger] = []
        taken: set[int] = set()
        for at in np.argsort(lost, kind="stable"):
            a, b = int(first[at]), int(second[at])
            if lost[at] > 0 and len(pairs) >= few:
                break
            if a in taken or b in taken or (pinned[a] and pinned[b]):
                continue
            taken |= {a, b}
            keeps = pinned[a] or (not pinned[b] and a < b)
            pairs.append(Merger(a, b) if keeps else Merger(b, a))
        if not pairs:
            return profiles, mergers
        profiles = merged_rows(profiles, pairs)
        for kept, gone in pairs:
            pinned[kept] |= pinned[gone]
        pinned = np.delete(pinned, [gone for _, gone in pairs])
        mergers += in_sequence(pairs)
