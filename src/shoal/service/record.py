"""What a service keeps along with its model: counts, events, recent items, when clusters were active, edits to undo."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

N_EVENTS = 10_000
N_BINS = 200  # of the timeline; when it is full, neighboring bins are joined
LONGEST_GAP = 4  # times the time that a model was fitted on, between it and the first item learned here
FAST_HOURS, SLOW_HOURS = 0.25, 6.0  # half-lives of the two rates that are compared to find a burst
BURST_RATIO, BURST_ITEMS = 4.0, 8.0  # a burst: so many times the usual rate, and so many items behind it
PLAIN = (
    "position", "n_items", "n_refused", "last_refusal", "next_event", "n_recent",
    "bin_seconds", "first_bin", "last_bin",
)  # fmt: skip


class LearnedItem(NamedTuple):
    """An item that was learned, and where it went."""

    id: str
    cluster: int  # -1: unassigned
    score: float
    time: float
    features: tuple[str, ...]


@dataclass
class Rates:
    """How fast items of one cluster arrive, now and usually: sums that decay with two half-lives."""

    fast: float = 0.0
    slow: float = 0.0
    first: float = math.inf
    last: float = -math.inf
    n_items: int = 0
    bursting: bool = False

    def add(self, time: float) -> str:
        """Count an item; "burst" or "fade" if one begins or ends with it."""
        self._decay(time)
        self.fast, self.slow, self.n_items = self.fast + 1.0, self.slow + 1.0, self.n_items + 1
        self.first = min(self.first, time)
        was, self.bursting = self.bursting, self._is_high() and (self.bursting or self.n_items > 2 * BURST_ITEMS)
        return "" if was == self.bursting else "burst" if self.bursting else "fade"

    def fades(self, now: float) -> bool:
        """Whether a burst is over by now, which nothing but the lack of items tells."""
        if not self.bursting:
            return False
        later = replace(self)
        later._decay(now)
        self.bursting = later._is_high()
        return not self.bursting

    def _decay(self, now: float) -> None:
        hours = max(0.0, now - self.last) / 3600.0 if self.n_items else 0.0
        self.fast *= 0.5 ** (hours / FAST_HOURS)
        self.slow *= 0.5 ** (hours / SLOW_HOURS)
        self.last = max(self.last, now)

    def _is_high(self) -> bool:
        return self.per_hour(FAST_HOURS) > BURST_RATIO * self.per_hour(SLOW_HOURS) and self.fast >= BURST_ITEMS

    def per_hour(self, half_life: float = FAST_HOURS) -> float:
        """Items an hour by one of the sums, as a steady stream since the first item would have built it up.

        A cluster that has only begun has no usual rate to burst from: both sums then give the same.
        """
        age = max(self.last - self.first, 1.0) / 3600.0
        built_up = half_life / math.log(2) * (1.0 - 0.5 ** (age / half_life))
        return (self.fast if half_life == FAST_HOURS else self.slow) / built_up


@dataclass
class Record:
    """Everything but the model that a snapshot holds. It changes only by what the journal says, so a replay repeats it.

    Examples
    --------
    >>> record = Record(n_recent=2)
    >>> record.add_items([LearnedItem("a", 0, 1.0, 10.0, ("x",)), LearnedItem("b", 0, .5, 20.0, ("x",))])
    >>> [item.id for item in record.recent], record.n_items
    (['a', 'b'], 2)
    """

    position: int = 0  # of the last entry of the journal that is in the model
    n_items: int = 0  # learned by the service
    n_refused: int = 0  # acknowledged, but the model could not learn them
    last_refusal: str = ""
    next_event: int = 1
    n_recent: int = 20_000
    bin_seconds: float = 60.0
    first_bin: int = 0
    last_bin: int = 0
    events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=N_EVENTS))
    recent: deque[LearnedItem] = field(default_factory=deque)
    rates: dict[int, Rates] = field(default_factory=dict)
    timeline: dict[int, dict[int, int]] = field(default_factory=dict)  # cluster -> bin -> items
    edits: list[dict[str, Any]] = field(default_factory=list)  # the newest last, each with its position
    fitted: dict[int, list[LearnedItem]] = field(default_factory=dict)  # by cluster, from before the service

    def add_items(self, items: Iterable[LearnedItem]) -> None:
        """Count items that were just learned, note bursts and their ends, and keep the newest."""
        for item in items:
            self.n_items += 1
            self.recent.append(item)
            if item.cluster >= 0:
                if kind := self.rates.setdefault(item.cluster, Rates()).add(item.time):
                    self.add_event(kind, item.cluster, item.time)
                self._bin(item.cluster, item.time)
        while len(self.recent) > self.n_recent:
            self.recent.popleft()

    def end_bursts(self, now: float) -> None:
        """Note which clusters no longer burst, though no item of theirs came to tell."""
        for cluster in [cluster for cluster, rates in self.rates.items() if rates.fades(now)]:
            self.add_event("fade", cluster, now)

    def forget(self, cluster: int) -> None:
        """Drop what is kept for a cluster that is gone: a stream may see any number of them."""
        self.timeline.pop(cluster, None)
        self.rates.pop(cluster, None)
        self.fitted.pop(cluster, None)

    def add_event(self, kind: str, cluster: int, at: float | None, into: int | None = None, note: str = "") -> None:
        """Write down what happened to a cluster."""
        event = {"event": self.next_event, "kind": kind, "cluster": int(cluster), "into": into, "time": at}
        self.events.append(event | {"note": note})
        self.next_event += 1

    def items_of(self, cluster: int) -> list[LearnedItem]:
        """Recent items of a cluster, the best fitting first."""
        found = [item for item in self.recent if item.cluster == cluster]
        return sorted(found, key=lambda item: (-item.score if item.score == item.score else 0.0, item.id))

    def move_items(self, moved: dict[str, int]) -> None:
        """Items that an edit put into other clusters, by id."""
        self.recent = deque(item._replace(cluster=moved[item.id]) if item.id in moved else item for item in self.recent)

    def merge_timeline(self, cluster: int, into: int) -> None:
        """The past of a cluster that was merged belongs to the one it went into."""
        if fitted := self.fitted.pop(cluster, None):
            self.fitted[into] = [*self.fitted.get(into, []), *(item._replace(cluster=into) for item in fitted)]
        if bins := self.timeline.pop(cluster, None):  # an empty past would count as one that began in 1970
            target = self.timeline.setdefault(into, {})
            for at, count in bins.items():
                target[at] = target.get(at, 0) + count
        gone = self.rates.pop(cluster, None)
        if gone is not None:
            rates = self.rates.setdefault(into, Rates())
            rates.fast, rates.slow = rates.fast + gone.fast, rates.slow + gone.slow
            rates.n_items += gone.n_items
            rates.first, rates.last = min(rates.first, gone.first), max(rates.last, gone.last)

    def _bin(self, cluster: int, time: float) -> None:
        at = int(time // self.bin_seconds)
        if self.n_items == 1 and at - self.last_bin > LONGEST_GAP * (self.last_bin - self.first_bin + 1):
            self.timeline.clear()  # the model was fitted long ago: both times would not fit into one picture
        if not self.timeline:
            self.first_bin = self.last_bin = at
        self.first_bin, self.last_bin = min(self.first_bin, at), max(self.last_bin, at)
        while self.last_bin - self.first_bin >= N_BINS:
            self._widen_bins()
        bins = self.timeline.setdefault(cluster, {})
        at = int(time // self.bin_seconds)
        bins[at] = bins.get(at, 0) + 1

    def _widen_bins(self) -> None:
        self.bin_seconds *= 2
        self.first_bin, self.last_bin = self.first_bin // 2, self.last_bin // 2
        for cluster, bins in self.timeline.items():
            wide: dict[int, int] = {}
            for at, count in bins.items():
                wide[at // 2] = wide.get(at // 2, 0) + count
            self.timeline[cluster] = wide

    # --- in a model file ----------------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Plain values and arrays that a model file can hold."""
        bins = [(cluster, at, n) for cluster, bins in self.timeline.items() for at, n in bins.items()]
        fitted = [item for items in self.fitted.values() for item in items]
        rates = [(key, r.fast, r.slow, r.first, r.last, r.n_items, r.bursting) for key, r in self.rates.items()]
        return {name: getattr(self, name) for name in PLAIN} | {
            "events": list(self.events),
            "edits": list(self.edits),
            "timeline": np.array(bins, dtype=np.int64).reshape(-1, 3),
            "rates": np.array(rates, dtype=np.float64).reshape(-1, 7),
            "ids": _texts(item.id for item in self.recent),
            "clusters": np.array([item.cluster for item in self.recent], dtype=np.int64),
            "scores": np.array([item.score for item in self.recent], dtype=np.float64),
            "times": np.array([item.time for item in self.recent], dtype=np.float64),
            "n_features": np.array([len(item.features) for item in self.recent], dtype=np.int64),
            "features": _texts(name for item in self.recent for name in item.features),
            "fitted_ids": _texts(item.id for item in fitted),
            "fitted_facts": np.array([item[1:4] for item in fitted], dtype=np.float64).reshape(-1, 3),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Record:
        """The inverse of :meth:`to_state`."""
        record = cls(**{name: state[name] for name in PLAIN})
        record.events.extend(dict(event) for event in state["events"])
        record.edits = [dict(edit) for edit in state["edits"]]
        for cluster, at, n in state["timeline"].tolist():
            record.timeline.setdefault(cluster, {})[at] = n
        for key, fast, slow, first, last, n_items, bursting in state["rates"].tolist():
            record.rates[int(key)] = Rates(fast, slow, first, last, int(n_items), bool(bursting))
        features, ends = state["features"].tolist(), np.cumsum(state["n_features"]).tolist()
        columns = zip(*(state[name].tolist() for name in ("ids", "clusters", "scores", "times")), strict=True)
        for (id_, cluster, score, time), start, end in zip(columns, [0, *ends], ends, strict=False):
            record.recent.append(LearnedItem(id_, cluster, score, time, tuple(features[start:end])))
        for id_, (cluster, score, time) in zip(state["fitted_ids"], state["fitted_facts"].tolist(), strict=True):
            record.fitted.setdefault(int(cluster), []).append(LearnedItem(id_, int(cluster), score, time, ()))
        return record


def _texts(texts: Iterable[str]) -> np.ndarray:
    listed = list(texts)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array
