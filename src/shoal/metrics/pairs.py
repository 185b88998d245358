"""Every pair of items, classified as the same or different: rates, the ROC, and the matrix for small n."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput
from shoal.metrics.kernels import count_pairs_above
from shoal.metrics.partitions import n_pairs
from shoal.metrics.tables import PairCounts, coded, coded_pair, is_sparse, pair_counts
from shoal.threads import ordered_map, row_blocks

BLOCK_ROWS = 256
BLOCK_COLUMNS = 8192
GUIDE = 1024
ROUNDING = 1e-5  # memberships may be float32 and need not sum to exactly 1


class PairRates(NamedTuple):
    """Of pairs that truly belong together, the share put together (tpr); of those that do not, the share (fpr)."""

    tpr: float
    fpr: float


class PairROC(NamedTuple):
    """The rates at each threshold."""

    thresholds: np.ndarray
    tpr: np.ndarray
    fpr: np.ndarray


def pair_rates(truth: Any, labels: Any, *, threshold: float = 0.5, outliers: str = "cluster") -> PairRates:
    """True and false positive rate over pairs of items.

    A positive is a pair in one cluster. With soft memberships, that is a pair with ``sum_l r_il r_jl > threshold``. No
    n x n array is made. A rate over no pairs is NaN.

    Parameters
    ----------
    truth : array-like of shape (n_items,)
        True labels.
    labels : array-like of shape (n_items,) or (n_items, n_clusters)
        Labels, or soft memberships (dense or CSR).
    threshold : float
        Smallest probability of a positive pair.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count. With memberships it applies to the truth only; an unassigned item has a row of
        zeros.

    Examples
    --------
    >>> pair_rates([0, 0, 1, 1], [0, 0, 0, 1])
    PairRates(tpr=0.5, fpr=0.5)
    >>> pair_rates([0, 0, 1, 1], [[1, 0], [.9, .1], [.4, .6], [0, 1]])
    PairRates(tpr=1.0, fpr=0.0)
    """
    if is_sparse(labels) or np.ndim(labels) == 2:
        roc = pair_roc(truth, labels, thresholds=[threshold], outliers=outliers)
        return PairRates(float(roc.tpr[0]), float(roc.fpr[0]))
    return rates_of(pair_counts(truth, labels, outliers))


def pair_roc(truth: Any, proba: Any, *, thresholds: Any = None, outliers: str = "cluster") -> PairROC:
    """The pair rates of soft memberships at several thresholds.

    Exact, in bounded memory: pairs of items with nearly certain clusters are counted by a table; only pairs with an
    uncertain item are visited.

    Parameters
    ----------
    truth : array-like of shape (n_items,)
        True labels.
    proba : array-like or CSR matrix of shape (n_items, n_clusters)
        Soft memberships.
    thresholds : array-like, optional
        Thresholds of :func:`pair_rates`; default 0.1, 0.2, ... 0.9.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count: as one more cluster, as clusters of their own, or not at all.

    Examples
    --------
    >>> roc = pair_roc([0, 0, 1], [[1, 0], [.5, .5], [0, 1]], thresholds=[.4, .6])
    >>> roc.tpr.tolist(), roc.fpr.tolist()
    ([1.0, 0.0], [0.5, 0.0])
    """
    given = np.linspace(0.1, 0.9, 81) if thresholds is None else np.atleast_1d(np.asarray(thresholds, np.float64))
    if given.ndim != 1 or not given.size or not ((given >= 0) & (given <= 1)).all():
        raise BadInput("thresholds must be probabilities, from 0 to 1, in one dimension.")
    members = _memberships(proba)
    (codes, _), (rows, _) = coded_pair(truth, np.arange(members.shape[0]), outliers)
    members = members if rows.size == members.shape[0] else members[np.flatnonzero(coded(truth, "truth")[0] >= 0)]
    ascending = np.unique(given)
    same, different = _counts_above(codes, members, ascending)
    place = np.searchsorted(ascending, given)
    with np.errstate(invalid="ignore"):
        tpr, fpr = ((counts[::-1].cumsum()[::-1][1:] / counts.sum())[place] for counts in (same, different))
    return PairROC(given, tpr, fpr)


def same_cluster_matrix(clustering: Any, *, max_items: int = 5000) -> np.ndarray:
    """The probability that two items are in the same cluster, for all pairs: (n_items, n_items).

    Parameters
    ----------
    clustering : array-like
        Labels of shape (n_items,), where an item labelled -1 is with itself only; samples of labels (whole numbers) of
        shape (n_samples, n_items); or soft memberships (real numbers) of shape (n_items, n_clusters).
    max_items : int
        More items raise an error; :func:`pair_rates` and :func:`pair_roc` do not need the matrix.

    Examples
    --------
    >>> same_cluster_matrix([[0, 0, 1], [2, 3, 3]]).tolist()  # two samples of the labels of three items
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """
    values = clustering if is_sparse(clustering) else np.asarray(clustering)
    soft = values.ndim == 2 and values.dtype.kind == "f"
    n_items = values.shape[0] if soft or values.ndim == 1 else values.shape[1]
    if n_items > max_items:
        raise BadInput(
            f"a same-cluster matrix of {n_items:,} items would take {n_items**2 * 8 / 1e9:,.1f} GB; at most "
            f"max_items={max_items:,} are allowed. Use pair_rates or pair_roc, or choose some of the items."
        )
    if soft:
        members = _memberships(values)
        product = members @ members.T
        return np.asarray(product.toarray() if is_sparse(product) else product)
    total = np.zeros((n_items, n_items))
    samples = np.atleast_2d(values)
    for sample in samples:
        codes, _ = coded(sample, "the labels")
        total += (codes[:, None] == codes) & (codes >= 0)
    total /= samples.shape[0]
    np.fill_diagonal(total, 1.0)
    return total


def rates_of(table: PairCounts) -> PairRates:
    together, true, put = (n_pairs(sizes) for sizes in (table.together, table.sizes_a, table.sizes_b))
    false = table.n * (table.n - 1) // 2 - true
    return PairRates(together / true if true else np.nan, (put - together) / false if false else np.nan)


def _memberships(proba: Any) -> Any:
    members: Any = sp.csr_matrix(proba) if is_sparse(proba) else np.asarray(proba)
    if members.ndim != 2 or members.dtype.kind not in "biuf":
        raise BadInput(
            f"memberships have shape {members.shape}; they need a row for each item, a column for each cluster."
        )
    values = members.data if is_sparse(members) else members
    sums = np.asarray(members.sum(axis=1)).ravel()
    wrong = np.flatnonzero(~(sums <= 1 + ROUNDING))
    if wrong.size or not (values >= 0).all():
        where = f"row {wrong[0]} sums to {sums[wrong[0]]:.4g}" if wrong.size else "some are negative"
        raise BadInput(f"memberships must be 0 or more and sum to at most 1 in each row, but {where}.")
    return members


def _counts_above(truth: np.ndarray, members: Any, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs by the number of ``thresholds`` their chance exceeds: those truly the same, those truly different."""
    best = np.asarray(members.max(axis=1).todense() if is_sparse(members) else members.max(axis=1)).ravel()
    best = best.astype(np.float64)
    rest = np.asarray(members.sum(axis=1), dtype=np.float64).ravel() - best
    # Two items whose likeliest clusters differ are together with chance at most rest_i + rest_j;
    # two whose likeliest cluster is the same, with chance at least best_i * best_j.
    certain = (2 * (rest + ROUNDING) <= thresholds[0]) & ((best - ROUNDING).clip(0) ** 2 > thresholds[-1])
    hard = np.asarray(members.argmax(axis=1)).ravel()[certain]
    same, different = np.zeros((2, thresholds.size + 1), np.int64)
    table = pair_counts(truth[certain], hard, "cluster")
    together, true, put = (n_pairs(sizes) for sizes in (table.together, table.sizes_a, table.sizes_b))
    same[-1], same[0] = together, true - together
    different[-1] = put - together
    different[0] = table.n * (table.n - 1) // 2 - true - different[-1]

    guide = np.searchsorted(thresholds, np.linspace(0, 1, GUIDE + 1))
    order = np.concatenate([np.flatnonzero(~certain), np.flatnonzero(certain)])
    members, truth = members[order], truth[order]

    def count(block: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        start, stop = block
        bins = np.zeros((2, thresholds.size + 1), np.int64)
        rows = members[start:stop].astype(np.float64)
        for first, last in row_blocks(order.size - start, BLOCK_COLUMNS):
            columns = slice(start + first, start + last)
            product = rows @ members[columns].astype(np.float64).T
            dense = product.toarray() if is_sparse(product) else product
            count_pairs_above(dense, truth[start:stop], truth[columns], first, thresholds, guide, bins[0], bins[1])
        return bins[0], bins[1]

    for more_same, more_different in ordered_map(count, row_blocks(int((~certain).sum()), BLOCK_ROWS)):
        same += more_same
        different += more_different
    return same, different
