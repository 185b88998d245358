"""What some ads taught, as a difference of natural parameters: added, merged, and taken back exactly.

Training in parallel gives every share of a batch its own copy of the prior, and applies all the differences to the
prior. The number of shares decides the answer, the number of threads does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.bernoulli.adf import Shares, filtered
from shoal.bernoulli.entries_kernels import add_to_entries, refresh_all
from shoal.bernoulli.profiles import Profiles, board_of, copied, grown, rebuilt
from shoal.errors import CannotMerge
from shoal.threads import ordered_map


@storable
class Delta(NamedTuple):
    """Posterior divided by prior: what was added to every natural parameter."""

    cluster: np.ndarray  # (n,) row
    feature: np.ndarray  # (n,) column
    hits: np.ndarray  # (n,) rows of the cluster that have the keyword
    loss: np.ndarray  # (n,) pseudo-count lost on ambiguous ads
    mass: np.ndarray  # (n_rows,) ads
    held: np.ndarray  # (n_rows,) occurrences that went to the default
    ids: np.ndarray  # (n_clusters,) ids of the clusters; empty when not known
    seen: np.ndarray  # (n_features + 1,) ads with each keyword, and ads in all; empty when not known


def accumulate(
    rows: sp.csr_matrix,
    weights: np.ndarray,
    order: np.ndarray,
    profiles: Profiles,
    *,
    negligible: float,
    width: int = 0,
) -> tuple[Delta, Shares]:
    """What these ads teach a copy of ``profiles``, and which cluster took what. ``profiles`` are left as they are."""
    learned, shares = filtered(copied(profiles), rows, weights, order, negligible=negligible, width=width)
    return difference(learned, profiles), shares


def difference(after: Profiles, before: Profiles) -> Delta:
    """``after`` less ``before``; the entries of ``before`` must come first in ``after``."""
    old, used = before.n_entries, after.n_entries
    count, loss = after.hits[:used].copy(), after.loss[:used].copy()
    count[:old] -= before.hits[:old]
    loss[:old] -= before.loss[:old]
    # What a new entry took out of the default is no news, only a move.
    count[old:] -= after.given[old:used]
    held = after.held - before.held
    np.add.at(held, after.cluster[old:used], after.given[old:used])
    changed = np.flatnonzero((count != 0) | (loss != 0) | (np.arange(used) >= old))
    return Delta(
        after.cluster[changed], after.feature[changed], count[changed], loss[changed],
        after.mass - before.mass, held, np.zeros(0, dtype=np.int64), np.zeros(0),
    )  # fmt: skip


def merge(a: Delta, b: Delta) -> Delta:
    """What both taught."""
    if a.mass.size != b.mass.size or not np.array_equal(a.ids, b.ids):
        raise CannotMerge(
            f"the two differences belong to models with other clusters ({a.mass.size} and {b.mass.size} rows). "
            "Accumulate both from the same prior."
        )
    cluster, feature = np.concatenate([a.cluster, b.cluster]), np.concatenate([a.feature, b.feature])
    spots, place = np.unique(np.stack([feature, cluster]), axis=1, return_inverse=True)
    count, loss = np.zeros(spots.shape[1]), np.zeros(spots.shape[1])
    np.add.at(count, place.ravel(), np.concatenate([a.hits, b.hits]))
    np.add.at(loss, place.ravel(), np.concatenate([a.loss, b.loss]))
    seen = a.seen + b.seen if a.seen.size == b.seen.size else np.zeros(0)
    return Delta(spots[1], spots[0], count, loss, a.mass + b.mass, a.held + b.held, a.ids, seen)


def update(profiles: Profiles, delta: Delta, *, sign: float = 1.0) -> Profiles:
    """Apply a difference to the prior it was taken from, or (``sign=-1``) take it back.

    Taken back, entries that know nothing more than the default return to it.
    """
    if delta.mass.size != profiles.n_rows:
        raise CannotMerge(
            f"the difference knows {delta.mass.size} clusters, the model has {profiles.n_rows}. "
            "Clusters were born, merged or removed since; the difference no longer fits."
        )
    profiles = _added(profiles, delta, sign)
    if sign < 0:
        used = profiles.n_entries
        return rebuilt(profiles, (profiles.hits[:used] != profiles.given[:used]) | (profiles.loss[:used] != 0))
    refresh_all(profiles)
    return profiles


def _added(profiles: Profiles, delta: Delta, sign: float) -> Profiles:
    """The counts alone; what is derived from them has to be brought up to date."""
    profiles = grown(profiles, profiles.n_entries + delta.cluster.size + 1024)
    add_to_entries(delta.cluster, delta.feature, delta.hits, delta.loss, sign, profiles, board_of(profiles))
    profiles.mass[:] += sign * delta.mass
    profiles.held[:] += sign * delta.held
    return profiles


def read_in_shares(
    profiles: Profiles,
    rows: sp.csr_matrix,
    weights: np.ndarray,
    order: np.ndarray,
    *,
    n_shares: int,
    negligible: float,
    width: int,
    n_threads: int | None = None,
) -> tuple[Profiles, Shares]:
    """Learn one batch: ``n_shares`` copies of the prior, each its own part, then all differences onto the prior."""
    parts = np.array_split(order, n_shares)
    results = list(
        ordered_map(
            lambda part: accumulate(rows, weights, part, profiles, negligible=negligible, width=width), parts, n_threads
        )
    )
    for delta, _ in results:
        profiles = _added(profiles, delta, 1.0)
    refresh_all(profiles)
    return profiles, Shares(*(np.concatenate(arrays) for arrays in zip(*(s for _, s in results), strict=True)))
