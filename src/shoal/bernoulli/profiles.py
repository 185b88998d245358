"""The belief of a Bernoulli mixture, kept sparse: own Betas for what matters to a cluster, one default for the rest.

For cluster ``l`` and keyword ``d``, with ``b_d`` the share of all ads that have ``d`` (the background)::

    alpha_ld = strength * b_d + hits_ld        n_ld = alpha_ld + beta_ld = strength + mass_l - loss_ld

``mass_l`` is the number of ads the cluster has taken in, so an ad without ``d`` adds to ``beta_ld`` by adding to
``mass_l``: every zero is applied to every keyword, at no cost. ``loss_ld`` is the pseudo-count that moment matching
took away on ambiguous ads. A keyword that owns no entry is believed to be ``ratio_l * b_d``, where the ratio comes
from the cluster's default: ``held_l`` occurrences spread over the keywords without entry.

Every count is a multiple of 2^-24, so that adding and subtracting what some ads taught is exact, in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.base import storable
from shoal.bernoulli.entries_kernels import fill_board, link_slots, refresh_all

MOST_CELLS = 1 << 24  # of a board; memory is taken up only line by line
SLOT_FIELDS = ("cluster", "feature", "hits", "given", "loss", "lift", "absent", "next_of_feature", "next_of_cluster")
CLUSTER_FIELDS = (
    "mass",
    "held",
    "opens",
    "ratio",
    "log_ratio",
    "total",
    "slope",
    "mass_then",
    "base",
    "first",
    "spread",
)


@storable
class Profiles(NamedTuple):
    """All beliefs and the sums that make scoring cheap. Kernels change the arrays in place."""

    prior: np.ndarray  # (2,) strength of the prior in ads, prior weight of a cluster in ads
    # --- keywords
    background: np.ndarray  # (n_features,) b_d, frozen between refreshes
    seen: np.ndarray  # (n_features + 1,) ads that had the keyword; last, ads in all
    shared: np.ndarray  # (n_features,) about the same in every cluster, so it says nothing about membership
    head: np.ndarray  # (n_features,) first slot of the keyword's postings, -1 for none
    # --- clusters; row 0 is the clutter cluster when there is one
    mass: np.ndarray  # (n_rows,) ads taken in
    held: np.ndarray  # (n_rows,) occurrences in the hands of the default
    opens: np.ndarray  # (n_rows,) may keywords own entries here? not in the clutter
    ratio: np.ndarray  # (n_rows,) mean of a keyword without entry, relative to the background
    log_ratio: np.ndarray
    total: np.ndarray  # (n_rows,) sum of log(1 - mu) over own entries, as of mass_then
    slope: np.ndarray  # (n_rows,) its derivative by mass
    mass_then: np.ndarray  # (n_rows,) mass when the cluster's entries were last recomputed
    base: np.ndarray  # (n_rows,) log weight + log probability of an ad without any keyword
    first: np.ndarray  # (n_rows,) first slot of the cluster's entries
    spread: np.ndarray  # (n_rows, 4) sums of b, b^2, b^3, b^4 over keywords without entry
    # --- slots: one entry each
    cluster: np.ndarray
    feature: np.ndarray
    hits: np.ndarray  # (n,) rows of the cluster that have the keyword
    given: np.ndarray  # part of hits that came out of `held` when the entry was made
    loss: np.ndarray
    lift: np.ndarray  # log-odds above the default's log-odds
    absent: np.ndarray  # log(1 - mu), as counted in total
    next_of_feature: np.ndarray
    next_of_cluster: np.ndarray
    used: np.ndarray  # (1,) slots in use

    @property
    def n_rows(self) -> int:
        return int(self.mass.size)

    @property
    def n_clutter(self) -> int:
        """1 when row 0 is the clutter cluster, else 0: a cluster's number is its row less this."""
        return int(self.mass.size > 0 and not self.opens[0])

    @property
    def n_features(self) -> int:
        return int(self.background.size)

    @property
    def n_entries(self) -> int:
        return int(self.used[0])

    def alphas(self) -> np.ndarray:
        """alpha of every entry, in slot order."""
        used = self.n_entries
        return np.asarray(self.prior[0] * self.background[self.feature[:used]] + self.hits[:used])

    def totals(self) -> np.ndarray:
        """alpha + beta of every entry, in slot order."""
        used = self.n_entries
        return np.asarray(self.prior[0] + self.mass[self.cluster[:used]] - self.loss[:used])

    def weights(self) -> np.ndarray:
        """Posterior mean of the clusters' weights."""
        weights = self.prior[1] + self.mass
        return np.asarray(weights / weights.sum())


class Board(NamedTuple):
    """Work space for reading many ads: keywords with entries in many clusters have them laid out by cluster.

    A line is added to the scores in one straight run, and says at once which slot an entry has; walking the keyword's
    postings does the same slot by slot.
    """

    n_of: np.ndarray  # (n_features,) entries of the keyword
    line_of: np.ndarray  # (n_features,) its line, -1 for none
    lifts: np.ndarray  # (n_lines, n_rows) lift in single precision, 0 where there is no entry
    slots: np.ndarray  # (n_lines, n_rows) slot + 1, 0 where there is no entry
    least: np.ndarray  # (1,) entries that earn a keyword its line
    used: np.ndarray  # (1,) lines in use


def board_of(profiles: Profiles, *, empty: bool = False) -> Board:
    """A board with what is known. ``empty``: one that stays so, where few ads are read."""
    n_lines = 0 if empty else min(profiles.n_features, MOST_CELLS // max(profiles.n_rows, 1))
    shape = (n_lines, profiles.n_rows)
    least = max(2, profiles.n_rows // 16)
    board = Board(
        np.zeros(profiles.n_features, dtype=np.int32),
        np.full(profiles.n_features, -1, dtype=np.int32),
        np.zeros(shape, dtype=np.float32),
        np.zeros(shape, dtype=np.int32),
        np.array([least]),
        np.zeros(1, dtype=np.int64),
    )
    if not empty:
        board.used[0] = fill_board(
            profiles.n_entries, profiles.cluster, profiles.feature, profiles.lift, least, *board[:4]
        )
    return board


def empty_profiles(
    seen: np.ndarray,
    n_clusters: int,
    *,
    clutter: bool,
    strength: float,
    weight: float,
    flat: bool,
    capacity: int = 1024,
) -> Profiles:
    """Clusters that know nothing but the background."""
    n_rows, n_features = n_clusters + clutter, seen.size - 1
    opens = np.ones(n_rows, dtype=np.bool_)
    if clutter:
        opens[0] = False
    rows = {name: np.zeros(n_rows) for name in CLUSTER_FIELDS} | {
        "opens": opens,
        "first": np.full(n_rows, -1, dtype=np.int64),
        "spread": np.zeros((n_rows, 4)),
    }
    profiles = Profiles(
        prior=np.array([strength, weight]),
        background=background_of(seen, flat=flat),
        seen=np.asarray(seen, dtype=np.float64),
        shared=np.zeros(n_features, dtype=np.bool_),
        head=np.full(n_features, -1, dtype=np.int64),
        **rows,
        **_slots(capacity),
        used=np.zeros(1, dtype=np.int64),
    )
    refresh_all(profiles)
    return profiles


def _slots(capacity: int) -> dict[str, np.ndarray]:
    whole = dict.fromkeys(("cluster", "feature"), np.int32) | dict.fromkeys(
        ("next_of_feature", "next_of_cluster"), np.int64
    )
    return {name: np.zeros(capacity, dtype=whole.get(name, np.float64)) for name in SLOT_FIELDS}


def background_of(seen: np.ndarray, *, flat: bool) -> np.ndarray:
    """Share of ads that have each keyword, kept off 0 and 1; the same for all keywords when ``flat``."""
    occurrences, ads = seen[:-1], float(seen[-1])
    if flat:
        occurrences = np.full(occurrences.size, occurrences.mean() if occurrences.size else 0.0)
    return np.clip((occurrences + 0.5) / (ads + 1.0), 1e-9, 0.95)


def grown(profiles: Profiles, capacity: int) -> Profiles:
    """The same beliefs with room for ``capacity`` entries."""
    used = profiles.n_entries
    slots = _slots(max(capacity, used))
    for name, room in slots.items():
        room[:used] = getattr(profiles, name)[:used]
    return profiles._replace(**slots)


def copied(profiles: Profiles) -> Profiles:
    """Beliefs that can be changed without changing these; the background stays common."""
    common = {"background", "shared", "prior"}
    return Profiles(**{n: v if n in common else v.copy() for n, v in profiles._asdict().items()})


def with_background(profiles: Profiles, *, flat: bool) -> Profiles:
    """The background brought up to date with what has been seen. Entries keep their counts."""
    profiles = profiles._replace(background=background_of(profiles.seen, flat=flat))
    refresh_all(profiles)
    return profiles


def with_features(profiles: Profiles, n_features: int) -> Profiles:
    """Room for keywords never seen before."""
    extra = n_features - profiles.n_features
    if extra <= 0:
        return profiles
    rare = 0.5 / (profiles.seen[-1] + 1.0)
    profiles = profiles._replace(
        background=np.concatenate([profiles.background, np.full(extra, max(rare, 1e-9))]),
        seen=np.concatenate([profiles.seen[:-1], np.zeros(extra), profiles.seen[-1:]]),
        shared=np.concatenate([profiles.shared, np.zeros(extra, dtype=np.bool_)]),
        head=np.concatenate([profiles.head, np.full(extra, -1, dtype=np.int64)]),
    )
    refresh_all(profiles)
    return profiles


def rebuilt(profiles: Profiles, keep: np.ndarray, rows: np.ndarray | None = None) -> Profiles:
    """Keep only some entries (a mask by slot) and some rows (in this order), laid out by cluster.

    What an entry held beyond the background goes back to its cluster's default. The occurrences of dropped rows are
    dropped with them.
    """
    used = profiles.n_entries
    rows = np.arange(profiles.n_rows) if rows is None else rows
    new_row = np.full(profiles.n_rows, -1, dtype=np.int64)
    new_row[rows] = np.arange(rows.size)
    cluster, feature, count = profiles.cluster[:used], profiles.feature[:used], profiles.hits[:used]
    held = profiles.held.copy()
    returned = ~keep & ~profiles.shared[feature]
    np.add.at(held, cluster[returned], count[returned])
    staying = np.flatnonzero(keep & (new_row[cluster] >= 0))
    small = np.int16 if rows.size < 1 << 15 else np.int64  # sorted by radix, in time linear in the entries
    staying = staying[np.argsort(new_row[cluster[staying]].astype(small), kind="stable")]
    slots = _slots(max(1024, int(1.5 * staying.size)))
    for name in ("feature", "hits", "given", "loss"):
        slots[name][: staying.size] = getattr(profiles, name)[staying]
    slots["cluster"][: staying.size] = new_row[cluster[staying]]
    by_row = {name: getattr(profiles, name)[rows] for name in CLUSTER_FIELDS} | {"held": held[rows]}
    profiles = profiles._replace(
        **slots, **by_row, used=np.array([staying.size]), head=np.full(profiles.n_features, -1, dtype=np.int64)
    )
    link_slots(profiles)
    refresh_all(profiles)
    return profiles


def with_rows(profiles: Profiles, n_new: int) -> Profiles:
    """Room for clusters that know nothing yet, after the others."""
    extra = {}
    for name in CLUSTER_FIELDS:
        old = getattr(profiles, name)
        fresh = np.zeros((n_new, *old.shape[1:]), dtype=old.dtype)
        if name == "opens":
            fresh[:] = True
        if name == "first":
            fresh[:] = -1
        extra[name] = np.concatenate([old, fresh])
    profiles = profiles._replace(**extra)
    refresh_all(profiles)
    return profiles
