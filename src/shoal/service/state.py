"""What a service has learned: a model and a record. It changes by the entries of the journal and by nothing else."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.base import Estimator
from shoal.data import Dataset, Vocabulary
from shoal.data.recipe import Recipe
from shoal.errors import BadInput, ShoalError
from shoal.service.items import Item, RowBuilder
from shoal.service.record import LearnedItem, Record

# What a model may raise about rows that it cannot learn. The entry is counted as refused, and the same on replay.
UNLEARNABLE = (ShoalError, ValueError, ArithmeticError, IndexError, TypeError)
CALIBRATION_ROWS = 256


class State:
    """A model that learns, and the record of what happened.

    Examples
    --------
    >>> from shoal import SphericalKMeans
    >>> state = State(SphericalKMeans(2, random_state=0))
    >>> items = [{"id": str(n), "features": ["a", "b"] if n % 2 else ["c", "d"]} for n in range(4)]
    >>> state.learn(items, first=1, last=1)
    >>> state.record.n_items, state.cluster_ids().tolist(), len(state.record.items_of(0))
    (4, [0, 1], 2)
    """

    def __init__(self, model: Estimator, record: Record | None = None) -> None:
        self.model = model
        self.record = Record() if record is None else record
        self._rows: RowBuilder | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether the model has clusters to ask about."""
        return hasattr(self.model, "n_features_in_")

    @property
    def rows(self) -> RowBuilder:
        """Turns items into rows of this model."""
        if self._rows is None:
            self._rows = RowBuilder.of(self.model) if self.is_fitted else RowBuilder(Vocabulary(), self._recipe())
        return self._rows

    def cluster_ids(self) -> np.ndarray:
        """Ids of the live clusters."""
        return np.asarray(cluster_ids(self.model)) if self.is_fitted else np.zeros(0, dtype=np.int64)

    # --- learning -----------------------------------------------------------------------------------------------------

    def learn(self, items: Sequence[Item], first: int, last: int) -> None:
        """Learn the items of one batch. If the model refuses the batch, they are tried one by one."""
        try:
            self._learn(items)
        except UNLEARNABLE as error:
            if len(items) == 1 or not self.is_fitted:
                self.record.n_refused += len(items)
                self.record.last_refusal = f"entries {first} to {last}: {error}"
            else:
                for item in items:
                    self.learn([item], first, last)
        self.record.position = last

    def _learn(self, items: Sequence[Item]) -> None:
        items = sorted(items, key=lambda item: float(item.get("time") or item.get("received") or 0.0))
        dataset = self.rows.grown(items)
        before = self.cluster_ids()
        trial = copy.deepcopy(self.model)
        if dataset.times is not None and takes_times(trial):
            trial.partial_fit(dataset, times=dataset.times)  # type: ignore[attr-defined]
        else:
            trial.partial_fit(dataset)  # type: ignore[attr-defined]
        trial.recipe_ = dataset.recipe  # type: ignore[attr-defined]
        if not hasattr(trial, "vocabulary_") and len(dataset.vocabulary):
            trial.vocabulary_ = dataset.vocabulary  # type: ignore[attr-defined]
        rows = RowBuilder.of(trial)
        labels, scores = trial.assign(rows.known(items).X)
        self.model, self._rows = trial, rows
        self._note(items, dataset, np.asarray(labels), np.asarray(scores, dtype=np.float64), before)

    def _note(
        self, items: Sequence[Item], dataset: Dataset, labels: np.ndarray, scores: np.ndarray, before: np.ndarray
    ) -> None:
        times = dataset.times if dataset.times is not None else np.zeros(len(items))
        after, now = self.cluster_ids(), float(times.max(initial=-math.inf))
        self.note_births_and_deaths(before, after, now)
        names = [tuple(self.rows.names_of(item)[:50]) for item in items]
        facts = zip(items, labels.tolist(), scores.tolist(), times.tolist(), names, strict=True)
        self.record.add_items(
            LearnedItem(str(item.get("id") or item.get("number", "")), label, score, time, features)
            for item, label, score, time, features in facts
        )
        if math.isfinite(now):
            self.record.end_bursts(now)

    def note_births_and_deaths(self, before: np.ndarray, after: np.ndarray, at: float) -> None:
        """Events for clusters that appeared or went; a model's own roster says what became of those that went."""
        roster = getattr(self.model, "roster_", None)
        said = {event["id"]: event for event in roster.events[-4 * before.size - 100 :]} if roster is not None else {}
        for id_ in np.setdiff1d(before, after).tolist():
            event = said.get(id_, {"kind": "death", "into": None})
            kind = "merge" if event["into"] is not None else "death"
            self.record.add_event(kind, id_, at, event["into"])
            if kind == "merge":
                self.record.merge_timeline(id_, int(event["into"]))
            else:
                self.record.forget(id_)
        for id_ in np.setdiff1d(after, before).tolist():
            self.record.add_event("birth", id_, at)

    def n_first(self) -> int:
        """How many items a new model needs before it can begin."""
        if self.is_fitted:
            return 1
        n_clusters = getattr(self.model, "n_clusters", 1)
        return max(2 * int(n_clusters), 50) if isinstance(n_clusters, int) else 50

    def _recipe(self) -> Recipe:
        binary = type(self.model).__name__ == "BernoulliMixture"
        return Recipe(shape="list", features="features", weighting="binary" if binary else "count")

    # --- copies -------------------------------------------------------------------------------------------------------

    def copy(self) -> State:
        """A state that stays as this one is now, whatever this one learns."""
        model = copy.deepcopy(self.model)
        record = dataclasses.replace(
            self.record,
            events=deque(self.record.events, maxlen=self.record.events.maxlen),
            recent=deque(self.record.recent),
            rates={key: dataclasses.replace(rates) for key, rates in self.record.rates.items()},
            timeline={cluster: dict(bins) for cluster, bins in self.record.timeline.items()},
            edits=[dict(edit) for edit in self.record.edits],
            fitted=dict(self.record.fitted),
        )
        return State(model, record)


def takes_times(model: Any) -> bool:
    """Whether the model learns from when an item came."""
    return type(model).__name__ == "TimeSensitiveMixture"


def cluster_ids(model: Any) -> np.ndarray:
    """Stable ids of the live clusters, in the order of the model's rows."""
    return np.asarray(model.cluster_ids_ if hasattr(model, "cluster_ids_") else model.ids_of_clusters())


def cluster_sizes(model: Any) -> np.ndarray:
    """Rows learned by each live cluster, in the order of their ids."""
    sizes = getattr(model, "cluster_sizes_", None)
    if sizes is None and hasattr(model, "cluster_sizes"):
        sizes = model.cluster_sizes()
    if sizes is None:
        ids = cluster_ids(model)
        order = np.argsort(ids)
        labels = np.asarray(model.labels_)
        at = np.searchsorted(ids[order], labels[np.isin(labels, ids)])
        sizes = np.zeros(ids.size)
        sizes[order] = np.bincount(at, minlength=ids.size)
    return np.asarray(sizes, dtype=np.float64)


def why_not(model: Any, verb: str) -> str | None:
    """Why a model cannot do something, in a sentence; None if it can."""
    name = type(model).__name__
    if verb == "learn" and not hasattr(model, "partial_fit"):
        return f"a {name} learns only in fit, from all rows at once: it cannot learn from traffic."
    if verb == "suggest" and not hasattr(model, "suggest"):
        return f"a {name} does not suggest features; a BernoulliMixture or a Suggester does."
    method = {"merge": "merge_clusters", "split": "split_cluster"}.get(verb)
    if method is not None and not hasattr(model, method):
        return f"a {name} has no {method}: its clusters cannot be {'merged' if verb == 'merge' else 'split'} by hand."
    return None


def require(model: Any, verb: str) -> None:
    """Raise if the model cannot do this."""
    reason = why_not(model, verb)
    if reason is not None:
        raise CannotDo(reason)


class CannotDo(BadInput):
    """This model, or this service, cannot do what was asked."""
