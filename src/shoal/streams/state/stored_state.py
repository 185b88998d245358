"""A stream's state as plain columns, for model files, and back; an index is checked before a kernel uses it.

Kernels follow the arrays without bounds checks: arrays that contradict one another would lead them to foreign memory
or in a circle. What :func:`from_columns` accepts, they can follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from shoal.errors import BadModelFile
from shoal.streams.state import arrays as st
from shoal.streams.state.stream_state import StreamState

GROUPS = {"clusters": st.Clusters, "tables": st.Tables, "postings": st.Postings, "window": st.Window, "prior": st.Prior}
RECORDS = {"record": st.CLUSTER, "docs": st.DOCUMENT, "blocks": st.BLOCK}
SCALARS = ("kernel", "concentration", "seed", "n_draws", "n_settled", "settled_time", "rate")
Columns = dict[str, Any]


def to_columns(state: StreamState) -> Columns:
    """The state in arrays, numbers and the time kernel; records become one array a field."""
    columns: Columns = {name: getattr(state, name) for name in SCALARS}
    for group in GROUPS:
        columns[group] = {name: _plain(array) for name, array in getattr(state, group)._asdict().items()}
    return columns | {"waves": state.waves, "events": state.events, "status": _plain(state.status)}


def _plain(array: Any) -> Any:
    if array.dtype.names is None:
        return array
    return {name: np.ascontiguousarray(array[name]) for name in array.dtype.names}


def from_columns(columns: Columns) -> StreamState:
    """The state again; BadModelFile where its arrays contradict one another."""
    try:
        parts = {group: _group(cls, columns[group]) for group, cls in GROUPS.items()}
        status = _records(columns["status"], st.STATUS)
        scalars = {name: columns[name] for name in SCALARS}
        waves, events = (_array(columns[name]) for name in ("waves", "events"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadModelFile(
            f"the stream in this model file lacks a part, or holds one of another kind: {error}."
        ) from None
    state = StreamState(status=status, waves=waves, events=events, **parts, **scalars)
    check_state(state)
    return state


def _group(cls: Any, columns: Columns) -> Any:
    return cls(
        *(_records(columns[name], RECORDS[name]) if name in RECORDS else _array(columns[name]) for name in cls._fields)
    )


def _array(value: Any) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{type(value).__name__} where an array belongs")
    return np.array(value, order="C")  # a file is mapped read-only; learning goes on in a copy


def _records(columns: Columns, dtype: np.dtype[Any]) -> Any:
    out = st.records(len(columns[str(dtype.names[0])]), dtype)  # type: ignore[index]
    for name in dtype.names:  # type: ignore[union-attr]
        if columns[name].dtype != dtype[name] or columns[name].shape != out.shape:
            raise TypeError(f"{name} has type {columns[name].dtype} and shape {columns[name].shape}")
        out[name] = columns[name]
    return out


# --- checks -----------------------------------------------------------------------------------------------------------


def need(holds: Any, what: str) -> None:
    """BadModelFile unless it holds."""
    if not np.all(holds):
        raise BadModelFile(f"this model file contradicts itself: {what}. Use another copy of it.")


def within(values: Any, low: float, high: float, what: str) -> None:
    """low <= values < high."""
    values = np.asarray(values)
    need((values >= low) & (values < high), f"{what} points outside its array")


def check_state(state: StreamState) -> None:
    """Every index that a kernel would follow."""
    _check_shapes(state)
    _check_status(state)
    _check_clusters(state)
    _check_tables(state)
    _check_window(state)


def _check_shapes(state: StreamState) -> None:
    slots, n_features, n_blocks = len(state.clusters.record), len(state.prior.seen), len(state.prior.blocks)
    n_docs, n_waves, entries = len(state.window.docs), state.waves.shape[-1], len(state.window.features)
    n_dense = n_features if state.status[0].family == st.GAUSSIAN else 0
    n_rates = state.clusters.grid_u.shape[-1]
    f8, i8, f4, i4 = (np.dtype(name) for name in ("f8", "i8", "f4", "i4"))
    per_block, per_rate = ((slots, n_blocks), f8), ((slots, n_rates), f8)
    wanted: dict[str, dict[str, tuple[tuple[int, ...], np.dtype[Any]]]] = {
        "clusters": {
            "totals": per_block, "log_gamma": per_block, "log_unit": per_block,
            "base_wave": ((slots, n_waves, 2), f8), "activity": ((slots, st.HISTORY_BINS), f4),
            "moments": ((slots, n_dense, 2), f8), "grid_u": per_rate, "grid_log_w": per_rate,
            "live": ((slots,), i8), "free": ((slots,), i8),
        },
        "tables": {
            "keys": ((len(state.tables.keys),), i4), "counts": ((len(state.tables.keys),), f4),
            "where": ((len(state.tables.keys),), i4), "free": ((st.N_CLASSES,), i8),
        },
        "postings": {
            "start": ((n_features,), i8), "length": ((n_features,), i8), "size_class": ((n_features,), i8),
            "slot": ((len(state.postings.slot),), i4), "amount": ((len(state.postings.slot),), f4),
            "free": ((st.N_CLASSES,), i8),
        },
        "window": {
            "doc_wave": ((n_docs, n_waves, 2), f8), "starts": ((n_docs + 1,), i8), "features": ((entries,), i4),
            "counts": ((entries,), f4), "lengths": ((n_docs, n_blocks), f8), "dense": ((n_docs, n_dense), f8),
        },
        "prior": {
            "seen": ((n_features,), f8), "block": ((n_features,), i8),
            "gaussian": ((n_dense, 4), f8),
        },
    }  # fmt: skip
    for group, arrays in wanted.items():
        for name, (shape, dtype) in arrays.items():
            array = getattr(getattr(state, group), name)
            need(array.shape == shape and array.dtype == dtype, f"{group}.{name} has another shape or type")
    need(len(state.status) == 1 and state.waves.shape == (3, n_waves) and n_waves > 0, "the time kernel has no waves")
    need(state.events.ndim == 2 and state.events.shape[1] == 2 and state.events.dtype == i8, "events are not pairs")
    need(n_blocks > 0, "there is no block of features")


def _check_status(state: StreamState) -> None:
    now, slots = state.status[0], len(state.clusters.record)
    need(0 <= now.n_live <= slots and now.n_live + now.n_free == slots, "live and free slots do not add up")
    need(np.sort(np.append(state.live, state.clusters.free[: now.n_free])) == np.arange(slots), "a slot is lost")
    within(now.kind, 0, 3, "the kind of time kernel")
    within(now.family, 0, 3, "the likelihood")
    within(now.n_docs, 0, len(state.window.docs) + 1, "the window")
    within(now.n_events, 0, len(state.events) + 1, "the events")
    within(now.table_top, 0, len(state.tables.keys) + 1, "the end of the tables")
    within(now.posting_top, 0, len(state.postings.slot) + 1, "the end of the index")
    within(now.most_terms, 0, len(state.prior.seen) + 1, "the number of words")
    for name in ("log_alpha", "u_max", "eps", "tol", "drift", "origin", "floor", "hits", "misses"):
        need(np.isfinite(now[name]), f"{name} is not a number")


def _check_clusters(state: StreamState) -> None:
    record, now = state.clusters.record[state.live], state.status[0]
    need(record.live_at == np.arange(now.n_live), "the list of live clusters")
    need(np.unique(record.id).size == now.n_live, "two clusters have one id")
    within(record.id, 0, max(1, int(now.next_id)), "a cluster's id")
    within(record.size_class, 0, st.N_CLASSES, "the size of a table")
    within(record.n_terms, 0, int(now.most_terms) + 1, "the number of words")
    need((record.n_settled >= 0) & (record.n_members >= record.n_settled), "members of a cluster do not add up")
    need(np.isfinite(record.base_u) & (record.base_u > 0) & (record.rate >= 0), "the weight of a cluster")
    within(state.prior.block, 0, len(state.prior.blocks), "the block of a feature")
    need((state.prior.blocks.strength > 0) & np.isfinite(state.prior.seen).all(), "the base measure")
    n_docs = int(now.n_docs)
    # `here` is followed while its stamp is that of the present sweep, and each sweep begins with a larger one
    need(record.stamp <= now.stamp_now, "the stamp of a cluster")
    for name in ("first", "last"):
        within(record[name], -1, max(n_docs, 1), f"{name} member")


def _spans_apart(starts: np.ndarray, sizes: np.ndarray, top: int, what: str) -> None:
    order = np.argsort(starts, kind="stable")
    ends = (starts + sizes)[order]
    need(starts >= 0, f"{what} begin before their arena")
    need((ends[:-1] <= starts[order][1:]) & (ends[-1:] <= top).all(), f"{what} overlap")


def _free_blocks(heads: np.ndarray, follow: np.ndarray, smallest: int, top: int) -> Iterable[tuple[int, int]]:
    for size_class, head in enumerate(heads.tolist()):
        size, seen = smallest << size_class, 0
        while head >= 0:
            need(head + size <= top and seen * size <= top, "a list of free blocks does not end")
            yield head, size
            head, seen = int(follow[head]), seen + 1


def _check_tables(state: StreamState) -> None:
    """Tables lie apart, have an empty place each, and agree with the index entry by entry."""
    record, now, tables, postings = state.clusters.record[state.live], state.status[0], state.tables, state.postings
    sizes = st.SMALLEST_TABLE << record.size_class
    free = list(_free_blocks(tables.free, tables.keys, st.SMALLEST_TABLE, int(now.table_top)))
    starts = np.append(record.table_start, [at for at, _ in free]).astype(np.int64)
    _spans_apart(starts, np.append(sizes, [size for _, size in free]).astype(np.int64), int(now.table_top), "tables")
    held = postings.size_class >= 0
    within(postings.size_class, -1, st.N_CLASSES, "the size of a posting list")
    room = np.where(held, st.SMALLEST_POSTING << np.maximum(postings.size_class, 0), 0)
    need((postings.length >= 0) & (postings.length <= room), "the length of a posting list")
    free = list(_free_blocks(postings.free, postings.slot, st.SMALLEST_POSTING, int(now.posting_top)))
    starts = np.append(postings.start[held], [at for at, _ in free]).astype(np.int64)
    spans = np.append(room[held], [size for _, size in free]).astype(np.int64)
    _spans_apart(starts, spans, int(now.posting_top), "posting lists")
    n_entries = 0
    for slot, start, size in zip(state.live.tolist(), record.table_start.tolist(), sizes.tolist(), strict=True):
        keys = tables.keys[start : start + size]
        mine = np.flatnonzero(keys >= 0)
        n_entries += mine.size
        need(mine.size == state.clusters.record.n_terms[slot], "the number of words of a cluster")
        need(mine.size < size and (keys >= -1).all(), "a table of words is full")
        within(keys[mine], 0, len(postings.start), "a word")
        need(np.unique(keys[mine]).size == mine.size, "a word stands twice in a table")
        where = tables.where[start + mine]
        need((where >= 0) & (where < postings.length[keys[mine]]), "a word's place in the index")
        need(postings.slot[postings.start[keys[mine]] + where] == slot, "the index and a table")
    need(n_entries == postings.length.sum(), "the index holds words of no cluster")


def _check_window(state: StreamState) -> None:
    """Each cluster's members in the window are one list in order of time, as long as the cluster says."""
    n, window, record = state.n_docs, state.window, state.clusters.record
    docs = window.docs[:n]
    starts = window.starts[: n + 1]
    need((starts[0] == 0) & (np.diff(starts) >= 0).all() & (starts[-1] <= len(window.features)), "the window's rows")
    within(window.features[: starts[-1]], 0, max(1, len(state.prior.seen)), "a word of the window")
    need(np.isfinite(docs.time), "the times of the window")
    need(np.isin(docs.slot, state.live), "a message of the window has no cluster")
    need(docs.u >= 1.0, "the weight of a message")
    for name, other in (("next", "previous"), ("previous", "next")):
        within(docs[name], -1, max(n, 1), f"the {name} member")
        linked = np.flatnonzero(docs[name] >= 0)
        to = docs[name][linked]
        need((docs[other][to] == linked) & (docs.slot[to] == docs.slot[linked]), "a list of members")
    live = record[state.live]
    held = np.bincount(docs.slot, minlength=len(record))[state.live]
    need(held == live.n_members - live.n_settled, "members in the window do not add up")
    for end, none_beyond in (("first", docs.previous), ("last", docs.next)):
        at = live[end]
        need((at >= 0) == (held > 0), "a cluster without an end of its list")
        need((none_beyond[at[held > 0]] < 0) & (docs.slot[at[held > 0]] == state.live[held > 0]), "the ends of a list")
    follow, met = docs.next.tolist(), 0
    for at in live.first.tolist():
        while at >= 0 and met <= n:
            at, met = follow[at], met + 1
    need(met == n, "a list of members in pieces")
