"""A service's folder: who may use it, whether it is whole, and a copy of it in one file."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.errors import BadInput, BadSource, ShoalError
from shoal.service.snapshots import SnapshotFolder
from shoal.store.journal import checksum_of, copy_journal
from shoal.store.journal_repair import frames_in_log

SCRATCH = ".backup-"  # how folders begin in which a backup is put together


def lock_folder(folder: Path) -> Any:
    """Make the folder this process's own until the file is closed, or the process ends however it may."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / "lock", "a+")  # noqa: SIM115 -- held as long as the writer is
    except OSError as error:
        raise BadSource(f"cannot use the folder {folder}: {error.strerror}. Choose another with --dir.") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        raise BadInput(f"another shoal service uses {folder}. Stop it, or choose another folder with --dir.") from None
    return file


@dataclass
class Findings:
    """What a check of a folder found."""

    facts: dict[str, int | str] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether a service could start from it without losing anything."""
        return not self.troubles


def check(folder: Path) -> Findings:
    """Read everything in a service's folder, change nothing, and say what is damaged."""
    journal = folder / "journal.sqlite"
    if not journal.exists():
        raise BadSource(f"{folder} is not the folder of a service: it holds no journal.sqlite.")
    findings = Findings()
    positions = _check_snapshots(SnapshotFolder(folder / "snapshots"), findings)
    _check_journal(journal, positions, findings)
    return findings


def _check_snapshots(snapshots: SnapshotFolder, findings: Findings) -> list[int]:
    """Positions of the snapshots that can be read."""
    good = []
    for position in snapshots.positions():
        try:
            state = snapshots.load(position)
            good.append(state.record.position)
            findings.facts.setdefault("items_in_newest_snapshot", state.record.n_items)
        except ShoalError as error:
            findings.troubles.append(f"snapshot: {error}")
    findings.facts["snapshots"] = len(good)
    return good


def _check_journal(path: Path, snapshots: list[int], findings: Findings) -> None:
    findings.facts["log_pages"] = frames_in_log(path)
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            for (line,) in db.execute("PRAGMA integrity_check(5)"):
                if line != "ok":
                    findings.troubles.append(f"journal: {line}")
            first = last = expected = None
            for position, kind, body, kept in db.execute(
                "SELECT position, kind, body, checksum FROM entries ORDER BY position"
            ):
                if not isinstance(body, bytes) or checksum_of(position, kind, body) != kept:
                    findings.troubles.append(f"journal: entry {position} is damaged.")
                elif expected is not None and position != expected:
                    findings.troubles.append(f"journal: entries {expected} to {position - 1} are missing.")
                first, last, expected = position if first is None else first, position, position + 1
            trimmed = db.execute("SELECT value FROM facts WHERE name = 'trimmed_to'").fetchone()
    except sqlite3.DatabaseError as error:
        findings.troubles.append(f"journal: {error}.")
        return
    begins = int(trimmed[0]) if trimmed else 0
    findings.facts |= {"first_entry": first or 0, "last_entry": last or begins}
    if begins and not any(position >= begins for position in snapshots):
        findings.troubles.append(f"no snapshot that can be read reaches entry {begins}, where the journal begins.")


def backup(folder: Path, file: Path) -> int:
    """Copy a service's folder into one tar file, while the service runs; its size in bytes.

    The journal is copied after the snapshot, and both are taken again if the journal was trimmed meanwhile.
    Unpack it into an empty folder to restore.
    """
    snapshots = SnapshotFolder(folder / "snapshots")
    if not (folder / "journal.sqlite").exists():
        raise BadSource(f"{folder} is not the folder of a service: it holds no journal.sqlite.")
    remove_leftovers(file.parent)
    with _scratch_folder(file.parent) as made:
        for _ in range(20):
            if _copied(folder, snapshots, made):
                break
        else:
            raise BadSource(f"{folder} changes too fast to be copied. Try again, or use a longer --snapshot-seconds.")
        temporary = made / "backup.tar"
        with tarfile.open(temporary, "w") as tar:
            for part in ("journal.sqlite", "snapshots", "service.json"):
                if (made / part).exists():
                    tar.add(made / part, part)
        with open(temporary, "rb") as done:
            os.fsync(done.fileno())
        os.replace(temporary, file)
    return file.stat().st_size


@contextmanager
def _scratch_folder(parent: Path) -> Iterator[Path]:
    """A folder that is locked while it is used: of a process that was killed, it is seen to be a leftover."""
    while True:
        made = Path(tempfile.mkdtemp(dir=parent, prefix=SCRATCH))
        lock = _locked(made)
        if lock is not None and made.exists():
            break
        if lock is not None:  # another process took it for a leftover before it was locked
            os.close(lock)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


def remove_leftovers(parent: Path) -> int:
    """Remove what backups that were killed left in a folder; how many there were. Those that run are left alone."""
    removed = 0
    for left in parent.glob(f"{SCRATCH}*"):
        if left.is_symlink() or not left.is_dir() or (lock := _locked(left)) is None:
            continue
        try:
            shutil.rmtree(left, ignore_errors=True)
            removed += not left.exists()
        finally:
            os.close(lock)
    return removed


def _locked(folder: Path) -> int | None:
    """A lock on the folder, which ends with the process; None if it is gone or another process holds it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _copied(folder: Path, snapshots: SnapshotFolder, to: Path) -> bool:
    """Copy snapshots, then the journal; False if they do not fit together."""
    copies = to / "snapshots"
    copies.mkdir(exist_ok=True)
    for old in copies.iterdir():
        old.unlink()
    try:
        for source in (*snapshots, *(snapshots.file(position, "before") for position in snapshots.positions("before"))):
            (copies / source.name).write_bytes(source.read_bytes())
    except FileNotFoundError:
        return False
    (to / "journal.sqlite").unlink(missing_ok=True)
    copy_journal(folder / "journal.sqlite", to / "journal.sqlite")
    with closing(sqlite3.connect(to / "journal.sqlite")) as db:
        row = db.execute("SELECT value FROM facts WHERE name = 'trimmed_to'").fetchone()
    newest = SnapshotFolder(copies).newest()[0]
    return (newest.record.position if newest is not None else 0) >= (int(row[0]) if row else 0)


def facts_line(findings: Findings) -> str:
    """The facts as JSON, for scripts."""
    return json.dumps({**findings.facts, "whole": findings.is_whole, "troubles": findings.troubles})
