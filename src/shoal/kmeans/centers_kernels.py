# mypy: ignore-errors
"""Kernels that turn labelled rows into centers, and centers into an index from feature to center."""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel

SURELY_LIGHT = 0.02  # a feature below this share of a center's length is hardly ever among the hundred heaviest


@kernel
def group_by_label(labels, n_clusters, starts, members):
    """Counting sort of the rows by label; rows with label -1 are left out. Members keep the order of the rows."""
    starts[:] = 0
    for row in range(labels.size):
        if labels[row] >= 0:
            starts[labels[row] + 1] += 1
    for cluster in range(n_clusters):
        starts[cluster + 1] += starts[cluster]
    place = starts[:n_clusters].copy()
    for row in range(labels.size):
        if labels[row] >= 0:
            members[place[labels[row]]] = row
            place[labels[row]] += 1


@kernel
def sum_members(indptr, ranks, values, row_weights, members, total, seen, touched):
    """Add the weighted rows of one cluster into the dense `total`; returns how many features were `touched`."""
    n_touched = 0
    for row in members:
        weight = row_weights[row]
        if weight > 0.0:
            for at in range(indptr[row], indptr[row + 1]):
                rank = np.uint32(ranks[at])  # unsigned: no check for an index from the end
                if not seen[rank]:
                    seen[rank] = True
                    touched[n_touched] = rank
                    n_touched += 1
                total[rank] += weight * values[at]
    return n_touched


@kernel
def kth_largest(values, n_keep, scratch):
    """The n_keep-th largest of `values`, by quickselect in `scratch`."""
    low, high = 0, values.size - 1
    scratch[: values.size] = values
    want = n_keep - 1
    while low < high:
        pivot = scratch[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while scratch[left] > pivot:
                left += 1
            while scratch[right] < pivot:
                right -= 1
            if left <= right:
                scratch[left], scratch[right] = scratch[right], scratch[left]
                left += 1
                right -= 1
        if want <= right:
            high = right
        elif want >= left:
            low = left
        else:
            break
    return scratch[want]


@kernel
def keep_heaviest(ranks, sums, n, n_keep, sizes, heavy, scratch):
    """Move the n_keep largest sums (in size) to the front, in their order; returns how many are kept."""
    length = 0.0
    for i in range(n):
        sizes[i] = abs(sums[i])
        length += sizes[i] * sizes[i]
    # The heaviest are nearly always among those above a small share of the length: few are left to select from.
    floor = SURELY_LIGHT * np.sqrt(length)
    n_heavy = 0
    for i in range(n):
        heavy[n_heavy] = sizes[i]
        n_heavy += sizes[i] > floor
    few = n_heavy >= n_keep
    threshold = kth_largest(heavy[:n_heavy], n_keep, scratch) if few else kth_largest(sizes[:n], n_keep, scratch)
    above = 0
    for i in range(n):
        above += sizes[i] > threshold
    ties_kept = n_keep - above
    kept = 0
    for i in range(n):
        if sizes[i] > threshold or (sizes[i] == threshold and ties_kept > 0):
            ties_kept -= sizes[i] == threshold
            ranks[kept], sums[kept] = ranks[i], sums[i]
            kept += 1
    return kept


@kernel
def count_moves(before, labels, changed, sizes):
    """Mark the clusters that won or lost rows, count the rows of each; returns how many rows moved.

    The last place of `changed` and `sizes` takes label -1. Without labels from before, every row has moved.
    """
    n_moved = 0
    for row in range(labels.size):
        label = labels[row] if labels[row] >= 0 else changed.size - 1
        sizes[label] += 1
        if before.size == 0:
            changed[label] = True
            n_moved += 1
        elif before[row] != labels[row]:
            changed[label] = True
            changed[before[row] if before[row] >= 0 else changed.size - 1] = True
            n_moved += 1
    return n_moved


@kernel
def count_entries(indptr, labels, entries):
    """How many entries the rows of each label have."""
    for row in range(labels.size):
        if labels[row] >= 0:
            entries[labels[row]] += indptr[row + 1] - indptr[row]


@kernel
def sum_clusters(rows, starts, members, clusters, n_ranks, n_keep, first_of, out_ranks, out_sums, sizes, masses):
    """For the given clusters the weighted sum of their rows, from place `first_of` on; `sizes` counts the entries.

    With `n_keep` > 0 only the heaviest features are written.
    """
    indptr, ranks, values, row_weights = rows
    total = np.zeros(n_ranks)
    seen = np.zeros(n_ranks, np.bool_)
    touched = np.empty(n_ranks, np.int32)
    found = np.empty(n_ranks if n_keep > 0 else 0)
    by_size, heavy, scratch = np.empty(found.size), np.empty(found.size), np.empty(found.size)
    for cluster in clusters:
        out = first_of[cluster]
        mine = members[starts[cluster] : starts[cluster + 1]]
        n = sum_members(indptr, ranks, values, row_weights, mine, total, seen, touched)
        if 0 < n_keep < n:
            for i in range(n):
                rank = touched[i]
                found[i] = total[rank]
                seen[rank] = False
                total[rank] = 0.0
            n = keep_heaviest(touched, found, n, n_keep, by_size, heavy, scratch)
            for i in range(n):
                out_ranks[out + i], out_sums[out + i] = touched[i], found[i]
        else:
            for i in range(n):
                rank = touched[i]
                out_ranks[out + i], out_sums[out + i] = rank, total[rank]
                seen[rank] = False
                total[rank] = 0.0
        mass = 0.0
        for row in mine:
            mass += row_weights[row]
        masses[cluster] = mass
        sizes[cluster] = n


@kernel
def merge_sums(a, b, n_ranks, starts, sizes, ranks, sums):
    """Add two tables of sums, cluster by cluster: the entries of the first, then what only the second has."""
    a_starts, a_sizes, a_ranks, a_sums = a
    b_starts, b_sizes, b_ranks, b_sums = b
    place = np.full(n_ranks, -1, np.int64)
    out = 0
    for cluster in range(starts.size):
        first = out
        for at in range(a_starts[cluster], a_starts[cluster] + a_sizes[cluster]):
            ranks[out], sums[out] = a_ranks[at], a_sums[at]
            place[a_ranks[at]] = out
            out += 1
        for at in range(b_starts[cluster], b_starts[cluster] + b_sizes[cluster]):
            rank = b_ranks[at]
            if place[rank] >= 0:
                sums[place[rank]] += b_sums[at]
            else:
                ranks[out], sums[out] = rank, b_sums[at]
                out += 1
        for at in range(first, out):
            place[ranks[at]] = -1
        starts[cluster], sizes[cluster] = first, out - first
    return out


@kernel
def directions(
    table, clusters, n_ranks, n_keep, no_direction, old_centers, out_ranks, out_weights, sizes, movement, lengths
):
    """For the given clusters: the unit vector along the sum, and its distance from the old center.

    Entries go to `out_ranks` and `out_weights` one cluster after another, `sizes` counts them. With `n_keep` > 0 only
    the heaviest features stay. `lengths` are those of the mean rows. A cluster whose rows cancel gets size 0 and
    movement 0: its center stays.
    """
    starts, counts, ranks, sums, masses = table
    old_indptr, old_ranks, old_weights = old_centers
    dense = np.zeros(n_ranks, np.float32)
    longest = 1
    for cluster in clusters:
        longest = max(longest, counts[cluster])
    mine_ranks, mine_sums = np.empty(longest, np.int32), np.empty(longest)
    by_size, heavy, scratch = np.empty(longest), np.empty(longest), np.empty(longest)
    out = 0
    for i_cluster in range(clusters.size):
        cluster = clusters[i_cluster]
        first, n = starts[cluster], counts[cluster]
        mine_ranks[:n], mine_sums[:n] = ranks[first : first + n], sums[first : first + n]
        if 0 < n_keep < n:
            n = keep_heaviest(mine_ranks, mine_sums, n, n_keep, by_size, heavy, scratch)
        length = 0.0
        for i in range(n):
            length += mine_sums[i] ** 2
        length = np.sqrt(length)
        sizes[i_cluster], movement[i_cluster] = 0, 0.0
        lengths[i_cluster] = length / masses[cluster] if masses[cluster] > 0.0 else 0.0
        if not length > no_direction * max(masses[cluster], 1e-300):
            continue
        apart = 0.0
        kept = 0
        for i in range(n):
            weight = np.float32(mine_sums[i] / length)
            if weight != 0.0:
                out_ranks[out + kept], out_weights[out + kept] = mine_ranks[i], weight
                dense[mine_ranks[i]] = weight
                apart += np.float64(weight) ** 2
                kept += 1
        for at in range(old_indptr[cluster], old_indptr[cluster + 1]):
            weight = np.float64(old_weights[at])
            apart += weight * (weight - 2.0 * dense[old_ranks[at]])
        for i in range(kept):
            dense[out_ranks[out + i]] = 0.0
        movement[i_cluster] = np.sqrt(max(apart, 0.0))
        sizes[i_cluster] = kept
        out += kept
    return out


@kernel
def cosines_of_members(indptr, ranks, values, starts, members, clusters, c_indptr, c_ranks, c_weights, dense, out):
    """For the rows of the given clusters the cosine to their center; `dense` is zero before and after."""
    for cluster in clusters:
        if starts[cluster] == starts[cluster + 1]:
            continue
        for at in range(c_indptr[cluster], c_indptr[cluster + 1]):
            dense[c_ranks[at]] = c_weights[at]
        for row in members[starts[cluster] : starts[cluster + 1]]:
            total = 0.0
            for at in range(indptr[row], indptr[row + 1]):
                total += np.float64(dense[np.uint32(ranks[at])]) * values[at]
            out[row] = total
        for at in range(c_indptr[cluster], c_indptr[cluster + 1]):
            dense[c_ranks[at]] = 0.0


@kernel
def splice(old_indptr, old_ranks, old_weights, sources, new_indptr, new_ranks, new_weights, indptr, ranks, weights):
    """Copy each center from the old ones (source -1) or from place `source` of the new ones."""
    for center in range(sources.size):
        target = indptr[center]
        if sources[center] < 0:
            first, last = old_indptr[center], old_indptr[center + 1]
            ranks[target : target + last - first] = old_ranks[first:last]
            weights[target : target + last - first] = old_weights[first:last]
        else:
            first, last = new_indptr[sources[center]], new_indptr[sources[center] + 1]
            ranks[target : target + last - first] = new_ranks[first:last]
            weights[target : target + last - first] = new_weights[first:last]


@kernel
def thin_centers(indptr, ranks, weights, n_keep, out_ranks, out_weights, sizes):
    """Keep the n_keep heaviest entries of every center, at unit length; returns how many entries there are."""
    longest = 1
    for center in range(sizes.size):
        longest = max(longest, indptr[center + 1] - indptr[center])
    scratch, sizes_of = np.empty(longest), np.empty(longest)
    out = 0
    for center in range(sizes.size):
        first, n = indptr[center], indptr[center + 1] - indptr[center]
        for i in range(n):
            sizes_of[i] = abs(weights[first + i])
        bar = kth_largest(sizes_of[:n], n_keep, scratch) if n > n_keep else 0.0
        above = 0
        for i in range(n):
            above += sizes_of[i] > bar
        room_for_ties = max(n_keep - above, 0)
        length, start = 0.0, out
        for i in range(n):
            if sizes_of[i] > bar or (sizes_of[i] == bar and room_for_ties > 0):
                room_for_ties -= sizes_of[i] == bar
                out_ranks[out], out_weights[out] = ranks[first + i], weights[first + i]
                length += sizes_of[i] ** 2
                out += 1
        for at in range(start, out):
            out_weights[at] /= np.sqrt(length)
        sizes[center] = out - start
    return out


@kernel
def count_ranks(ranks, counts):
    """How many centers have each feature."""
    for at in range(ranks.size):
        counts[ranks[at]] += 1


@kernel
def fill_index(indptr, ranks, weights, line_of, place, hot, centers_out, weights_out):
    """Scatter center entries: features with a line into the dense block, others to the end of their list.

    Centers are walked in order, so every list ends up sorted by center.
    """
    for center in range(indptr.size - 1):
        for at in range(indptr[center], indptr[center + 1]):
            rank = ranks[at]
            if line_of[rank] >= 0:
                hot[line_of[rank], center] = weights[at]
            else:
                centers_out[place[rank]] = center
                weights_out[place[rank]] = weights[at]
                place[rank] += 1
