"""Stories: what is reported of a stream. Each is one arrival cluster or several that turned out to be about one thing.

Arrival clusters are fine and made eagerly, one message at a time; pieces of one story are common, and a stream never
joins them. They stay as they are here too, because larger ones would attract messages that do not belong to them. A
merge pass with a base measure and a concentration of its own decides which clusters are one story.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.base import storable
from shoal.streams.inference.base_learning import (
    PSEUDO_COUNT_SCALE,
    STRENGTH_RANGE,
    STRENGTH_STEPS,
    uniform_share,
    words_of_clusters,
)
from shoal.streams.kernels.evidence_kernels import better_strength, expected_tables
from shoal.streams.kernels.story_kernels import merge_stories
from shoal.streams.state import arrays as st
from shoal.streams.state.stream_state import StreamState

SPAN = np.dtype([("born", "f8"), ("last", "f8"), ("size", "f8"), ("locked", "i8")])
GROWTH = 2.0  # a story is looked at when it begins, and whenever it has grown so much
BUDGET, PARTNERS = 500, 6
BASE_EVERY = 8192  # messages between looks at the base measure, at most
MOST_FOR_BASE = 500  # clusters the base measure is learned from


@storable
@dataclass
class Stories:
    """Which arrival clusters belong to which story; a story has the id of its first or largest cluster."""

    parent: dict[int, int] = field(default_factory=dict)  # id of a cluster that belongs to another's story
    shared: dict[int, int] = field(default_factory=dict)  # story of several clusters: how many there have been
    looked_at: dict[int, int] = field(default_factory=dict)  # live story: its size when it was last looked at
    locked: list[int] = field(default_factory=list)  # stories that only a person may merge
    bases: np.ndarray = field(default_factory=lambda: np.zeros(0))
    strength: float = 0.0
    base_at: int = 0  # how many messages had been seen when the base measure was learned

    def root(self, id_: int) -> int:
        """The story of an arrival cluster.

        >>> Stories(parent={3: 2, 2: 0}).root(3)
        0
        """
        while id_ in self.parent:
            id_ = self.parent[id_]
        return id_

    def roots(self, ids: np.ndarray) -> np.ndarray:
        """The story of each."""
        if not self.parent:
            return np.asarray(ids)
        merged = np.fromiter(self.parent, dtype=np.int64, count=len(self.parent))
        merged.sort()
        into = np.array([self.root(id_) for id_ in merged.tolist()], dtype=np.int64)
        at = np.minimum(np.searchsorted(merged, ids), merged.size - 1)
        return np.where(merged[at] == ids, into[at], ids)

    def merge(self, gone: int, into: int) -> None:
        """The clusters of one story belong to another from now on."""
        gone, into = self.root(gone), self.root(into)
        if gone != into:
            self.parent[gone] = into
            self.shared[into] = self.shared.get(into, 1) + self.shared.pop(gone, 1)
            self.looked_at.pop(gone, None)
            if gone in self.locked:
                self.locked = [*(id_ for id_ in self.locked if id_ != gone), into]

    def forget(self, ids: set[int]) -> None:
        """Nobody can ask for these clusters any more."""
        for id_ in ids:
            self.parent.pop(id_, None)

    # --- the merge pass -----------------------------------------------------------------------------------------------

    def merge_pass(self, state: StreamState, n_seen: int, rate: float, concentration: float) -> list[tuple[int, int]]:
        """Merge the stories that have grown with those that the evidence joins them to; (gone, into) of each."""
        if state.status[0].family != st.MULTINOMIAL or state.status[0].drift > 0.0 or state.n_live < 2:
            return []
        groups = _Groups.of(self, state)
        sizes = groups.spans["size"][groups.stories]
        before = np.array([self.looked_at.get(id_, 0) for id_ in groups.ids.tolist()])
        due = groups.stories[sizes >= GROWTH * np.maximum(before, 1.0 / GROWTH)]
        if due.size == 0:
            return []
        due = due[np.argsort(groups.spans["size"][due], kind="stable")]
        self._learn_base(state, n_seen)
        for slot in due.tolist():
            self.looked_at[int(groups.id_of[slot])] = int(groups.spans["size"][slot])
        share = len(groups.stories) / state.n_live
        pairs = groups.merge(state, due, self.bases, self.strength, rate, math.log(concentration * share))
        named = [(int(groups.id_of[gone]), int(groups.id_of[into])) for gone, into in pairs]
        for gone, into in named:
            self.merge(gone, into)
        return named

    def _learn_base(self, state: StreamState, n_seen: int) -> None:
        """The base measure of stories, from the tables of the live clusters: see :mod:`.base_learning`."""
        n_features = len(state.prior.seen)
        if (
            self.bases.size == n_features
            and self.base_at <= n_seen
            and n_seen - self.base_at < min(BASE_EVERY, self.base_at)
        ):
            return
        self.base_at = n_seen
        slots = np.ascontiguousarray(np.sort(state.live)[:: 1 + state.n_live // MOST_FOR_BASE])
        words = words_of_clusters(state, slots)
        strength = self.strength or float(state.prior.blocks.strength[0])
        mean, tables = np.full(n_features, 1.0 / max(1, n_features)), np.empty(n_features)
        for _ in range(2):
            expected_tables(words.features, words.counts, strength * mean, tables)
            mean = tables + uniform_share(tables, n_features) / n_features
            mean /= mean.sum()
            better = better_strength(*words[:3], mean, strength, STRENGTH_STEPS, PSEUDO_COUNT_SCALE * n_features)
            strength = float(np.clip(better, *STRENGTH_RANGE))
        self.bases, self.strength = strength * mean, strength


@dataclass
class _Groups:
    """The live clusters by story: a story stands in the slot of one of its clusters."""

    stories: np.ndarray  # slots that stand for a story
    ids: np.ndarray  # their stories' ids
    id_of: np.ndarray  # (slots,)
    story: np.ndarray  # (slots,) -1 where no live cluster is
    first: np.ndarray
    next_piece: np.ndarray
    spans: np.ndarray  # (slots,) of SPAN
    totals: np.ndarray

    @classmethod
    def of(cls, stories: Stories, state: StreamState) -> _Groups:
        record, live, slots = state.clusters.record, np.sort(state.live), len(state.clusters.record)
        ids, place = np.unique(stories.roots(record.id[live]), return_inverse=True)
        stand = np.full(ids.size, -1, dtype=np.int64)
        stand[place[::-1]] = live[::-1]  # the first slot of each
        story, first, next_piece = (np.full(slots, -1, dtype=np.int64) for _ in range(3))
        story[live] = stand[place]
        first[stand] = stand
        by_story = live[np.argsort(place, kind="stable")]
        same = story[by_story[1:]] == story[by_story[:-1]]
        next_piece[by_story[:-1][same]] = by_story[1:][same]
        spans, totals, id_of = np.zeros(slots, dtype=SPAN), np.zeros(slots), np.full(slots, -1, dtype=np.int64)
        spans["born"], spans["last"] = math.inf, -math.inf
        np.minimum.at(spans["born"], story[live], record.born[live])
        np.maximum.at(spans["last"], story[live], record.last_time[live])
        np.add.at(spans["size"], story[live], record.n_members[live])
        np.add.at(totals, story[live], state.clusters.totals[live, 0])
        spans["locked"][stand] = np.isin(ids, stories.locked)
        id_of[stand] = ids
        return cls(stand, ids, id_of, story, first, next_piece, spans, totals)

    def merge(
        self, state: StreamState, due: np.ndarray, bases: np.ndarray, strength: float, rate: float, log_alpha: float
    ) -> Any:
        clusters, tables, postings, _, _, _, _, scratch = state.arrays()
        counts, others = np.zeros(bases.size), np.zeros(bases.size)
        touched, touched_others = (np.empty(bases.size, dtype=np.int64) for _ in range(2))
        pairs = np.zeros((due.size, 2), dtype=np.int64)
        stories = (self.story, self.first, self.next_piece, self.spans.view(np.recarray), self.totals)
        n = merge_stories(
            clusters, tables, postings, scratch, (bases, strength, rate, log_alpha), (BUDGET, PARTNERS), due, stories,
            (counts, others, touched, touched_others), pairs,
        )  # fmt: skip
        return pairs[:n].tolist()
