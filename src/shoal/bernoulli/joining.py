"""Models trained apart, made one."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.births import counts_by_row, means_by_row, merge_gain
from shoal.bernoulli.entries_kernels import link_slots, refresh_all
from shoal.bernoulli.profiles import Profiles, grown, with_background, with_rows


def appended(profiles: Profiles, other: Profiles) -> Profiles:
    """The clusters of ``other`` after those of ``profiles``; backgrounds and clutter add up."""
    n_clutter, n_rows = profiles.n_clutter, profiles.n_rows
    flat = bool(np.ptp(profiles.background) == 0)
    joint = with_rows(profiles, other.n_rows - n_clutter)
    joint = grown(joint, profiles.n_entries + other.n_entries + 1024)
    fresh = slice(profiles.n_entries, profiles.n_entries + other.n_entries)
    for name in ("feature", "hits", "given", "loss"):
        getattr(joint, name)[fresh] = getattr(other, name)[: other.n_entries]
    joint.cluster[fresh] = other.cluster[: other.n_entries] + (n_rows - n_clutter)
    joint.used[0] = fresh.stop
    joint.mass[n_rows:], joint.held[n_rows:] = other.mass[n_clutter:], other.held[n_clutter:]
    if n_clutter:
        joint.mass[0] += other.mass[0]
        joint.held[0] += other.held[0]
    # A keyword stays without entries only where both models found it to say nothing.
    joint = joint._replace(seen=profiles.seen + other.seen, shared=profiles.shared & other.shared)
    link_slots(joint)
    refresh_all(joint)
    return with_background(joint, flat=flat)


def matches(profiles: Profiles, n_clusters: int) -> list[tuple[int, int]]:
    """Pairs to pour together now: all that gain, or, while there are too many clusters, also those that lose least."""
    means = means_by_row(profiles)
    lengths = np.sqrt(np.asarray(means.multiply(means).sum(axis=1)).ravel())
    units = sp.diags_array(1 / np.maximum(lengths, 1e-300)) @ means
    nearness = (units @ units.T).toarray()
    np.fill_diagonal(nearness, -1.0)
    if profiles.n_clutter:
        nearness[0, :] = nearness[:, 0] = -1.0
    counts = counts_by_row(profiles, "hits")
    counts.sort_indices()
    too_many = profiles.n_rows - profiles.n_clutter - n_clusters
    found = []
    for row in range(profiles.n_clutter, profiles.n_rows):
        nearest = np.argsort(-nearness[row], kind="stable")[:3]
        close = [int(other) for other in nearest if nearness[row, other] > 0.02 and row < other]
        found += [(merge_gain(profiles, counts, row, other), row, other) for other in close]
    found.sort(key=lambda pair: -pair[0])
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    for gain, row, other in found:
        if row in taken or other in taken:
            continue
        if gain <= 0 and len(pairs) >= too_many:
            break
        taken |= {row, other}
        pairs.append((row, other))
    return pairs
