"""K-means as a fold: accumulate what some rows say about the centers, merge, update.

Blocks of a file, batches of a stream and parts on other machines all add up to the same statistics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.errors import CannotMerge
from shoal.kmeans.prediction import PreparedCenters

FEATURES_IN_A_STREAM = 4096  # a center never grows beyond this while streaming, unless features_kept says otherwise


class Stats(NamedTuple):
    """What a pass over some rows must remember."""

    total: sp.csr_matrix  # (k, n_features) the weighted sum of the unit rows of each center
    mass: np.ndarray  # (k,) their weight
    similarity: float  # the weighted sum of cosines
    weight: float  # of all rows, assigned or not


class Means(NamedTuple):
    """A model that can go on learning: unit centers, the length of each mean, and the weight behind it."""

    centers: sp.csr_matrix  # (k, n_features)
    lengths: np.ndarray  # (k,) length of the mean of the unit rows: 1 when all agree, near 0 when they cancel
    masses: np.ndarray  # (k,)


class Batch(NamedTuple):
    """The statistics of some rows, and the rows' own results."""

    stats: Stats
    labels: np.ndarray
    similarities: np.ndarray


def accumulate(
    X: sp.csr_matrix, centers: PreparedCenters, row_weights: np.ndarray | None = None, n_threads: int | None = None
) -> Batch:
    """Assign the rows and sum them up.

    >>> X = sp.csr_matrix(np.array([[1.0, 0], [0, 2], [3, 0]]))
    >>> stats = accumulate(X, PreparedCenters(sp.csr_matrix(np.eye(2)), None)).stats
    >>> stats.mass.tolist(), stats.total.toarray().tolist(), stats.similarity
    ([2.0, 1.0], [[2.0, 0.0], [0.0, 1.0]], 3.0)
    """
    from shoal.kmeans.centers import own_similarities

    row_weights = np.ones(X.shape[0]) if row_weights is None else row_weights
    rows = centers.rows(X, n_threads)
    labels = centers.labels(rows, n_threads)
    similarities = own_similarities(rows, labels, centers.centers)
    won = np.flatnonzero(labels >= 0)
    n_clusters = centers.matrix.shape[0]
    belongs = sp.csr_matrix((row_weights[won] / rows.lengths[won], (labels[won], won)), shape=(n_clusters, X.shape[0]))
    mass = np.bincount(labels[won], row_weights[won], n_clusters)
    stats = Stats(sp.csr_matrix(belongs @ X), mass, float(row_weights @ similarities), float(row_weights.sum()))
    return Batch(stats, labels, similarities)


def merge(one: Stats, other: Stats) -> Stats:
    """The statistics of both sets of rows together."""
    if one.total.shape != other.total.shape:
        raise CannotMerge(
            f"statistics of {one.total.shape[0]} centers over {one.total.shape[1]} features cannot be merged with "
            f"{other.total.shape[0]} over {other.total.shape[1]}; accumulate both with the same centers."
        )
    return Stats(
        one.total + other.total, one.mass + other.mass, one.similarity + other.similarity, one.weight + other.weight
    )


def update(means: Means, stats: Stats, features_kept: int | None = None) -> Means:
    """Each mean moves by the share of weight that is new: a learning rate of its own for every center.

    With ``masses`` 0 this is the update step of Lloyd's algorithm.
    """
    masses = means.masses + stats.mass
    share = np.divide(1.0, masses, out=np.zeros_like(masses), where=masses > 0)
    old = sp.diags(means.masses * means.lengths * share) @ means.centers
    moved = sp.csr_matrix(old + sp.diags(share) @ stats.total)
    moved = _heaviest(moved, features_kept or FEATURES_IN_A_STREAM)
    lengths = np.sqrt(np.asarray(moved.multiply(moved).sum(axis=1)).ravel())
    directed = lengths > 1e-9
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=directed)
    stay = sp.diags((~directed).astype(float)) @ means.centers  # no rows yet, or rows that cancel: where it was
    centers = sp.csr_matrix(sp.diags(scale) @ moved + stay, dtype=np.float32)
    centers.sort_indices()
    return Means(centers, np.where(directed, lengths, means.lengths), masses)


def _heaviest(matrix: sp.csr_matrix, n_keep: int) -> sp.csr_matrix:
    """Each row with only its largest entries."""
    for row in np.flatnonzero(np.diff(matrix.indptr) > n_keep):
        entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
        sizes = np.abs(matrix.data[entries])
        matrix.data[entries][np.argsort(-sizes, kind="stable")[n_keep:]] = 0.0
    matrix.eliminate_zeros()
    return matrix
