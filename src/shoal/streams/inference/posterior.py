"""What many samples say together: how many clusters, who is with whom, and one partition to show."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shoal.streams.kernels.pass_kernels import same_pairs


def number_posterior(samples: np.ndarray) -> np.ndarray:
    """``p[k]``, the share of samples with k clusters.

    >>> number_posterior(np.array([[0, 0, 1], [0, 1, 2]])).tolist()
    [0.0, 0.0, 0.5, 0.5]
    """
    counts = np.bincount([np.unique(labels).size for labels in samples])
    return np.asarray(counts / counts.sum())


def same_cluster(samples: np.ndarray, items: np.ndarray) -> np.ndarray:
    """For each pair of these items, the share of samples in which they are together."""
    out = np.zeros((items.size, items.size))
    for labels in samples:
        same_pairs(np.ascontiguousarray(labels[items]), out)
    return out / len(samples)


def closest_sample(samples: np.ndarray, others: int = 50) -> int:
    """The sample with the least mean variation of information to the others: a partition one may show.

    >>> closest_sample(np.array([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 1]]))
    0
    """
    compared = samples[np.linspace(0, len(samples) - 1, min(others, len(samples))).astype(int)]
    costs = [sum(distance(labels, each) for each in compared) for labels in samples]
    return int(np.argmin(costs))


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Variation of information in nats.

    >>> round(distance(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0])), 4)
    0.6931
    """
    a = np.unique(a, return_inverse=True)[1].astype(np.int64)
    b = np.unique(b, return_inverse=True)[1].astype(np.int64)
    pairs = np.unique(a * (int(b.max()) + 1) + b, return_counts=True)[1]
    return 2 * entropy(pairs) - entropy(np.bincount(a)) - entropy(np.bincount(b))


def entropy(counts: np.ndarray) -> float:
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())


def split_r_hat(chains: Sequence[Sequence[float]]) -> float:
    """Gelman and Rubin's R-hat over the halves of all chains: near 1 once they agree.

    >>> split_r_hat([[1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0]]) < 1.1, split_r_hat([[0.0, 0.1, 5.0, 5.1]]) > 2
    (True, True)
    """
    half = min(len(chain) for chain in chains) // 2
    if half < 2:
        return math.nan
    parts = np.array([part for chain in chains for part in (chain[:half], chain[len(chain) - half :])])
    within = parts.var(axis=1, ddof=1).mean()
    between = parts.mean(axis=1).var(ddof=1)
    if within == 0.0:
        return 1.0 if between == 0.0 else math.inf
    return float(np.sqrt((half - 1) / half + between / within))


def by_birth(labels: np.ndarray) -> np.ndarray:
    """The same groups, numbered 0 and on in order of their first members.

    >>> by_birth(np.array([7, 7, 3, 7, 9])).tolist()
    [0, 0, 1, 0, 2]
    """
    _, first, dense = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[dense])
