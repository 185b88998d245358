"""Mutual information corrected for chance."""

from __future__ import annotations

from typing import Any

from sklearn.metrics.cluster import expected_mutual_information

from shoal.metrics.partitions import entropy
from shoal.metrics.tables import contingency


def adjusted_mutual_information(a: Any, b: Any, *, outliers: str = "cluster") -> float:
    """Mutual information, corrected for chance: 1 if the clusterings are equal, 0 on average if they are independent.

    Unlike :func:`normalized_mutual_information`, it does not increase with the number of clusters. It is
    ``(I - E[I]) / (mean(H(a), H(b)) - E[I])``, where the expectation is over all labels of the same sizes (Vinh, Epps
    and Bailey, 2010). Its time is proportional to the number of labels of ``a`` times that of ``b``.

    Parameters
    ----------
    a, b : array-like of shape (n_items,)
        Two clusterings: labels of any type, -1 or missing for unassigned items.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count: as one more cluster, as clusters of their own, or not at all.

    Examples
    --------
    >>> round(adjusted_mutual_information(["a", "a", "b", "b"], [0, 0, 1, 2]), 3)
    0.571
    >>> adjusted_mutual_information(["a", "a", "b", "b"], [1, 1, 0, 0])
    1.0
    """
    counts = contingency(a, b, outliers=outliers).counts
    sizes_a, sizes_b = counts.sum(axis=1).A1, counts.sum(axis=0).A1
    of_a, of_b = entropy(sizes_a), entropy(sizes_b)
    if of_a == of_b == 0.0:
        return 1.0
    information = of_a + of_b - entropy(counts.data)
    by_chance = float(expected_mutual_information(counts.astype("int64"), int(counts.sum())))
    span = (of_a + of_b) / 2 - by_chance
    return float((information - by_chance) / span) if abs(span) > 1e-15 else 0.0
