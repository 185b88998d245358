"""The life of a cluster: born, at its peak, last seen, how large over time, what became of it; and events.

Live clusters keep their life in the state's arrays. When a cluster is retired its life is written down here, in memory
or, for a stream without end, in a history folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.base import storable
from shoal.errors import BadInput, BadSource
from shoal.streams.state import arrays as st
from shoal.streams.state.arrays import MIN_REPORTED_SIZE
from shoal.streams.state.stream_state import StreamState, writable


@storable
@dataclass
class ClusterHistory:
    """One cluster over time."""

    id: int
    born: float
    last_seen: float
    peak: float  # when it was heaviest
    size: int
    counts: list[float]  # members in equal steps of time from birth on
    step: float  # length of a step, 0 if all came at once
    alive: bool = True
    merged_into: int | None = None
    name: str | None = None
    pinned: bool = False
    features: list[int] = field(default_factory=list)  # a retired cluster's words, all of them
    amounts: list[float] = field(default_factory=list)
    base_u: float = 0.0  # what revival needs
    base_wave: list[float] = field(default_factory=list)
    reactivates_at: float | None = None  # when a periodic kernel will want it back
    established_at: float | None = None  # when it first weighed as much as three messages at once

    def times(self) -> np.ndarray:
        """Where each step of ``counts`` begins."""
        return self.born + self.step * np.arange(len(self.counts))


def history_from_members(id_: int, times: np.ndarray, bins: int = st.HISTORY_BINS) -> ClusterHistory:
    """A life straight from the times of its members.

    >>> life = history_from_members(7, np.array([0.0, 1.0, 1.5, 8.0]), bins=4)
    >>> life.born, life.last_seen, life.peak, life.counts
    (0.0, 8.0, 0.0, [3.0, 0.0, 0.0, 1.0])
    """
    born, last = float(times.min()), float(times.max())
    counts, edges = np.histogram(times, bins=bins, range=(born, last if last > born else born + 1.0))
    step = float(edges[1] - edges[0]) if last > born else 0.0
    return ClusterHistory(
        int(id_),
        born,
        last,
        float(edges[int(np.argmax(counts))]),
        len(times),
        [float(count) for count in (counts if step else counts[:1])],
        step,
        established_at=float(np.sort(times)[MIN_REPORTED_SIZE - 1]) if len(times) >= MIN_REPORTED_SIZE else None,
    )


def history_of_slot(state: StreamState, slot: int) -> ClusterHistory:
    """The life of a live cluster: its settled members, and those still in the window."""
    record = state.clusters.record[slot]
    counts = state.clusters.activity[slot].astype(float)
    times = state.window.docs.time[: state.n_docs][state.window.docs.slot[: state.n_docs] == slot]
    born, width = float(record.born), float(record.bin_width)
    if times.size:
        born = min(born, float(times.min()))
        width = width or float(times.max() - born) / 8 or 0.0
        bins = ((times - born) / width).astype(int) if width else np.zeros(times.size, int)
        counts = np.concatenate([counts, np.zeros(max(0, int(bins.max()) + 1 - counts.size))])
        np.add.at(counts, bins, 1.0)
    filled = np.flatnonzero(counts)
    counts = counts[: int(filled[-1]) + 1] if filled.size else counts[:1]
    return ClusterHistory(
        int(record.id),
        born,
        float(record.last_time),
        float(born + width * int(np.argmax(counts))),
        int(record.n_members),
        counts.tolist(),
        width,
        pinned=bool(record.pinned),
        established_at=None if np.isnan(record.established_at) else float(record.established_at),
    )


@storable
@dataclass
class History:
    """Lives of clusters that are gone, and labels that no longer change."""

    folder: str | None = None
    retired: dict[int, ClusterHistory] = field(default_factory=dict)  # with a folder: dormant ones only
    merged: dict[int, int] = field(default_factory=dict)  # emptied clusters and who got their documents
    names: dict[int, str] = field(default_factory=dict)
    labels: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # by number of arrival
    times: np.ndarray = field(default_factory=lambda: np.zeros(0))
    n_labels: int = 0  # beyond the last that settled; a message that came early for its time may settle later
    n_retired: int = 0
    edits: list[dict[str, Any]] = field(default_factory=list)  # what users did, as events

    def __post_init__(self) -> None:
        for name in ("labels", "times"):
            setattr(self, name, writable(getattr(self, name)))
        if self.folder is not None:
            try:
                Path(self.folder).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BadSource(f"history folder {self.folder!r} cannot be made: {error}.") from None

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def keep(self, numbers: np.ndarray, labels: np.ndarray, times: np.ndarray) -> None:
        """Documents that have settled: their numbers in order of arrival, clusters and times."""
        beyond = max(self.n_labels, int(numbers.max()) + 1)
        if self.folder is not None:
            first = int(numbers.min())
            patch(Path(self.folder) / "labels.int64", "<i8", first, numbers - first, labels)
            patch(Path(self.folder) / "times.float64", "<f8", first, numbers - first, times)
        else:
            if beyond > len(self.labels):
                size = max(beyond, 2 * len(self.labels), 1024)
                self.labels, self.times = st.longer(self.labels, size, -1), st.longer(self.times, size)
            self.labels[numbers], self.times[numbers] = labels, times
        self.n_labels = beyond

    def retire(self, life: ClusterHistory) -> None:
        """A cluster is gone; those that mattered are remembered."""
        life.alive = False
        self.n_retired += 1
        if life.size < MIN_REPORTED_SIZE and life.reactivates_at is None:
            return
        if self.folder is not None:
            with open(Path(self.folder) / "clusters.jsonl", "a") as out:
                out.write(json.dumps(asdict(life)) + "\n")
        if self.folder is None or life.reactivates_at is not None:
            self.retired[life.id] = life

    def all_retired(self) -> Iterator[ClusterHistory]:
        """Every retired life worth telling, read back from the folder where there is one."""
        path = Path(self.folder) / "clusters.jsonl" if self.folder is not None else None
        if path is None:
            yield from self.retired.values()
        elif path.exists():
            with open(path) as lines:
                latest = {life["id"]: life for life in map(json.loads, lines)}
            yield from (ClusterHistory(**life) for life in latest.values())

    def life(self, id_: int) -> ClusterHistory:
        """One retired life."""
        if id_ in self.retired:
            return self.retired[id_]
        for life in self.all_retired():
            if life.id == id_:
                return life
        raise BadInput(f"no retired cluster has id {id_} (below {MIN_REPORTED_SIZE} members none is kept).")


def patch(path: Path, kind: str, first: int, places: np.ndarray, values: np.ndarray) -> None:
    """Write values at places (counted from ``first``) of a file of numbers; what lies between stays as it is."""
    size = np.dtype(kind).itemsize
    with open(path, "r+b" if path.exists() else "w+b") as out:
        out.seek(first * size)
        span = np.zeros(int(places.max()) + 1, dtype=kind)
        there = np.frombuffer(out.read(span.nbytes), dtype=kind)
        span[: there.size] = there
        span[places] = values
        out.seek(first * size)
        out.write(span.tobytes())


def follow(merged: dict[int, int], id_: int) -> int:
    """Who has the documents of an emptied cluster now.

    >>> follow({1: 2, 2: 5}, 1)
    5
    """
    seen = set()
    while id_ in merged and id_ not in seen:
        seen.add(id_)
        id_ = merged[id_]
    return id_


def bursts(life: ClusterHistory, *, least: int = 5, factor: float = 3.0) -> list[float]:
    """Times at which a cluster spoke much more than it usually does: the first step of each run above the bar.

    The bar is ``factor`` times the mean of the other steps, and at least ``least`` members in a step.

    >>> bursts(ClusterHistory(0, 0.0, 9.0, 3.0, 26, [1, 1, 2, 20, 1, 1], 1.5))
    [4.5]
    """
    counts = np.asarray(life.counts, dtype=float)
    if counts.size < 3:
        return []
    usual = (counts.sum() - counts) / (counts.size - 1)
    high = (counts >= least) & (counts > factor * np.maximum(usual, 0.5))
    begins = high & ~np.concatenate([[False], high[:-1]])
    return [float(at) for at in life.times()[begins]]


def events_of(lives: list[ClusterHistory], edits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Births, bursts, merges and deaths in order of time, for clusters that had enough members to matter."""
    events = list(edits)
    for life in lives:
        if life.size < MIN_REPORTED_SIZE or life.established_at is None:
            continue
        # one early message that happened to share the words is no story: a cluster is born when it is established
        events.append({"kind": "birth", "id": life.id, "into": None, "at": life.established_at})
        events += [
            {"kind": "burst", "id": life.id, "into": None, "at": at} for at in bursts(life) if at > life.established_at
        ]
        if not life.alive:
            kind = "death" if life.merged_into is None else "merge"
            events.append({"kind": kind, "id": life.id, "into": life.merged_into, "at": life.last_seen})
    return sorted(events, key=lambda event: (event["at"], event["id"]))
