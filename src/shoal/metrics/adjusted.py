"""Mutual information corrected for chance."""

from __future__ import annotations

from typing import Any

from sklearn.metrics.cluster import expected_mutual_information

from shoal.metrics.partitions import entropy
from shoal.metrics.tables import contingency


def adjusted_mutual_information(a: Any, b: Any, *, outliers: str = "cluster") -> float:
    """Mutual information less what chance gives: 1 if the labels agree, 0 on average if they are unrelated.

    Unlike :func:`normalized_mutual_information`, many small clusters do not raise it. It is
    ``(I - E[I]) / (mean(H(a), H(b)) - E[I])``, with the expectation over all labels of the same sizes (Vinh, Epps and
    Bailey, 2010). Its time grows with the number of labels of ``a`` times that of ``b``.

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
