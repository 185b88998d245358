"""``partial_fit``: rows in the order they come, which may drift.

All rows are kept until the reservoir is full, and the start is made again whenever they have grown by a quarter. From
then on rows are filtered in chunks; a chunk first decides whether clusters are needed that are not there
(new_clusters.py), and, after each doubling, whether clusters are there that are not needed (merging.py). The reservoir
stays a uniform sample of all rows: at each doubling a start on it replaces the model if the next rows are likelier.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from shoal.base import Roster, storable
from shoal.bernoulli.adf import Block
from shoal.bernoulli.adf_fit import (
    LEAST_NEW,
    NEW_PER_CLUSTER,
    Options,
    by_size,
    learned,
    mean_log_probability,
    partitions,
    start,
)
from shoal.bernoulli.calibration import Calibration, calibrated, uncalibrated
from shoal.bernoulli.merging import (
    Merger,
    clutter_by,
    clutter_evidence,
    disjoint,
    gains_of,
    in_sequence,
    merged_rows,
    near_pairs,
    with_clutter,
)
from shoal.bernoulli.new_clusters import with_new_clusters
from shoal.bernoulli.profiles import Profiles, rebuilt, refreshed
from shoal.bernoulli.reservoir import reservoir_size
from shoal.bernoulli.scoring import scored
from shoal.bernoulli.statistics import seen_in

CHUNK = 1000  # rows that are filtered together
GROWN = 1.25  # times the rows of the last start at which it is made again; a new class may be all that has come since
LEAST_OLD = 0.25  # of the rows expected from before that a cluster must have to keep an old one's id
KEPT_BACK = 0.1  # share of the rows of a start that are learned after it, so that it can be examined and calibrated
LEAST_KEPT_BACK = 100
LEAST_OF_FULL = 0.75  # share of the reservoir that the last start must have had
MOST_PAST = 2000  # rows of the reservoir that stand for all
BETTER = 0.02  # nats a row by which a new start must be better
LEAST_TO_COMPARE = 500  # rows


@storable
@dataclass(frozen=True)
class StreamState:
    """What a stream keeps besides its profiles."""

    rows: sp.csr_matrix  # the reservoir: a uniform sample of all rows so far
    weights: np.ndarray
    n_rows: int = 0  # rows so far
    n_started: int = 0  # rows when the start was last made
    n_examined: int = 0  # rows when clusters were last examined
    n_calibrated: int = 0
    examining: bool = False
    n_evidence: int = 0  # rows that the evidence below is of
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))  # ids that may be one cluster
    gains: np.ndarray = field(default_factory=lambda: np.zeros(0))  # nats gained if they are
    clutter_ids: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    clutter_gains: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))  # nats over one parameter, twice; rows

    def _with_rows(self, rows: sp.csr_matrix) -> StreamState:
        return replace(self, rows=rows)


def empty_state(n_features: int) -> StreamState:
    return StreamState(sp.csr_matrix((0, n_features)), np.zeros(0))


class StreamLearner:
    """A model while it learns rows in order; nothing it was given is changed."""

    def __init__(
        self, profiles: Profiles | None, roster: Roster, state: StreamState, calibration: Calibration | None,
        options: Options, rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.profiles, self.roster, self.state = profiles, roster.copy(), state
        self.calibration, self.options, self.rng = calibration, options, rng
        self.size = reservoir_size(options.n_clusters)
        self.history: list[float] = []  # mean log probability of each chunk's rows, before they were learned

    def result(self) -> tuple[Profiles, Roster, StreamState]:
        """What was learned."""
        assert self.profiles is not None
        return refreshed(self.profiles), self.roster, self.state

    def learn(self, block: Block) -> None:
        """All rows of a block, in chunks."""
        begin, n = 0, block.rows.shape[0]
        while begin < n:
            room = self.size - self.state.n_rows if self._holds_all else 0
            end = min(n, begin + (room if room > 0 else CHUNK))
            self._chunk(Block(block.rows[begin:end], block.weights[begin:end]))
            begin = end

    @property
    def _holds_all(self) -> bool:
        """Whether the reservoir is all there was, from the first row on."""
        return self.state.rows.shape[0] == self.state.n_rows

    def _chunk(self, block: Block) -> None:
        n = self.state.n_rows + block.rows.shape[0]
        grown = GROWN * self.state.n_started <= n <= self.size
        full = n == self.size and self.state.n_started < LEAST_OF_FULL * n  # the last start that has all rows
        if self.profiles is None or (self._holds_all and (grown or full) and not self.roster.pinned):
            return self._start(block)
        doubled = n >= 2 * self.state.n_started and block.rows.shape[0] >= LEAST_TO_COMPARE
        if doubled and self.options.adapt and not self.roster.pinned and self.state.rows.shape[0] == self.size:
            self._start_if_better(block)
        self._sample(block)
        self._learn(block)
        return None

    # --- starts -------------------------------------------------------------------------------------------------------

    def _start(self, block: Block) -> None:
        """Begin with all rows so far, but for a few that are learned afterwards."""
        n_back = int(KEPT_BACK * block.rows.shape[0])
        n_back = n_back if n_back >= LEAST_KEPT_BACK else 0
        n_now = block.rows.shape[0] - n_back
        known = self.state.rows  # a new kind of row must not make its cluster the heir of one that it merely resembles
        self._sample(Block(block.rows[:n_now], block.weights[:n_now]))
        seen = self.profiles.seen if self.profiles is not None else seen_in(block.rows, block.weights)
        self._adopt(self._started(seen), known)
        self.calibration = self.calibration or uncalibrated(np.diff(block.rows.indptr))
        if n_back:
            rest = Block(block.rows[n_now:], block.weights[n_now:])
            self._sample(rest)
            self._learn(rest)

    def _started(self, seen: np.ndarray) -> Profiles:
        order = self.rng.permutation(self.state.rows.shape[0])
        weights = self.state.weights[order]
        if not self._holds_all:  # each row stands for others
            weights = weights * (seen[-1] / max(float(weights.sum()), 1e-300))
        return by_size(start(Block(self.state.rows[order], weights), seen, self.options, self.rng))

    def _start_if_better(self, block: Block) -> None:
        """Replace the model by a start on the reservoir if rows that neither has seen are likelier under it."""
        assert self.profiles is not None
        other = self._started(self.profiles.seen)
        gain = scored(other, block.rows).log_ratios - scored(self.profiles, block.rows).log_ratios
        self.state = replace(self.state, n_started=self.state.n_rows)
        if float(gain @ block.weights) > BETTER * float(block.weights.sum()):
            self._adopt(other, self.state.rows)

    def _adopt(self, new: Profiles, rows: sp.csr_matrix) -> None:
        """Take over new profiles; a cluster that has the ``rows`` of an old one keeps its id."""
        if self.profiles is None:
            self.roster = Roster.of(new.n_clusters)
        else:
            new, self.roster = _with_old_ids(self.profiles, new, self.roster, rows)
        self.profiles = new
        n = self.state.n_rows
        self.state = replace(self.state, n_started=n, n_examined=0, examining=False)

    def _sample(self, block: Block) -> None:
        """Keep the reservoir a uniform sample of all rows (algorithm R)."""
        state, n_new = self.state, block.rows.shape[0]
        place = np.arange(state.rows.shape[0])
        numbers = state.n_rows + np.arange(n_new)
        slots = np.where(numbers < self.size, numbers, self.rng.integers(0, numbers + 1))
        size = min(self.size, state.rows.shape[0] + n_new) if state.rows.shape[0] == state.n_rows else place.size
        keep = np.concatenate([place, np.zeros(max(size - place.size, 0), dtype=np.int64)])
        for at in np.flatnonzero(slots < size):
            keep[slots[at]] = state.rows.shape[0] + at
        rows = sp.vstack([state.rows, block.rows], format="csr")[keep]
        weights = np.concatenate([state.weights, block.weights])[keep]
        self.state = replace(state, rows=rows, weights=weights, n_rows=state.n_rows + n_new)

    # --- chunks -------------------------------------------------------------------------------------------------------

    def _learn(self, block: Block) -> None:
        assert self.profiles is not None
        if self.options.adapt:
            block = self._make_new_clusters(block)
            self._examine(block)
        n_usable = int((np.diff(block.rows.indptr) >= 2).sum())
        if n_usable >= LEAST_KEPT_BACK and self.state.n_rows >= 2 * self.state.n_calibrated:
            self.calibration = calibrated(self.profiles, block, self.rng)
            self.state = replace(self.state, n_calibrated=self.state.n_rows)
        after, log_norm, _ = learned(self.profiles, partitions(block, self.options.n_partitions), self.options)
        self.history.append(mean_log_probability(self.profiles, block, log_norm))
        self.profiles = after

    @property
    def _pinned(self) -> np.ndarray:
        assert self.profiles is not None
        return np.concatenate([np.ones(self.profiles.n_clutter, dtype=np.bool_), self.roster.is_pinned()])

    def _make_new_clusters(self, block: Block) -> Block:
        assert self.profiles is not None
        self.profiles, block, mergers, n_new = with_new_clusters(
            self.profiles, block, self.options.n_clusters, self.rng, self._pinned, self._past()
        )
        self._note(mergers)
        if n_new:
            self.roster.add(n_new)
        return block

    def _past(self) -> Block | None:
        """Some rows of the reservoir, with weights that stand for all rows so far; None without a reservoir."""
        n = self.state.rows.shape[0]
        if n < MOST_PAST and not self._holds_all:
            return None
        some = self.rng.permutation(n)[:MOST_PAST]
        weights = self.state.weights[some]
        scale = float(self.profiles.mass.sum()) / max(float(weights.sum()), 1e-300) if self.profiles else 1.0
        return Block(self.state.rows[some], weights * scale)

    def _note(self, mergers: list[Merger]) -> None:
        note_mergers(self.roster, mergers, 0 if self.profiles is None else self.profiles.n_clutter)

    # --- examinations -------------------------------------------------------------------------------------------------

    def _examine(self, block: Block) -> None:
        """Gather evidence of rows not learned yet, and act on it when it is enough."""
        assert self.profiles is not None
        state = self.state
        if not state.examining and state.n_rows < 2 * state.n_examined:
            return
        if not state.examining:
            self.state = state = self._begin(state)
        self.state = state = self._with_evidence(state, block)
        if state.n_evidence >= max(LEAST_NEW, NEW_PER_CLUSTER * self.options.n_clusters):
            merged = self._conclude(state)
            # What was merged may be merged again: another look follows.
            done = replace(state, examining=False, n_examined=0 if merged else state.n_rows)
            self.state = replace(done, pairs=state.pairs[:0], gains=state.gains[:0])

    def _begin(self, state: StreamState) -> StreamState:
        assert self.profiles is not None
        ids = np.concatenate([np.full(self.profiles.n_clutter, -1), self.roster.ids])
        pairs = np.stack([ids[side] for side in near_pairs(self.profiles)], axis=1)
        return replace(
            state, examining=True, n_evidence=0, pairs=pairs, gains=np.zeros(len(pairs)),
            clutter_ids=self.roster.ids.copy(), clutter_gains=np.zeros((self.roster.ids.size, 3)),
        )  # fmt: skip

    def _with_evidence(self, state: StreamState, block: Block) -> StreamState:
        assert self.profiles is not None
        alive = np.isin(state.pairs, self.roster.ids).all(axis=1)
        pairs, gains = state.pairs[alive], state.gains[alive]
        first, second = self._rows_of(pairs[:, 0]), self._rows_of(pairs[:, 1])
        gains = gains + gains_of(self.profiles, first, second, block)
        known = np.isin(state.clutter_ids, self.roster.ids)
        ids, clutter = state.clutter_ids[known], state.clutter_gains[known]
        if self.options.clutter:
            nats, rows_of = clutter_evidence(self.profiles, block)
            clutter = clutter + np.column_stack([nats, rows_of])[self._rows_of(ids)]
        return replace(
            state, pairs=pairs, gains=gains, clutter_ids=ids, clutter_gains=clutter,
            n_evidence=state.n_evidence + block.rows.shape[0],
        )  # fmt: skip

    def _rows_of(self, ids: np.ndarray) -> np.ndarray:
        assert self.profiles is not None
        order = np.argsort(self.roster.ids, kind="stable")
        return order[np.searchsorted(self.roster.ids[order], ids)] + self.profiles.n_clutter

    def _conclude(self, state: StreamState) -> bool:
        assert self.profiles is not None
        first, second = self._rows_of(state.pairs[:, 0]), self._rows_of(state.pairs[:, 1])
        evidence = np.zeros((self.profiles.n_rows, 3))
        evidence[self._rows_of(state.clutter_ids)] = state.clutter_gains
        pinned = self._pinned
        clutter = np.zeros(0, dtype=np.int64)
        if self.options.clutter:
            clutter = clutter_by(self.profiles, evidence[:, :2], evidence[:, 2], pinned)
        pairs = disjoint(self.profiles, first, second, state.gains, pinned, state.n_evidence)
        pairs = [pair for pair in pairs if not np.isin(pair, clutter).any()]
        self.profiles = merged_rows(self.profiles, pairs)
        self._note(in_sequence(pairs))
        if clutter.size:
            clutter = clutter - np.array([sum(gone < row for _, gone in pairs) for row in clutter])
            self.profiles, steps = with_clutter(self.profiles, clutter)
            self._note(steps)
        return bool(pairs)


def note_mergers(roster: Roster, mergers: list[Merger], n_clutter: int) -> None:
    """Write mergers, given by rows of the model at that moment, to the roster; into the clutter means into -1."""
    for kept, gone in mergers:
        id_ = int(roster.ids[gone - n_clutter])
        if kept < n_clutter:
            roster.remove([id_], kind="merge", into=-1)
            roster.names.pop(id_, None)
        else:
            roster.merge([id_], into=int(roster.ids[kept - n_clutter]))


def _with_old_ids(
    old: Profiles, new: Profiles, roster: Roster, rows: sp.csr_matrix
) -> tuple[Profiles, Roster]:  # fmt: skip
    """Order new clusters as the old ones they share most rows with, and number the others after them."""
    before, after = scored(old, rows).rows - old.n_clutter, scored(new, rows).rows - new.n_clutter
    both = (before >= 0) & (after >= 0)
    shared = np.zeros((old.n_clusters, new.n_clusters))
    np.add.at(shared, (before[both], after[both]), 1.0)
    olds, news = linear_sum_assignment(-shared)
    # Where the rows before would have most of their share in a cluster missing, a new kind of row has made it.
    expected = new.mass[new.n_clutter :][news] * (rows.shape[0] / max(float(new.mass.sum()), 1e-300))
    matched = (shared[olds, news] > 0) & (shared[:, news].sum(axis=0) > LEAST_OLD * expected)
    olds, news = olds[matched], news[matched]
    ids, roster = roster.ids.copy(), roster.copy()
    for row in np.setdiff1d(np.arange(old.n_clusters), olds):
        heirs = olds[news == np.argmax(shared[row])] if shared[row].any() else olds[:0]
        if heirs.size:
            roster.merge([int(ids[row])], into=int(ids[heirs[0]]))
        else:
            roster.remove([int(ids[row])])
    others = np.setdiff1d(np.arange(new.n_clusters), news)
    roster.add(others.size)
    order = np.concatenate([news[np.argsort(olds)], others]) + new.n_clutter
    return rebuilt(new, rows=np.concatenate([np.arange(new.n_clutter), order])), roster
