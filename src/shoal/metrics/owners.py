"""Do the groups keep together what one owner made?"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import BadInput
from shoal.metrics.partitions import unit
from shoal.metrics.tables import PairCounts, coded, pair_counts


def owner_entropy(owners: Any, labels: Any, *, clutter: int | None = None, base: str = "nats") -> float:
    """How scattered an owner's items are over the clusters, averaged over items; smaller is better.

    With N_a items of owner a spread over clusters as p_a, it is ``(1/N) sum_a N_a H(p_a)``. An advertiser mostly
    advertises one thing, so good clusters keep its ads together. One cluster for all scores 0, so report it with
    :func:`owner_information` and :func:`effective_number_of_clusters`. ``clutter`` is the label of a cluster of
    unrelated items: they are left out, and N counts the others. Items labelled -1 are one more cluster unless
    ``clutter=-1``; items without an owner are left out.

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
    """What an item's cluster gives away of its owner: their mutual information; larger is better.

    It is 0 where owner entropy deceives, with one cluster for all. Options are those of :func:`owner_entropy`.

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
    """The number of clusters of equal size that are as diverse: exp of the entropy of the cluster sizes.

    Unassigned items (-1) are left out.

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
