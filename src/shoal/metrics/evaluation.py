"""All measures at once, for the command line and for notebooks."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.metrics.owners import effective_number_of_clusters, owner_entropy, owner_information
from shoal.metrics.pairs import rates_of
from shoal.metrics.partitions import ari_of, b_cubed_of, nmi_of, purity_of, v_of, vi_of
from shoal.metrics.tables import coded, pair_counts


def evaluate(
    truth: Any,
    labels: Any,
    *,
    owners: Any = None,
    clutter: int | None = None,
    base: str = "nats",
    outliers: str = "cluster",
) -> dict[str, float]:
    """All measures of agreement between ``labels`` and ``truth``, by name.

    Parameters
    ----------
    truth : array-like of shape (n_items,)
        True labels.
    labels : array-like of shape (n_items,)
        Labels of the clustering; -1 for unassigned items.
    owners : array-like of shape (n_items,), optional
        Owner of each item; adds the owner measures.
    clutter : int, optional
        Label of a cluster of unrelated items; see :func:`owner_entropy`.
    base : {"nats", "bits"}
        Unit of ``vi`` and of entropies.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count: as one more cluster, as clusters of their own, or not at all.

    Examples
    --------
    >>> scores = evaluate(["a", "a", "b", "b"], [0, 0, 1, 2])
    >>> scores["items"], scores["classes"], scores["clusters"], round(scores["nmi"], 3), scores["purity"]
    (4, 2, 3, 0.8, 1.0)
    """
    table = pair_counts(truth, labels, outliers)
    rates, v, cubed = rates_of(table), v_of(table), b_cubed_of(table)
    scores: dict[str, float] = {
        "items": table.n,
        "unassigned": int((coded(labels, "labels")[0] < 0).sum()),
        "classes": len(coded(truth, "truth")[1]),
        "clusters": len(coded(labels, "labels")[1]),
        "effective_clusters": effective_number_of_clusters(labels),
        "nmi": nmi_of(table, "arithmetic"),
        "nmi_geometric": nmi_of(table, "geometric"),
        "ari": ari_of(table),
        "vi": vi_of(table, base),
        "purity": purity_of(table),
        "homogeneity": v.homogeneity,
        "completeness": v.completeness,
        "v_measure": v.v,
        "b_cubed_precision": cubed.precision,
        "b_cubed_recall": cubed.recall,
        "b_cubed_f1": cubed.f1,
        "pair_tpr": rates.tpr,
        "pair_fpr": rates.fpr,
    }
    if owners is not None:
        scores["owner_entropy"] = owner_entropy(owners, labels, base=base)
        scores["owner_information"] = owner_information(owners, labels, base=base)
        if clutter is not None:
            scores["owner_entropy_without_clutter"] = owner_entropy(owners, labels, clutter=clutter, base=base)
    return {name: value if isinstance(value, int) else float(np.float64(value)) for name, value in scores.items()}
