"""The catalog: every cluster of a state by name, size and features, with a map of which are alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import TopFeatures
from shoal.report.cards import distinctive_words
from shoal.report.cluster_map import cluster_map, feature_matrix
from shoal.report.naming import N_CANDIDATES, unique_names
from shoal.service.comparison import compared
from shoal.service.edits import ACTIONS, STRUCTURAL, is_pinned, name_of
from shoal.service.record import LearnedItem
from shoal.service.state import State, cluster_sizes

N_FEATURES = 12  # of each cluster, for search and the map
QUICK_SECONDS = 0.1  # a catalog made so fast is made while the caller waits
N_WORDS = 2  # of a name: more where two clusters would be called the same
N_ITEMS = 8
N_SHOWN = 20  # features on a card
SORTS = ("size", "name", "id", "recent", "uncertainty")
ONLY: dict[str, Callable[[Entry], bool]] = {
    "named": lambda entry: entry.named,
    "pinned": lambda entry: entry.pinned,
    "bursting": lambda entry: entry.bursting,
    "active": lambda entry: entry.n_recent > 0,
}


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
    found_names: list[str]  # what each cluster is called if nobody names it
    vectors: sp.csr_matrix  # clusters x features, rows of unit length
    position: int
    made_at: float
    build_seconds: float
    last_edit: int
    last_structural_edit: int
    ids: np.ndarray
    at: dict[int, int] = field(default_factory=dict)
    ranges: dict[int, tuple[float, float]] = field(default_factory=dict)  # of measurements, over all clusters

    @classmethod
    def of(cls, state: State) -> Catalog:
        """Describe every cluster of a state."""
        began = time.perf_counter()
        model: Any = state.model
        ids = state.cluster_ids()
        sizes = cluster_sizes(model)
        total = max(float(sizes.sum()), 1e-300)
        uncertainty = model.cluster_uncertainty() if hasattr(model, "cluster_uncertainty") else None
        tops = [model.top_features(id_, n=N_CANDIDATES) for id_ in ids.tolist()]
        found = unique_names(distinctive_words(model, ids, tops, sizes), ids.tolist(), N_WORDS)
        entries = []
        for row, (id_, top) in enumerate(zip(ids.tolist(), tops, strict=True)):
            names = [str(name) for name in model.name_features(top.features[:N_FEATURES])]
            rates = state.record.rates.get(id_)
            given = name_of(model, id_)
            entries.append(
                Entry(
                    id=id_,
                    name=found[row] if given is None else given,
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
            entries, found, vectors, state.record.position, time.time(), time.perf_counter() - began, last_edit(state),
            last_edit(state, STRUCTURAL), ids, {int(id_): row for row, id_ in enumerate(ids)}, _ranges(tops),
        )  # fmt: skip

    def fits(self, state: State, actions: tuple[str, ...] = ACTIONS) -> bool:
        """Whether it has the clusters of a state, and none of these edits came since."""
        mine = self.last_edit if actions == ACTIONS else self.last_structural_edit
        return mine == last_edit(state, actions) and np.array_equal(self.ids, state.cluster_ids())

    def is_old(self, state: State) -> bool:
        """Whether items came since, and making it anew would be a small part of all that is done."""
        return self.position != state.record.position and time.time() - self.made_at >= 20 * self.build_seconds

    def renamed(self, state: State) -> Catalog | None:
        """This catalog with the names and pins of a state; None if more than those has changed."""
        if not self.fits(state, STRUCTURAL):
            return None
        model, entries = state.model, []
        for entry, found in zip(self.entries, self.found_names, strict=True):
            given = name_of(model, entry.id)
            name, pinned = found if given is None else given, is_pinned(model, entry.id)
            entries.append(replace(entry, name=name, named=given is not None, pinned=pinned))
        again = replace(self, entries=entries, last_edit=last_edit(state))
        if "map" in vars(self):  # names move nothing
            vars(again)["map"] = self.map
        return again

    # --- lists --------------------------------------------------------------------------------------------------------

    def find(
        self, search: str = "", sort: str = "size", descending: bool = True, only: str | None = None
    ) -> list[Entry]:
        """Entries that contain every word searched for, in their name, id or features."""
        words = search.lower().split()
        found = [
            entry
            for entry, text in zip(self.entries, self._texts, strict=True)
            if (only is None or ONLY[only](entry)) and all(word in text for word in words)
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
        top = model.top_features(cluster, n=N_CANDIDATES)
        names = [str(name) for name in model.name_features(top.features[:N_SHOWN])]
        features = [
            {
                "name": name,
                "value": float(top.values[at]),
                "low": None if top.low is None else float(top.low[at]),
                "high": None if top.high is None else float(top.high[at]),
                "range": self.ranges.get(int(top.features[at])) if top.levels is not None and top.levels[at] else None,
            }
            for at, name in enumerate(names)
        ]
        items = state.record.items_of(cluster)
        typical, borderline = items[:N_ITEMS], items[N_ITEMS:][-N_ITEMS:][::-1]
        if not items:
            fitted = state.record.fitted.get(cluster, [])
            typical, borderline = fitted[:N_ITEMS], fitted[N_ITEMS:][-N_ITEMS:][::-1]
        return {
            **self.entries[self.at[cluster]].as_dict(),
            "features": features,
            "meaning": top.meaning,
            "bounded": top.bounded,
            "score_meaning": getattr(model, "typicality_meaning", "score"),
            "neighbors": [
                {"id": other.id, "name": other.name, "similarity": similarity}
                | compared(model, top, model.top_features(other.id, n=N_CANDIDATES), self.ranges)
                for other, similarity in self.neighbors(cluster)
            ],
            "typical_items": _facts(typical),
            "borderline_items": _facts(borderline),
            "history": timeline_of(state, cluster),
            "events": [event for event in state.record.events if cluster in (event["cluster"], event["into"])][-50:],
        }


class Catalogs:
    """The newest catalog of a state that moves on. One that is only a little old is used until the next is made."""

    def __init__(self) -> None:
        self.newest: Catalog | None = None
        self._lock = threading.Lock()
        self._is_refreshing = False

    def of(self, state: State) -> Catalog:
        """A catalog that fits a state: its clusters and their names, with sizes that may be a little old."""
        with self._lock:
            newest = self.newest
            if newest is not None and newest.fits(state):
                if newest.is_old(state):
                    if newest.build_seconds < QUICK_SECONDS:
                        self.newest = Catalog.of(state)
                    elif not self._is_refreshing:
                        self._is_refreshing = True
                        threading.Thread(target=self._refresh, args=(state,), name="catalog", daemon=True).start()
            else:
                self.newest = (newest and newest.renamed(state)) or Catalog.of(state)
            return self.newest  # type: ignore[return-value]

    def _refresh(self, state: State) -> None:
        try:
            fresh = Catalog.of(state)
            _ = fresh.map
            with self._lock:
                newest = self.newest
                if newest is None or (newest.last_edit <= fresh.last_edit and newest.position <= fresh.position):
                    self.newest = fresh
        finally:
            self._is_refreshing = False


def last_edit(state: State, actions: tuple[str, ...] = ACTIONS) -> int:
    """The position of the newest edit of these kinds, or undoing of one; 0 if there is none."""
    edits = (edit for edit in state.record.edits if edit["action"] in actions)
    return max((max(edit["edit"], edit["undone"]) for edit in edits), default=0)


def timeline_of(state: State, cluster: int) -> dict[str, Any]:
    """Items of a cluster over time: the first bin, its length in seconds, and the counts."""
    record = state.record
    bins = record.timeline.get(cluster, {})
    counts = [bins.get(at, 0) for at in range(record.first_bin, record.last_bin + 1)] if bins else []
    return {"start": record.first_bin * record.bin_seconds, "bin_seconds": record.bin_seconds, "counts": counts}


def _ranges(tops: Iterable[TopFeatures]) -> dict[int, tuple[float, float]]:
    """The lowest and the highest cluster of each measurement."""
    found: dict[int, tuple[float, float]] = {}
    for top in tops:
        if top.levels is None:
            continue
        for feature, value in zip(top.features[top.levels].tolist(), top.values[top.levels].tolist(), strict=True):
            low, high = found.get(feature, (value, value))
            found[feature] = (min(low, value), max(high, value))
    return found


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
