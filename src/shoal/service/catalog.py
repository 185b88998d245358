"""The catalog: every cluster of a state by name, size and features, with a map of which are alike."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.report.cluster_map import cluster_map, feature_matrix
from shoal.service.edits import is_pinned, name_of
from shoal.service.record import LearnedItem
from shoal.service.state import State, cluster_sizes

N_FEATURES = 12  # of each cluster, for search and the map
N_ITEMS = 8
SORTS = ("size", "name", "id", "recent", "uncertainty")


@dataclass
class Entry:
    """One cluster in the list."""

    id: int
    name: str
    named: bool  # by a person
    size: float
    share: float
    features: list[str]
    uncertainty: float | None
    pinned: bool
    n_recent: int
    last_time: float | None
    rising: float  # items an hour now
    bursting: bool

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass
class Catalog:
    """All clusters of a state."""

    entries: list[Entry]
    vectors: sp.csr_matrix  # clusters x features, rows of unit length
    position: int
    made_at: float
    build_seconds: float
    last_edit: int
    ids: np.ndarray
    at: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, state: State) -> Catalog:
        """Describe every cluster of a state."""
        began = time.perf_counter()
        model: Any = state.model
        ids = state.cluster_ids()
        sizes = cluster_sizes(model)
        total = max(float(sizes.sum()), 1e-300)
        uncertainty = model.cluster_uncertainty() if hasattr(model, "cluster_uncertainty") else None
        tops = [model.top_features(id_, n=4 * N_FEATURES) for id_ in ids.tolist()]
        entries = []
        for row, (id_, top) in enumerate(zip(ids.tolist(), tops, strict=True)):
            names = [str(name) for name in model.name_features(top.features[:N_FEATURES])]
            rates = state.record.rates.get(id_)
            given = name_of(model, id_)
            salient = [name for name, value in zip(names, top.values, strict=False) if value >= 0.1 * top.values[0]]
            entries.append(
                Entry(
                    id=id_,
                    name=given if given is not None else ", ".join(salient[:3]) or f"cluster {id_}",
                    named=given is not None,
                    size=float(sizes[row]),
                    share=float(sizes[row]) / total,
                    features=names,
                    uncertainty=_one(uncertainty, row, ids.size),
                    pinned=is_pinned(model, id_),
                    n_recent=rates.n_items if rates else 0,
                    last_time=rates.last if rates else None,
                    rising=rates.per_hour() if rates else 0.0,
                    bursting=bool(rates and rates.bursting),
                )
            )
        vectors = feature_matrix([(top.features, top.values) for top in tops], int(model.n_features_in_))
        return cls(
            entries, vectors, state.record.position, time.time(), time.perf_counter() - began, last_edit(state),
            ids, {int(id_): row for row, id_ in enumerate(ids)},
        )  # fmt: skip

    def describes(self, state: State) -> bool:
        """Whether this catalog may stand for a state: the same one, or so little older that making it anew is waste."""
        if self.position == state.record.position:
            return True
        unedited = self.last_edit == last_edit(state) and np.array_equal(self.ids, state.cluster_ids())
        return unedited and time.time() - self.made_at < 20 * self.build_seconds

    # --- lists --------------------------------------------------------------------------------------------------------

    def find(self, search: str = "", sort: str = "size", descending: bool = True) -> list[Entry]:
        """Entries that contain every word searched for, in their name, id or features."""
        words = search.lower().split()
        found = [
            entry for entry, text in zip(self.entries, self._texts, strict=True) if all(word in text for word in words)
        ]
        keys: dict[str, Any] = {
            "size": lambda entry: entry.size,
            "name": lambda entry: entry.name.lower(),
            "id": lambda entry: entry.id,
            "recent": lambda entry: entry.last_time or 0.0,
            "uncertainty": lambda entry: entry.uncertainty or 0.0,
        }
        return sorted(found, key=keys[sort], reverse=descending)

    @cached_property
    def _texts(self) -> list[str]:
        return [f"{entry.id}\n{entry.name}\n".lower() + "\n".join(entry.features).lower() for entry in self.entries]

    @cached_property
    def map(self) -> np.ndarray:
        """Where each cluster lies, (n, 2) in the unit square: those that are alike are near each other."""
        return cluster_map(self.vectors, np.array([entry.size for entry in self.entries]))

    def neighbors(self, cluster: int, n: int = 5) -> list[tuple[Entry, float]]:
        """The clusters whose features are most alike."""
        row = self.at[cluster]
        similar = np.asarray((self.vectors @ self.vectors[row].T).todense()).ravel()
        similar[row] = -1.0
        best = np.argsort(-similar, kind="stable")[:n]
        return [(self.entries[at], float(similar[at])) for at in best if similar[at] > 0]

    # --- one cluster --------------------------------------------------------------------------------------------------

    def card(self, state: State, cluster: int) -> dict[str, Any]:
        """Everything there is to say about one cluster."""
        model: Any = state.model
        top = model.top_features(cluster, n=20)
        names = [str(name) for name in model.name_features(top.features)]
        features = [
            {
                "name": name,
                "value": float(top.values[at]),
                "low": None if top.low is None else float(top.low[at]),
                "high": None if top.high is None else float(top.high[at]),
            }
            for at, name in enumerate(names)
        ]
        items = state.record.items_of(cluster)
        neighbors = self.neighbors(cluster)
        return {
            **self.entries[self.at[cluster]].as_dict(),
            "features": features,
            "meaning": top.meaning,
            "bounded": top.bounded,
            "score_meaning": getattr(model, "typicality_meaning", "score"),
            "neighbors": [self._compared(names, other, similarity) for other, similarity in neighbors],
            "typical_items": _facts(items[:N_ITEMS]),
            "borderline_items": _facts(reversed(items[N_ITEMS:][-N_ITEMS:])),
            "history": timeline_of(state, cluster),
            "events": [event for event in state.record.events if cluster in (event["cluster"], event["into"])][-50:],
        }

    @staticmethod
    def _compared(names: list[str], other: Entry, similarity: float) -> dict[str, Any]:
        """What this cluster has and a neighbor has not, and the other way round."""
        mine, theirs = set(names), set(other.features)
        return {
            "id": other.id,
            "name": other.name,
            "similarity": similarity,
            "only_here": [name for name in names[:N_FEATURES] if name not in theirs][:5],
            "only_there": [name for name in other.features if name not in mine][:5],
        }


def last_edit(state: State) -> int:
    """The position of the newest edit or undoing; 0 if there is none."""
    return max((max(edit["edit"], edit["undone"]) for edit in state.record.edits), default=0)


def timeline_of(state: State, cluster: int) -> dict[str, Any]:
    """Items of a cluster over time: the first bin, its length in seconds, and the counts."""
    record = state.record
    bins = record.timeline.get(cluster, {})
    counts = [bins.get(at, 0) for at in range(record.first_bin, record.last_bin + 1)] if bins else []
    return {"start": record.first_bin * record.bin_seconds, "bin_seconds": record.bin_seconds, "counts": counts}


def _facts(items: Iterable[LearnedItem]) -> list[dict[str, Any]]:
    return [
        {
            "id": item.id,
            "score": item.score if item.score == item.score else None,
            "time": item.time,
            "features": list(item.features[:20]),
        }
        for item in items
    ]


def _one(values: Any, at: int, n: int) -> float | None:
    if values is None or len(values) != n:
        return None
    value = float(values[at])
    return value if value == value else None
