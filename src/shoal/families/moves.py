"""Mending a state before sampling: merge clusters that say the same, split those that hold two things.

Single rows move too seldom to join two halves of a topic or to part two topics in one cluster. Both moves below are
taken only if the exact log joint gains by them: they look for a better place to start sampling from, and are no part
of the chain whose states are kept.
"""

from __future__ import annotations

import numpy as np

from shoal.families.chain import CountChain, falling_table
from shoal.families.counts_kernels import Postings
from shoal.families.moves_kernels import merge_gain, merge_gains, move_all, split_cluster
from shoal.families.scores_kernels import BERNOULLI, score_alone

ALL_PAIRS_UP_TO = 10_000_000  # features to look up in merging every pair: beyond, only likely pairs are looked at
PAIRS_PER_CLUSTER = 4
ALL_SPLITS_UP_TO = 20_000  # rows: beyond, only the clusters that look worst are tried
FAILURES_IN_TRADING = 20  # at least; and one for every 20 clusters


def falling_of(chain: CountChain) -> np.ndarray:
    return falling_table(chain.prior) if chain.prior.kind == BERNOULLI else np.zeros(1)


def likely_pairs(chain: CountChain, clusters: np.ndarray) -> np.ndarray:
    """Pairs of clusters worth a look: all, or for each those whose weighted features are most alike."""
    n_pairs = len(clusters) * (len(clusters) - 1) // 2
    if n_pairs * chain.clusters.used[clusters].mean() <= ALL_PAIRS_UP_TO:
        left, right = np.triu_indices(len(clusters), 1)
        return np.column_stack([clusters[left], clusters[right]]).astype(np.int64)
    near = chain.near_pairs()
    if near is not None:
        return near
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


def unposted(chain: CountChain) -> Postings:
    """Postings that note no changes: nothing reads them while clusters are mended, and afterwards they are rebuilt."""
    return chain.postings._replace(indexed=chain.nothing_indexed)


def move_rows(chain: CountChain, rows: np.ndarray, target: int) -> None:
    """Move rows to one cluster, with rebuilding as needed."""
    while not move_all(chain.items, chain.prior, chain.clusters, unposted(chain), rows, target, chain.work.marked):
        chain.rebuild()


def rank_pairs(chain: CountChain, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(pairs of clusters, what the log joint gains if they merge), the best first."""
    gains = np.zeros(len(pairs))
    merge_gains(chain.prior, chain.clusters, pairs, falling_of(chain), gains)
    order = np.argsort(-gains, kind="stable")
    return pairs[order], gains[order]


def merge_clusters(chain: CountChain, pairs: np.ndarray, gains: np.ndarray) -> list[int]:
    """Merge pairs, best first, while the log joint gains; the clusters that took part, two for each merge."""
    falling = falling_of(chain)
    merged: list[int] = []
    for one, two in pairs[gains > 0].tolist():
        size = chain.clusters.size
        if min(size[one], size[two]) == 0:
            continue  # one of them has been merged away
        if merge_gain(chain.prior, chain.clusters, one, two, falling) <= 0:
            continue
        if size[one] < size[two]:
            one, two = two, one
        move_rows(chain, np.flatnonzero(chain.labels == two), one)
        merged += [one, two]
    return merged


def suspects(chain: CountChain) -> np.ndarray:
    """Live clusters of two rows or more, those first that explain their rows least well for their size."""
    size = chain.clusters.size
    live = np.flatnonzero(size > 1)
    together = chain.log_marginals()
    alone = np.zeros(len(chain.labels))
    score_alone(chain.items, chain.prior, alone)
    gain = (together - np.bincount(chain.labels, alone, minlength=len(size))) / np.maximum(chain.clusters.total, 1)
    if len(live) < 3:
        return live
    # Large clusters share the cost of learning their words among more rows: that part of the gain says nothing.
    log_size = np.log(size[live])
    slope = np.cov(gain[live], log_size)[0, 1] / max(float(np.var(log_size)), 1e-12)
    return live[np.argsort(gain[live] - slope * log_size, kind="stable")]


def try_split(chain: CountChain, rows: np.ndarray, n_passes: int = 2) -> float:
    """Move these rows, all of one cluster, into two empty ones; what the log joint gains by it (-inf: no split)."""
    left, right = (int(chain.clusters.empty[at]) for at in range(2))
    done = split_cluster(
        chain.items, chain.prior, chain.clusters, unposted(chain), rows, left, right, n_passes,
        chain.random, chain.work.marked,
    )  # fmt: skip
    size = chain.clusters.size
    if not done or size[left] == 0 or size[right] == 0:
        return -np.inf
    return -float(merge_gain(chain.prior, chain.clusters, left, right, falling_of(chain)))


def split_clusters(chain: CountChain, clusters: np.ndarray) -> tuple[int, int]:
    """Try to split each of these clusters once, while there is room; (splits that were worth it, clusters tried)."""
    n_splits = 0
    for n_tried, cluster in enumerate(clusters.tolist()):
        if chain.clusters.empty[chain.n_clusters] < 2:
            return n_splits, n_tried
        rows = np.flatnonzero(chain.labels == cluster)
        if try_split(chain, rows) > 0:
            n_splits += 1
        else:
            move_rows(chain, rows, cluster)
    return n_splits, len(clusters)


def trade_clusters(chain: CountChain, pairs: np.ndarray, gains: np.ndarray, clusters: np.ndarray) -> int:
    """With hardly a cluster empty, pay for a split with a merge: the best merges against the likeliest splits, as long
    as the log joint gains by both together. A split needs two empty clusters to work in and leaves one behind, so one
    merge is always on loan; it is undone at the end. How many splits were done."""
    n_trades, n_failures = 0, 0
    n_free = int(chain.clusters.empty[chain.n_clusters])
    debts: list[tuple[float, np.ndarray]] = []  # merges that no split has paid for: (cost, rows that were moved)
    queue = list(zip(pairs.tolist(), gains.tolist(), strict=True))[::-1]
    patience = max(FAILURES_IN_TRADING, chain.n_clusters // 20)
    spoilt: set[int] = set()  # clusters that have been merged or split
    for cluster in clusters.tolist():
        if n_failures >= patience:
            break
        if cluster in spoilt:
            continue
        while chain.clusters.empty[chain.n_clusters] < 2 and queue:
            (one, two), gain = queue.pop()
            if spoilt.isdisjoint((one, two)) and cluster not in (one, two):
                if chain.clusters.size[one] < chain.clusters.size[two]:
                    one, two = two, one
                rows = np.flatnonzero(chain.labels == two)
                move_rows(chain, rows, one)
                spoilt.update((one, two))
                debts.append((-gain, rows))
        if chain.clusters.empty[chain.n_clusters] < 2:
            break
        rows = np.flatnonzero(chain.labels == cluster)
        cost = 0.0 if n_free else debts[0][0]
        if try_split(chain, rows) > max(cost, 0.0):
            n_trades, n_failures = n_trades + 1, 0
            spoilt.add(cluster)
            if n_free:
                n_free -= 1
            else:
                debts.pop(0)
        else:
            move_rows(chain, rows, cluster)
            n_failures += 1
    for cost, rows in debts:
        if cost > 0:
            move_rows(chain, rows, int(chain.clusters.empty[0]))
    return n_trades


def mend_clusters(chain: CountChain) -> tuple[int, int]:
    """Merge, split and trade while it helps; (merges that gained by themselves, splits)."""
    live = np.flatnonzero(chain.clusters.size)
    pairs, gains = rank_pairs(chain, likely_pairs(chain, live))
    merged = merge_clusters(chain, pairs, gains)
    clusters = suspects(chain)
    if len(chain.labels) > ALL_SPLITS_UP_TO:
        clusters = clusters[: max(16, len(clusters) // 10)]
    n_splits, n_tried = split_clusters(chain, clusters)
    if n_tried == len(clusters):
        return len(merged) // 2, n_splits
    same = ~np.isin(pairs, np.concatenate([merged, clusters[:n_tried]])).any(axis=1)  # what they gain is still true
    n_trades = trade_clusters(chain, pairs[same], gains[same], clusters[n_tried:])
    return len(merged) // 2, n_splits + n_trades
