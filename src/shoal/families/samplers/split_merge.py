"""Splits and merges before sampling: merge clusters that say the same, split those that hold two things.

Single rows move too seldom to join two halves of a topic or to part two topics in one cluster. Both moves below are
taken only if the exact log joint gains by them (and merges of sets and of short documents only if rows that are left
out are predicted no worse): they look for a better place to start sampling from, and are no part of the chain whose
states are kept.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from shoal.families.kernels.counts_kernels import Postings, group_rows
from shoal.families.kernels.scores_kernels import score_alone
from shoal.families.kernels.split_merge_kernels import NO_ROOM, TAKEN, merge_gain, merge_gains, move_all, split_rows
from shoal.families.samplers.count_chain import CountChain
from shoal.families.samplers.held_out import WORTH, Unions

ALL_PAIRS_UP_TO = 5_000_000  # features to look up in merging every pair: beyond, only likely pairs are looked at
ALL_SPLITS_UP_TO = 20_000  # rows: beyond, only the clusters that look worst are tried
OFTEN, STRONGEST = 3.0, 100  # a cluster's company shows in its strongest features; rare ones only look strong
# Words a row. Below, a label weighs as much as a good part of them, and too few of them are common ones for a
# background to be worth its pseudo-counts.
LONG_ROWS = 30.0
FAILURES_IN_TRADING = 20  # at least; and one for every 20 clusters


def likely_pairs(chain: CountChain, clusters: np.ndarray) -> np.ndarray:
    """Pairs of clusters worth a look: all, or those that are likely to lose least by merging."""
    n_pairs = len(clusters) * (len(clusters) - 1) // 2
    if n_pairs * chain.clusters.used[clusters].mean() <= ALL_PAIRS_UP_TO:
        left, right = np.triu_indices(len(clusters), 1)
        return np.column_stack([clusters[left], clusters[right]]).astype(np.int64)
    near = chain.near_pairs()
    if near is not None:
        return near
    features = salient_features(chain, clusters)
    # What a merge loses is about the two's divergence, times as many words as weigh against one another.
    share = 1 / np.maximum(chain.clusters.total[clusters], 1)
    losses = (1 - (features @ features.T).toarray()) / (share[:, None] + share)
    left, right = np.triu_indices(len(clusters), 1)
    order = np.argsort(losses[left, right], kind="stable")
    return clusters[disjoint(left[order], right[order], max(10, len(clusters) // 4))].astype(np.int64)


def disjoint(left: np.ndarray, right: np.ndarray, most: int) -> np.ndarray:
    """(most, 2) of these pairs, the first ones first, each number once. A small cluster loses least by merging, with
    whichever other, and would be half of every pair; but it can be merged only once."""
    taken: set[int] = set()
    chosen = []
    for pair in zip(left.tolist(), right.tolist(), strict=True):
        if taken.isdisjoint(pair):
            taken.update(pair)
            chosen.append(pair)
            if len(chosen) == most:
                break
    return np.array(chosen, dtype=np.int64).reshape(-1, 2)


def salient_features(chain: CountChain, clusters: np.ndarray) -> sp.csr_matrix:
    """The clusters' strongest features as unit vectors: counts beyond the prior's, on a log scale, by their rarity."""
    sums = chain.sums(least=OFTEN)[clusters]
    spread = np.bincount(sums.indices, minlength=sums.shape[1])
    rarity = np.log(len(clusters) / np.maximum(spread, 1))
    sums.data = np.log1p(sums.data / chain.prior.shape[sums.indices]) * rarity[sums.indices]
    for row in range(len(clusters)):
        values = sums.data[sums.indptr[row] : sums.indptr[row + 1]]
        if len(values) > STRONGEST:
            values[values < np.partition(values, -STRONGEST)[-STRONGEST]] = 0.0
    sums.eliminate_zeros()
    return normalize(sums, copy=False)


def unposted(chain: CountChain) -> Postings:
    """Postings that note no changes: nothing reads them during splits and merges, and afterwards they are rebuilt."""
    return chain.postings._replace(indexed=chain.nothing_indexed)


def move_rows(chain: CountChain, rows: np.ndarray, target: int) -> None:
    """Move rows to one cluster, with rebuilding as needed."""
    while not move_all(chain.items, chain.prior, chain.clusters, unposted(chain), rows, target, chain.work.marked):
        chain.rebuild()


def rank_pairs(chain: CountChain, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(pairs of clusters, what the log joint gains if they merge), the best first."""
    gains = np.zeros(len(pairs))
    merge_gains(chain.prior, chain.clusters, pairs, chain.falling, gains)
    order = np.argsort(-gains, kind="stable")
    return pairs[order], gains[order]


def merge_clusters(chain: CountChain, pairs: np.ndarray, gains: np.ndarray) -> list[int]:
    """Merge pairs, best first, while the log joint gains; the clusters that took part, two for each merge."""
    merged: list[int] = []
    for one, two in pairs[gains > 0].tolist():
        size = chain.clusters.size
        if min(size[one], size[two]) == 0:
            continue  # one of them has been merged away
        if merge_gain(chain.prior, chain.clusters, one, two, chain.falling) <= 0:
            continue
        if size[one] < size[two]:
            one, two = two, one
        move_rows(chain, np.flatnonzero(chain.labels == two), one)
        merged += [one, two]
    return merged


def merge_by_prediction(chain: CountChain, pairs: np.ndarray) -> list[int]:
    """Merge pairs, best first, unless the rows left out are predicted worse by it; as `merge_clusters` otherwise."""
    if not len(pairs):
        return []
    unions = Unions(chain)
    gains = unions.gains(pairs)
    order = np.argsort(-gains, kind="stable")
    merged: list[int] = []
    for one, two in pairs[order[gains[order] > -WORTH]].tolist():
        size = chain.clusters.size
        if min(size[one], size[two]) == 0:
            continue
        if not chain.prior.sets and merge_gain(chain.prior, chain.clusters, one, two, chain.falling) <= 0:
            continue
        if unions.gain(one, two) <= -WORTH:
            continue
        if size[one] < size[two]:
            one, two = two, one
        move_rows(chain, np.flatnonzero(chain.labels == two), one)
        unions.accepted(one, two)
        merged += [one, two]
    return merged


def merge(chain: CountChain, pairs: np.ndarray, gains: np.ndarray, by_rows: bool) -> list[int]:
    """Merge pairs by prediction where labels weigh much compared with the rows, or else by the log joint alone."""
    if chain.prior.sets:
        return merge_by_prediction(chain, pairs)
    words = chain.items.length.mean() * chain.prior.unit
    if by_rows and chain.prior.length_given and words < LONG_ROWS:
        return merge_by_prediction(chain, pairs[gains > 0])
    return merge_clusters(chain, pairs, gains)


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


class Members:
    """The rows of each cluster, as they are now."""

    def __init__(self, chain: CountChain) -> None:
        self.first = np.zeros(chain.n_clusters + 1, np.int64)
        self.order = np.zeros(len(chain.labels), np.int64)
        group_rows(chain.labels, chain.n_clusters, self.first, self.order)

    def __getitem__(self, cluster: int) -> np.ndarray:
        return self.order[self.first[cluster] : self.first[cluster + 1]].copy()


def try_split(chain: CountChain, rows: np.ndarray, least: float = 0.0) -> bool:
    """Move a cluster's rows into two empty ones, if the log joint gains more than `least` by it; whether it did."""
    left, right = (int(chain.clusters.empty[at]) for at in range(2))
    outcome = split_rows(
        chain.items, chain.prior, chain.clusters, unposted(chain), rows, left, right, least, chain.falling,
        chain.random, chain.work.marked,
    )  # fmt: skip
    if outcome == NO_ROOM:
        chain.rebuild()
    return bool(outcome == TAKEN)


def split_clusters(chain: CountChain, clusters: np.ndarray, members: Members) -> tuple[int, int]:
    """Try to split each of these clusters once, while there is room; (splits that were worth it, clusters tried)."""
    n_splits = 0
    for n_tried, cluster in enumerate(clusters.tolist()):
        if chain.clusters.empty[chain.n_clusters] < 2:
            return n_splits, n_tried
        n_splits += try_split(chain, members[cluster])
    return n_splits, len(clusters)


def trade_clusters(
    chain: CountChain, pairs: np.ndarray, gains: np.ndarray, clusters: np.ndarray, members: Members
) -> int:
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
                rows = members[two]
                move_rows(chain, rows, one)
                spoilt.update((one, two))
                debts.append((-gain, rows))
        if chain.clusters.empty[chain.n_clusters] < 2:
            break
        if try_split(chain, members[cluster], 0.0 if n_free else max(debts[0][0], 0.0)):
            n_trades, n_failures = n_trades + 1, 0
            spoilt.add(cluster)
            if n_free:
                n_free -= 1
            else:
                debts.pop(0)
        else:
            n_failures += 1
    for cost, rows in debts:
        if cost > 0:
            move_rows(chain, rows, int(chain.clusters.empty[0]))
    return n_trades


def split_merge_clusters(chain: CountChain, *, by_rows: bool = True) -> tuple[int, int]:
    """Merge, split and trade while it helps; (merges that gained by themselves, splits)."""
    live = np.flatnonzero(chain.clusters.size)
    sets = chain.prior.sets
    pairs, gains = rank_pairs(chain, likely_pairs(chain, live))
    merged = merge(chain, pairs, gains, by_rows)
    clusters = suspects(chain)
    if len(chain.labels) > ALL_SPLITS_UP_TO:
        clusters = clusters[: max(10, len(clusters) // 10)]
    members = Members(chain)  # those that a split or a merge changes from here on are not looked at again
    n_splits, n_tried = split_clusters(chain, clusters, members)
    if sets or n_tried == len(clusters):  # what a merge of sets gains is not what a split gains
        return len(merged) // 2, n_splits
    same = ~np.isin(pairs, np.concatenate([merged, clusters[:n_tried]])).any(axis=1)  # what they gain is still true
    n_trades = trade_clusters(chain, pairs[same], gains[same], clusters[n_tried:], members)
    return len(merged) // 2, n_splits + n_trades
