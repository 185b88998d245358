"""A map of clusters: those that are alike lie near each other, and none lies on another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

N_AXES = 24  # directions that similarity is summed up in


def feature_matrix(tops: Sequence[tuple[np.ndarray, np.ndarray]], n_features: int) -> sp.csr_matrix:
    """Clusters by their describing features, rows of unit length; features that most clusters share count less.

    >>> rows = feature_matrix([(np.array([0]), np.array([2.0])), (np.array([1]), np.array([1.0]))], 2)
    >>> rows.toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    indptr = np.cumsum([0, *(len(features) for features, _ in tops)])
    columns = np.concatenate([features for features, _ in tops]) if tops else np.zeros(0, dtype=np.int64)
    values = np.concatenate([values for _, values in tops]) if tops else np.zeros(0)
    rows = sp.csr_matrix((np.abs(values).astype(np.float64), columns, indptr), shape=(len(tops), n_features))
    in_clusters = np.bincount(rows.indices, minlength=n_features)
    rows.data *= np.log1p(len(tops) / np.maximum(in_clusters, 1))[rows.indices]
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(rows.indptr))
    return rows


def cluster_map(vectors: sp.csr_matrix, sizes: np.ndarray) -> np.ndarray:
    """A place in the unit square for each cluster, (n, 2).

    The square is halved again and again, alternately across and down; the clusters in it are divided along the
    direction in which they differ most, and each half gets area in proportion to the sizes in it.

    Parameters
    ----------
    vectors : CSR (n, n_features)
        Rows of unit length, as :func:`feature_matrix` gives them.
    sizes : (n,)
        How much area each cluster needs; roots are taken, so that large clusters do not crowd out small ones.

    Examples
    --------
    Two clusters of fish, two of birds: each pair shares a half of the map.

    >>> rows = sp.csr_matrix(np.array([[1.0, .2, 0, 0], [1, .1, 0, 0], [0, 0, 1, .2], [0, 0, 1, .1]]))
    >>> places = cluster_map(rows, np.ones(4))
    >>> sides = places[:, 0] > 0.5
    >>> bool(sides[0] == sides[1] and sides[2] == sides[3] and sides[0] != sides[2])
    True
    """
    n = vectors.shape[0]
    places = np.full((n, 2), 0.5)
    if n < 2:
        return places
    axes = _axes(vectors)
    area = np.sqrt(np.maximum(sizes, 1.0))
    halves = [(np.arange(n), 0.0, 0.0, 1.0, 1.0)]
    while halves:
        members, x, y, width, height = halves.pop()
        if members.size == 1:
            places[members[0]] = (x + width / 2, y + height / 2)
            continue
        ordered = members[np.argsort(_spread(axes[members]), kind="stable")]
        shares = np.cumsum(area[ordered]) / area[ordered].sum()
        cut = int(np.clip(np.searchsorted(shares, 0.5) + 1, 1, ordered.size - 1))
        share = shares[cut - 1]
        if width >= height:
            halves += [(ordered[:cut], x, y, width * share, height)]
            halves += [(ordered[cut:], x + width * share, y, width * (1 - share), height)]
        else:
            halves += [(ordered[:cut], x, y, width, height * share)]
            halves += [(ordered[cut:], x, y + height * share, width, height * (1 - share))]
    return places


def _axes(vectors: sp.csr_matrix) -> np.ndarray:
    """The main directions of the clusters, dense (n, few); the same for the same input."""
    n_axes = min(N_AXES, min(vectors.shape) - 1)
    if n_axes < 1 or vectors.shape[0] <= 3:
        return np.asarray(vectors.toarray() if vectors.shape[1] < 5000 else vectors[:, :5000].toarray())
    start = np.ones(min(vectors.shape))
    left, strengths, _ = sp.linalg.svds(vectors, k=n_axes, v0=start)
    return np.asarray(left * strengths)


def _spread(rows: np.ndarray) -> np.ndarray:
    """Where each row lies along the direction in which they differ most (a few steps of the power method)."""
    centered = rows - rows.mean(axis=0)
    direction = centered[np.argmax((centered**2).sum(axis=1))]
    for _ in range(8):
        direction = centered.T @ (centered @ direction)
        length = np.linalg.norm(direction)
        if length < 1e-12:
            return np.zeros(len(rows))
        direction = direction / length
    return np.asarray(centered @ direction)
