"""Topics: stories merged by what words they hold, whenever they are told, up to the knee of the evidence.

A power below 1 on the likelihood of words does not do it: with little evidence in the words the prior of arrivals
decides, and short texts all fall into one cluster, or, where the concentration is learned along, into more than there
are stories. Merges by the largest gain of the joint, at any power, let one cluster take in all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.streams.base_measures import base_measure
from shoal.streams.inference.base_learning import words_of_clusters
from shoal.streams.kernels.topic_kernels import merge_upward, nearest_groups
from shoal.streams.state.stream_state import StreamState

MOST_STORIES = 2000  # so many, the largest, are merged pair by pair; any other follows the nearest of them


def topics_of(state: StreamState) -> np.ndarray:
    """The topic of every document of the window, as the number of one of its stories."""
    slots = np.ascontiguousarray(np.sort(state.live))
    words = words_of_clusters(state, slots)
    rows = sp.csr_matrix((words.counts, words.features, words.starts), shape=(slots.size, len(state.prior.seen)))
    bases, strength = base_measure(state.prior, float(state.status[0].floor)), float(state.prior.blocks.strength[0])
    place = np.zeros(len(state.clusters.record), dtype=np.int64)
    place[slots] = merged_stories(rows, bases, strength, MOST_STORIES)
    return place[state.window.docs.slot[: state.n_docs]]


def merged_stories(rows: sp.csr_matrix, bases: np.ndarray, strength: float, most: int) -> np.ndarray:
    """The topic of each story, given its words. Stories without words stay as they are."""
    totals = np.asarray(rows.sum(axis=1)).ravel()
    by_size = np.argsort(-totals, kind="stable")[: np.count_nonzero(totals)]
    large, small = np.sort(by_size[:most]), np.sort(by_size[most:])
    topic = np.arange(rows.shape[0])
    if large.size < 3:
        return topic
    merges, won = np.zeros((large.size - 1, 2), dtype=np.int64), np.zeros(large.size - 1)
    gains = np.empty((large.size, large.size))
    rows_of, columns_of, bases, strength, groups, work = _kernel_inputs(rows[large], bases, strength)
    merge_upward(rows_of, columns_of, bases, strength, groups, work, gains, merges, won)
    for gone, into in large[merges[: knee(won)]].tolist():
        topic[topic == gone] = into
    if small.size:
        inputs, nearest = _kernel_inputs(rows, bases, strength), np.zeros(small.size, dtype=np.int64)
        inputs[4][2][small] = False
        inputs[4][2][totals == 0] = False
        nearest_groups(*inputs, small, nearest)
        topic[small] = topic[nearest]
    return topic


def knee(won: np.ndarray) -> int:
    """After how many merges the evidence is farthest above the straight line from all stories to one cluster.

    It is not at either end unless every merge costs as much as the others, and then there is nothing to merge.

    >>> knee(np.array([1.0, 0.0, -1.0, -2.0, -30.0, -40.0]))
    4
    """
    steps = np.arange(won.size + 1)
    evidence = np.append(0.0, np.cumsum(won))
    return int(np.argmax(evidence - evidence[-1] * steps / won.size))


def _kernel_inputs(rows: sp.csr_matrix, bases: np.ndarray, strength: float) -> tuple[Any, ...]:
    n, columns = rows.shape[0], rows.tocsc()
    groups = (np.arange(n), np.full(n, -1), np.ones(n, dtype=np.bool_), np.asarray(rows.sum(axis=1)).ravel())
    width = rows.shape[1]
    work = (np.zeros(width), np.zeros(width, dtype=np.int64), np.zeros(n), np.zeros(n, dtype=np.int64))
    return _arrays(rows), _arrays(columns), bases, strength, groups, work


def _arrays(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float64)
