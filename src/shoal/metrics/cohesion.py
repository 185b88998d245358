"""How well rows fit their clusters, without a known truth: the cosine silhouette, exact and without an n x n matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from shoal.errors import BadInput
from shoal.threads import ordered_map, row_blocks


def silhouette_samples(X: Any, labels: Any, *, n_threads: int | None = None) -> np.ndarray:
    """The cosine silhouette of each row: near 1 well inside its cluster, near 0 between two, below 0 in the wrong one.

    For rows of unit length the mean cosine distance of a row to the members of a cluster is one minus its dot product
    with their mean, so that sums over clusters replace all pairs of rows: the values are those of scikit-learn's
    ``silhouette_samples(metric="cosine")``. Rows labeled -1 belong to no cluster: they are left out of all
    means, and their own value is NaN. A row alone in its cluster has the value 0.

    Parameters
    ----------
    X : matrix or Dataset
        Sparse or dense rows.
    labels : (n_rows,) cluster of each row, -1 for unassigned rows.
    n_threads : int, optional
        Threads to use; None means all cores.

    Examples
    --------
    >>> X = [[3, 1, 0], [2, 1, 0], [0, 0, 1], [0, 1, 4], [1, 1, 1]]
    >>> silhouette_samples(X, [0, 0, 1, 1, -1]).round(2).tolist()
    [0.99, 0.99, 0.97, 0.97, nan]
    """
    rows = sp.csr_matrix(getattr(X, "X", X), dtype=np.float64)
    labels = np.asarray(labels)
    if labels.shape != (rows.shape[0],):
        raise BadInput(f"labels have shape {labels.shape}; X has {rows.shape[0]} rows, and each needs one.")
    unit = normalize(rows, copy=True)
    names, at = np.unique(labels, return_inverse=True)
    place = np.cumsum(names != -1) - 1
    clusters = np.where(names[at] != -1, place[at], -1)
    n_clusters = int((names != -1).sum())
    if n_clusters < 2:
        raise BadInput(f"the labels name {n_clusters} clusters; a silhouette compares at least 2.")
    members = np.flatnonzero(clusters >= 0)
    belongs = sp.csr_matrix((np.ones(members.size), (clusters[members], members)), shape=(n_clusters, rows.shape[0]))
    sizes = np.bincount(clusters[members], minlength=n_clusters).astype(float)
    sums = sp.csc_matrix((belongs @ unit).T)

    def of_block(block: tuple[int, int]) -> np.ndarray:
        start, stop = block
        return _of_rows(unit[start:stop], clusters[start:stop], sums, sizes)

    blocks = row_blocks(rows.shape[0], max(1, 4_000_000 // n_clusters))
    return np.concatenate(list(ordered_map(of_block, blocks, n_threads)))


def silhouette(X: Any, labels: Any, *, n_threads: int | None = None) -> float:
    """The mean cosine silhouette of the assigned rows; see :func:`silhouette_samples`.

    Parameters
    ----------
    X : matrix or Dataset
        Sparse or dense rows.
    labels : array of shape (n_rows,)
        Cluster of each row, -1 for unassigned rows.
    n_threads : int, optional
        Threads to use; None means all cores.

    Examples
    --------
    >>> round(silhouette([[3, 1, 0], [2, 1, 0], [0, 0, 1], [0, 1, 4]], [0, 0, 1, 1]), 2)
    0.98
    """
    values = silhouette_samples(X, labels, n_threads=n_threads)
    return float(np.nanmean(values))


def _of_rows(unit: sp.csr_matrix, clusters: np.ndarray, sums: sp.csc_matrix, sizes: np.ndarray) -> np.ndarray:
    similarity = np.asarray((unit @ sums).todense())  # sum of cosines to the members of each cluster
    result = np.full(clusters.size, np.nan)
    inside = np.flatnonzero(clusters >= 0)
    own = clusters[inside]
    itself = np.asarray(unit[inside].multiply(unit[inside]).sum(axis=1)).ravel()  # 1, or 0 for an empty row
    own_distance = (sizes[own] - 1 - (similarity[inside, own] - itself)) / np.maximum(sizes[own] - 1, 1)
    others = 1 - similarity[inside] / sizes
    others[np.arange(inside.size), own] = np.inf
    nearest = others.min(axis=1)
    larger = np.maximum(own_distance, nearest)
    value = np.where(larger > 0, (nearest - own_distance) / np.where(larger > 0, larger, 1.0), 0.0)
    result[inside] = np.where(sizes[own] > 1, value, 0.0)
    return result
