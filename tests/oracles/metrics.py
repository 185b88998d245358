"""The measures as their definitions say, item by item and pair by pair. Slow, and plainly right."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np


def entropy(labels):
    n = len(labels)
    return -sum(count / n * math.log(count / n) for count in Counter(labels).values())


def variation_of_information(a, b):
    """2 H(a, b) - H(a) - H(b)."""
    return 2 * entropy(list(zip(a, b, strict=True))) - entropy(a) - entropy(b)


def purity(truth, labels):
    right = 0
    for cluster in set(labels):
        inside = [t for t, label in zip(truth, labels, strict=True) if label == cluster]
        right += Counter(inside).most_common(1)[0][1]
    return right / len(labels)


def b_cubed(truth, labels):
    n = len(labels)
    precision = recall = 0.0
    for i in range(n):
        cluster = [j for j in range(n) if labels[j] == labels[i]]
        group = [j for j in range(n) if truth[j] == truth[i]]
        right = len(set(cluster) & set(group))
        precision += right / len(cluster) / n
        recall += right / len(group) / n
    return precision, recall


def pair_rates(truth, together):
    """``together(i, j)`` says whether a pair was put together."""
    counts = {True: [0, 0], False: [0, 0]}
    for i, j in itertools.combinations(range(len(truth)), 2):
        counts[bool(truth[i] == truth[j])][int(together(i, j))] += 1
    true, false = counts[True], counts[False]
    return (true[1] / sum(true) if sum(true) else math.nan, false[1] / sum(false) if sum(false) else math.nan)


def owner_entropy(owners, labels):
    n = len(labels)
    total = 0.0
    for owner in set(owners):
        mine = [label for o, label in zip(owners, labels, strict=True) if o == owner]
        total += len(mine) * entropy(mine) / n
    return total


def recall_at(relevant, ranked, n):
    shares = [len(set(r) & set(s[:n])) / len(set(r)) for r, s in zip(relevant, ranked, strict=True) if len(set(r))]
    return float(np.mean(shares))
