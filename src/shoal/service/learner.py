"""The learner: brings a state forward along the journal, one batch or edit at a time, the same live and on replay."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from shoal.errors import ShoalError
from shoal.service.edits import STRUCTURAL, apply_edit
from shoal.service.snapshots import SnapshotFolder
from shoal.service.state import CannotDo, State
from shoal.store.journal import Entry, Journal

log = logging.getLogger("shoal.service")
N_UNDOABLE = 5  # structural edits whose state from before is kept
UNDO_ENTRIES = 20_000  # an edit with more entries behind it than this is final

Outcome = dict[str, Any] | ShoalError


class Learner:
    """Applies entries in order. What it does depends on the state and the journal alone.

    Which entries make a batch is chosen once, when they are first learned, and written to the journal before.
    """

    def __init__(self, state: State, journal: Journal, snapshots: SnapshotFolder, batch_items: int = 4096) -> None:
        self.state = state
        self.journal = journal
        self.snapshots = snapshots
        self.batch_items = batch_items
        self._needed = 0  # items that a new model needs to begin, if it could not with fewer
        self.before_edit: dict[int, State] = {}  # the state just before an edit, by the edit's position

    def step(self, on_edit: Callable[[int, Outcome], None] = lambda position, outcome: None) -> bool:
        """Learn the next batch or apply the next edit; False if there is nothing that can be learned now."""
        at = self.state.record.position
        marked = self.journal.batch_after(at)
        if marked is not None:
            self._learn(marked[0], marked[1])
            return True
        batch = self._next_entries(at)
        if not batch:
            return False
        if batch[0].kind == "edit":
            on_edit(batch[0].position, self._edit(batch[0]))
            return True
        if not self.state.is_fitted and not self._can_begin(batch):
            return False
        self.journal.mark_batch(batch[0].position, batch[-1].position)
        self._apply(self.state, batch)
        return True

    @property
    def n_to_begin(self) -> int:
        """Items that a new model needs before it begins."""
        return max(self.state.n_first(), self._needed)

    def _can_begin(self, batch: list[Entry]) -> bool:
        """Whether a new model can learn its first batch; if not, it is asked again when there is more."""
        n_items = sum(len(entry.body) for entry in batch)
        if n_items < self.n_to_begin:
            return False
        trial = self.state.copy()
        self._apply(trial, batch)
        if not trial.is_fitted:
            log.info("the model cannot begin with %d items: %s", n_items, trial.record.last_refusal)
            self._needed = n_items + max(n_items // 4, 1)
        return trial.is_fitted

    def _next_entries(self, at: int) -> list[Entry]:
        """The next edit, or the entries to learn before it, up to a full batch."""
        batch: list[Entry] = []
        most = self.batch_items if self.state.is_fitted else max(self.batch_items, self.n_to_begin)
        n_items = 0
        for entry in self.journal.entries(at):
            if entry.kind == "edit":
                return batch or [entry]
            batch.append(entry)
            n_items += len(entry.body)
            if n_items >= most:
                break
        return batch

    def _learn(self, first: int, last: int) -> None:
        self._apply(self.state, list(self.journal.entries(first - 1, last)))

    @staticmethod
    def _apply(state: State, entries: list[Entry]) -> None:
        items = [
            {"number": f"#{entry.position}.{at}", **item}
            for entry in entries
            for at, item in enumerate(entry.body, start=1)
        ]
        state.learn(items, entries[0].position, entries[-1].position)

    # --- edits --------------------------------------------------------------------------------------------------------

    def _edit(self, entry: Entry) -> Outcome:
        """Apply an edit; one that is refused here leaves the state as it was."""
        edit, before = entry.body, self.state.copy()
        try:
            if edit["action"] == "undo":
                result = self._undo(edit, entry.position)
            else:
                result = apply_edit(self.state, edit, entry.position)
                if edit["action"] in STRUCTURAL:
                    self._keep_before(entry.position, before)
        except (ShoalError, ValueError, KeyError) as error:
            self.state = before
            self.state.record.position = entry.position
            return error if isinstance(error, ShoalError) else CannotDo(str(error))
        self.state.record.position = entry.position
        return result

    def _keep_before(self, position: int, before: State) -> None:
        self.before_edit[position] = before
        for old in sorted(self.before_edit)[:-N_UNDOABLE]:
            del self.before_edit[old]

    def undoable(self, position: int) -> tuple[int | None, str]:
        """The position of the edit that an undoing at ``position`` takes back, or why there is none."""
        edits = [edit for edit in self.state.record.edits if not edit["undone"]]
        if not edits:
            return None, "there is no edit to undo."
        last = edits[-1]
        if last["action"] in STRUCTURAL:
            if last["edit"] not in self.before_edit and not self.snapshots.file(last["edit"], "before").exists():
                return None, f"edit {last['edit']} is final: more edits or items came since than are kept for undoing."
            if position - last["edit"] > UNDO_ENTRIES:
                return None, f"edit {last['edit']} is final: more than {UNDO_ENTRIES:,} requests to learn came since."
        return last["edit"], ""

    def _undo(self, edit: dict[str, Any], position: int) -> dict[str, Any]:
        at, why = self.undoable(position)
        if at is None or at != edit["edit"]:
            raise CannotDo(why or f"edit {at} came after edit {edit['edit']}; undo that one first.")
        undone = next(one for one in self.state.record.edits if one["edit"] == at)
        changed = self._undo_structural(at, position) if undone["action"] in STRUCTURAL else self._undo_plain(undone)
        next(one for one in self.state.record.edits if one["edit"] == at)["undone"] = position
        self.state.record.add_event("undo", undone["cluster"], edit["at"], note=undone["action"])
        return {"edit": position, "action": "undo", "undid": at, "n_changed": len(changed), "changed": changed}

    def _undo_plain(self, undone: dict[str, Any]) -> list[dict[str, Any]]:
        """Names and pins are put back as they were."""
        field = {"name": "name", "pin": "pinned"}[undone["action"]]
        record = self.state.record
        kept = list(record.edits)
        apply_edit(
            self.state, {**undone, field: undone["before"] or ("" if field == "name" else False)}, undone["edit"]
        )
        record.edits = kept
        return []

    def _undo_structural(self, at: int, position: int) -> list[dict[str, Any]]:
        """Start from the model before the edit and learn again what came since."""
        record, kept = self.state.record, self.state.record.edits
        had = {item.id: item.cluster for item in record.recent}
        state = self.before_edit.pop(at, None)
        if state is None:
            state = self.snapshots.load(at, "before").copy()
        state.record.position = at
        self._learn_again(state, position - 1)
        state.record.edits, state.record.next_event = kept, record.next_event
        state.record.events = record.events
        self.state = state
        return [
            {"id": item.id, "from": had[item.id], "to": item.cluster}
            for item in state.record.recent
            if had.get(item.id, item.cluster) != item.cluster
        ][:1000]

    def _learn_again(self, state: State, upto: int) -> None:
        """The batches behind a state, without the edits: those that came later have been undone before."""
        while state.record.position < upto:
            marked = self.journal.batch_after(state.record.position)
            if marked is None:
                state.record.position += 1  # an edit that was undone, or the undoing of it
            else:
                self._apply(state, list(self.journal.entries(marked[0] - 1, marked[1])))

    # --- what a snapshot needs ----------------------------------------------------------------------------------------

    @staticmethod
    def needed_before(state: State, oldest_snapshot: int) -> set[int]:
        """Edits whose state from before must stay on disk: those that may be undone yet, now or on a replay."""
        structural = [edit for edit in state.record.edits if edit["action"] in STRUCTURAL]
        open_ = [edit["edit"] for edit in structural if not edit["undone"]][-N_UNDOABLE:]
        recent = {at for at in open_ if state.record.position - at <= UNDO_ENTRIES}
        return recent | {edit["edit"] for edit in structural if edit["undone"] > oldest_snapshot}
