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
def keep_heaviest(total, touched, n_touched, n_keep, scratch):
    """Zero all but the n_keep largest totals (in size); returns how many features remain in `touched`."""
    sizes, heavy = np.empty(n_touched), np.empty(n_touched)
    length = 0.0
    for i in range(n_touched):
        sizes[i] = abs(total[touched[i]])
        length += sizes[i] * sizes[i]
    # The heaviest are nearly always among those above a small share of the length: few are left to select from.
    floor = SURELY_LIGHT * np.sqrt(length)
    n_heavy = 0
    for i in range(n_touched):
        heavy[n_heavy] = sizes[i]
        n_heavy += sizes[i] > floor
    bar = kth_largest(heavy[:n_heavy], n_keep, scratch) if n_heavy >= n_keep else kth_largest(sizes, n_keep, scratch)
    above = 0
    for i in range(n_touched):
        above += sizes[i] > bar
    room_for_ties = n_keep - above
    kept = 0
    for i in range(n_touched):
        rank = touched[i]
        if sizes[i] > bar or (sizes[i] == bar and room_for_ties > 0):
            room_for_ties -= sizes[i] == bar
            touched[kept] = rank
            kept += 1
        else:
            total[rank] = 0.0
    return kept


@kernel
def mean_directions(
    indptr, ranks, values, row_weights, starts, members, clusters, n_ranks, n_keep, old_indptr, old_ranks, old_weights,
    out_ranks, out_weights, sizes, masses, similarities, movement,
):  # fmt: skip
    """For the given clusters: the unit mean of their rows and each row's cosine to it.

    Entries go to `out_ranks` and `out_weights` one cluster after another, `sizes` counts them. With `n_keep` > 0 only
    the heaviest features stay, and the cosines are those to the thinned center. A cluster without a direction (no
    weight, or rows that cancel) gets size 0. `movement` is the distance from the old center, where there are old ones.
    """
    total = np.zeros(n_ranks)
    seen = np.zeros(n_ranks, np.bool_)
    longest = 1
    for cluster in clusters:
        entries = 0
        for row in members[starts[cluster] : starts[cluster + 1]]:
            entries += indptr[row + 1] - indptr[row]
        longest = max(longest, entries)
    touched = np.empty(min(longest, n_ranks), np.int32)
    scratch = np.empty(min(longest, n_ranks))
    out = 0
    for i_cluster in range(clusters.size):
        cluster = clusters[i_cluster]
        mine = members[starts[cluster] : starts[cluster + 1]]
        n_touched = sum_members(indptr, ranks, values, row_weights, mine, total, seen, touched)
        for i in range(n_touched):
            seen[touched[i]] = False
        masses[cluster] = 0.0
        for row in mine:
            masses[cluster] += row_weights[row]
        if 0 < n_keep < n_touched:
            n_touched = keep_heaviest(total, touched, n_touched, n_keep, scratch)
        length = 0.0
        for i in range(n_touched):
            length += total[touched[i]] ** 2
        length = np.sqrt(length)
        sizes[i_cluster] = 0
        if length > 1e-9 * max(masses[cluster], 1e-300):
            for i in range(n_touched):
                rank = touched[i]
                total[rank] = np.float32(total[rank] / length)
                out_ranks[out + i] = rank
                out_weights[out + i] = total[rank]
            sizes[i_cluster] = n_touched
            out += n_touched
        if old_indptr.size > 1:
            apart = 0.0
            for i in range(n_touched):
                apart += total[touched[i]] ** 2
            for at in range(old_indptr[cluster], old_indptr[cluster + 1]):
                apart += old_weights[at] * (old_weights[at] - 2.0 * total[old_ranks[at]])
            movement[cluster] = np.sqrt(max(apart, 0.0))
        for row in mine:
            dot = 0.0
            for at in range(indptr[row], indptr[row + 1]):
                dot += total[np.uint32(ranks[at])] * values[at]
            similarities[row] = dot if sizes[i_cluster] > 0 else 0.0
        for i in range(n_touched):
            total[touched[i]] = 0.0
    return out


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
def cosines_to_own(indptr, ranks, values, labels, by_label, c_indptr, c_ranks, c_weights, dense, out):
    """Each row's cosine to the center of its label; rows are walked by label, `dense` is zero before and after."""
    held = -1
    for row in by_label:
        label = labels[row]
        if label < 0:
            continue
        if label != held:
            if held >= 0:
                for at in range(c_indptr[held], c_indptr[held + 1]):
                    dense[c_ranks[at]] = 0.0
            for at in range(c_indptr[label], c_indptr[label + 1]):
                dense[c_ranks[at]] = c_weights[at]
            held = label
        total = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            total += dense[ranks[at]] * values[at]
        out[row] = total
    if held >= 0:
        for at in range(c_indptr[held], c_indptr[held + 1]):
            dense[c_ranks[at]] = 0.0


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
