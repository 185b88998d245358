"""Snapshots: a folder of model files, each with the position of the journal that it holds."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from shoal.errors import ShoalError
from shoal.service.record import Record
from shoal.service.state import State
from shoal.store import load, save

log = logging.getLogger("shoal.service")
NAME = re.compile(r"(snapshot|before)-(\d{15})\.shoal")


class SnapshotFolder:
    """Snapshots, newest first, and copies from before edits that may be undone.

    Parameters
    ----------
    path : Path
        The folder; made if it is not there.
    n_kept : int
        How many snapshots to keep: one more than one, so that a damaged file costs only time.
    """

    def __init__(self, path: Path, n_kept: int = 2) -> None:
        self.path = path
        self.n_kept = n_kept

    def positions(self, kind: str = "snapshot") -> list[int]:
        """Positions of the snapshots there are, newest first."""
        names = os.listdir(self.path) if self.path.is_dir() else []
        found = [match for name in names if (match := NAME.fullmatch(name)) and match[1] == kind]
        return sorted((int(match[2]) for match in found), reverse=True)

    def file(self, position: int, kind: str = "snapshot") -> Path:
        """Where the snapshot of a position is."""
        return self.path / f"{kind}-{position:015d}.shoal"

    def save(self, state: State, position: int | None = None, kind: str = "snapshot") -> Path:
        """Write a state; when this returns, it survives a power failure."""
        self.path.mkdir(parents=True, exist_ok=True)
        shell = copy.copy(state.model)
        shell.service_ = state.record.to_state()  # type: ignore[attr-defined]
        file = self.file(state.record.position if position is None else position, kind)
        save(file, shell)
        return file

    def load(self, position: int, kind: str = "snapshot") -> State:
        """A state as it was saved; its arrays are mapped, read-only, and shared by all processes that map them."""
        model = load(self.file(position, kind))
        record = Record.from_state(model.service_) if hasattr(model, "service_") else Record()
        if hasattr(model, "service_"):
            del model.service_
        return State(model, record)

    def newest(self) -> tuple[State | None, list[str]]:
        """The newest snapshot that is whole, and what was wrong with newer ones."""
        troubles: list[str] = []
        for position in self.positions():
            try:
                return self.load(position), troubles
            except ShoalError as error:
                troubles.append(str(error))
                log.error("snapshot is damaged, the one before is used: %s", error)
        return None, troubles

    def prune(self, n_kept: int | None = None) -> None:
        """Remove all but the newest snapshots."""
        for position in self.positions()[self.n_kept if n_kept is None else n_kept :]:
            with contextlib.suppress(FileNotFoundError):
                self.file(position).unlink()

    def set_aside_damaged(self, troubles: list[str]) -> None:
        """Rename snapshots newer than the one that could be read, so that they do not count as kept."""
        for position in self.positions()[: len(troubles)]:
            file = self.file(position)
            file.rename(file.with_suffix(".damaged"))

    def __iter__(self) -> Iterator[Path]:
        return (self.file(position) for position in self.positions())
