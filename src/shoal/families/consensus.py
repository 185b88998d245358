"""One clustering out of several samples, and what they say about each other."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def entropy(labels: np.ndarray) -> float:
    share = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(share * np.log(share)).sum())


def variation(one: np.ndarray, two: np.ndarray) -> float:
    """Variation of information, in nats: 2 H(one, two) - H(one) - H(two)."""
    table = sp.coo_matrix((np.ones(len(one)), (one, two))).tocsr()
    share = table.data / len(one)
    return float(-2 * (share * np.log(share)).sum()) - entropy(one) - entropy(two)


def consensus(samples: np.ndarray) -> np.ndarray:
    """The sample with the least expected variation of information to the others (ties: the earliest).

    Wade and Ghahramani (2018) minimize over all partitions; among samples the best is close to it, and is a state that
    the model itself proposed.

    >>> consensus(np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]])).tolist()
    [0, 0, 1, 1]
    """
    n_samples = len(samples)
    apart = np.zeros((n_samples, n_samples))
    for one in range(n_samples):
        for two in range(one):
            apart[one, two] = apart[two, one] = variation(samples[one], samples[two])
    return np.asarray(samples[int(np.argmin(apart.sum(axis=1).round(12)))])


def most_probable(best: np.ndarray, samples: list[np.ndarray]) -> np.ndarray:
    """The cluster in which each row was most often, over the samples of a chain and its best state, which also breaks
    ties. A chain keeps its clusters' numbers. A single state has each uncertain row wherever it was just then.

    Of use where rows are not linked: two that must not be together may each be most often in the same cluster.

    >>> most_probable(np.array([0, 0, 1]), [np.array([0, 1, 1]), np.array([0, 1, 0])]).tolist()
    [0, 1, 1]
    """
    states = np.array([best, *samples])
    votes = np.array([(states == state).sum(axis=0) for state in states])
    return np.asarray(states[votes.argmax(axis=0), np.arange(states.shape[1])])


def live_counts(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(numbers of clusters that occurred, how probable each is)."""
    found = [len(np.unique(sample)) for sample in samples]
    numbers, times = np.unique(found, return_counts=True)
    return numbers, times / len(samples)
