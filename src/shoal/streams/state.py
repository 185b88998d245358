"""The arrays that inference works on: clusters, their words, the index from words to clusters, and recent documents.

Everything is a plain array inside a named tuple, so that kernels can take it and ``shoal.save`` can write it. A cluster
lives in a *slot*; slots are used again, ids never. A document that may still change its mind stands in the *window*;
older ones are settled and survive only as sums in their cluster (its *base*).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.base import storable

# columns of Clusters.whole
ID, COUNT, START, SIZE_CLASS, N_TERMS, N_BASE, FIRST, LAST, HERE, STAMP, LIVE_AT, PINNED = range(12)
# columns of Clusters.real
LOG_U, LAST_TIME, BASE_U, BASE_TIME, RATE, BORN, PEAK, PEAK_TIME, BIN_WIDTH, ABSENT, ROSE = range(11)
# columns of Window.doc and Window.doc_real
PREV, NEXT, SLOT, NUMBER = range(4)
TIME, U, WEIGHT, MARGIN = range(4)
# columns of Prior.block_real
STRENGTH, EVIDENCE_WEIGHT, MASS, WIDTH = range(4)
# places in Engine counters and numbers
N_LIVE, N_FREE, TABLE_TOP, POSTING_TOP, NEXT_ID, NEED, KIND, FAMILY, MOST_TERMS, STAMP_NOW, N_EVENTS, N_DOCS = range(12)
LOG_ALPHA, U_MAX, EPS, TOL, DRIFT, ORIGIN, FLOOR, HITS, MISSES = range(9)
# kinds of kernel over time, kinds of likelihood, what a kernel ran out of
STEP, EXPONENTIAL, WAVES = range(3)
MULTINOMIAL, BERNOULLI, GAUSSIAN = range(3)
NOTHING, SLOTS, TABLES, POSTINGS, EVENTS = range(5)

WORTH_TELLING = 3  # a cluster that never weighed so much makes no events and, once gone, leaves no life behind
SMALLEST_TABLE, SMALLEST_POSTING, N_CLASSES = 16, 4, 28
LIFE_BINS = 32
SMALL_ARENA = 1 << 20


@storable
class Clusters(NamedTuple):
    whole: np.ndarray  # (slots, 12) int64
    real: np.ndarray  # (slots, 11) float64
    totals: np.ndarray  # (slots, blocks) sum of counts in each block of features
    log_gamma: np.ndarray  # (slots, blocks) log Gamma(total + strength)
    log_unit: np.ndarray  # (slots, blocks) log(1 + total / strength), about what a word that does not match costs
    base_wave: np.ndarray  # (slots, waves, 2) the kernel's sums over the settled members, at BASE_TIME
    life: np.ndarray  # (slots, LIFE_BINS) settled members by age
    moments: np.ndarray  # (slots, features, 2) sums and squares (Gaussian only)
    grid_u: np.ndarray  # (slots, rates) what BASE_U would be at each rate that learning considers; 0: nobody settled
    grid_log_w: np.ndarray  # (slots, rates) sum of log w over settled members after the first, at each rate
    live: np.ndarray  # (slots,) the first N_LIVE are the live slots
    free: np.ndarray  # (slots,) the first N_FREE are free


@storable
class Tables(NamedTuple):
    """Each cluster's words: open addressing, blocks of one arena in powers of two."""

    keys: np.ndarray  # int32 feature, -1 where empty
    counts: np.ndarray  # float32
    where: np.ndarray  # int32 place in the feature's posting list
    free: np.ndarray  # (N_CLASSES,) head of the list of free blocks of each size, -1 if none


@storable
class Postings(NamedTuple):
    """For each feature, the live clusters that hold it."""

    start: np.ndarray  # (features,)
    length: np.ndarray
    size_class: np.ndarray
    slot: np.ndarray  # int32 arena
    amount: np.ndarray  # float32
    free: np.ndarray


@storable
class Window(NamedTuple):
    doc: np.ndarray  # (documents, 4) PREV and NEXT in its cluster, SLOT, NUMBER
    # (documents, 4) TIME, U (kernel sum including itself), WEIGHT (before it), MARGIN (how sure, in nats)
    doc_real: np.ndarray
    doc_wave: np.ndarray  # (documents, waves, 2)
    starts: np.ndarray  # (documents + 1,) into features and counts
    features: np.ndarray  # int32
    counts: np.ndarray  # float32
    lengths: np.ndarray  # (documents, blocks)
    rows: np.ndarray  # (documents, features) dense rows (Gaussian only)


@storable
class Prior(NamedTuple):
    seen: np.ndarray  # (features,) background counts, the shape of the base measure
    block: np.ndarray  # (features,) which kind of evidence: 0 words, 1.. others
    block_real: np.ndarray  # (blocks, 4)
    gaussian: np.ndarray  # (features, 4) mean, pseudo-count, shape, scale of the Normal-Gamma prior


class Links(NamedTuple):
    """What the kernels over time need: clusters and documents as lists in time order."""

    whole: np.ndarray
    real: np.ndarray
    base_wave: np.ndarray
    doc: np.ndarray
    doc_real: np.ndarray
    doc_wave: np.ndarray
    waves: np.ndarray  # (3, waves) amplitude, decay, frequency


class Scratch(NamedTuple):
    gain: np.ndarray  # (slots,) zero between documents
    touched: np.ndarray  # (slots + 1,) where gain is not zero; one more is written over
    candidates: np.ndarray
    scores: np.ndarray
    order: np.ndarray  # (longest document,)
    lengths: np.ndarray
    bases: np.ndarray  # (longest document,) pseudo-count of each of its words
    fresh: np.ndarray  # (blocks,) what a document's length gains in a new cluster


def empty_clusters(slots: int, n_blocks: int, n_waves: int, n_dense: int, n_rates: int = 0) -> Clusters:
    whole = np.zeros((slots, 12), dtype=np.int64)
    whole[:, [ID, FIRST, LAST, HERE]] = -1
    return Clusters(
        whole,
        np.zeros((slots, 11)),
        np.zeros((slots, n_blocks)),
        np.zeros((slots, n_blocks)),
        np.zeros((slots, n_blocks)),
        np.zeros((slots, n_waves, 2)),
        np.zeros((slots, LIFE_BINS), dtype=np.float32),
        np.zeros((slots, n_dense, 2)),
        np.zeros((slots, n_rates)),
        np.zeros((slots, n_rates)),
        np.zeros(slots, dtype=np.int64),
        np.arange(slots, dtype=np.int64)[::-1].copy(),
    )


def empty_tables(size: int) -> Tables:
    return Tables(
        np.full(size, -1, dtype=np.int32),
        np.zeros(size, dtype=np.float32),
        np.zeros(size, dtype=np.int32),
        np.full(N_CLASSES, -1, dtype=np.int64),
    )


def empty_postings(n_features: int, size: int) -> Postings:
    return Postings(
        np.zeros(n_features, dtype=np.int64),
        np.zeros(n_features, dtype=np.int64),
        np.full(n_features, -1, dtype=np.int64),
        np.zeros(size, dtype=np.int32),
        np.zeros(size, dtype=np.float32),
        np.full(N_CLASSES, -1, dtype=np.int64),
    )


def empty_window(n_docs: int, n_entries: int, n_blocks: int, n_waves: int, n_dense: int) -> Window:
    doc = np.full((n_docs, 4), -1, dtype=np.int64)
    return Window(
        doc,
        np.zeros((n_docs, 4)),
        np.zeros((n_docs, n_waves, 2)),
        np.zeros(n_docs + 1, dtype=np.int64),
        np.zeros(n_entries, dtype=np.int32),
        np.zeros(n_entries, dtype=np.float32),
        np.zeros((n_docs, n_blocks)),
        np.zeros((n_docs, n_dense)),
    )


def empty_scratch(slots: int, longest: int, n_blocks: int) -> Scratch:
    return Scratch(
        np.zeros(slots),
        np.zeros(slots + 1, dtype=np.int64),
        np.zeros(slots + 2, dtype=np.int64),
        np.zeros(slots + 2),
        np.zeros(longest + 1, dtype=np.int64),
        np.zeros(longest + 1, dtype=np.int64),
        np.zeros(longest + 1),
        np.zeros(n_blocks),
    )


def longer(array: np.ndarray, size: int, fill: float = 0) -> np.ndarray:
    """A copy with more rows."""
    out = np.full((size, *array.shape[1:]), fill, dtype=array.dtype)
    out[: len(array)] = array
    return out


def more_slots(clusters: Clusters, slots: int, counters: np.ndarray) -> Clusters:
    """Room for more clusters; the new slots are free."""
    old = len(clusters.whole)
    widths = (each.shape[1] for each in (clusters.totals, clusters.base_wave, clusters.moments, clusters.grid_u))
    fresh = empty_clusters(slots, *widths)
    for array, bigger in zip(clusters, fresh, strict=True):
        bigger[:old] = array
    n_free = int(counters[N_FREE])
    fresh.free[: slots - old] = np.arange(slots - 1, old - 1, -1)
    fresh.free[slots - old : slots - old + n_free] = clusters.free[:n_free]
    counters[N_FREE] = n_free + slots - old
    return fresh


def more_than(size: int) -> int:
    """The next size of an arena: twice while it is small, then an eighth more, so that little of it lies idle."""
    return 2 * size if size < SMALL_ARENA else size + size // 8


def more_tables(tables: Tables, size: int) -> Tables:
    return Tables(longer(tables.keys, size, -1), longer(tables.counts, size), longer(tables.where, size), tables.free)


def more_postings(postings: Postings, size: int) -> Postings:
    return postings._replace(slot=longer(postings.slot, size), amount=longer(postings.amount, size))


def more_features(postings: Postings, n_features: int) -> Postings:
    return postings._replace(
        start=longer(postings.start, n_features),
        length=longer(postings.length, n_features),
        size_class=longer(postings.size_class, n_features, -1),
    )
