# mypy: ignore-errors
"""The assignment step: the nearest center of every row, in single precision where that is safe, in double where not."""

import numpy as np

from shoal.jit import kernel, sum_kernel

LANES = 64  # rows done together, side by side, so that the compiler can use vector registers


@sum_kernel
def screen(rows, centers, constants, best, second, nearest):
    """For a block of rows (n_stats, LANES): the two smallest values of constant - <row, center>, and the center."""
    n_centers, n_stats = centers.shape
    cost = np.empty(LANES, rows.dtype)
    for lane in range(LANES):
        best[lane] = np.inf
        second[lane] = np.inf
        nearest[lane] = 0
    for center in range(n_centers):
        constant = constants[center]
        for lane in range(LANES):
            cost[lane] = constant
        for stat in range(n_stats):
            weight = centers[center, stat]
            line = rows[stat]
            for lane in range(LANES):
                cost[lane] -= weight * line[lane]
        for lane in range(LANES):
            value = cost[lane]
            before = best[lane]
            closer = value < before
            other = before if closer else value
            second[lane] = min(second[lane], other)
            best[lane] = value if closer else before
            nearest[lane] = np.int32(center) if closer else nearest[lane]


@kernel
def nearest_in_double(row, centers, constants):
    """The first center with the smallest constant - <row, center>."""
    best = np.inf
    nearest = 0
    for center in range(centers.shape[0]):
        value = constants[center]
        for stat in range(row.shape[0]):
            value -= row[stat] * centers[center, stat]
        if value < best:
            best = value
            nearest = center
    return nearest


@kernel
def assign(rows, centers, constants, centers32, constants32, widest, labels, costs):
    """Write the nearest center of each row and its cost.

    Rounding in single precision moves a value by at most ``error``; a row whose two best centers lie closer than twice
    that is looked at again in double precision, so the labels are those of double precision, always.
    """
    n_rows, n_stats = rows.shape
    block = np.empty((n_stats, LANES), np.float32)
    best = np.empty(LANES, np.float32)
    second = np.empty(LANES, np.float32)
    nearest = np.empty(LANES, np.int32)
    largest_constant = 0.0
    for center in range(constants.shape[0]):
        largest_constant = max(largest_constant, abs(constants[center]))
    for start in range(0, n_rows, LANES):
        n_here = min(LANES, n_rows - start)
        for stat in range(n_stats):
            for lane in range(LANES):
                block[stat, lane] = rows[start + min(lane, n_here - 1), stat]
        screen(block, centers32, constants32, best, second, nearest)
        for lane in range(n_here):
            row = start + lane
            size = largest_constant
            for stat in range(n_stats):
                size += abs(rows[row, stat]) * widest[stat]
            error = (n_stats + 3) * 6e-8 * size
            label = np.int64(nearest[lane])
            if not (second[lane] - best[lane] > 2 * error):
                label = nearest_in_double(rows[row], centers, constants)
            cost = constants[label]
            for stat in range(n_stats):
                cost -= rows[row, stat] * centers[label, stat]
            labels[row] = label
            costs[row] = cost


@kernel
def add_up(rows, weights, labels, mass, total):
    """Add each row, times its weight, to its cluster."""
    for row in range(rows.shape[0]):
        label = labels[row]
        weight = weights[row]
        mass[label] += weight
        for stat in range(rows.shape[1]):
            total[label, stat] += weight * rows[row, stat]
