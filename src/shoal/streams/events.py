"""Events of a stream: births, bursts, merges and deaths of stories.

A burst is an alarm that a story comes faster than it has come before. Messages of a story are compared with a Poisson
process of its own past rate; the evidence against it is a martingale under that rate (an e-process), so the alarm may
be looked for after every message: by Ville's inequality a story whose rate stays as it is gives a false one with
probability 1 / threshold at most, however long it is watched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shoal.base import storable
from shoal.streams.history import ClusterHistory
from shoal.streams.state.arrays import MIN_REPORTED_SIZE


class Event(NamedTuple):
    """Something that happened to a story."""

    kind: str  # "birth", "burst", "merge" or "death"
    id: int
    at: float
    into: int | None = None  # of a merge
    strength: float | None = None  # of a burst: nats of evidence, comparable over stories


@storable
@dataclass
class EventLog:
    """Events that nobody has asked for yet, and all bursts."""

    bursts: list[tuple[int, float, float]] = field(default_factory=list)  # story, when, strength
    waiting: list[tuple[str, int, float, int | None, float | None]] = field(default_factory=list)

    def take(self) -> list[Event]:
        """The events since the last call."""
        taken, self.waiting = self.waiting, []
        return [Event(*each) for each in taken]


def all_events(
    histories: list[ClusterHistory],
    merges: list[tuple[int, int, float]],
    log: EventLog,
    edits: list[dict[str, Any]],
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
    events += [{"kind": "burst", "id": id_, "into": None, "at": at, "strength": s} for id_, at, s in log.bursts]
    return sorted(events, key=lambda event: (event["at"] if event["at"] is not None else 0.0, event["id"]))
