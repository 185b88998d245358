"""Models changed by hand: clusters merged and split, and two models made one."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.families import statistics
from shoal.families.statistics import Delta, Model


def united(model: Model, other: Model, n_rows: int, n_other: int) -> Model:
    """The model with another's clusters in it, under the prior of both."""
    family = model.family.averaged(other.family, n_other / max(n_rows + n_other, 1))
    theirs = family.converted(other.family, other.stats)
    ours = model._replace(family=family, stats=family.converted(model.family, model.stats))
    return statistics.update(ours, Delta(statistics.empty_like(ours.stats, ours.k), theirs))


def with_merged(model: Model, rows: list[int], target: int) -> Model:
    """The model with the clusters ``rows`` in ``target``."""
    groups = np.arange(model.k)
    groups[rows] = target
    _, groups = np.unique(groups, return_inverse=True)
    return model._replace(stats=statistics.sum_groups(model.stats, groups, int(groups.max()) + 1))


def with_split(model: Model, cluster: int, rows: Any, labels: np.ndarray) -> Model:
    """The model with the smaller of two parts of a cluster's rows in a cluster of its own, at the end."""
    smaller = np.bincount(labels, minlength=2).argmin()
    taken = model.family.statistics(rows, np.where(labels == smaller, 0, -1), 1)
    theirs = statistics.sum_groups(taken, np.full(1, cluster), model.k)
    return model._replace(stats=statistics.stack(statistics.add(model.stats, theirs, -1), taken))
