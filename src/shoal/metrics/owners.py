"""Do the groups keep together what one owner made?"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import BadInput
from shoal.metrics.partitions import unit
from shoal.metrics.tables import coded, pair_counts


def owner_entropy(owners: Any, labels: Any, *, clutter: int | None = None, base: str = "nats") -> float:
    """How scattered an owner's items are over the clusters, averaged over items; smaller is better.

    With N_a items of owner a spread over clusters as p_a, it is ``(1/N) sum_a N_a H(p_a)``. An advertiser mostly
    advertises one thing, so good clusters keep its ads together. (One cluster for all would score 0, so compare
    clusterings with about as many clusters.) ``clutter`` is the label of a cluster of unrelated items: they
    are left out, and N counts the others. Items labelled -1 are one more cluster unless ``clutter=-1``; items
    without an owner are left out.

    >>> owner_entropy(["ann", "ann", "bob", "bob"], [0, 1, 2, 2], base="bits")
    0.5
    >>> owner_entropy(["ann", "ann", "bob", "bob"], [0, 1, 2, 2], base="bits", clutter=1)
    0.0
    """
    labels, (who, _) = np.asarray(labels), coded(owners, "the owners")
    if labels.shape != who.shape:
        raise BadInput(
            f"there are {who.size:,} owners and labels of shape {labels.shape}; each item needs one of both."
        )
    kept = who >= 0
    if clutter is not None:
        kept &= labels != clutter
    table = pair_counts(who[kept], labels[kept], "cluster")
    if not table.n:
        return 0.0
    return float((table.together * np.log(table.in_a / table.together)).sum() / table.n) / unit(base)
