# mypy: ignore-errors
"""The assignment step: the nearest centre of every row, in single precision where that is safe, in double where not."""

import numpy as np

from shoal.jit import kernel, sum_kernel

LANES = 64  # rows done together, side by side, so that the compiler can use vector registers


@sum_kernel
def screen(rows, centres, constants, best, second, nearest):
    """For a block of rows (n_stats, LANES): the two smallest values of constant - <row, centre>, and the centre."""
    n_centres, n_stats = centres.shape
    cost = np.empty(LANES, rows.dtype)
    for lane in range(LANES):
        best[lane] = np.inf
        second[lane] = np.inf
        nearest[lane] = 0
    for centre in range(n_centres):
        constant = constants[centre]
        for lane in range(LANES):
            cost[lane] = constant
        for stat in range(n_stats):
            weight = centres[centre, stat]
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
            nearest[lane] = np.int32(centre) if closer else nearest[lane]


@kernel
def nearest_in_double(row, centres, constants):
    """The first centre with the smallest constant - <row, centre>."""
    best = np.inf
    nearest = 0
    for centre in range(centres.shape[0]):
        value = constants[centre]
        for stat in range(row.shape[0]):
            value -= row[stat] * centres[centre, stat]
        if value < best:
            best = value
            nearest = centre
    return nearest


@kernel
def assign(rows, centres, constants, centres32, constants32, widest, labels, costs):
    """Write the nearest centre of each row and its cost.

    Rounding in single precision moves a value by at most ``error``; a row whose two best centres lie closer than twice
    that is looked at again in double precision, so the labels are those of double precision, always.
    """
    n_rows, n_stats = rows.shape
    block = np.empty((n_stats, LANES), np.float32)
    best = np.empty(LANES, np.float32)
    second = np.empty(LANES, np.float32)
    nearest = np.empty(LANES, np.int32)
    largest_constant = 0.0
    for centre in range(constants.shape[0]):
        largest_constant = max(largest_constant, abs(constants[centre]))
    for start in range(0, n_rows, LANES):
        n_here = min(LANES, n_rows - start)
        for stat in range(n_stats):
            for lane in range(LANES):
                block[stat, lane] = rows[start + min(lane, n_here - 1), stat]
        screen(block, centres32, constants32, best, second, nearest)
        for lane in range(n_here):
            row = start + lane
            size = largest_constant
            for stat in range(n_stats):
                size += abs(rows[row, stat]) * widest[stat]
            error = (n_stats + 3) * 6e-8 * size
            label = np.int64(nearest[lane])
            if not (second[lane] - best[lane] > 2 * error):
                label = nearest_in_double(rows[row], centres, constants)
            cost = constants[label]
            for stat in range(n_stats):
                cost -= rows[row, stat] * centres[label, stat]
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
