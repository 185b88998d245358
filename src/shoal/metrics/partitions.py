"""Measures that compare two clusterings of the same items."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import BadInput
from shoal.metrics.tables import PairCounts, pair_counts

BASES = {"nats": 1.0, "bits": math.log(2)}


class BCubed(NamedTuple):
    """Averages over items; see :func:`b_cubed`."""

    precision: float
    recall: float
    f1: float


class VMeasure(NamedTuple):
    """See :func:`v_measure`."""

    homogeneity: float
    completeness: float
    v: float


def variation_of_information(a: Any, b: Any, *, base: str = "nats", outliers: str = "cluster") -> float:
    """Variation of information, H(a|b) + H(b|a): a metric between clusterings, 0 if they are equal.

    Parameters
    ----------
    a, b : array-like of shape (n_items,)
        Two clusterings: labels of any type, -1 or missing for unassigned items.
    base : {"nats", "bits"}
        Unit of the result.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count: as one more cluster, as clusters of their own, or not at all.

    Examples
    --------
    >>> variation_of_information([0, 0, 1, 1], [5, 5, 3, 3])
    0.0
    >>> variation_of_information([0, 0, 1, 1], [0, 1, 0, 1], base="bits")
    2.0
    """
    return vi_of(pair_counts(a, b, outliers), base)


def normalized_mutual_information(a: Any, b: Any, *, average: str = "arithmetic", outliers: str = "cluster") -> float:
    """Mutual information of two clusterings divided by a mean of their entropies: 1 if equal, 0 if independent.

    Parameters
    ----------
    a, b : array-like of shape (n_items,)
        Two clusterings: labels of any type, -1 or missing for unassigned items.
    average : {"arithmetic", "geometric"}
        Mean of the two entropies; scikit-learn's default is arithmetic, older papers use geometric.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count: as one more cluster, as clusters of their own, or not at all.

    Examples
    --------
    >>> normalized_mutual_information([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    >>> round(normalized_mutual_information([0, 0, 1, 1], [0, 0, 1, 2], average="geometric"), 3)
    0.816
    """
    return nmi_of(pair_counts(a, b, outliers), average)


def adjusted_rand_index(a: Any, b: Any, *, outliers: str = "cluster") -> float:
    """Rand index, corrected for chance: 1 if the clusterings are equal, 0 on average if they are independent.

    Parameters
    ----------
    a, b : array-like of shape (n_items,)
        Two clusterings: labels of any type, -1 or missing for unassigned items.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count: as one more cluster, as clusters of their own, or not at all.

    Examples
    --------
    >>> adjusted_rand_index([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    >>> round(adjusted_rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 3)
    0.571
    """
    return ari_of(pair_counts(a, b, outliers))


def purity(truth: Any, labels: Any, *, outliers: str = "cluster") -> float:
    """Share of items that have the most frequent true label of their cluster. Many small clusters increase it.

    Parameters
    ----------
    truth : array-like of shape (n_items,)
        True labels.
    labels : array-like of shape (n_items,)
        Labels of the clustering; -1 for unassigned items.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count: as one more cluster, as clusters of their own, or not at all.

    Examples
    --------
    >>> purity(["a", "a", "b", "b"], [0, 0, 0, 1])
    0.75
    """
    return purity_of(pair_counts(truth, labels, outliers))


def b_cubed(truth: Any, labels: Any, *, outliers: str = "cluster") -> BCubed:
    """B-cubed precision, recall and F1, averaged over items.

    Precision is the share of an item's cluster that has its true label; recall is the share of its true label that is
    in its cluster.

    Parameters
    ----------
    truth : array-like of shape (n_items,)
        True labels.
    labels : array-like of shape (n_items,)
        Labels of the clustering; -1 for unassigned items.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count: as one more cluster, as clusters of their own, or not at all.

    Examples
    --------
    >>> b_cubed(["a", "a", "b", "b"], [0, 0, 0, 1])
    BCubed(precision=0.666..., recall=0.75, f1=0.705...)
    """
    return b_cubed_of(pair_counts(truth, labels, outliers))


def v_measure(truth: Any, labels: Any, *, beta: float = 1.0, outliers: str = "cluster") -> VMeasure:
    """Homogeneity, completeness and their weighted harmonic mean.

    Homogeneity is 1 if each cluster has one true label; completeness is 1 if each true label is in one cluster.

    Parameters
    ----------
    truth : array-like of shape (n_items,)
        True labels.
    labels : array-like of shape (n_items,)
        Labels of the clustering; -1 for unassigned items.
    beta : float
        Above 1, completeness has more weight.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count: as one more cluster, as clusters of their own, or not at all.

    Examples
    --------
    >>> v_measure(["a", "a", "b", "b"], [0, 0, 1, 2])
    VMeasure(homogeneity=1.0, completeness=0.666..., v=0.8)
    """
    return v_of(pair_counts(truth, labels, outliers), beta)


# --- the same, from one table of counts: evaluate makes it once for all -----------------------------------------------


def vi_of(table: PairCounts, base: str) -> float:
    return (_conditional_entropy(table, table.in_b) + _conditional_entropy(table, table.in_a)) / unit(base)


def nmi_of(table: PairCounts, average: str) -> float:
    if average not in ("arithmetic", "geometric"):
        raise BadInput(f"average is {average!r}; choose 'arithmetic' or 'geometric'.")
    of_a, of_b = entropy(table.sizes_a), entropy(table.sizes_b)
    if table.sizes_a.size <= 1 and table.sizes_b.size <= 1:
        return 1.0  # nothing to say, and both say it
    shared = max(of_a - _conditional_entropy(table, table.in_b), 0.0)
    mean = (of_a + of_b) / 2 if average == "arithmetic" else math.sqrt(of_a * of_b)
    return min(shared / mean, 1.0) if mean > 0 else 0.0


def ari_of(table: PairCounts) -> float:
    both, in_a, in_b = (n_pairs(sizes) for sizes in (table.together, table.sizes_a, table.sizes_b))
    pairs = table.n * (table.n - 1) // 2
    if in_a == in_b == both:
        return 1.0  # the same pairs, or none to judge
    expected = in_a * in_b / pairs
    return float((both - expected) / ((in_a + in_b) / 2 - expected))


def purity_of(table: PairCounts) -> float:
    largest = np.zeros(table.sizes_b.size, np.int64)
    np.maximum.at(largest, table.at_b, table.together)
    return float(largest.sum() / table.n) if table.n else 1.0


def b_cubed_of(table: PairCounts) -> BCubed:
    if not table.n:
        return BCubed(1.0, 1.0, 1.0)
    together = table.together.astype(np.float64)
    precision = float((together * (together / table.in_b)).sum() / table.n)
    recall = float((together * (together / table.in_a)).sum() / table.n)
    return BCubed(precision, recall, 2 * precision * recall / (precision + recall))


def v_of(table: PairCounts, beta: float = 1.0) -> VMeasure:
    of_truth, of_labels = entropy(table.sizes_a), entropy(table.sizes_b)
    homogeneity = max(1 - _conditional_entropy(table, table.in_b) / of_truth, 0.0) if of_truth else 1.0
    completeness = max(1 - _conditional_entropy(table, table.in_a) / of_labels, 0.0) if of_labels else 1.0
    if not homogeneity + completeness:
        return VMeasure(homogeneity, completeness, 0.0)
    v = (1 + beta) * homogeneity * completeness / (beta * homogeneity + completeness)
    return VMeasure(homogeneity, completeness, v)


def entropy(sizes: np.ndarray) -> float:
    """Of the label of an item drawn at random, in nats."""
    sizes = sizes[sizes > 0]
    if sizes.size <= 1:
        return 0.0
    share = sizes / sizes.sum()
    return float(-(share * np.log(share)).sum())


def unit(base: str) -> float:
    """Nats in one unit of ``base``."""
    if base not in BASES:
        raise BadInput(f"base is {base!r}; choose 'nats' or 'bits'.")
    return BASES[base]


def n_pairs(sizes: np.ndarray) -> int:
    """Pairs of items inside groups of these sizes."""
    return int((sizes * (sizes - 1) // 2).sum())


def _conditional_entropy(table: PairCounts, given: np.ndarray) -> float:
    """Entropy of one clustering when the other, whose sizes are ``given``, is known. Each term is 0 or more."""
    if not table.n:
        return 0.0
    return float((table.together * np.log(given / table.together)).sum() / table.n)
