"""Mending a state before sampling: merge clusters that say the same, split those that hold two things.

Single rows move too seldom to join two halves of a topic or to part two topics in one cluster. Both moves below are
taken only if the exact log joint gains by them: they look for a better place to start sampling from, and are no part
of the chain whose states are kept.
"""

from __future__ import annotations

import numpy as np

from shoal.families.chain import CountChain, falling_table
from shoal.families.moves_kernels import merge_gain, merge_gains, move_all, split_cluster
from shoal.families.scores_kernels import BERNOULLI

ALL_PAIRS_UP_TO = 400  # clusters
PAIRS_PER_CLUSTER = 8


def falling_of(chain: CountChain) -> np.ndarray:
    return falling_table(chain.prior) if chain.prior.kind == BERNOULLI else np.zeros(1)


def likely_pairs(chain: CountChain, clusters: np.ndarray) -> np.ndarray:
    """Pairs of clusters worth a look: all, or for each those whose weighted features are most alike."""
    if len(clusters) <= ALL_PAIRS_UP_TO:
        left, right = np.triu_indices(len(clusters), 1)
        return np.column_stack([clusters[left], clusters[right]]).astype(np.int64)
    sums = chain.sums()[clusters]
    # Counts beyond the prior's, on a log scale and weighed by rarity, as unit vectors: near in angle, near in topic.
    sums.data = np.log1p(sums.data / chain.prior.shape[sums.indices])
    spread = np.bincount(sums.indices, minlength=sums.shape[1])
    sums.data *= np.log(len(clusters) / spread[sums.indices])
    norms = np.sqrt(np.asarray(sums.multiply(sums).sum(axis=1)).ravel())
    sums.data /= np.repeat(np.maximum(norms, 1e-12), np.diff(sums.indptr))
    for row in range(len(clusters)):  # the strongest features are enough to find company
        values = sums.data[sums.indptr[row] : sums.indptr[row + 1]]
        if len(values) > 100:
            values[values < np.partition(values, -100)[-100]] = 0.0
    sums.eliminate_zeros()
    pairs = []
    transposed = sums.T.tocsr()
    for first in range(0, len(clusters), 1000):
        alike = (sums[first : first + 1000] @ transposed).tocsr()
        for row in range(alike.shape[0]):
            near = alike.indices[alike.indptr[row] : alike.indptr[row + 1]]
            value = alike.data[alike.indptr[row] : alike.indptr[row + 1]]
            value, near = value[near != first + row], near[near != first + row]
            best = near[np.argsort(-value, kind="stable")[:PAIRS_PER_CLUSTER]]
            pairs += [(min(first + row, other), max(first + row, other)) for other in best]
    chosen = np.unique(np.array(pairs, dtype=np.int64).reshape(-1, 2), axis=0)
    return np.column_stack([clusters[chosen[:, 0]], clusters[chosen[:, 1]]]).astype(np.int64)


def move_rows(chain: CountChain, rows: np.ndarray, target: int) -> None:
    """Move rows to one cluster, with rebuilding as needed."""
    while not move_all(chain.items, chain.prior, chain.clusters, chain.postings, rows, target, chain.work.marked):
        chain.rebuild()


def merge_clusters(chain: CountChain, *, least_gain: float = 0.0) -> int:
    """Merge pairs, best first, while the log joint gains; how many merges were done."""
    falling = falling_of(chain)
    pairs = likely_pairs(chain, np.flatnonzero(chain.clusters.size))
    gains = np.zeros(len(pairs))
    merge_gains(chain.prior, chain.clusters, pairs, falling, gains)
    n_merges = 0
    for at in np.argsort(-gains, kind="stable"):
        if gains[at] <= least_gain:
            break
        one, two = (int(cluster) for cluster in pairs[at])
        size = chain.clusters.size
        if min(size[one], size[two]) == 0:
            continue  # one of them has been merged away
        if merge_gain(chain.prior, chain.clusters, one, two, falling) <= least_gain:
            continue
        if size[one] < size[two]:
            one, two = two, one
        move_rows(chain, np.flatnonzero(chain.labels == two), one)
        n_merges += 1
    return n_merges


def split_clusters(chain: CountChain, *, n_passes: int = 4) -> int:
    """Try to split each cluster once; how many splits were worth it."""
    falling = falling_of(chain)
    n_splits = 0
    for cluster in np.flatnonzero(chain.clusters.size > 2):
        if chain.clusters.empty[chain.n_clusters] < 2:
            break
        rows = np.flatnonzero(chain.labels == cluster)
        left, right = (int(chain.clusters.empty[at]) for at in range(2))
        done = split_cluster(
            chain.items, chain.prior, chain.clusters, chain.postings, rows, left, right, n_passes,
            chain.random, chain.work.marked,
        )  # fmt: skip
        size = chain.clusters.size
        worth = done and size[left] > 0 and size[right] > 0
        worth = worth and merge_gain(chain.prior, chain.clusters, left, right, falling) < 0
        if not worth:
            move_rows(chain, rows, int(cluster))
        if not done:
            chain.rebuild()
        n_splits += worth
    return n_splits
