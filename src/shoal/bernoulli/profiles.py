"""The model of section 1 of the paper, kept sparse: own Betas for what matters to a cluster, one default for the rest.

For cluster ``l`` and feature ``d``, with ``b_d`` the share of all rows that have ``d`` (the background)::

    mean_ld = (strength * b_d + hits_ld) / (strength + mass_l)        alpha_ld + beta_ld = strength + mass_l - loss_ld

``mass_l`` is the number of rows the cluster has taken in, so a row without ``d`` lowers the mean by adding to
``mass_l``: every zero is applied to every feature, at no cost. ``loss_ld`` is the pseudo-count that moment matching
took away on ambiguous rows: it makes the mean less certain, and leaves it where it is. A feature that has no entry in
the cluster has the odds ``ratio_l * b_d / (1 - b_d)``, so its mean is a probability for every ratio;
the ratio comes from the cluster's default: ``default_hits_l`` occurrences over all features without entry.

Every count is a multiple of 2^-24, so that contributions of rows are added and subtracted exactly, in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.base import storable
from shoal.bernoulli.entries_kernels import COMMON_FROM, fill_lines, link_slots, refresh_all

MOST_CELLS = 1 << 24  # of the dense lines; memory is taken up only line by line
SLOT_FIELDS = (
    "cluster", "feature", "hits", "hits_from_default", "loss", "lift", "log_absent", "next_of_feature",
    "next_of_cluster",
)  # fmt: skip
CLUSTER_FIELDS = (
    "mass", "default_hits", "has_entries", "ratio", "log_ratio", "default_mass", "default_absent", "total", "slope",
    "mass_at_refresh", "base", "first", "spread", "owned",
)  # fmt: skip
UNCHANGED_BY_KERNELS = ("background", "common", "common_at", "uninformative", "prior", "seen")


@storable
class Profiles(NamedTuple):
    """All beliefs and the sums that make scoring cheap. Kernels change the arrays of copies in place."""

    prior: (
        np.ndarray
    )  # (3,) strength of the prior in rows, prior weight of a cluster in rows, 1 if row 0 is the clutter
    # --- features
    background: np.ndarray  # (n_features,) b_d, frozen between refreshes
    seen: np.ndarray  # (n_features + 1,) rows that had the feature; last, rows in all
    uninformative: np.ndarray  # (n_features,) about the same in every cluster, so without entries: its mean is b_d
    common: np.ndarray  # (n_common,) features with a large background, which the default sums term by term
    common_at: np.ndarray  # (n_features,) place in common, -1 for none
    head: np.ndarray  # (n_features,) first slot of the feature's postings, -1 for none
    # --- clusters; row 0 is the clutter cluster when there is one
    mass: np.ndarray  # (n_rows,) rows taken in
    default_hits: np.ndarray  # (n_rows,) occurrences that belong to the default
    has_entries: np.ndarray  # (n_rows,) may features have entries here? not in a clutter cluster without rows
    ratio: np.ndarray  # (n_rows,) odds of a feature without entry, relative to the background's
    log_ratio: np.ndarray
    default_mass: np.ndarray  # (n_rows,) sum of mu / ratio over the features without entry
    default_absent: np.ndarray  # (n_rows,) sum of log(1 + (ratio - 1) b) over them
    total: np.ndarray  # (n_rows,) sum of log((1 - mu) / (1 - b)) over own entries, as of mass_at_refresh
    slope: np.ndarray  # (n_rows,) its derivative by mass
    mass_at_refresh: np.ndarray  # (n_rows,) mass when the cluster's sums were last recomputed
    base: np.ndarray  # (n_rows,) log weight + log probability of an empty row, over the background's
    first: np.ndarray  # (n_rows,) first slot of the cluster's entries
    spread: np.ndarray  # (n_rows, 4) sums of b, b^2, b^3, b^4 over the rare features without entry
    owned: np.ndarray  # (n_rows, n_common) which common features the default has no part in
    # --- slots: one entry each
    cluster: np.ndarray
    feature: np.ndarray
    hits: np.ndarray  # (n,) rows of the cluster that have the feature
    hits_from_default: np.ndarray  # part of hits that the default held when the entry was made
    loss: np.ndarray
    lift: np.ndarray  # log-odds of the entry above the default's
    log_absent: np.ndarray  # log((1 - mu) / (1 - b)), as counted in total
    next_of_feature: np.ndarray
    next_of_cluster: np.ndarray
    used: np.ndarray  # (1,) slots in use

    @property
    def n_rows(self) -> int:
        return int(self.mass.size)

    @property
    def n_clutter(self) -> int:
        """1 when row 0 is the clutter cluster, else 0: a cluster's number is its row less this."""
        return int(self.prior[2])

    @property
    def n_clusters(self) -> int:
        return self.n_rows - self.n_clutter

    @property
    def strength(self) -> float:
        return float(self.prior[0])

    @property
    def n_features(self) -> int:
        return int(self.background.size)

    @property
    def n_entries(self) -> int:
        return int(self.used[0])

    def means(self, slots: np.ndarray | slice | None = None) -> np.ndarray:
        """Mean of every entry, in slot order, or of the entries in these slots."""
        at = slice(0, self.n_entries) if slots is None else slots
        b, strength = self.background[self.feature[at]], self.prior[0]
        present = np.maximum(strength * b + self.hits[at], 1e-12)
        absent = np.maximum(strength + self.mass[self.cluster[at]] - present, strength * (1.0 - b))
        return np.asarray(present / (present + absent))

    def totals(self, slots: np.ndarray | slice | None = None) -> np.ndarray:
        """alpha + beta of every entry, in slot order, or of the entries in these slots; never below the prior's."""
        at = slice(0, self.n_entries) if slots is None else slots
        n = self.prior[0] + self.mass[self.cluster[at]] - self.loss[at]
        return np.asarray(np.maximum(n, self.prior[0]))

    def alphas(self, slots: np.ndarray | slice | None = None) -> np.ndarray:
        """alpha of every entry, in slot order, or of the entries in these slots."""
        return np.asarray(self.means(slots) * self.totals(slots))

    def betas(self, slots: np.ndarray | slice | None = None) -> np.ndarray:
        """beta of every entry, in slot order, or of the entries in these slots."""
        return np.asarray((1.0 - self.means(slots)) * self.totals(slots))

    def default_means(self, rows: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Means of features without entry in these rows of the model (broadcast)."""
        b, s = self.background[features], np.where(self.uninformative[features], 1.0, self.ratio[rows])
        return np.asarray(s * b / (1.0 - b + s * b))

    def weights(self) -> np.ndarray:
        """Posterior mean of the clusters' weights."""
        weights = self.prior[1] + self.mass
        return np.asarray(weights / weights.sum())


class DenseLines(NamedTuple):
    """Work space for reading many rows: features with entries in many clusters have them laid out by cluster.

    A line is added to the scores in one straight run, and gives at once which slot an entry has; walking the feature's
    postings does the same slot by slot.
    """

    n_of: np.ndarray  # (n_features,) entries of the feature
    line_of: np.ndarray  # (n_features,) its line, -1 for none
    lifts: np.ndarray  # (n_lines, n_rows) lift in single precision, 0 where there is no entry
    slots: np.ndarray  # (n_lines, n_rows) slot + 1, 0 where there is no entry
    least: np.ndarray  # (1,) entries that earn a feature its line
    used: np.ndarray  # (1,) lines in use


def dense_lines(profiles: Profiles, *, empty: bool = False) -> DenseLines:
    """The entries laid out by cluster. ``empty``: no lines at all, where few rows are read."""
    n_lines = 0 if empty else min(profiles.n_features, MOST_CELLS // max(profiles.n_rows, 1))
    shape = (n_lines, profiles.n_rows)
    least = max(2, profiles.n_rows // 16)
    dense = DenseLines(
        np.zeros(profiles.n_features, dtype=np.int32),
        np.full(profiles.n_features, -1, dtype=np.int32),
        np.zeros(shape, dtype=np.float32),
        np.zeros(shape, dtype=np.int32),
        np.array([least]),
        np.zeros(1, dtype=np.int64),
    )
    if not empty:
        dense.used[0] = fill_lines(
            profiles.n_entries, profiles.cluster, profiles.feature, profiles.lift, least, *dense[:4]
        )
    return dense


# --- making -----------------------------------------------------------------------------------------------------------


def empty_profiles(
    seen: np.ndarray, n_clusters: int, *, clutter: bool, strength: float, weight: float = 1.0, flat: bool = False
) -> Profiles:
    """Clusters that know nothing but the background."""
    n_rows, n_features = n_clusters + clutter, seen.size - 1
    background = background_of(seen, flat=flat)
    common, common_at = common_features(background)
    profiles = Profiles(
        prior=np.array([strength, weight, float(clutter)]),
        background=background,
        seen=np.array(seen, dtype=np.float64),
        uninformative=np.zeros(n_features, dtype=np.bool_),
        common=common,
        common_at=common_at,
        head=np.full(n_features, -1, dtype=np.int64),
        **_empty_clusters(n_rows, common.size),
        **_empty_slots(1024),
        used=np.zeros(1, dtype=np.int64),
    )
    if clutter:
        profiles.has_entries[0] = False
    refresh_all(profiles)
    return profiles


def _empty_clusters(n_rows: int, n_common: int) -> dict[str, np.ndarray]:
    special = {
        "has_entries": np.ones(n_rows, dtype=np.bool_),
        "first": np.full(n_rows, -1, dtype=np.int64),
        "ratio": np.ones(n_rows),
        "spread": np.zeros((n_rows, 4)),
        "owned": np.zeros((n_rows, n_common), dtype=np.bool_),
    }
    return {name: special.get(name, np.zeros(n_rows)) for name in CLUSTER_FIELDS} | special


def _empty_slots(capacity: int) -> dict[str, np.ndarray]:
    whole = dict.fromkeys(("cluster", "feature"), np.int32) | dict.fromkeys(
        ("next_of_feature", "next_of_cluster"), np.int64
    )
    return {name: np.zeros(capacity, dtype=whole.get(name, np.float64)) for name in SLOT_FIELDS}


def background_of(seen: np.ndarray, *, flat: bool = False) -> np.ndarray:
    """Share of rows that have each feature, kept off 0 and 1; the same for all features when ``flat``."""
    occurrences, rows = seen[:-1], float(seen[-1])
    if flat:
        occurrences = np.full(occurrences.size, occurrences.mean() if occurrences.size else 0.0)
    return np.clip((occurrences + 0.5) / (rows + 1.0), 1e-9, 0.95)


def common_features(background: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features with a large background, and each feature's place among them."""
    common = np.flatnonzero(background >= COMMON_FROM)
    place = np.full(background.size, -1, dtype=np.int32)
    place[common] = np.arange(common.size)
    return common, place


# --- changing: always a copy ------------------------------------------------------------------------------------------


def copied(profiles: Profiles, room: int = 0) -> Profiles:
    """Beliefs that can be changed without changing these, with room for so many further entries."""
    used = profiles.n_entries
    slots = _empty_slots(max(1024, used + room))
    for name, array in slots.items():
        array[:used] = getattr(profiles, name)[:used]
    others = {
        name: value if name in UNCHANGED_BY_KERNELS else np.array(value)
        for name, value in profiles._asdict().items()
        if name not in slots
    }
    return Profiles(**others, **slots)


def grown(profiles: Profiles, capacity: int) -> Profiles:
    """The same arrays, but slots with room for ``capacity`` entries."""
    used = profiles.n_entries
    slots = _empty_slots(max(capacity, used))
    for name, room in slots.items():
        room[:used] = getattr(profiles, name)[:used]
    return profiles._replace(**slots)


def refreshed(profiles: Profiles) -> Profiles:
    """All sums recomputed from counts and background: scores then correspond exactly to the counts."""
    profiles = copied(profiles)
    refresh_all(profiles)
    return profiles


def with_background(profiles: Profiles, background: np.ndarray) -> Profiles:
    """Another background. Entries keep their counts."""
    common, common_at = common_features(background)
    profiles = copied(profiles)._replace(
        background=background,
        common=common,
        common_at=common_at,
        owned=np.zeros((profiles.n_rows, common.size), dtype=np.bool_),
    )
    refresh_all(profiles)
    return profiles


def with_seen(profiles: Profiles, seen: np.ndarray, *, sign: float = 1.0, flat: bool = False) -> Profiles:
    """Room for new features, and the background brought up to date with further rows that were seen."""
    extra = seen.size - 1 - profiles.n_features
    if extra > 0:
        profiles = profiles._replace(
            uninformative=np.concatenate([profiles.uninformative, np.zeros(extra, dtype=np.bool_)]),
            head=np.concatenate([profiles.head, np.full(extra, -1, dtype=np.int64)]),
            seen=np.concatenate([profiles.seen[:-1], np.zeros(extra), profiles.seen[-1:]]),
        )
    profiles = profiles._replace(seen=seen_added(profiles.seen, seen, sign))
    return with_background(profiles, background_of(profiles.seen, flat=flat))


def seen_added(seen: np.ndarray, more: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """Counts of rows by feature, and of all rows, added up; ``more`` may know fewer features."""
    seen = seen.copy()
    seen[: more.size - 1] += sign * more[:-1]
    seen[-1] += sign * more[-1]
    return seen


def with_strength(profiles: Profiles, strength: float) -> Profiles:
    """Another strength of the prior. Entries keep their counts."""
    profiles = copied(profiles)._replace(prior=np.array([strength, *profiles.prior[1:]]))
    refresh_all(profiles)
    return profiles


def rebuilt(profiles: Profiles, keep: np.ndarray | None = None, rows: np.ndarray | None = None) -> Profiles:
    """Keep only some entries (a mask by slot) and some rows (in this order), laid out by cluster.

    What an entry held beyond the background goes back to its cluster's default. The occurrences of dropped rows are
    dropped with them.
    """
    used = profiles.n_entries
    keep = np.ones(used, dtype=np.bool_) if keep is None else keep
    rows = np.arange(profiles.n_rows) if rows is None else rows
    new_row = np.full(profiles.n_rows, -1, dtype=np.int64)
    new_row[rows] = np.arange(rows.size)
    cluster, feature, hits = profiles.cluster[:used], profiles.feature[:used], profiles.hits[:used]
    default_hits = profiles.default_hits.copy()
    returned = ~keep & ~profiles.uninformative[feature]
    np.add.at(default_hits, cluster[returned], hits[returned])
    staying = np.flatnonzero(keep & (new_row[cluster] >= 0))
    small = np.int16 if rows.size < 1 << 15 else np.int64  # sorted by radix, in time linear in the entries
    staying = staying[np.argsort(new_row[cluster[staying]].astype(small), kind="stable")]
    slots = _empty_slots(max(1024, int(1.5 * staying.size)))
    for name in ("feature", "hits", "hits_from_default", "loss"):
        slots[name][: staying.size] = getattr(profiles, name)[staying]
    slots["cluster"][: staying.size] = new_row[cluster[staying]]
    by_row = {name: getattr(profiles, name)[rows] for name in CLUSTER_FIELDS} | {"default_hits": default_hits[rows]}
    profiles = profiles._replace(
        **slots, **by_row, used=np.array([staying.size]), head=np.full(profiles.n_features, -1, dtype=np.int64)
    )
    return linked(profiles)


def linked(profiles: Profiles) -> Profiles:
    """Chain the entries of fresh arrays and compute the sums."""
    link_slots(profiles)
    refresh_all(profiles)
    return profiles


def with_new_rows(profiles: Profiles, n_new: int) -> Profiles:
    """Room for clusters that know nothing yet, after the others."""
    new = _empty_clusters(n_new, profiles.common.size)
    extra = {name: np.concatenate([getattr(profiles, name), new[name]]) for name in CLUSTER_FIELDS}
    profiles = copied(profiles._replace(**extra))
    refresh_all(profiles)
    return profiles


def with_entries(
    profiles: Profiles, cluster: np.ndarray, feature: np.ndarray, hits: np.ndarray, loss: np.ndarray | None = None
) -> Profiles:
    """Empty profiles given these entries; counts come from nowhere else."""
    n = cluster.size
    slots = _empty_slots(n + 1024)
    slots["cluster"][:n], slots["feature"][:n], slots["hits"][:n] = cluster, feature, hits
    if loss is not None:
        slots["loss"][:n] = loss
    profiles = copied(profiles)._replace(**slots, used=np.array([n]))
    return linked(profiles)


def means_of(profiles: Profiles, features: np.ndarray) -> np.ndarray:
    """mu of every cluster for a few features, dense (n_rows, n)."""
    used = profiles.n_entries
    means = profiles.default_means(np.arange(profiles.n_rows)[:, None], features[None, :])
    if not features.size:
        return means
    place_of = np.full(profiles.n_features, -1)
    place_of[features] = np.arange(features.size)
    place_of[profiles.uninformative] = -1
    place = place_of[profiles.feature[:used]]
    slots = np.flatnonzero(place >= 0)
    means[profiles.cluster[slots], place[slots]] = profiles.means(slots)
    return means
