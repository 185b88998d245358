"""Stable cluster ids, the names and pins given to them, and what happened to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from shoal.errors import BadInput, BadModelFile
from shoal.storable import storable


@storable
@dataclass
class Roster:
    """Stable cluster ids: a removed id is never used again; births, merges, splits and deaths are recorded.

    >>> roster = Roster.of(3)
    >>> roster.merge([1], into=0)
    >>> roster.add(2).tolist(), roster.ids.tolist()
    ([3, 4], [0, 2, 3, 4])
    >>> roster.events[0]
    {'kind': 'merge', 'id': 1, 'into': 0, 'at': None}
    """

    ids: np.ndarray  # ids of the live clusters, in the order of the model's rows
    next_id: int = 0
    names: dict[int, str] = field(default_factory=dict)  # given by the user
    pinned: list[int] = field(default_factory=list)  # never removed or merged by the model itself
    events: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, n_clusters: int) -> Roster:
        """Ids 0 to ``n_clusters - 1``."""
        return cls(ids=np.arange(n_clusters, dtype=np.int64), next_id=n_clusters)

    def copy(self) -> Roster:
        """A roster of its own, for changes that may have to be undone."""
        return Roster(self.ids.copy(), self.next_id, dict(self.names), list(self.pinned), list(self.events))

    def add(self, n: int, at: float | None = None) -> np.ndarray:
        """``n`` new clusters at the end of the rows; their ids."""
        new = np.arange(self.next_id, self.next_id + n, dtype=np.int64)
        self.ids = np.concatenate([self.ids, new])
        self.next_id += n
        self.events += [{"kind": "birth", "id": int(id_), "into": None, "at": at} for id_ in new]
        return new

    def remove(self, ids: Any, *, kind: str = "death", into: int | None = None, at: float | None = None) -> None:
        """Take clusters off; ``kind`` and ``into`` say what became of them."""
        gone = np.atleast_1d(np.asarray(ids, dtype=np.int64))
        self.ids = self.ids[~np.isin(self.ids, gone)]
        self.pinned = [id_ for id_ in self.pinned if id_ not in gone]
        self.events += [{"kind": kind, "id": int(id_), "into": into, "at": at} for id_ in gone]

    def to_merge(self, clusters: Any, into: int) -> list[int]:
        """The distinct ids of ``clusters`` but for ``into``; all must be live clusters, and one at least be left.

        >>> Roster.of(3).to_merge([1, 0, 1], into=0)
        [1]
        """
        asked = np.atleast_1d(np.asarray(clusters)).tolist()
        for id_ in (*asked, into):
            self.row_of(id_)
        gone = [id_ for id_ in dict.fromkeys(asked) if id_ != into]
        if not gone:
            raise BadInput(f"there is nothing to merge into cluster {into} but itself; name other clusters.")
        return gone

    def merge(self, clusters: Iterable[int] | int, into: int, at: float | None = None) -> None:
        """End the ids ``clusters``: their rows belong to ``into``, which keeps its name or takes their first."""
        gone = [int(id_) for id_ in np.atleast_1d(np.asarray(clusters, dtype=np.int64)) if id_ != into]
        for id_ in (*gone, into):
            self.row_of(id_)
        for id_ in gone:
            name = self.names.pop(id_, None)
            if name is not None:
                self.names.setdefault(int(into), name)
        self.remove(gone, kind="merge", into=int(into), at=at)

    def split(self, cluster: int, n: int = 1, at: float | None = None) -> np.ndarray:
        """``n`` new ids for parts that leave ``cluster``."""
        self.row_of(cluster)
        new = self.add(n, at)
        del self.events[len(self.events) - n :]
        self.events += [{"kind": "split", "id": int(id_), "into": int(cluster), "at": at} for id_ in new]
        return new

    def name(self, cluster: int, name: str | None, at: float | None = None) -> None:
        """Give a cluster a name; None or "" takes the name away."""
        self.row_of(cluster)
        if name is not None and not isinstance(name, str):
            raise BadInput(f"the name of cluster {cluster} is {name!r}; it must be text.")
        if name:
            self.names[int(cluster)] = name
        else:
            self.names.pop(int(cluster), None)
        self.events.append({"kind": "name", "id": int(cluster), "into": None, "at": at, "name": name or None})

    def pin(self, cluster: int, pinned: bool = True, at: float | None = None) -> None:
        """Keep learning from removing or merging this cluster, or allow it again."""
        self.row_of(cluster)
        kept = [id_ for id_ in self.pinned if id_ != cluster]
        self.pinned = [*kept, int(cluster)] if pinned else kept
        self.events.append({"kind": "pin" if pinned else "unpin", "id": int(cluster), "into": None, "at": at})

    def is_pinned(self) -> np.ndarray:
        """For each live cluster, whether it is pinned."""
        return np.isin(self.ids, self.pinned)

    def row_of(self, id_: int) -> int:
        """The model's row that holds this id."""
        rows = np.flatnonzero(self.ids == id_) if isinstance(id_, Integral) else np.zeros(0)
        if not rows.size:
            known = f"ids run from {self.ids.min()} to {self.ids.max()}" if self.ids.size else "there are no clusters"
            into = next((e["into"] for e in self.events if e["kind"] == "merge" and e["id"] == id_), None)
            merged = "" if into is None else f" It was merged into {into}."
            raise BadInput(f"no cluster has id {id_!r}; {known}, and removed ids are not used again.{merged}")
        return int(rows[0])

    def check_state(self) -> None:
        """Refuse a roster from a file that contradicts itself."""
        ids = self.ids
        sound = (
            isinstance(ids, np.ndarray)
            and ids.ndim == 1
            and ids.dtype == np.int64
            and np.unique(ids).size == ids.size
            and isinstance(self.next_id, int)
            and (not ids.size or (ids.min() >= 0 and ids.max() < self.next_id))
            and isinstance(self.names, dict)
            and all(isinstance(key, int) and isinstance(name, str) for key, name in self.names.items())
            and isinstance(self.pinned, list)
            and all(isinstance(id_, int) for id_ in self.pinned)
            and isinstance(self.events, list)
            and all(isinstance(event, dict) for event in self.events)
        )
        if not sound:
            raise BadModelFile("the model's cluster ids contradict one another. Restore the file from a copy.")
