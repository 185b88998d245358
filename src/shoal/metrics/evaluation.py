"""All measures at once, for the command line and for notebooks."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.metrics.owners import owner_entropy
from shoal.metrics.pairs import pair_rates
from shoal.metrics.partitions import (
    adjusted_rand_index,
    b_cubed,
    normalized_mutual_information,
    purity,
    v_measure,
    variation_of_information,
)
from shoal.metrics.tables import coded, coded_pair


def evaluate(
    truth: Any,
    labels: Any,
    *,
    owners: Any = None,
    clutter: int | None = None,
    base: str = "nats",
    outliers: str = "cluster",
) -> dict[str, float]:
    """Every measure of ``labels`` against ``truth``, by name; with ``owners``, their entropy too.

    ``vi`` and the entropies are in ``base``, nats or bits.

    >>> scores = evaluate(["a", "a", "b", "b"], [0, 0, 1, 2])
    >>> scores["items"], scores["classes"], scores["clusters"], round(scores["nmi"], 3), scores["purity"]
    (4, 2, 3, 0.8, 1.0)
    """
    (true, classes), (found, clusters) = coded_pair(truth, labels, outliers)
    rates = pair_rates(true, found)
    v, cubed = v_measure(true, found), b_cubed(true, found)
    scores: dict[str, float] = {
        "items": int(found.size),
        "nowhere": int((coded(labels, "labels")[0] < 0).sum()),
        "classes": len(classes),
        "clusters": len(clusters),
        "nmi": normalized_mutual_information(true, found),
        "nmi_geometric": normalized_mutual_information(true, found, average="geometric"),
        "ari": adjusted_rand_index(true, found),
        "vi": variation_of_information(true, found, base=base),
        "purity": purity(true, found),
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
        if clutter is not None:
            scores["owner_entropy_without_clutter"] = owner_entropy(owners, labels, clutter=clutter, base=base)
    return {name: value if isinstance(value, int) else float(np.float64(value)) for name, value in scores.items()}
