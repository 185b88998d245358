"""A fit of distributions in parts: smoothing and first centers from a sample of rows, then passes over the parts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.densities.family import Family, Smoother, as_distributions
from shoal.densities.options import usable_weights
from shoal.densities.statistics import Block, row_side
from shoal.engine import Converted, Partitions
from shoal.errors import BadInput

if TYPE_CHECKING:
    from shoal.data import Dataset
    from shoal.densities.density_kmeans import DensityKMeans

SAMPLE_ROWS, SAMPLE_PER_CLUSTER = 50_000, 100  # that smoothing and first centers are learned from


def weights_of(X: Any, sample_weight: Any, n_rows: int, n_clusters: int) -> tuple[np.ndarray, float]:
    """The weights of the rows, or of the sample of rows of parts."""
    if isinstance(X, Partitions) and sample_weight is not None:
        raise BadInput("sample_weight is not for partitions; give rows in one matrix, or no weights.")
    return usable_weights(sample_weight, n_rows, n_clusters)


def sampled(parts: Partitions, model: DensityKMeans, family: Family, random: np.random.Generator) -> np.ndarray:
    """Some rows of all parts, each as likely as any other; all of them where they are few."""
    n = min(parts.n_items, max(SAMPLE_ROWS, SAMPLE_PER_CLUSTER * model.n_clusters))
    which = np.arange(parts.n_items)
    if n < which.size:
        which = np.sort(random.choice(which.size, n, replace=False))
    rows = parts.rows(which).toarray().astype(np.float64, copy=False)
    family.check(rows)
    return rows


def blocks_in(parts: Partitions, model: DensityKMeans, family: Family) -> list[Converted]:
    """The parts as blocks for Lloyd's loop."""
    smooth = Smoother(model.smoothing_share_, model.smoothing_typical_, model.smoothing_added_)
    make = partial(block_of, family=family, direction=model.direction, smooth=smooth, origin=model.origin_)
    return parts.converted(make)


def block_of(dataset: Dataset, *, family: Family, direction: str, smooth: Smoother, origin: np.ndarray) -> Block:
    """The distributions of a part; every row has weight 1."""
    rows = dataset.X.toarray().astype(np.float64, copy=False)
    family.check(rows)
    X = np.ascontiguousarray(smooth(as_distributions(family, rows)) - origin)
    side = row_side(family, direction, X)
    if not np.isfinite(side.stats).all():
        raise BadInput("a part holds values so large or so small that their squares or quotients are not finite.")
    return Block(X, side, np.ones(len(X)))
