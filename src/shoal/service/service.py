"""A service: one writer or a followed folder, the view that readers see, limits, tokens and counts."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shoal.base import Estimator
from shoal.errors import BadSource, ShoalError
from shoal.service.edits import check_edit
from shoal.service.limits import Limits
from shoal.service.metrics import Metrics
from shoal.service.snapshots import SnapshotFolder
from shoal.service.state import CannotDo, State, require
from shoal.service.tokens import Tokens
from shoal.service.view import View
from shoal.service.warming import touch, warm
from shoal.service.writer import Writer
from shoal.store.journal import Receipt, Request

log = logging.getLogger("shoal.service")
audit_log = logging.getLogger("shoal.audit")


class Service:
    """Everything behind the routes.

    Parameters
    ----------
    folder : path
        Where the journal and the snapshots are.
    model : Estimator or None
        What to start from, if the folder is new: fitted, or not fitted yet. With ``follow``, what stands in until there
        is a snapshot.
    follow : bool
        Only read: use the snapshots that another service writes into the folder.
    limits, tokens : Limits, Tokens
        How much is accepted, and from whom.
    **options
        Passed on to :class:`shoal.service.writer.Writer`.

    Examples
    --------
    >>> import tempfile
    >>> from shoal import SphericalKMeans
    >>> folder = tempfile.TemporaryDirectory()
    >>> service = Service(folder.name, SphericalKMeans(2, random_state=0), reserve_mb=0.001)
    >>> service.start()
    >>> items = [{"id": str(n), "features": ["a", "b"] if n % 2 else ["c", "d"]} for n in range(50)]
    >>> receipt = service.learn(items).result()
    >>> service.writer.wait_for(receipt.position, timeout=60)
    True
    >>> round(service.view.assign([{"features": ["a"]}])[0]["score"], 3)
    0.707
    >>> service.close(); folder.cleanup()
    """

    def __init__(
        self,
        folder: str | Path,
        model: Estimator | None = None,
        *,
        follow: bool = False,
        limits: Limits | None = None,
        tokens: Tokens | None = None,
        follow_seconds: float = 1.0,
        **options: Any,
    ) -> None:
        self.folder = Path(folder)
        self.limits = Limits() if limits is None else limits
        self.tokens = Tokens() if tokens is None else tokens
        self.metrics = Metrics()
        self.started_at = time.time()
        self.ready = False
        self.stopping = threading.Event()
        self.follow_seconds = follow_seconds
        self.has_readers = False  # other processes, which see what is in snapshots on disk
        self.writer: Writer | None = None
        self._learned: list[tuple[float, int]] = []
        if follow:
            self._folder = SnapshotFolder(self.folder / "snapshots")
            self.view = self._newest_view() if model is None else View(State(model))
        else:
            queues: dict[str, Any] = {
                "queue_requests": self.limits.queue_requests,
                "queue_items": self.limits.queue_items,
            }
            self.writer = Writer(self.folder, model, **queues, **options)
            self.view = View(self.writer.published)
            self.writer.on_publish(self._show)

    def start(self) -> None:
        """Begin to accept requests; ``ready`` turns true when the kernels are compiled and warm."""
        if self.writer is not None:
            self.writer.start()
        else:
            threading.Thread(target=self._follow_forever, name="follow", daemon=True).start()
        try:
            warm(self.view.state, learns=self.writer is not None)
            touch(self.view)
            if self.view.state.is_fitted:
                _ = self.view.catalog.map
        except Exception:  # a model that cannot be warmed up can still be served, only slower at first
            log.exception("warming up failed")
        gc.collect()
        gc.freeze()  # what is there now stays: looking through it again would hold up requests
        self.ready = True

    def close(self) -> None:
        """Finish what was accepted, save a snapshot, let go of the folder."""
        self.ready = False
        self.stopping.set()
        if self.writer is not None:
            self.writer.close()

    # --- what readers see ---------------------------------------------------------------------------------------------

    def _show(self, state: State) -> None:
        view = View(state, self.view.catalogs)
        touch(view)
        self.view = view
        self._learned = [*self._learned[-300:], (time.monotonic(), state.record.n_items)]

    def _newest_view(self) -> View:
        state, troubles = self._folder.newest()
        if state is None:
            raise BadSource(
                f"there is no snapshot in {self.folder}{': ' + troubles[0] if troubles else ''}. Give the folder of a "
                "running service."
            )
        return View(state)

    def _follow_forever(self) -> None:
        while not self.stopping.wait(self.follow_seconds):
            newest = self._folder.positions()[:1]
            if newest and newest[0] != self.view.snapshot:
                try:
                    self._show(self._newest_view().state)
                except ShoalError as error:
                    log.warning("the newest snapshot cannot be read yet: %s", error)

    @property
    def learning_rate(self) -> float:
        """Items learned a second, over the last half minute."""
        recent = [one for one in self._learned if one[0] > time.monotonic() - 30.0]
        if not recent:
            return 0.0
        earlier = [one for one in self._learned if one[0] <= time.monotonic() - 30.0][-1:] or recent[:1]
        seconds = max(time.monotonic() - earlier[0][0], 1.0)
        return (recent[-1][1] - earlier[0][1]) / seconds

    # --- what writers do ----------------------------------------------------------------------------------------------

    def learn(self, items: list[dict[str, Any]]) -> Any:
        """Queue items to be learned; the future of their receipt."""
        writer = self.require_writer()
        require(self.view.model, "learn")
        now = time.time()
        return writer.submit(Request("learn", [{**item, "received": now} for item in items]))

    def edit(self, edit: dict[str, Any], who: str) -> dict[str, Any]:
        """Apply an edit, for good; what changed."""
        writer = self.require_writer()
        edit = {**edit, "at": time.time()}
        if edit["action"] == "undo":
            at, why = writer.learner.undoable(writer.journal.last_position + 1)
            if at != edit["edit"]:
                raise CannotDo(why or f"edit {at} is the newest that has not been undone; undo that one first.")
        else:
            if edit["action"] == "split":
                edit["items"] = self._items_to_split(edit["cluster"])
            check_edit(self.view.state, edit)
        result = writer.edit(edit)
        self.show_readers()
        note = {name: value for name, value in edit.items() if name != "items"}
        audit_log.info("edit", extra={"facts": {**note, "position": result["edit"], "who": who}})
        return result

    def _items_to_split(self, cluster: int) -> list[dict[str, Any]]:
        items = self.view.record.items_of(cluster)[:2000]
        if len(items) < 2:
            raise CannotDo(
                f"cluster {cluster} has {len(items)} items that the service remembers; a split needs two or more that "
                "were learned through the service."
            )
        return [{"id": item.id, "features": list(item.features)} for item in items]

    def show_readers(self) -> None:
        """Somebody waits until readers see what was changed: save a snapshot now if they are other processes."""
        if self.has_readers and self.writer is not None:
            self.writer.save_now.set()

    def require_writer(self) -> Writer:
        """The writer, unless this service only reads."""
        if self.writer is None:
            raise CannotDo("this is a read-only replica: send learning and edits to the service it follows.")
        return self.writer

    # --- facts --------------------------------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """What the service is doing, in numbers."""
        record, writer = self.view.record, self.writer
        facts: dict[str, Any] = {
            "model": type(self.view.model).__name__,
            "snapshot": self.view.snapshot,
            "snapshot_age_seconds": round(time.time() - self.view.published_at, 3),
            "items": record.n_items,
            "refused_items": record.n_refused,
            "last_refusal": record.last_refusal,
            "clusters": int(self.view.state.cluster_ids().size),
            "features": int(getattr(self.view.model, "n_features_in_", 0)),
            "events": record.next_event - 1,
            "items_per_second": round(self.learning_rate, 2),
            "uptime_seconds": round(time.time() - self.started_at, 1),
            "role": "follower" if writer is None else "writer",
            "ready": self.ready,
        }
        if not self.view.state.is_fitted:
            facts["items_to_begin"] = self.view.state.n_first()
        if writer is not None:
            facts |= {
                "lag_items": max(0, writer.lag_items),
                "waiting_requests": writer.n_waiting,
                "journal_bytes": writer.journal.n_bytes,
                "journal_position": writer.journal.last_position,
                "saved_position": max(writer.snapshots.positions(), default=0),
                "commits": writer.n_commits,
                "read_only": writer.read_only or None,
                "repair": str(writer.journal.repair) if writer.journal.repair else None,
                "damaged_snapshots": writer.damaged_snapshots,
                "replayed_items": writer.n_replayed,
            }
        return facts

    def gauges(self) -> Iterator[tuple[str, str, str, float]]:
        """The numbers among the facts, for Prometheus."""
        facts = self.stats()
        described = {
            "items": ("items_learned_total", "counter", "Items learned."),
            "refused_items": ("items_refused_total", "counter", "Items the model could not learn."),
            "clusters": ("clusters", "gauge", "Live clusters."),
            "features": ("features", "gauge", "Features known."),
            "events": ("events_total", "counter", "Births, bursts, merges, deaths and edits."),
            "lag_items": ("lag_items", "gauge", "Items written but not learned yet."),
            "waiting_requests": ("waiting_requests", "gauge", "Requests waiting to be written."),
            "journal_bytes": ("journal_bytes", "gauge", "Size of the journal on disk."),
            "snapshot": ("snapshot_position", "gauge", "Journal position that readers see."),
            "snapshot_age_seconds": ("snapshot_age_seconds", "gauge", "Age of what readers see."),
            "saved_position": ("saved_position", "gauge", "Journal position of the newest snapshot on disk."),
            "commits": ("commits_total", "counter", "Commits of the journal."),
        }
        for name, (called, kind, help_) in described.items():
            if name in facts:
                yield called, kind, help_, float(facts[name])
        yield "read_only", "gauge", "1 while nothing can be written.", float(bool(facts.get("read_only")))
        yield "ready", "gauge", "1 when ready.", float(self.ready)


__all__ = ["Receipt", "Service"]
