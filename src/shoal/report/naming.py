"""Names that tell clusters apart: by what distinguishes a cluster from the others, not by what all of them share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from shoal.base import TopFeatures

N_CANDIDATES = 40  # features of a cluster that may enter its name
LEAST_CONTRAST = 0.15  # of the best feature's contrast: what is less than that is left out


def contrasts(tops: Sequence[TopFeatures], sizes: np.ndarray) -> list[np.ndarray]:
    """How much each of a cluster's top features sets it apart from the others, in the order of the features.

    With p(f | c) the cluster's values divided by their sum and p(f) their mean over all clusters, weighted by size, the
    contrast of a feature is its term of the Kullback-Leibler divergence, p(f | c) log(p(f | c) / p(f)): a feature
    counts if it is both heavy here and light elsewhere. Where values are not shares of anything (they may be
    negative), the model's own order is kept.

    >>> tops = [TopFeatures(np.array([0, 1]), np.array([.6, .4]), "share"),
    ...         TopFeatures(np.array([0, 2]), np.array([.6, .4]), "share")]
    >>> [values.round(2).tolist() for values in contrasts(tops, np.ones(2))]
    [[0.0, 0.28], [0.0, 0.28]]
    """
    if any(np.size(top.values) and np.min(top.values) < 0 for top in tops):
        return [np.arange(len(top.features), 0.0, -1.0) for top in tops]
    shares = [np.asarray(top.values, dtype=float) / max(float(np.sum(top.values)), 1e-300) for top in tops]
    indptr = np.cumsum([0, *(len(values) for values in shares)])
    columns = np.concatenate([np.asarray(top.features) for top in tops]) if tops else np.zeros(0, dtype=np.int64)
    width = int(columns.max(initial=-1)) + 1
    table = sp.csr_matrix((np.concatenate(shares) if shares else np.zeros(0), columns, indptr), (len(tops), width))
    weights = np.maximum(np.asarray(sizes, dtype=float), 0.0)
    overall = np.asarray((weights @ table) / max(weights.sum(), 1e-300)).ravel()
    result = []
    for top, values in zip(tops, shares, strict=True):
        expected = np.maximum(overall[np.asarray(top.features)], 1e-300)
        result.append(np.where(values > 0, values * np.log(np.maximum(values, 1e-300) / expected), 0.0))
    return result


def distinctive(contrast: np.ndarray, values: np.ndarray, most: int) -> np.ndarray:
    """Places, among a cluster's top features, of those that set it apart, the most distinctive first."""
    order = np.lexsort((-values, -contrast))
    if not order.size:
        return order
    best = contrast[order[0]]
    if best <= 0:  # nothing sets it apart (a single cluster, say): the heaviest features then
        return np.argsort(-values, kind="stable")[:most]
    return order[contrast[order] >= LEAST_CONTRAST * best][:most]


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
