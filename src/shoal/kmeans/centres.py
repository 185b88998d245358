"""Centres of unit length, and the index from feature to centre through which rows are scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from shoal.kmeans.centres_kernels import count_ranks, fill_index, group_by_label, mean_directions
from shoal.kmeans.rows import UnitRows, take_rows, unit_rows
from shoal.threads import ordered_map

# A feature that more than one centre in eight has is scored with one dense line of k numbers: a contiguous
# multiply-and-add is about that much cheaper per centre than a list entry.
DENSE_FROM = 1 / 8
HOT_BYTES = 64 * 2**20  # the dense lines never take more than this
UPDATE_BLOCKS = 16  # each block clears d numbers once, so there are few of them; fixed, so that threads change nothing


@dataclass
class Centres:
    """k sparse unit vectors over ranks; the entries of one centre are in no particular order."""

    indptr: np.ndarray  # (k + 1,) int64
    ranks: np.ndarray  # int32
    weights: np.ndarray  # float32

    def __len__(self) -> int:
        return self.indptr.size - 1

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1])

    def without_direction(self) -> np.ndarray:
        """Centres that received no rows, or rows that cancel out."""
        return np.flatnonzero(np.diff(self.indptr) == 0)

    def csr(self, rows: UnitRows) -> sp.csr_matrix:
        """The centres over the columns of the user's X, sorted."""
        index_type = np.int32 if max(rows.n_features, self.nnz) < 2**31 else np.int64
        columns = rows.columns[self.ranks].astype(index_type)
        matrix = sp.csr_matrix(
            (self.weights, columns, self.indptr.astype(index_type)), shape=(len(self), rows.n_features), copy=False
        )
        matrix.sort_indices()
        return matrix


@dataclass
class CentreIndex:
    """From feature to the centres that have it: dense lines for common features, lists for the others."""

    hot: np.ndarray  # (n_hot, k) float32
    ptr: np.ndarray  # (n_ranks + 1,) int64, into the lists
    centres: np.ndarray  # int32, ascending within a list
    weights: np.ndarray  # float32
    n_clusters: int


def centres_from_rows(rows: UnitRows, which: np.ndarray) -> Centres:
    """The chosen rows, as centres."""
    chosen = take_rows(rows, which)
    return Centres(chosen.indptr, chosen.ranks, chosen.values)


def centres_from_csr(matrix: sp.csr_matrix, rows: UnitRows) -> Centres:
    """Given centres over the columns of X; features that no row has are dropped after the length is taken."""
    scaled = unit_rows(matrix, rows.columns)
    return Centres(scaled.indptr, scaled.ranks, scaled.values)


def index_centres(centres: Centres, n_ranks: int) -> CentreIndex:
    """Build the index; ``n_hot`` adapts to the centres (a few rows as seeds have no common features)."""
    k = len(centres)
    counts = np.zeros(n_ranks, np.int64)
    count_ranks(centres.ranks, counts)
    # Ranks are ordered by their frequency in the rows, which is nearly that in the centres: a prefix is dense.
    often = counts > max(DENSE_FROM * k, 1)
    n_hot = min(int(often.sum()), HOT_BYTES // (4 * max(k, 1)))
    counts[:n_hot] = 0
    ptr = np.concatenate([[0], np.cumsum(counts)])
    hot = np.zeros((n_hot, k), np.float32)
    listed, weights = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32)
    fill_index(centres.indptr, centres.ranks, centres.weights, n_hot, ptr[:-1].copy(), hot, listed, weights)
    return CentreIndex(hot, ptr, listed, weights, k)


@dataclass
class Update:
    """What one update gives: the new centres, the mass of each, and each row's cosine to its own new centre."""

    centres: Centres
    masses: np.ndarray  # (k,)
    similarities: np.ndarray  # (n_rows,); 0 for rows with label -1


def update_centres(
    rows: UnitRows,
    row_weights: np.ndarray,
    labels: np.ndarray,
    n_clusters: int,
    features_kept: int | None = None,
    n_threads: int | None = None,
) -> Update:
    """The unit mean of every cluster. Each cluster is summed by one thread in row order, so threads change nothing."""
    starts, members = np.zeros(n_clusters + 1, np.int64), np.empty(rows.n_rows, np.int64)
    group_by_label(labels, n_clusters, starts, members)
    masses, similarities = np.zeros(n_clusters), np.zeros(rows.n_rows)
    row_sizes = np.diff(rows.indptr)
    step = max(1, -(-n_clusters // UPDATE_BLOCKS))

    def block_means(first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        last = min(first + step, n_clusters)
        room = int(row_sizes[members[starts[first] : starts[last]]].sum())
        ranks, weights = np.empty(room, np.int32), np.empty(room, np.float32)
        sizes = np.zeros(last - first, np.int64)
        filled = mean_directions(
            rows.indptr, rows.ranks, rows.values, row_weights, starts, members, first, last, rows.n_ranks,
            features_kept or 0, ranks, weights, sizes, masses, similarities,
        )  # fmt: skip
        return sizes, ranks[:filled].copy(), weights[:filled].copy()

    parts = list(ordered_map(block_means, range(0, n_clusters, step), n_threads))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([sizes for sizes, _, _ in parts]))])
    centres = Centres(
        indptr, np.concatenate([ranks for _, ranks, _ in parts]), np.concatenate([w for _, _, w in parts])
    )
    return Update(centres, masses, similarities)
