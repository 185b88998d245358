"""The one writer: commits requests in groups, learns behind them, publishes states to readers, saves snapshots."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

from shoal.base import Estimator
from shoal.errors import BadSource, ShoalError
from shoal.service.fitted_items import record_of
from shoal.service.folder import lock_folder
from shoal.service.learner import Learner
from shoal.service.model_description import description_of, make_repeatable, new_model
from shoal.service.snapshots import SnapshotFolder
from shoal.service.state import State
from shoal.store.journal import Journal, JournalFull, Receipt, Request

log = logging.getLogger("shoal.service")
GROUP_REQUESTS = 1000  # most requests in one commit
REST = 3.0  # with less than a full batch waiting, the learner rests so many times as long as it worked
SHORTEST_REST = 0.02


class QueueFull(ShoalError):
    """More is waiting to be written, or to be learned, than the limits allow. Try again a little later."""

    retry_after_seconds = 1


class Pending(NamedTuple):
    """A request and the future of its receipt."""

    request: Request
    done: Future[Receipt]


class Writer:
    """Owns a folder: the journal, the snapshots, and the model that learns.

    Parameters
    ----------
    folder : Path
        Where everything is kept. One writer at a time; a lock sees to it.
    model : Estimator or None
        What to start from, if the folder is new.
    queue_requests, queue_items : int
        Requests waiting to be written, and items waiting to be learned, before more are refused.
    snapshot_seconds, publish_seconds : float
        How old a snapshot on disk, and the state that readers see, may become while there is something new.
    batch_items : int
        Most items learned at once.
    reserve_mb : float
        Free space on the disk below which nothing more is accepted, so that snapshots still fit.
    journal_mb : float
        The size of the journal at which a snapshot is saved at once, so that it can be trimmed.
    """

    def __init__(
        self,
        folder: Path,
        model: Estimator | None = None,
        *,
        queue_requests: int = 2000,
        queue_items: int = 200_000,
        snapshot_seconds: float = 60.0,
        publish_seconds: float = 1.0,
        batch_items: int = 4096,
        reserve_mb: float = 64.0,
        journal_mb: float = 512.0,
        n_ids: int = 5_000_000,
        n_snapshots: int = 2,
        trim: bool = True,
    ) -> None:
        self.folder = Path(folder)
        self.queue_items, self.snapshot_seconds, self.publish_seconds = queue_items, snapshot_seconds, publish_seconds
        self.reserve_bytes, self.journal_bytes, self.trims = reserve_mb * 1e6, journal_mb * 1e6, trim
        self._lock_file = lock_folder(self.folder)
        try:
            self.journal = Journal(self.folder / "journal.sqlite", n_ids=n_ids)
            self.snapshots = SnapshotFolder(self.folder / "snapshots", n_snapshots)
            self.learner = Learner(self._start(model), self.journal, self.snapshots, batch_items)
        except BaseException:
            self._lock_file.close()
            raise
        self.n_replayed = self._replay()
        self.published = self.learner.state.copy()
        record = self.published.record
        self._written_items = record.n_items + record.n_refused + self.journal.n_items_after(record.position)
        self.read_only: str = ""  # why nothing can be written now, if so
        self.n_commits = 0
        self.snapshot_time, self._saved_position = time.time(), self.published.record.position
        self._on_publish: list[Callable[[State], None]] = []
        self._edits: dict[int, Future[dict[str, Any]]] = {}
        self._n_edits_waiting = 0
        self._awaited: list[tuple[int, Future[None]]] = []
        self._queue: queue.Queue[Pending | None] = queue.Queue(queue_requests)
        self._wake, self.save_now, self._closing = threading.Event(), threading.Event(), threading.Event()
        self._publishing = threading.Lock()
        self._threads: list[threading.Thread] = []

    # --- starting -----------------------------------------------------------------------------------------------------

    def _start(self, model: Estimator | None) -> State:
        """From the newest good snapshot; a new folder starts from the model given."""
        state, self.damaged_snapshots = self.snapshots.newest()
        self.snapshots.set_aside_damaged(self.damaged_snapshots)
        if state is not None:
            state = state.copy()
        elif model is None and (kept := self.journal.fact("model")) is not None:
            state = State(new_model(json.loads(kept)))
        elif model is None:
            raise BadSource(
                f"{self.folder} holds no snapshot that can be read{'' if not self.damaged_snapshots else ' any more'}. "
                "Give a model file, or --new with --model."
            )
        else:
            state = State(model, record_of(model)).copy()
            if not state.is_fitted:
                self.journal.set_fact("model", json.dumps(description_of(model)))
        make_repeatable(state.model)
        if state.record.position < self.journal.trimmed_to:
            raise BadSource(
                f"the newest readable snapshot in {self.folder} ends at entry {state.record.position}, but the journal "
                f"begins after {self.journal.trimmed_to}. Restore the folder from a backup."
            )
        # A journal that lost its tail goes on behind the snapshot: a position means one thing only.
        self.journal.last_position = max(self.journal.last_position, state.record.position)
        return state

    def _replay(self) -> int:
        """Learn what the journal holds behind the snapshot; how many items that were."""
        before = self.learner.state.record.n_items
        while self.learner.step():
            pass
        return self.learner.state.record.n_items - before

    def start(self) -> None:
        """Begin to accept requests."""
        if not self.snapshots.positions() and self.learner.state.is_fitted:
            self.snapshots.save(self.learner.state)
        for work in (self._commit_forever, self._learn_forever, self._save_forever):
            thread = threading.Thread(target=work, name=work.__name__, daemon=True)
            thread.start()
            self._threads.append(thread)

    # --- what callers do ----------------------------------------------------------------------------------------------

    def submit(self, request: Request) -> Future[Receipt]:
        """Queue a request; the future holds its receipt once it is durable."""
        if self._closing.is_set():
            raise QueueFull("the service is stopping.")
        if request.kind == "learn" and self.lag_items > self.queue_items:
            raise QueueFull(f"{self.lag_items:,} items are waiting to be learned; the limit is {self.queue_items:,}.")
        done: Future[Receipt] = Future()
        try:
            self._queue.put_nowait(Pending(request, done))
        except queue.Full:
            raise QueueFull(f"{self._queue.maxsize:,} requests are waiting to be written, the most allowed.") from None
        return done

    def edit(self, edit: dict[str, Any], timeout: float = 60.0) -> dict[str, Any]:
        """Write an edit, apply it, and say what changed; readers see it when this returns."""
        with self._publishing:
            self._n_edits_waiting += 1
        position = 0
        try:
            position = self.submit(Request("edit", edit)).result(timeout).position
            with self._publishing:
                outcome = self._edits.setdefault(position, Future())
            return outcome.result(timeout)
        finally:
            with self._publishing:
                self._n_edits_waiting -= 1
                self._edits.pop(position, None)

    def seen(self, position: int) -> Future[None]:
        """Done when readers see what was learned up to a position. Nobody's thread waits for it."""
        done: Future[None] = Future()
        with self._publishing:
            if self.published.record.position >= position:
                done.set_result(None)
            else:
                self._awaited = [one for one in self._awaited if not one[1].cancelled()] + [(position, done)]
        return done

    def wait_for(self, position: int, timeout: float) -> bool:
        """Wait until readers see what was learned up to a position; whether they do."""
        try:
            self.seen(position).result(timeout)
        except TimeoutError:
            return False
        return True

    def on_publish(self, listener: Callable[[State], None]) -> None:
        """Call this with every state that is published."""
        self._on_publish.append(listener)

    @property
    def lag_items(self) -> int:
        """Items that are written but not learned yet."""
        return self._written_items - self.learner.state.record.n_items - self.learner.state.record.n_refused

    @property
    def n_to_begin(self) -> int:
        """Items that a new model needs before it begins."""
        return self.learner.n_to_begin

    @property
    def n_waiting(self) -> int:
        """Requests that wait to be written."""
        return self._queue.qsize()

    # --- committing ---------------------------------------------------------------------------------------------------

    def _commit_forever(self) -> None:
        while True:
            group = self._next_group()
            if group is None:
                return
            self._commit(group)

    def _next_group(self) -> list[Pending] | None:
        """All that waits, up to a full group; None at the end."""
        first = self._queue.get()
        group = [first]
        with contextlib.suppress(queue.Empty):
            while len(group) < GROUP_REQUESTS and group[-1] is not None:
                group.append(self._queue.get_nowait())
        if group[-1] is None:
            self._queue.put(None)  # for the next round, when what came before it is written
            group.pop()
        return [pending for pending in group if pending is not None] or None

    def _commit(self, group: list[Pending]) -> None:
        try:
            self._require_space()
            receipts = self.journal.append([pending.request for pending in group])
        except JournalFull as error:
            if not self.read_only:
                log.error("read-only: %s", error)
            self.read_only = str(error)
            for pending in group:
                pending.done.set_exception(error)
            return
        except Exception as error:
            log.exception("a group of requests could not be written")
            for pending in group:
                pending.done.set_exception(error)
            return
        if self.read_only:
            log.warning("the journal can be written again")
        self.read_only, self.n_commits = "", self.n_commits + 1
        self._written_items += sum(receipt.accepted for receipt in receipts)
        for pending, receipt in zip(group, receipts, strict=True):
            pending.done.set_result(receipt)
        self._wake.set()

    def _require_space(self) -> None:
        disk = os.statvfs(self.folder)
        free = disk.f_bavail * disk.f_frsize
        if free < self.reserve_bytes:
            raise JournalFull(
                f"only {free / 1e6:,.1f} MB are free where {self.folder} is, and {self.reserve_bytes / 1e6:,.1f} MB "
                "are kept for snapshots. Free some disk space; the service then goes on by itself."
            )

    # --- learning -----------------------------------------------------------------------------------------------------

    def _learn_forever(self) -> None:
        published_at = 0.0
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                moved = self.learner.step(self._answer_edit)
            except JournalFull:
                moved = False  # the batch could not be marked; tried again after a moment
                self._closing.wait(0.2)
            except Exception:
                log.exception("learning stopped")
                self.read_only = "learning failed; see the log. Restart the service."
                return
            behind = self.published.record.position < self.learner.state.record.position
            if behind and (self._may_rest or time.monotonic() - published_at >= self.publish_seconds):
                self._publish()
                published_at = time.monotonic()
            if moved:
                self._rest(time.monotonic() - began)
            else:
                self._wake.wait(0.5)
                self._wake.clear()

    @property
    def _may_rest(self) -> bool:
        """Whether nobody waits for the learner: no edit, and less than a full batch."""
        waits = self._n_edits_waiting or self._closing.is_set()
        return not waits and self.lag_items < self.learner.batch_items

    def _rest(self, worked: float) -> None:
        """Let items gather, and readers have the processor.

        A step costs a copy of the model however few items it learns, and readers see them at the next publishing only.
        """
        end = time.monotonic() + min(self.publish_seconds, max(SHORTEST_REST, REST * worked))
        while self._may_rest and (left := end - time.monotonic()) > 0:
            self._wake.wait(left)
            self._wake.clear()

    def _answer_edit(self, position: int, outcome: dict[str, Any] | ShoalError) -> None:
        self._publish()
        with self._publishing:
            future = self._edits.setdefault(position, Future())
        if isinstance(outcome, ShoalError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def _publish(self) -> None:
        state = self.learner.state.copy()
        for listener in self._on_publish:
            listener(state)
        with self._publishing:
            self.published = state
            position = state.record.position
            seen = [done for awaited, done in self._awaited if awaited <= position]
            self._awaited = [one for one in self._awaited if one[0] > position and not one[1].cancelled()]
        for done in seen:
            if done.set_running_or_notify_cancel():
                done.set_result(None)

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def _save_forever(self) -> None:
        while not self._closing.is_set():
            self.save_now.wait(min(1.0, self.snapshot_seconds))
            due = time.time() - self.snapshot_time >= self.snapshot_seconds or self.save_now.is_set()
            if due or self.journal.n_bytes > self.journal_bytes:
                self.save_now.clear()
                self.save_snapshot()

    def save_snapshot(self) -> bool:
        """Save what readers see, if it is new, and trim the journal; False if the disk does not allow it."""
        state, befores = self.published, dict(self.learner.before_edit)
        self.snapshot_time = time.time()
        if not state.is_fitted or state.record.position == self._saved_position:
            return True
        try:
            for position, before in befores.items():
                if position <= state.record.position and not self.snapshots.file(position, "before").exists():
                    self.snapshots.save(before, position, "before")
            self.snapshots.save(state)
            self._saved_position = state.record.position
            self.snapshots.prune()
            self._trim(state)
        except (OSError, ShoalError) as error:
            log.error("no snapshot was saved, the one before stays: %s", error)
            return False
        return True

    def _trim(self, state: State) -> None:
        """Forget entries that every kept snapshot holds and no undoing needs."""
        oldest = min(self.snapshots.positions(), default=0)
        needed = Learner.needed_before(state, oldest)
        for position in set(self.snapshots.positions("before")) - needed:
            if position <= state.record.position:
                self.snapshots.file(position, "before").unlink(missing_ok=True)
        if self.trims and len(self.snapshots.positions()) >= self.snapshots.n_kept:
            self.journal.trim(min([oldest, *needed]))

    # --- stopping -----------------------------------------------------------------------------------------------------

    def close(self, *, timeout: float = 30.0) -> None:
        """Write what waits, learn what is written (as far as time allows), save a snapshot, let go of the folder."""
        if self._threads:
            self._queue.put(None)
            self._threads[0].join(timeout)
            deadline = time.monotonic() + timeout
            while self.lag_items > 0 and self.learner.state.is_fitted and time.monotonic() < deadline:
                self._wake.set()
                time.sleep(0.02)
        self._closing.set()
        self._wake.set()
        self.save_now.set()
        for thread in self._threads:
            thread.join(timeout)
        if self._threads:
            self._publish()
            self.save_snapshot()
        self.journal.close()
        self._lock_file.close()
