"""Events of a stream: births, bursts, merges and deaths of stories.

A burst is an alarm that the messages of a story have begun to come faster. Under a constant but unknown rate the gaps
between them are exponential; with the invariant prior on the rate, the evidence for a rate that became r times as high
after the m-th of n gaps is::

    E = r^(n - m) [S_n / (S_m + r (S_n - S_m))]^n,      S_m the sum of the first m gaps

which is an e-process whatever the rate is, and so is a mixture over m and r with weights fixed in advance. It may
therefore be looked at as often as one likes: by Ville's inequality it ever reaches 1 / a with probability a at most.
The time before a story's first message is its first gap, though no longer than the median gap within stories: one that
is everywhere from its first minute bursts, too. A gap made shorter makes the evidence smaller, so the bound holds.

Each story spends an a from a budget that grows by ``FALSE_ALARMS_PER_DAY`` a day, so the expected number of false
alarms of stories with a constant rate is within it.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from shoal.base import storable
from shoal.streams.history import ClusterHistory
from shoal.streams.state.arrays import MIN_REPORTED_SIZE

FALSE_ALARMS_PER_DAY = 1.0
DAY = 86400.0
LOOKS_LIKE_SECONDS = 1e8  # clocks past this (1973 as seconds since 1970) are shown as dates
FASTER = np.array([2.0, 4.0, 8.0, 16.0, 32.0])  # how many times as fast, with equal weights
MOST_GROWTH = float(np.log(FASTER.max()))  # of the log evidence with one message
CHANGE_POINTS = frozenset([2**k for k in range(1, 40)] + [3 * 2**k for k in range(39)])
MOST_CHANGES = 24  # changes of a story that are considered at a time; the oldest are dropped
MEDIAN_STEP = 0.01
MOST_WATCHED, MOST_KEPT = 20_000, 100_000  # stories that are watched, events that wait to be taken


def moment(at: float) -> str:
    """A time to the minute if the clock looks like seconds since 1970, otherwise the number.

    >>> moment(1555347600.0), moment(12.0)
    ('2019-04-15 17:00', '12')
    """
    if LOOKS_LIKE_SECONDS < at < 1e11:
        return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M")
    return f"{at:g}"


@storable
class Event(NamedTuple):
    """Something that happened to a story."""

    kind: str  # "birth", "burst" or "merge"
    id: int
    at: float
    into: int | None = None  # of a merge
    strength: float | None = None  # of a burst: nats of evidence, comparable over stories


@storable
@dataclass
class Watch:
    """The messages of one story so far, as far as its next alarm needs them."""

    start: float
    last: float
    n_gaps: int = 0
    level: float = 0.0  # the a it may spend; 0 until it is established
    changes: list[tuple[int, float, int]] = field(default_factory=list)  # (gaps before, their sum, how many before it)
    n_changes: int = 0
    burst: int = -1  # place of its present burst in the log
    look_at: int = 0  # with fewer gaps than these the evidence cannot reach the bar

    def add(self, times: list[float]) -> None:
        """Messages in order of time."""
        for t in times:
            self.last = max(self.last, t)
            self.n_gaps += 1
            # a change may have come after few gaps or many: at 2, 3, 4, 6, 8, 12, 16, ...
            if self.n_gaps in CHANGE_POINTS:
                self.note_change()

    def note_change(self) -> None:
        """From here on messages may come faster."""
        if self.n_gaps >= 1 and self.last > self.start:
            self.n_changes += 1
            self.changes.append((self.n_gaps, self.last - self.start, self.n_changes))
            del self.changes[:-MOST_CHANGES]

    def reset(self) -> None:
        """Begin again with the next message."""
        self.start, self.n_gaps, self.look_at, self.changes = self.last, 0, 0, []

    def log_evidence(self) -> tuple[float, float]:
        """log E of the mixture, and when the likeliest change was.

        >>> steady = Watch(0.0, 0.0)
        >>> steady.add([float(t) for t in range(1, 60)])
        >>> steady.log_evidence()[0] < 1.0
        True
        >>> steady.add([59.0 + 0.02 * k for k in range(40)])
        >>> steady.log_evidence()[0] > 20.0
        True
        """
        total = self.last - self.start
        if not self.changes or total <= 0.0:
            return -math.inf, self.start
        gaps, sums, order = np.array(self.changes, dtype=np.float64).T
        n = float(self.n_gaps)
        ratio = total / (sums[:, None] + FASTER * (total - sums[:, None]))
        logs = (n - gaps)[:, None] * np.log(FASTER) + n * np.log(ratio) - math.log(FASTER.size)
        logs -= np.log(order * (order + 1.0))[:, None]
        most = float(logs.max())
        at = int(np.unravel_index(int(logs.argmax()), logs.shape)[0])
        return most + math.log(float(np.exp(logs - most).sum())), self.start + float(sums[at])


@storable
@dataclass
class EventLog:
    """Which stories are watched, all bursts, and the events that nobody has asked for yet."""

    watched: dict[int, Watch] = field(default_factory=dict)
    bursts: list[tuple[int, float, float]] = field(default_factory=list)  # story, when, strength
    waiting: list[Event] = field(default_factory=list)
    began: float = math.nan
    spent: float = 0.0
    gap: float = 0.0  # the median gap within stories
    n_gaps: int = 0

    def take(self) -> list[Event]:
        """The events since the last call."""
        taken, self.waiting = self.waiting, []
        return taken

    def merge(self, gone: int, into: int, at: float) -> None:
        """Two stories are one; the larger goes on being watched."""
        other, mine = self.watched.pop(gone, None), self.watched.get(into)
        if other is not None and (mine is None or other.n_gaps > mine.n_gaps):
            self.watched[into] = other
        self._note("merge", gone, at, into)

    def arrived(self, stories: np.ndarray, times: np.ndarray, now: float) -> None:
        """Messages that came since the last call, by story and in order of time within each."""
        if math.isnan(self.began) and times.size:
            self.began = float(times.min())
        order = np.lexsort((times, stories))
        ids, first = np.unique(stories[order], return_index=True)
        for id_, own in zip(ids.tolist(), np.split(times[order], first[1:]), strict=True):
            self._arrived(id_, own.tolist(), now)
        while len(self.watched) > MOST_WATCHED:
            del self.watched[next(iter(self.watched))]

    def _arrived(self, id_: int, times: list[float], now: float) -> None:
        watch = self.watched.pop(id_, None)
        if watch is None:
            watch = Watch(max(self.began, times[0] - self.gap), times[0], n_gaps=1)
            times = times[1:]
        self._note_gaps(watch.last, times)
        self.watched[id_] = watch  # the one seen last stands last
        watch.note_change()
        watch.add(times)
        if watch.level == 0.0 and watch.n_gaps >= MIN_REPORTED_SIZE:
            watch.level = self._spend(now)
            self._note("birth", id_, watch.last)
        if times and watch.level > 0.0:
            self._look(id_, watch, now)

    def _note_gaps(self, last: float, times: list[float]) -> None:
        """Move the median towards these: up where a gap is longer, down where it is shorter."""
        for time in times:
            gap, last = time - last, time
            self.n_gaps += 1
            if self.gap == 0.0:
                self.gap = max(0.0, gap)
            self.gap *= math.exp(max(MEDIAN_STEP, 1.0 / self.n_gaps) * (1.0 if gap > self.gap else -1.0))

    def _spend(self, now: float) -> float:
        """Half of what is left of the budget."""
        earned = FALSE_ALARMS_PER_DAY * (now - self.began) / DAY
        level = min(0.05, max(1e-12, 0.5 * (earned - self.spent)))
        self.spent += level
        return level

    def _look(self, id_: int, watch: Watch, now: float) -> None:
        if watch.burst < 0 and watch.n_gaps < watch.look_at:
            return
        strength, at = watch.log_evidence()
        bar = -math.log(watch.level)
        if watch.burst >= 0:
            _, began, before = self.bursts[watch.burst]
            self.bursts[watch.burst] = (id_, began, max(before, strength))
            if strength < 0.5 * bar:  # it is over; another needs an a of its own
                watch.burst, watch.level = -1, self._spend(now)
                watch.reset()
        elif strength >= bar:
            watch.burst = len(self.bursts)
            self.bursts.append((id_, at, strength))
            self._note("burst", id_, now, None, strength)
        else:
            # A message multiplies the evidence by FASTER.max() at most, and changes noted meanwhile begin with weights
            # that sum to less than 1, so after k messages it is below (E + 1) FASTER.max()^k: look when that may do.
            reached = max(strength, 0.0) + math.log1p(math.exp(-abs(strength)))
            watch.look_at = watch.n_gaps + max(1, math.ceil((bar - reached) / MOST_GROWTH))

    def _note(self, kind: str, id_: int, at: float, into: int | None = None, strength: float | None = None) -> None:
        self.waiting.append(Event(kind, id_, at, into, strength))
        del self.waiting[:-MOST_KEPT]


def all_events(
    histories: list[ClusterHistory],
    merges: list[tuple[int, int, float]],
    log: EventLog,
    edits: list[dict[str, Any]],
    root: Any,
) -> list[dict[str, Any]]:
    """Births, bursts, merges and deaths in order of time, for clusters that had enough members to matter."""
    events: list[dict[str, Any]] = list(edits)
    events += [{"kind": "merge", "id": gone, "into": into, "at": at} for gone, into, at in merges]
    for each in histories:
        if each.size < MIN_REPORTED_SIZE or each.established_at is None:
            continue
        # one early message that happened to share the words is no story: a story is born when it is established
        events.append({"kind": "birth", "id": each.id, "into": None, "at": each.established_at})
        if not each.alive:
            events.append({"kind": "death", "id": each.id, "into": None, "at": each.last_seen})
    for id_, at, strength in log.bursts:
        events.append({"kind": "burst", "id": root(id_), "into": None, "at": at, "strength": strength})
    return sorted(events, key=lambda event: (event["at"] if event["at"] is not None else 0.0, event["id"]))
