"""A tree over the clusters: again and again the two whose union loses the least log marginal become one.

The clusters' statistics add, so the exact change is known: log p(A and B as one) - log p(A) - log p(B).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.errors import BadInput
from shoal.families.statistics import add, pick, stack

ALL_PAIRS_UP_TO = 150
NEIGHBORS = 8


@storable
@dataclass
class Hierarchy:
    """Merges in order. Leaves are 0 .. k - 1; merge m makes node k + m.

    ``merges[m]`` are the two nodes that became one, ``losses[m]`` the log marginal that was lost by it (negative where
    the union is likelier than the parts) and ``sizes[m]`` how many rows it has.
    """

    merges: np.ndarray  # (k - 1, 2) int64
    losses: np.ndarray  # (k - 1,)
    sizes: np.ndarray  # (k - 1,) int64

    def cut(self, n_groups: int) -> np.ndarray:
        """(k,) the group of each leaf when this many are left, numbered by their first leaf.

        >>> tree = Hierarchy(np.array([[0, 2], [1, 3]]), np.array([1.0, 5.0]), np.array([2, 3]))
        >>> tree.cut(2).tolist()
        [0, 1, 0]
        """
        k = len(self.merges) + 1
        if not 1 <= n_groups <= k:
            raise BadInput(f"cut at {n_groups} groups is impossible: the tree has {k} leaves; ask for 1 to {k}.")
        node = np.arange(2 * k - 1)
        for merge in range(k - n_groups):
            node[self.merges[merge]] = k + merge
        for at in range(2 * k - 2, -1, -1):  # parents have larger numbers, so they are settled first
            if node[at] != at:
                node[at] = node[node[at]]
        _, first, group = np.unique(node[:k], return_index=True, return_inverse=True)
        return np.asarray(np.argsort(np.argsort(first))[group])

    def linkage(self) -> np.ndarray:
        """(k - 1, 4) as scipy's dendrogram wants it; heights are cumulated losses, so that they never fall."""
        height = np.maximum.accumulate(np.maximum(self.losses, 0.0))
        return linkage_of(self.merges, height)


def linkage_of(merges: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Merges and their heights as scipy takes them: with the number of leaves below each."""
    k = len(merges) + 1
    leaves = np.ones(2 * k - 1)
    for merge, pair in enumerate(merges):
        leaves[k + merge] = leaves[pair].sum()
    return np.column_stack([merges, height, leaves[k:]])


class Agglomeration:
    """The clusters that are left, and a queue of the pairs that may become one."""

    def __init__(self, family: Any, stats: Any) -> None:
        self.family, self.k = family, len(stats.size)
        self.nodes = [type(stats)(*(part[[row]] for part in stats)) for row in range(self.k)]
        self.alone = list(family.log_marginal(stats))
        self.alive = np.ones(self.k, bool)
        self.queue: list[tuple[float, int, int]] = []

    def consider(self, one: int, others: np.ndarray) -> None:
        """Put the pairs of ``one`` with others in the queue, with what they would lose."""
        if not len(others):
            return
        stacked = stack(*(self.nodes[other] for other in others))
        together = self.family.log_marginal(add(pick(self.nodes[one], np.zeros(len(others), np.int64)), stacked))
        for other, log_marginal in zip(others, together, strict=True):
            loss = self.alone[one] + self.alone[other] - log_marginal
            heapq.heappush(self.queue, (float(loss), min(one, int(other)), max(one, int(other))))

    def best_pair(self) -> tuple[float, int, int]:
        """The pair of clusters still there that loses least."""
        while self.queue:
            loss, one, two = heapq.heappop(self.queue)
            if self.alive[one] and self.alive[two]:
                return loss, one, two
        rest = np.flatnonzero(self.alive)  # no near pair is left between the remaining trees: look at all of them
        for at, one in enumerate(rest[:-1]):
            self.consider(int(one), rest[at + 1 :])
        return self.best_pair()

    def join(self, one: int, two: int) -> int:
        """Make two clusters one; the number of the new node."""
        union = add(self.nodes[one], self.nodes[two])
        self.nodes.append(union)
        self.alone.append(float(self.family.log_marginal(union)[0]))
        self.alive[[one, two]] = False
        self.alive = np.append(self.alive, True)
        self.nodes[one] = self.nodes[two] = None
        return len(self.nodes) - 1


def build(family: Any, stats: Any) -> Hierarchy:
    """Agglomerate all clusters. With many clusters only pairs with near statistics are considered."""
    k = len(stats.size)
    state, near = Agglomeration(family, stats), Neighbors(stats, k)
    for one in range(k):
        state.consider(one, near.later(one))
    merges, losses, sizes = [], [], []
    for _ in range(k - 1):
        loss, one, two = state.best_pair()
        new = state.join(one, two)
        merges.append((one, two))
        losses.append(loss)
        sizes.append(int(state.nodes[new].size[0]))
        state.consider(new, near.after(one, two, new, state.alive))
    shape = np.array(merges, dtype=np.int64).reshape(-1, 2)
    return Hierarchy(shape, np.array(losses), np.array(sizes, dtype=np.int64))


class Neighbors:
    """Which clusters are worth comparing: all of a few, the most alike of many; a union inherits its parts' company."""

    def __init__(self, stats: Any, k: int) -> None:
        self.all_pairs = k <= ALL_PAIRS_UP_TO
        self.k = k
        self.company: list[set[int]] = [set() for _ in range(k)]
        if not self.all_pairs:
            for row, others in enumerate(nearest(stats)):
                for other in others:
                    self.company[row].add(int(other))
                    self.company[int(other)].add(row)

    def later(self, one: int) -> np.ndarray:
        """Who to compare a leaf with, of those with larger numbers."""
        if self.all_pairs:
            return np.arange(one + 1, self.k)
        return np.array(sorted(other for other in self.company[one] if other > one), dtype=np.int64)

    def after(self, one: int, two: int, new: int, alive: np.ndarray) -> np.ndarray:
        """Who to compare the union ``new`` with."""
        if self.all_pairs:
            return np.flatnonzero(alive[:new])
        met = (self.company[one] | self.company[two]) - {one, two}
        self.company.append({other for other in met if alive[other]})
        for other in self.company[new]:
            self.company[other].add(new)
        return np.array(sorted(self.company[new]), dtype=np.int64)


def nearest(stats: Any) -> list[np.ndarray]:
    """For each cluster, those with the most similar statistics by the cosine of weighted features."""
    k = len(stats.size)
    if sp.issparse(stats.sums):
        vectors = stats.sums.copy().astype(np.float64)
        spread = np.bincount(vectors.indices, minlength=vectors.shape[1])
        vectors.data = np.log1p(vectors.data) * np.log(k / spread[vectors.indices])
        norms = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
        vectors = sp.csr_matrix(sp.diags(1 / np.maximum(norms, 1e-12)) @ vectors)
        flipped = vectors.T.tocsr()
    else:
        means = stats.sums / np.maximum(stats.size, 1)[:, None]
        apart = (means**2).sum(axis=1)[:, None] - 2 * means @ means.T + (means**2).sum(axis=1)
        np.fill_diagonal(apart, np.inf)
        return list(np.argsort(apart, axis=1, kind="stable")[:, :NEIGHBORS])
    out = []
    for first in range(0, k, 500):
        alike = (vectors[first : first + 500] @ flipped).tocsr()
        for row in range(alike.shape[0]):
            others = alike.indices[alike.indptr[row] : alike.indptr[row + 1]]
            value = alike.data[alike.indptr[row] : alike.indptr[row + 1]]
            kept = others != first + row
            out.append(others[kept][np.argsort(-value[kept], kind="stable")[:NEIGHBORS]])
    return out
