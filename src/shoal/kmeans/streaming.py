"""What learning from batches needs: centers that grow with the vocabulary, and ranks over both."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from shoal.kmeans.rows import Ranking, by_frequency

FEATURES_IN_A_STREAM = 4096  # a center never grows beyond this while streaming, unless features_kept says otherwise


def grown(matrix: sp.csr_matrix, n_features: int) -> sp.csr_matrix:
    """The same rows over more columns."""
    if matrix.shape[1] == n_features:
        return matrix
    return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], n_features))


def ranking_of(X: sp.csr_matrix, centers: sp.csr_matrix) -> Ranking:
    """The features of some rows, most common first, then those that only the centers have."""
    mine, theirs = by_frequency(X), by_frequency(centers)
    return Ranking(np.concatenate([mine, theirs[~np.isin(theirs, mine)]]), X.shape[1])
