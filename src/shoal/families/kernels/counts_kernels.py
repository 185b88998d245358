"""Sparse sufficient statistics of many clusters: small hash tables in one arena, and postings by feature.

A cluster's table maps a feature to its count. Tables double inside the arena; the arena is rebuilt from the labels
before each sweep, in one fixed order, so that a stored chain needs to keep the labels only.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.jit import inline_kernel, kernel

GOLDEN = 2654435769
ROOM = 24  # slots that a feature of a row, added to a small table, may take with all doublings; and 24 more for the row
DEAD = 31  # the level of a posting whose count has fallen to 0


class Items(NamedTuple):
    """The rows, each sorted from its rarest feature to its commonest."""

    ptr: np.ndarray  # (n + 1,) int64
    features: np.ndarray  # (nnz,) int32
    counts: np.ndarray  # (nnz,) int32, in units (1, or 1/1024 where the data are fractional)
    length: np.ndarray  # (n,) int64, sum of the row's counts in units
    scan: np.ndarray  # (n,) int64, how many of the row's rarest features look for candidates
    base: np.ndarray  # (n,) the features' part of the row's log predictive under an empty cluster


class Clusters(NamedTuple):
    """Which row is where, and the counts of each cluster."""

    labels: np.ndarray  # (n,) int32
    size: np.ndarray  # (k,) int64 rows
    total: np.ndarray  # (k,) int64 sum of counts, in units
    slots: np.ndarray  # (arena, 2) int32: feature (-1 free), count
    start: np.ndarray  # (k,) int64 where the cluster's table begins
    bits: np.ndarray  # (k,) int64 log2 of its length
    used: np.ndarray  # (k,) int64 slots in use
    top: np.ndarray  # (1,) int64 end of the used arena
    absent: np.ndarray  # (k,) Bernoulli: log probability that the cluster's features are all absent, beyond the prior's
    weight: np.ndarray  # (k,) candidates' score: the part that depends on the cluster alone
    slope: np.ndarray  # (k,) candidates' score: what each of the row's tokens costs
    empty: np.ndarray  # (k + 1,) int64 the empty clusters, and how many they are in the last place
    place: np.ndarray  # (k,) int64 where in `empty` an empty cluster stands
    changed: np.ndarray  # (k,) int64 when it last changed, by the clock
    births: np.ndarray  # (1,) int64 when a cluster last was born or died
    clock: np.ndarray  # (1,) int64 goes on by one at every change


class Postings(NamedTuple):
    """For each indexed feature, the clusters that hold it: cluster * 32 + floor(log2 count)."""

    indexed: np.ndarray  # (d,) bool
    gain_start: np.ndarray  # (d + 1,) int64 where an indexed feature's gains begin, one for each level it can reach
    gains: np.ndarray  # what one occurrence in a row speaks for a cluster that has the feature at that level
    start: np.ndarray  # (d,) int64
    length: np.ndarray  # (d,) int64
    ordered: np.ndarray  # (d,) int64 so many of the first are in the order of clusters
    room: np.ndarray  # (d,) int64
    entries: np.ndarray  # (arena,) int32
    top: np.ndarray  # (1,) int64
    left_out: np.ndarray  # (1,) int64 postings that found no room since they were made


@kernel
def level_of(count):
    """floor(log2 count) for a count of 1 or more."""
    level = 0
    while count > 1:
        count >>= 1
        level += 1
    return level


@kernel
def slot_of(slots, start, bits, feature):
    """Where a feature is, or would be, in a cluster's table."""
    mask = (1 << bits) - 1
    at = ((np.int64(feature) * GOLDEN) & 0xFFFFFFFF) >> (32 - bits)
    while slots[start + at, 0] != feature and slots[start + at, 0] >= 0:
        at = (at + 1) & mask
    return start + at


@inline_kernel
def count_of(clusters, cluster, feature):
    """How often a feature occurs in a cluster, in units."""
    at = slot_of(clusters.slots, clusters.start[cluster], clusters.bits[cluster], feature)
    return clusters.slots[at, 1] if clusters.slots[at, 0] >= 0 else 0


@kernel
def grow(clusters, cluster):
    """Move a cluster's table to twice the room at the end of the arena."""
    slots = clusters.slots
    old, length = clusters.start[cluster], 1 << clusters.bits[cluster]
    new, bits = clusters.top[0], clusters.bits[cluster] + 1
    clusters.top[0] += 2 * length
    for at in range(new, new + 2 * length):
        slots[at, 0] = -1
        slots[at, 1] = 0
    kept = 0
    for at in range(old, old + length):
        if slots[at, 0] >= 0 and slots[at, 1] > 0:
            to = slot_of(slots, new, bits, slots[at, 0])
            slots[to, 0] = slots[at, 0]
            slots[to, 1] = slots[at, 1]
            kept += 1
    clusters.start[cluster], clusters.bits[cluster], clusters.used[cluster] = new, bits, kept


@kernel
def has_room(clusters, cluster, n_features):
    """Whether the arena surely suffices to add a row of so many features to the cluster. After a rebuild it does: a
    table is filled to a third, so only one with less than 2 n + 2 features can have to grow for n more; see ROOM."""
    length = 1 << clusters.bits[cluster]
    if length >= 2 * (clusters.used[cluster] + n_features) + 2:
        return True
    while length < 2 * (clusters.used[cluster] + n_features) + 2:
        length *= 2
    return clusters.top[0] + 2 * length <= len(clusters.slots)


@inline_kernel
def find_posting(postings, feature, cluster):
    """Where a cluster's last posting for a feature is, or -1: by halving where they are in order, then one by one.
    A dead posting can have a later one, of a cluster whose table grew without it; a live one cannot."""
    entries, start = postings.entries, postings.start[feature]
    end = start + postings.ordered[feature]
    low, high = start, end
    while low < high:
        middle = (low + high) >> 1
        if entries[middle] >> 5 < cluster:
            low = middle + 1
        else:
            high = middle
    found = low < end and entries[low] >> 5 == cluster
    if found and entries[low] & 31 != DEAD:
        return low
    for at in range(start + postings.length[feature] - 1, end - 1, -1):
        if entries[at] >> 5 == cluster:
            return at
    return low if found else -1


@inline_kernel
def set_posting(postings, feature, cluster, level):
    """Note a cluster's new level for a feature."""
    at = find_posting(postings, feature, cluster)
    if at >= 0:
        postings.entries[at] = cluster * 32 + level
    elif level != DEAD:
        add_posting(postings, feature, cluster, level)


@inline_kernel
def add_posting(postings, feature, cluster, level):
    """Append a posting, moving the list to more room if need be. Without room in the arena it is left out, and all
    postings have to be made anew before candidates are looked for again."""
    length, start = postings.length[feature], postings.start[feature]
    if length == postings.room[feature]:
        room = max(8, 2 * length)
        new = postings.top[0]
        if new + room > len(postings.entries):
            postings.left_out[0] += 1
            return
        postings.top[0] += room
        for at in range(length):
            postings.entries[new + at] = postings.entries[start + at]
        postings.start[feature], postings.room[feature] = new, room
        start = new
    postings.entries[start + length] = cluster * 32 + level
    postings.length[feature] = length + 1


@kernel
def change_size(clusters, cluster, by):
    """A cluster gains or loses rows."""
    clusters.size[cluster] += by
    clusters.clock[0] += 1
    clusters.changed[cluster] = clusters.clock[0]
    if clusters.size[cluster] == max(by, 0):  # it was empty, or is now
        clusters.births[0] = clusters.clock[0]


@kernel
def add_row(items, clusters, postings, row, cluster):
    """Add a row's counts to a cluster (size and total included)."""
    change_size(clusters, cluster, 1)
    clusters.total[cluster] += items.length[row]
    for at in range(items.ptr[row], items.ptr[row + 1]):
        feature, count = items.features[at], items.counts[at]
        slot = slot_of(clusters.slots, clusters.start[cluster], clusters.bits[cluster], feature)
        if clusters.slots[slot, 0] >= 0:
            before = clusters.slots[slot, 1]
            clusters.slots[slot, 1] = before + count
            if postings.indexed[feature]:
                level = level_of(before + count)
                if before == 0 or level != level_of(before):
                    set_posting(postings, feature, cluster, level)
        else:
            clusters.slots[slot, 0] = feature
            clusters.slots[slot, 1] = count
            clusters.used[cluster] += 1
            if postings.indexed[feature]:
                add_posting(postings, feature, cluster, level_of(count))
            if 2 * clusters.used[cluster] > 1 << clusters.bits[cluster]:
                grow(clusters, cluster)


@kernel
def remove_row(items, clusters, postings, row, cluster):
    """Take a row's counts out of its cluster."""
    change_size(clusters, cluster, -1)
    clusters.total[cluster] -= items.length[row]
    for at in range(items.ptr[row], items.ptr[row + 1]):
        feature = items.features[at]
        slot = slot_of(clusters.slots, clusters.start[cluster], clusters.bits[cluster], feature)
        before = clusters.slots[slot, 1]
        after = before - items.counts[at]
        clusters.slots[slot, 1] = after
        if postings.indexed[feature]:
            if after == 0:
                set_posting(postings, feature, cluster, DEAD)
            elif level_of(after) != level_of(before):
                set_posting(postings, feature, cluster, level_of(after))


@kernel
def clear_table(clusters, cluster):
    """Take all rows' counts out of a cluster."""
    change_size(clusters, cluster, -clusters.size[cluster])
    clusters.total[cluster] = clusters.used[cluster] = 0
    start = clusters.start[cluster]
    for at in range(start, start + (1 << clusters.bits[cluster])):
        clusters.slots[at, 0] = -1
        clusters.slots[at, 1] = 0


@kernel
def group_rows(labels, n_clusters, first, order):
    """Counting sort: `order` lists the rows cluster by cluster, `first` says where each cluster begins."""
    first[:] = 0
    for row in range(len(labels)):
        if labels[row] >= 0:
            first[labels[row] + 1] += 1
    for cluster in range(n_clusters):
        first[cluster + 1] += first[cluster]
    at = first.copy()
    for row in range(len(labels)):
        if labels[row] >= 0:
            order[at[labels[row]]] = row
            at[labels[row]] += 1


@kernel
def rebuild_tables(items, clusters, first, order, scratch, seen):
    """Fill all tables afresh from the labels, each with room to spare. Returns the arena needed; if that is more than
    there is, nothing useful was written and the caller must come back with a larger arena."""
    n_clusters = len(clusters.size)
    top = 0
    for cluster in range(n_clusters):
        n_seen = 0
        clusters.size[cluster] = first[cluster + 1] - first[cluster]
        clusters.total[cluster] = 0
        for place in range(first[cluster], first[cluster + 1]):
            row = order[place]
            clusters.total[cluster] += items.length[row]
            for at in range(items.ptr[row], items.ptr[row + 1]):
                feature = items.features[at]
                if scratch[feature] == 0:
                    seen[n_seen] = feature
                    n_seen += 1
                scratch[feature] += items.counts[at]
        bits = 4
        while 1 << bits < 3 * n_seen:
            bits += 1
        fits = top + (1 << bits) <= len(clusters.slots)
        clusters.start[cluster], clusters.bits[cluster], clusters.used[cluster] = top, bits, n_seen
        if fits:
            for at in range(top, top + (1 << bits)):
                clusters.slots[at, 0] = -1
                clusters.slots[at, 1] = 0
        for place in range(n_seen):
            feature = seen[place]
            if fits:
                slot = slot_of(clusters.slots, top, bits, feature)
                clusters.slots[slot, 0] = feature
                clusters.slots[slot, 1] = scratch[feature]
            scratch[feature] = 0
        top += 1 << bits
    clusters.top[0] = top
    return top


@kernel
def copy_tables(clusters, least, ptr, features, counts):
    """The clusters' counts of `least` units or more as compressed rows, features in the order of the tables."""
    to = 0
    for cluster in range(len(clusters.size)):
        start = clusters.start[cluster]
        for at in range(start, start + (1 << clusters.bits[cluster])):
            if clusters.slots[at, 0] >= 0 and clusters.slots[at, 1] >= least:
                features[to], counts[to] = clusters.slots[at, 0], clusters.slots[at, 1]
                to += 1
        ptr[cluster + 1] = to


@kernel
def rebuild_empty(clusters):
    """List the empty clusters in order."""
    n_clusters = len(clusters.size)
    n_empty = 0
    for cluster in range(n_clusters):
        if clusters.size[cluster] == 0:
            clusters.empty[n_empty] = cluster
            clusters.place[cluster] = n_empty
            n_empty += 1
    clusters.empty[n_clusters] = n_empty


@kernel
def no_longer_empty(clusters, cluster):
    """Take a cluster off the list of empty ones."""
    last = len(clusters.size)
    clusters.empty[last] -= 1
    mover = clusters.empty[clusters.empty[last]]
    clusters.empty[clusters.place[cluster]] = mover
    clusters.place[mover] = clusters.place[cluster]


@kernel
def now_empty(clusters, cluster):
    """Put a cluster on the list of empty ones."""
    last = len(clusters.size)
    clusters.empty[clusters.empty[last]] = cluster
    clusters.place[cluster] = clusters.empty[last]
    clusters.empty[last] += 1


@kernel
def count_postings(clusters, postings):
    """Lay out the postings' arena for the tables as they are. Returns the room needed, like rebuild_tables."""
    postings.length[:] = 0
    for cluster in range(len(clusters.size)):
        start = clusters.start[cluster]
        for at in range(start, start + (1 << clusters.bits[cluster])):
            feature = clusters.slots[at, 0]
            if feature >= 0 and clusters.slots[at, 1] > 0 and postings.indexed[feature]:
                postings.length[feature] += 1
    top = 0
    for feature in range(len(postings.length)):
        n = postings.length[feature]
        room = n + max(4, n // 4) if postings.indexed[feature] else 0
        postings.start[feature], postings.room[feature] = top, room
        top += room
    postings.top[0] = top
    return top


@kernel
def fill_postings(clusters, postings):
    """Write the postings that count_postings made room for, in the order of clusters."""
    postings.length[:] = 0
    for cluster in range(len(clusters.size)):
        start = clusters.start[cluster]
        for at in range(start, start + (1 << clusters.bits[cluster])):
            feature = clusters.slots[at, 0]
            if feature >= 0 and clusters.slots[at, 1] > 0 and postings.indexed[feature]:
                to = postings.start[feature] + postings.length[feature]
                postings.entries[to] = cluster * 32 + level_of(clusters.slots[at, 1])
                postings.length[feature] += 1
    postings.ordered[:] = postings.length
    postings.left_out[0] = 0
