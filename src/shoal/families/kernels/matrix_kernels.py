"""Small dense matrices: the Cholesky factor of a posterior scale matrix, and its steps of rank one."""

# mypy: ignore-errors
from __future__ import annotations

import math

from shoal.jit import kernel

LEAST_PIVOT = 1e-12


@kernel
def add_outer(x, sign, total, outer):
    """total += sign x, outer += sign x x' (lower triangle)."""
    for i in range(len(x)):
        total[i] += sign * x[i]
        for j in range(i + 1):
            outer[i, j] += sign * x[i] * x[j]


@kernel
def cholesky(lower):
    """The lower triangle of a matrix becomes its Cholesky factor; a pivot that rounding made too small is raised."""
    for i in range(len(lower)):
        for j in range(i + 1):
            value = lower[i, j]
            for m in range(j):
                value -= lower[i, m] * lower[j, m]
            if i == j:
                lower[i, i] = math.sqrt(max(value, LEAST_PIVOT))
            else:
                lower[i, j] = value / lower[j, j]


@kernel
def update_cholesky(lower, x, sign):
    """L L' + sign x x' by Givens rotations; `x` is used up. False, with L of no use, where that is not positive."""
    d = len(x)
    for m in range(d):
        pivot = lower[m, m]
        square = pivot * pivot + sign * x[m] * x[m]
        if square <= LEAST_PIVOT:
            return False
        r = math.sqrt(square)
        c, s = r / pivot, x[m] / pivot
        lower[m, m] = r
        for i in range(m + 1, d):
            lower[i, m] = (lower[i, m] + sign * s * x[i]) / c
            x[i] = c * x[i] - s * lower[i, m]
    return True


@kernel
def solve_squared(lower, x, mean):
    """|L^-1 (x - mean)|^2, row by row of the triangle."""
    d = len(x)
    total = 0.0
    solved = x - mean
    for i in range(d):
        value = solved[i]
        for j in range(i):
            value -= lower[i, j] * solved[j]
        value /= lower[i, i]
        solved[i] = value
        total += value * value
    return total
