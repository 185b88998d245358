"""The life of a cluster: born, at its peak, last seen, how large over time, what became of it; and events.

Live clusters keep their life in the state's arrays. When a cluster is retired its life is written down here, in memory
or, for a stream without end, in a history folder.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shoal.base import storable
from shoal.errors import BadInput, BadSource
from shoal.streams.state import arrays as st
from shoal.streams.state.arrays import MIN_REPORTED_SIZE
from shoal.streams.state.state_arrays import writable
from shoal.streams.state.stream_state import StreamState


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
    pieces: int = 1  # arrival clusters of the story

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


def history_of_slot(state: StreamState, slot: int, times: np.ndarray | None = None) -> ClusterHistory:
    """A live arrival cluster: its settled members, and those still in the window (at these times)."""
    record = state.clusters.record[slot]
    counts = state.clusters.activity[slot].astype(float)
    if times is None:
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


class Mark(NamedTuple):
    """How far a history was."""

    n_labels: int
    n_retired: int
    retired: dict[int, ClusterHistory]
    gone: dict[int, ClusterHistory]
    merged: dict[int, int]
    n_merges: int
    n_lines: int  # bytes of the file of clusters


@storable
@dataclass
class History:
    """What is remembered of messages that no longer change and of clusters that are gone.

    In memory, or in a folder that the caller has named: a model file may name one too, and it is not used.
    """

    folder: str | None = None
    retired: dict[int, ClusterHistory] = field(default_factory=dict)  # arrival clusters that may come back
    gone: dict[int, ClusterHistory] = field(default_factory=dict)  # what retired clusters left to each story
    merged: dict[int, int] = field(default_factory=dict)  # emptied clusters and who got their documents
    merges: list[tuple[int, int, float]] = field(default_factory=list)  # stories: gone, into, when
    labels: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # by number of arrival
    times: np.ndarray = field(default_factory=lambda: np.zeros(0))
    n_labels: int = 0  # beyond the last that settled; a message that came early for its time may settle later
    n_retired: int = 0

    def __post_init__(self) -> None:
        for name in ("labels", "times"):
            setattr(self, name, writable(getattr(self, name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def use_folder(self, folder: str | None) -> None:
        """Write to this folder from now on."""
        self.folder = folder
        if folder is None:
            return
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError, TypeError) as error:
            raise BadSource(f"history_dir={folder!r} cannot be made: {error}.") from None

    def mark(self) -> Mark:
        """Remember how far it is, for :meth:`restore`."""
        gone = {id_: copy.copy(life) for id_, life in self.gone.items()}
        merges = (dict(self.merged), len(self.merges))
        size = self._clusters_file.stat().st_size if self.folder and self._clusters_file.exists() else 0
        return Mark(self.n_labels, self.n_retired, dict(self.retired), gone, *merges, size)

    def restore(self, mark: Mark) -> None:
        """Forget what came after the mark."""
        self.n_labels, self.n_retired, self.retired, self.gone, self.merged = mark[:5]
        del self.merges[mark.n_merges :]
        if self.folder and self._clusters_file.exists():
            os.truncate(self._clusters_file, mark.n_lines)

    @property
    def _clusters_file(self) -> Path:
        return Path(str(self.folder)) / "clusters.jsonl"

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

    def settled(self, first: int, last: int, recent: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The arrival clusters of messages first..last-1; recent are those of the window, with their numbers."""
        values = np.full(last - first, -1, dtype=np.int64)
        if self.folder is not None and self.n_labels > first:
            with open(Path(self.folder) / "labels.int64", "rb") as labels:
                labels.seek(8 * first)
                read = np.frombuffer(labels.read(8 * (last - first)), dtype="<i8")
            values[: read.size] = read
        elif self.folder is None:
            kept = self.labels[first : min(last, self.n_labels)]
            values[: kept.size] = kept
        inside = (numbers >= first) & (numbers < last)
        values[numbers[inside] - first] = recent[inside]
        return values

    def note_merge(self, gone: int, into: int, at: float) -> None:
        """Two stories are one."""
        self.merges.append((gone, into, at))
        if gone in self.gone:
            self.gone[into] = joined(self.gone.pop(gone), self.gone.get(into), into)

    def retire(self, life: ClusterHistory, story: int, *, alone: bool = True) -> None:
        """An arrival cluster is gone; what it was is kept for its story, if it mattered."""
        life.alive = False
        self.n_retired += 1
        if life.size < MIN_REPORTED_SIZE and life.reactivates_at is None and alone:
            return
        if self.folder is not None:
            with open(self._clusters_file, "a") as out:
                out.write(json.dumps(asdict(life) | {"story": story}) + "\n")
        if self.folder is None or life.reactivates_at is not None:
            self.retired[life.id] = life
        if self.folder is None:
            self.gone[story] = joined(life, self.gone.get(story), story)

    def stories(self, root: Callable[[int], int]) -> dict[int, ClusterHistory]:
        """What retired clusters left to each story, read back from the folder where there is one."""
        if self.folder is None or not self._clusters_file.exists():
            return self.gone
        found: dict[int, ClusterHistory] = {}
        with open(self._clusters_file) as lines:
            for line in lines:
                values = json.loads(line)
                story = root(values.pop("story", values["id"]))
                found[story] = joined(ClusterHistory(**values), found.get(story), story)
        return found

    def revived(self, id_: int) -> ClusterHistory:
        """Take a retired arrival cluster out of the history: it comes back."""
        life = self.retired.pop(id_, None)
        if life is None and self.folder is not None and self._clusters_file.exists():
            with open(self._clusters_file) as lines:
                for line in lines:
                    values = json.loads(line)
                    if values["id"] == id_:
                        values.pop("story", None)
                        life = ClusterHistory(**values)
        if life is None:
            raise BadInput(f"no retired cluster has id {id_} (below {MIN_REPORTED_SIZE} members none is kept).")
        self.gone.pop(id_, None)
        return life


def joined(life: ClusterHistory, other: ClusterHistory | None, story: int) -> ClusterHistory:
    """The history of two clusters of one story together.

    >>> a = ClusterHistory(1, 0.0, 4.0, 0.0, 5, [3.0, 2.0], 2.0)
    >>> both = joined(a, ClusterHistory(2, 2.0, 3.0, 2.0, 3, [3.0], 0.0), 1)
    >>> both.born, both.last_seen, both.size, sum(both.counts)
    (0.0, 4.0, 8, 8.0)
    """
    if other is None:
        both = copy.copy(life)
        both.id = story
        return both
    born, last = min(life.born, other.born), max(life.last_seen, other.last_seen)
    step = (last - born) / st.HISTORY_BINS
    counts = np.zeros(st.HISTORY_BINS if step else 1)
    for each in (life, other):
        at = ((each.times() + each.step / 2 - born) / step).astype(int) if step else np.zeros(len(each.counts), int)
        np.add.at(counts, np.clip(at, 0, counts.size - 1), each.counts)
    words = dict(zip(life.features, life.amounts, strict=True))
    for feature, amount in zip(other.features, other.amounts, strict=True):
        words[feature] = words.get(feature, 0.0) + amount
    established = [each.established_at for each in (life, other) if each.established_at is not None]
    return ClusterHistory(
        story,
        born,
        last,
        born + step * int(np.argmax(counts)),
        life.size + other.size,
        counts.tolist(),
        step,
        alive=life.alive or other.alive,
        pinned=life.pinned or other.pinned,
        features=list(words),
        amounts=list(words.values()),
        established_at=min(established) if established else None,
        pieces=life.pieces + other.pieces,
    )


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
