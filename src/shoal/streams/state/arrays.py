"""The arrays that inference works on: clusters, their words, the index from words to clusters, and recent documents.

Everything is a plain array inside a named tuple, so that kernels can take it and ``shoal.save`` can write it. A cluster
stands in a *slot*; slots are used again, ids never. A document that may still change its cluster is in the *window*;
older ones are settled and survive only as sums in their cluster (its *base*).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from shoal.base import storable

Records: TypeAlias = Any  # an np.recarray of one of the following

CLUSTER = np.dtype(
    [
        ("id", "i8"),
        ("n_members", "i8"),
        ("n_settled", "i8"),  # of these, members that have left the window
        ("table_start", "i8"),  # its words' block in Tables, and how large that is
        ("size_class", "i8"),
        ("n_terms", "i8"),
        ("first", "i8"),  # its members in the window: a list in time order, -1 if there is none
        ("last", "i8"),
        ("here", "i8"),  # the member a sweep has passed last; good while stamp is the sweep's
        ("stamp", "i8"),
        ("live_at", "i8"),  # its place in Clusters.live
        ("pinned", "i8"),
        ("log_u", "f8"),  # log of the kernel's sum at last_time, over all members up to the last
        ("last_time", "f8"),
        ("base_u", "f8"),  # the kernel's sum over settled members, at base_time
        ("base_time", "f8"),
        ("rate", "f8"),
        ("born", "f8"),
        ("peak", "f8"),
        ("peak_time", "f8"),
        ("bin_width", "f8"),  # of Clusters.activity
        ("absent", "f8"),  # Bernoulli: the gain of a document without any feature
        ("established_at", "f8"),  # when it first weighed three messages at once; NaN before
    ]
)
DOCUMENT = np.dtype(
    [
        ("previous", "i8"),  # the members before and after it in its cluster
        ("next", "i8"),
        ("slot", "i8"),
        ("number", "i8"),  # in order of arrival
        ("time", "f8"),
        ("u", "f8"),  # the kernel's sum over its cluster's members up to and with itself
        ("weight", "f8"),  # the same before it (damped waves)
        ("margin", "f8"),  # by how many nats its cluster won
    ]
)
BLOCK = np.dtype([("strength", "f8"), ("evidence_weight", "f8"), ("mass", "f8"), ("width", "f8")])
STATUS = np.dtype(
    [
        *(
            (name, "i8")
            for name in ("n_live", "n_free", "table_top", "posting_top", "next_id", "need", "kind", "family")
        ),
        *((name, "i8") for name in ("most_terms", "stamp_now", "n_events", "n_docs")),
        *((name, "f8") for name in ("log_alpha", "u_max", "eps", "tol", "drift", "origin", "floor", "hits", "misses")),
    ]
)
# kinds of kernel over time, kinds of likelihood, what a kernel ran out of
STEP, EXPONENTIAL, WAVES = range(3)
MULTINOMIAL, BERNOULLI, GAUSSIAN = range(3)
NOTHING, SLOTS, TABLES, POSTINGS, EVENTS = range(5)

MIN_REPORTED_SIZE = 3  # a cluster that never weighed so much makes no events and, once gone, leaves no life behind
SMALLEST_TABLE, SMALLEST_POSTING, N_CLASSES = 16, 4, 28
HISTORY_BINS = 32
SMALL_ARENA = 1 << 20


@storable
class Clusters(NamedTuple):
    record: Records  # (slots,) of CLUSTER
    totals: np.ndarray  # (slots, blocks) sum of counts in each block of features
    log_gamma: np.ndarray  # (slots, blocks) log Gamma(total + strength)
    log_unit: np.ndarray  # (slots, blocks) log(1 + total / strength), about what a word that does not match costs
    base_wave: np.ndarray  # (slots, waves, 2) the kernel's sums over the settled members, at base_time
    activity: np.ndarray  # (slots, HISTORY_BINS) settled members by age
    moments: np.ndarray  # (slots, features, 2) sums and squares (Gaussian only)
    grid_u: np.ndarray  # (slots, rates) what base_u would be at each rate that learning considers; 0: nobody settled
    grid_log_w: np.ndarray  # (slots, rates) sum of log w over settled members after the first, at each rate
    live: np.ndarray  # (slots,) the first n_live are the live slots
    free: np.ndarray  # (slots,) the first n_free are free


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
    docs: Records  # (documents,) of DOCUMENT
    doc_wave: np.ndarray  # (documents, waves, 2)
    starts: np.ndarray  # (documents + 1,) into features and counts
    features: np.ndarray  # int32
    counts: np.ndarray  # float32
    lengths: np.ndarray  # (documents, blocks)
    dense: np.ndarray  # (documents, features) dense rows (Gaussian only)


@storable
class Prior(NamedTuple):
    seen: np.ndarray  # (features,) background counts, the shape of the base measure
    block: np.ndarray  # (features,) which kind of evidence: 0 words, 1.. others
    blocks: Records  # (blocks,) of BLOCK
    gaussian: np.ndarray  # (features, 4) mean, pseudo-count, shape, scale of the Normal-Gamma prior


class Links(NamedTuple):
    """What the kernels over time need: clusters and documents as lists in time order."""

    record: Records
    base_wave: np.ndarray
    docs: Records
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


class Sides(NamedTuple):
    """The two sides of a split while documents are allocated to them."""

    counts: np.ndarray  # (2, features) words so far
    totals: np.ndarray  # (2, blocks)
    u: np.ndarray  # (2,) the kernel's sum at the last member; 0: no member yet
    last: np.ndarray  # (2,) time of the last member
    wave: np.ndarray  # (2, waves, 2)
    of: np.ndarray  # (documents,) the side of each document that is allocated


def empty_sides(n_features: int, n_blocks: int, n_waves: int, n_docs: int) -> Sides:
    return Sides(
        np.zeros((2, n_features)),
        np.zeros((2, n_blocks)),
        np.zeros(2),
        np.zeros(2),
        np.zeros((2, n_waves, 2)),
        np.zeros(n_docs, dtype=np.int64),
    )


def records(n: int, dtype: np.dtype[Any]) -> Records:
    """``n`` records of zeros, whose fields are attributes (``records(3, CLUSTER).born``)."""
    return np.zeros(n, dtype=dtype).view(np.recarray)


def empty_clusters(slots: int, n_blocks: int, n_waves: int, n_dense: int, n_rates: int = 0) -> Clusters:
    record = records(slots, CLUSTER)
    record.id = record.first = record.last = record.here = -1
    return Clusters(
        record,
        np.zeros((slots, n_blocks)),
        np.zeros((slots, n_blocks)),
        np.zeros((slots, n_blocks)),
        np.zeros((slots, n_waves, 2)),
        np.zeros((slots, HISTORY_BINS), dtype=np.float32),
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
    return Window(
        records(n_docs, DOCUMENT),
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


def longer(array: Any, size: int, fill: float = 0) -> Any:
    """A copy with more rows."""
    out = (
        np.full((size, *array.shape[1:]), fill, dtype=array.dtype)
        if fill
        else np.zeros_like(array, shape=(size, *array.shape[1:]))
    )
    out[: len(array)] = array
    return out


def more_slots(clusters: Clusters, slots: int, status: Records) -> Clusters:
    """Room for more clusters; the new slots are free."""
    old = len(clusters.record)
    widths = (each.shape[1] for each in (clusters.totals, clusters.base_wave, clusters.moments, clusters.grid_u))
    fresh = empty_clusters(slots, *widths)
    for array, bigger in zip(clusters, fresh, strict=True):
        bigger[:old] = array
    n_free = int(status[0].n_free)
    fresh.free[: slots - old] = np.arange(slots - 1, old - 1, -1)
    fresh.free[slots - old : slots - old + n_free] = clusters.free[:n_free]
    status[0].n_free = n_free + slots - old
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
