"""Distinctive names of clusters, made of features that few other clusters share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from shoal.base import TopFeatures

N_CANDIDATES = 40  # features of a cluster that may enter its name
N_NEIGHBORS = 5  # clusters that a name tells a cluster from in particular
OWN_LIFT = 3.0  # times the usual share from which on a feature is the cluster's own
MOST_ROWS = 0.5  # the share of rows from which on a category is one of the cluster
LEAST_CONTRAST = 0.15  # of the best feature's contrast: what is less than that is left out


def shares_and_lifts(tops: Sequence[TopFeatures], sizes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """For each cluster p(f | c) of its top features, and the lift p(f | c) / p(f) over the mean of all clusters.

    p(f | c) are the cluster's values divided by their sum, and p(f) their mean over the clusters, weighted by size.
    None where values are not shares of anything, since they may be negative.

    >>> tops = [TopFeatures(np.array([0, 1]), np.array([.6, .4]), "share"),
    ...         TopFeatures(np.array([0, 2]), np.array([.6, .4]), "share")]
    >>> [(share.tolist(), lift.tolist()) for share, lift in shares_and_lifts(tops, np.ones(2))]
    [([0.6, 0.4], [1.0, 2.0]), ([0.6, 0.4], [1.0, 2.0])]
    """
    table = _share_table(tops)
    if table is None:
        return None
    weights = np.maximum(np.asarray(sizes, dtype=float), 0.0)
    overall = np.asarray((weights @ table) / max(weights.sum(), 1e-300)).ravel()
    shares = [table.data[start:end] for start, end in itertools.pairwise(table.indptr)]
    expected = [np.maximum(overall[np.asarray(top.features)], 1e-300) for top in tops]
    return [(values, values / mean) for values, mean in zip(shares, expected, strict=True)]


def distinctive_features(tops: Sequence[TopFeatures], sizes: np.ndarray, most: int = 8) -> list[np.ndarray]:
    """The features that say what each cluster is about, first those that set it apart.

    A feature counts by its share of the cluster times the log of its lift, p(f | c) log(p(f | c) / p(f)), its term of
    the Kullback-Leibler divergence from all clusters: heavy here and light elsewhere. From three times the usual share
    on, a feature is taken to be the cluster's own and only its heaviness counts; rare features would else come first.
    The third place goes to what tells the cluster from the nearest ones, p(f | c) log(p(f | c) / p(f | nearby)). Where
    values are not shares of anything, the model's own order is kept.

    >>> tops = [TopFeatures(np.array([0, 1]), np.array([.6, .4]), "share"),
    ...         TopFeatures(np.array([0, 2]), np.array([.6, .4]), "share")]
    >>> [features.tolist() for features in distinctive_features(tops, np.ones(2))]
    [[1], [2]]
    """
    table = _share_table(tops)
    if table is None:
        return [np.asarray(top.features)[:most] for top in tops]
    weights = np.maximum(np.asarray(sizes, dtype=float), 0.0)
    overall = np.asarray((weights @ table) / max(weights.sum(), 1e-300)).ravel()
    nearby = _neighborhoods(table, weights)
    found = []
    for at, top in enumerate(tops):
        features = np.asarray(top.features)
        share, near = (np.asarray(rows[at, features].todense()).ravel() for rows in (table, nearby))
        log_lift = _log_ratio(share, overall[features])
        best = _best(share * np.minimum(log_lift, np.log(OWN_LIFT)), share)
        apart = _best(np.where(log_lift > 0, share * _log_ratio(share, near), 0.0), share)
        apart = apart[~np.isin(apart, best[:2])][:1]
        places = [*best[:2], *apart, *best[2:][~np.isin(best[2:], apart)]]
        found.append(features[np.array(places[:most], dtype=np.int64)])
    return found


def _best(contrast: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Places of the features with the largest contrast; of the heaviest where nothing sets the cluster apart."""
    order = np.lexsort((-share, -contrast))
    if not order.size or contrast[order[0]] <= 0:
        return np.argsort(-share, kind="stable")
    return order[contrast[order] >= LEAST_CONTRAST * contrast[order[0]]]


def _log_ratio(share: np.ndarray, usual: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(np.maximum(share, 1e-300) / np.maximum(usual, 1e-300)))


def _share_table(tops: Sequence[TopFeatures]) -> sp.csr_matrix | None:
    """p(f | c), a row for each cluster: its values divided by their sum. None where values may be negative."""
    if any(top.levels is not None or (np.size(top.values) and np.min(top.values) < 0) for top in tops):
        return None
    shares = [np.asarray(top.values, dtype=float) / max(float(np.sum(top.values)), 1e-300) for top in tops]
    indptr = np.cumsum([0, *(len(values) for values in shares)])
    columns = np.concatenate([np.asarray(top.features) for top in tops]) if tops else np.zeros(0, dtype=np.int64)
    width = int(columns.max(initial=-1)) + 1
    return sp.csr_matrix((np.concatenate(shares) if shares else np.zeros(0), columns, indptr), (len(tops), width))


def _neighborhoods(table: sp.csr_matrix, weights: np.ndarray) -> sp.csr_matrix:
    """For each cluster the mean p(f | c) of itself and its nearest clusters, by the overlap of their features."""
    unit = sp.csr_matrix(normalize(table))
    rows, columns = [], []
    for start in range(0, unit.shape[0], 1024):
        similar = np.asarray((unit[start : start + 1024] @ unit.T).todense())
        near = np.argsort(-similar, axis=1, kind="stable")[:, : N_NEIGHBORS + 1]
        near = np.where(
            np.take_along_axis(similar, near, axis=1) > 0, near, np.arange(start, start + len(near))[:, None]
        )
        rows.append(np.repeat(np.arange(start, start + len(near)), near.shape[1]))
        columns.append(near.ravel())
    at, to = (np.concatenate(part) if part else np.zeros(0, dtype=np.int64) for part in (rows, columns))
    pairs = sp.csr_matrix((weights[to] + 1e-12, (at, to)), shape=(unit.shape[0],) * 2)
    return sp.csr_matrix(normalize(pairs, norm="l1") @ table)


def phrases(
    tops: Sequence[TopFeatures], sizes: np.ndarray, names: Sequence[Sequence[str]], most: int = 8
) -> list[list[str]] | None:
    """Of measurements, what each cluster has there and whether that is low or high; None where features are counted.

    A level is high or low against the mean over all clusters. A category is named if most rows have it.

    >>> tops = [TopFeatures(np.array([0]), np.array([value]), "mean", levels=np.array([True])) for value in (1.5, 4.5)]
    >>> phrases(tops, np.ones(2), [["petal length"], ["petal length"]])
    [['petal length 1.5 (low)'], ['petal length 4.5 (high)']]
    """
    if not tops or any(top.levels is None for top in tops):
        return None
    width = 1 + max(int(np.max(top.features, initial=-1)) for top in tops)
    total, weight = np.zeros(width), np.zeros(width)
    for top, size in zip(tops, sizes, strict=True):
        total[top.features] += float(size) * np.asarray(top.values)
        weight[top.features] += float(size)
    usual = total / np.maximum(weight, 1e-300)
    return [
        [
            f"{name} {three_digits(value)} ({'low' if value < usual[feature] else 'high'})" if level else name
            for feature, value, level, name in zip(top.features, top.values, top.levels, words, strict=True)  # type: ignore[arg-type]
            if level or value >= MOST_ROWS
        ][:most]
        for top, words in zip(tops, names, strict=True)
    ]


def three_digits(value: float) -> str:
    """A number with three digits, written out where that is readable.

    >>> three_digits(59860.0), three_digits(1.504), three_digits(0.0000123)
    ('59,900', '1.5', '1.23e-05')
    """
    return f"{float(f'{value:.3g}'):,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


def unique_names(words: Sequence[Sequence[str]], ids: Sequence[int], n_words: int = 3) -> list[str]:
    """The first words of each cluster, with more of them where two would be called the same.

    >>> unique_names([["tea", "milk"], ["tea", "rum"], ["tea"]], [4, 5, 6], n_words=1)
    ['tea, milk', 'tea, rum', 'tea']
    """
    lengths = [min(n_words, len(each)) for each in words]
    while True:
        names = [", ".join(each[:n]) or f"cluster {id_}" for each, n, id_ in zip(words, lengths, ids, strict=True)]
        first: dict[str, list[int]] = {}
        for at, name in enumerate(names):
            first.setdefault(name, []).append(at)
        shared = [at for same in first.values() if len(same) > 1 for at in same]
        longer = [at for at in shared if lengths[at] < min(n_words + 3, len(words[at]))]
        if not longer:
            break
        for at in longer:
            lengths[at] += 1
    for name, same in first.items():
        for at in same[1:]:
            names[at] = f"{name} ({ids[at]})"
    return names
