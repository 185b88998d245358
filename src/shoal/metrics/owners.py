"""Do the groups keep together what one owner made?"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import BadInput
from shoal.metrics.partitions import unit
from shoal.metrics.tables import PairCounts, coded, pair_counts


def owner_entropy(owners: Any, labels: Any, *, clutter: int | None = None, base: str = "nats") -> float:
    """Entropy of the clusters of an owner's items, averaged over items; smaller is better.

    With N_a items of owner a distributed over clusters as p_a, it is ``(1/N) sum_a N_a H(p_a)``. Good clusters keep the
    items of an owner together, but a single cluster also has the value 0: report it together with
    :func:`owner_information` and :func:`effective_number_of_clusters`.

    Parameters
    ----------
    owners : array-like of shape (n_items,)
        Owner of each item; items without an owner are left out.
    labels : array-like of shape (n_items,)
        Cluster of each item.
    clutter : int, optional
        Label of a cluster of unrelated items, which is left out. Items labelled -1 are one more cluster unless
        ``clutter=-1``.
    base : {"nats", "bits"}
        Unit of the result.

    Examples
    --------
    >>> owner_entropy(["ann", "ann", "bob", "bob"], [0, 1, 2, 2], base="bits")
    0.5
    >>> owner_entropy(["ann", "ann", "bob", "bob"], [0, 1, 2, 2], base="bits", clutter=1)
    0.0
    """
    table = _owners_by_cluster(owners, labels, clutter)
    if not table.n:
        return 0.0
    return float((table.together * np.log(table.in_a / table.together)).sum() / table.n) / unit(base)


def owner_information(owners: Any, labels: Any, *, clutter: int | None = None, base: str = "nats") -> float:
    """Mutual information between the owner and the cluster of an item; larger is better.

    It is 0 for a single cluster, where owner entropy is also 0.

    Parameters
    ----------
    owners : array-like of shape (n_items,)
        Owner of each item; items without an owner are left out.
    labels : array-like of shape (n_items,)
        Cluster of each item.
    clutter : int, optional
        Label of a cluster of unrelated items, which is left out. Items labelled -1 are one more cluster unless
        ``clutter=-1``.
    base : {"nats", "bits"}
        Unit of the result.

    Examples
    --------
    >>> owner_information(["ann", "ann", "bob", "bob"], [0, 0, 2, 2], base="bits")
    1.0
    >>> owner_information(["ann", "ann", "bob", "bob"], [0, 0, 0, 0], base="bits")
    0.0
    """
    table = _owners_by_cluster(owners, labels, clutter)
    if not table.n:
        return 0.0
    together = table.together.astype(np.float64)
    log_ratio = np.log(together * table.n / (table.in_a.astype(np.float64) * table.in_b))
    return max(float((together * log_ratio).sum() / table.n), 0.0) / unit(base)


def effective_number_of_clusters(labels: Any) -> float:
    """Exponential of the entropy of the cluster sizes: the number of equal clusters with the same entropy.

    Parameters
    ----------
    labels : array-like of shape (n_items,)
        Cluster of each item; unassigned items (-1) are left out.

    Examples
    --------
    >>> effective_number_of_clusters([0, 0, 1, 1])
    2.0
    >>> round(effective_number_of_clusters([0] * 97 + [1, 2, 3]), 2)
    1.18
    """
    codes, _ = coded(labels, "labels")
    sizes = np.bincount(codes[codes >= 0])
    shares = sizes[sizes > 0] / max(sizes.sum(), 1)
    return float(np.exp(-(shares * np.log(shares)).sum())) if shares.size else 0.0


def _owners_by_cluster(owners: Any, labels: Any, clutter: int | None) -> PairCounts:
    """Items counted by owner and cluster; those without an owner, and the clutter, are left out."""
    labels, (who, _) = np.asarray(labels), coded(owners, "the owners")
    if labels.shape != who.shape:
        raise BadInput(
            f"there are {who.size:,} owners and labels of shape {labels.shape}; each item needs one of both."
        )
    kept = who >= 0
    if clutter is not None:
        kept &= labels != clutter
    return pair_counts(who[kept], labels[kept], "cluster")
