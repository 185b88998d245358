"""Centers of unit length, and the index from feature to center through which rows are scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from shoal.kmeans.centers_kernels import (
    cosines_of_members,
    count_ranks,
    fill_index,
    group_by_label,
    splice,
    thin_centers,
)
from shoal.kmeans.exact_kernels import NO_LIST
from shoal.kmeans.rows import Ranking, UnitRows, take_rows, unit_rows

# A feature that more than one center in twelve has is scored with one dense line of k numbers: a contiguous
# multiply-and-add is about that much cheaper per center than a list entry (measured from 1/4 to 1/128).
DENSE_FROM = 1 / 12
HOT_BYTES = 64 * 2**20  # the dense lines never take more than this
LENGTH_SLACK = np.float32(1e-6)  # rounding must not make a length too short


@dataclass
class Centers:
    """k sparse unit vectors over ranks; the entries of one center are in no particular order."""

    indptr: np.ndarray  # (k + 1,) int64
    ranks: np.ndarray  # int32
    weights: np.ndarray  # float32

    def __len__(self) -> int:
        return self.indptr.size - 1

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1])

    def without_direction(self) -> np.ndarray:
        """Centers that received no rows, or rows that cancel out."""
        return np.flatnonzero(np.diff(self.indptr) == 0)

    def take(self, which: np.ndarray) -> Centers:
        """Some of the centers, in the order given."""
        sizes = np.diff(self.indptr)[which]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        at = np.repeat(self.indptr[which] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return Centers(indptr, self.ranks[at], self.weights[at])

    def followed_by(self, others: Centers) -> Centers:
        """These centers, then the others."""
        return Centers(
            np.concatenate([self.indptr, self.indptr[-1] + others.indptr[1:]]),
            np.concatenate([self.ranks, others.ranks]),
            np.concatenate([self.weights, others.weights]),
        )

    def filled_from(self, others: Centers) -> Centers:
        """Centers without a direction replaced by those of ``others``."""
        gaps = self.without_direction()
        return spliced(self, gaps, others.take(gaps)) if gaps.size else self

    def csr(self, rows: UnitRows | Ranking) -> sp.csr_matrix:
        """The centers over the columns of the user's X, sorted."""
        index_type = np.int32 if max(rows.n_features, self.nnz) < 2**31 else np.int64
        columns = rows.columns[self.ranks].astype(index_type)
        matrix = sp.csr_matrix(
            (self.weights.copy(), columns, self.indptr.astype(index_type)), shape=(len(self), rows.n_features)
        )
        matrix.sort_indices()  # in place, hence the copy
        return matrix


@dataclass
class CenterIndex:
    """From feature to the centers that have it: dense lines for common features, lists for the others."""

    hot: np.ndarray  # (n_hot, k) float32
    lengths: np.ndarray  # (k,) float32: length of each center over the features with dense lines
    ptr: np.ndarray  # (n_ranks + 1,) int64: twice the start of the list, plus 1 for a feature with a dense line
    firsts: np.ndarray  # (n_ranks,) uint16: first place in the list (at most NO_LIST - 1), 0 for a dense line
    places: np.ndarray  # uint32 (none is negative: quicker to index with), ascending within a list: place in `ids`
    weights: np.ndarray  # float32
    ids: np.ndarray  # place -> center

    @property
    def n_places(self) -> int:
        return self.ids.size

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.hot, self.lengths, self.ptr, self.firsts, self.places, self.weights


def centers_from_rows(rows: UnitRows, which: np.ndarray) -> Centers:
    """The chosen rows, as centers."""
    chosen = take_rows(rows, which)
    return Centers(chosen.indptr, chosen.ranks, chosen.values)


def centers_from_csr(matrix: sp.csr_matrix, ranking: Ranking) -> Centers:
    """Given centers over the columns of X; features without a rank are dropped after the length is taken."""
    scaled = unit_rows(matrix, ranking)
    return Centers(scaled.indptr, scaled.ranks, scaled.values)


def thinned(centers: Centers, features_kept: int) -> Centers:
    """Each center with only its heaviest features, at unit length again."""
    ranks, weights = np.empty_like(centers.ranks), np.empty_like(centers.weights)
    sizes = np.zeros(len(centers), np.int64)
    filled = thin_centers(centers.indptr, centers.ranks, centers.weights, features_kept, ranks, weights, sizes)
    return Centers(np.concatenate([[0], np.cumsum(sizes)]), ranks[:filled].copy(), weights[:filled].copy())


def own_similarities(rows: UnitRows, labels: np.ndarray, centers: Centers) -> np.ndarray:
    """Each row's cosine to the center of its label; 0 for label -1."""
    k = len(centers)
    out, dense = np.zeros(rows.n_rows), np.zeros(rows.n_ranks, np.float32)
    starts, members = np.zeros(k + 1, np.int64), np.empty(rows.n_rows, np.int64)
    group_by_label(labels, k, starts, members)
    cosines_of_members(
        rows.indptr, rows.ranks, rows.values, starts, members, np.arange(k), centers.indptr, centers.ranks,
        centers.weights, dense, out,
    )  # fmt: skip
    return out


def index_centers(centers: Centers, n_ranks: int, ids: np.ndarray | None = None) -> CenterIndex:
    """Build the index over the centers ``ids`` (all of them unless told), in that order.

    Which features have dense lines depends on the centers: a few rows as seeds have hardly any in common.
    """
    if ids is not None:
        centers = centers.take(ids)
    k = len(centers)
    ids = np.arange(k) if ids is None else ids
    counts = np.zeros(n_ranks, np.int64)
    count_ranks(centers.ranks, counts)
    dense = np.flatnonzero(counts > max(DENSE_FROM * k, 2))
    capacity = HOT_BYTES // (4 * max(k, 1))
    if dense.size > capacity:
        dense = np.sort(dense[np.argsort(-counts[dense], kind="stable")[:capacity]])
    line_of = np.full(n_ranks, -1, np.int32)
    line_of[dense] = np.arange(dense.size, dtype=np.int32)
    counts[dense] = 1  # the list of such a feature holds the number of its line
    ptr = np.concatenate([[0], np.cumsum(counts)])
    hot = np.zeros((dense.size, k), np.float32)
    listed, weights = np.empty(ptr[-1], np.uint32), np.empty(ptr[-1], np.float32)
    fill_index(centers.indptr, centers.ranks, centers.weights, line_of, ptr[:-1].copy(), hot, listed, weights)
    firsts = np.full(n_ranks, NO_LIST, np.uint16)
    used = np.flatnonzero(counts)
    firsts[used] = np.minimum(listed[ptr[used]], NO_LIST - 1)
    firsts[dense] = 0
    listed[ptr[dense]] = line_of[dense]
    ptr *= 2
    ptr[dense] += 1
    lengths = np.sqrt(np.einsum("lp,lp->p", hot, hot)) + LENGTH_SLACK
    return CenterIndex(hot, lengths, ptr, firsts, listed, weights, ids)


def spliced(old: Centers, which: np.ndarray, fresh: Centers) -> Centers:
    """The old centers with some of them replaced."""
    sizes = np.diff(old.indptr)
    sizes[which] = np.diff(fresh.indptr)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    sources = np.full(len(old), -1, np.int64)
    sources[which] = np.arange(which.size)
    ranks, weights = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    splice(
        old.indptr, old.ranks, old.weights, sources, fresh.indptr, fresh.ranks, fresh.weights, indptr, ranks, weights
    )
    return Centers(indptr, ranks, weights)
