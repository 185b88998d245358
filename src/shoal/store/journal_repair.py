"""Opening a journal after a crash: a torn or zero-filled tail is cut off, and what was cut is counted."""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import BadSource

WAL_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
Checksum = Callable[[int, str, bytes], int]


@dataclass
class Repair:
    """What was found, and cut off, when a journal was opened."""

    pages_cut: int = 0  # of the write-ahead log: a commit that was never finished, torn or overwritten with zeros
    entries_cut: int = 0  # whose contents were damaged, or that came after one that was
    rebuilt_from: str = ""  # the damaged file, kept aside, if the journal had to be rebuilt from what could be read

    def __bool__(self) -> bool:
        return bool(self.pages_cut or self.entries_cut or self.rebuilt_from)

    def __str__(self) -> str:
        if not self:
            return "nothing was cut off"
        parts = []
        if self.pages_cut:
            parts.append(f"{self.pages_cut} pages of an unfinished or damaged commit were cut off")
        if self.entries_cut:
            parts.append(f"{self.entries_cut} damaged entries were cut off")
        if self.rebuilt_from:
            parts.append(f"the journal was rebuilt from the readable part of {self.rebuilt_from}")
        return "; ".join(parts)


def repaired(path: Path, checksum: Checksum) -> Repair:
    """Make ``path`` a journal that can be opened and read to its end."""
    repair = Repair()
    if not path.exists() or path.stat().st_size == 0:
        return repair
    in_log = frames_in_log(path)
    try:
        with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as db:
            valid = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
            repair.pages_cut = max(0, in_log - max(valid, 0))
            if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError
            repair.entries_cut = cut_damaged_entries(db, checksum)
    except sqlite3.OperationalError as error:
        raise BadSource(f"cannot open the journal {path}: {error}. Check the folder and the disk.") from None
    except sqlite3.DatabaseError:
        rebuild(path, checksum, repair)
    return repair


def frames_in_log(path: Path) -> int:
    """Pages in the write-ahead log that belong to its present round, complete or not.

    After a round is folded into the main file, the log is written over from its beginning; pages of an earlier round
    stay behind the present ones and carry another salt. They are no damage and are not counted.
    """
    log = path.with_name(path.name + "-wal")
    if not log.exists() or log.stat().st_size <= WAL_HEADER_BYTES:
        return 0
    with open(log, "rb") as file:
        header = file.read(WAL_HEADER_BYTES)
        page_bytes, salts = struct.unpack(">I", header[8:12])[0], header[16:24]
        if not page_bytes:
            return -(-(log.stat().st_size - WAL_HEADER_BYTES) // (4096 + FRAME_HEADER_BYTES))
        n_frames = 0
        while frame := file.read(FRAME_HEADER_BYTES):
            if frame[8:16] != salts and any(frame):
                break
            n_frames += 1
            file.seek(page_bytes, os.SEEK_CUR)
    return n_frames


def cut_damaged_entries(db: sqlite3.Connection, checksum: Checksum) -> int:
    """Remove the first entry that is damaged or out of sequence, and all after it; how many went."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone():
        return 0
    expected = None
    for position, kind, body, kept in db.execute(
        "SELECT position, kind, body, checksum FROM entries ORDER BY position"
    ):
        whole = isinstance(body, bytes) and checksum(position, kind, body) == kept
        if not whole or (expected is not None and position != expected):
            return cut_from(db, position)
        expected = position + 1
    return 0


def cut_from(db: sqlite3.Connection, position: int) -> int:
    n_cut = db.execute("SELECT count(*) FROM entries WHERE position >= ?", (position,)).fetchone()[0]
    db.execute("BEGIN IMMEDIATE")
    db.execute("DELETE FROM entries WHERE position >= ?", (position,))
    db.execute("DELETE FROM ids WHERE position >= ?", (position,))
    db.execute("DELETE FROM batches WHERE last >= ?", (position,))
    db.execute("COMMIT")
    return int(n_cut)


def rebuild(path: Path, checksum: Checksum, repair: Repair) -> None:
    """Copy all rows that can still be read into a new file; the damaged one is kept under another name."""
    from shoal.store.journal import SCHEMA, connect

    fresh = path.with_name(path.name + ".rebuilt")
    remove_database(fresh)
    with closing(sqlite3.connect(path)) as damaged, closing(connect(fresh)) as db:
        db.executescript(SCHEMA)
        db.execute("BEGIN")
        for table, key in (("facts", "name"), ("entries", "position"), ("batches", "last"), ("ids", "position")):
            for row in readable_rows(damaged, table, key):
                marks = ", ".join("?" * len(row))
                db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)
        db.execute("COMMIT")
        repair.entries_cut += cut_damaged_entries(db, checksum)
        last = db.execute("SELECT max(position) FROM entries").fetchone()[0]
        if last is not None:  # ids and batches may be readable where their entries are not
            cut_from(db, last + 1)
    aside = path.with_name(f"{path.name}.damaged-{int(time.time())}")
    os.replace(path, aside)
    for suffix in ("-wal", "-shm"):
        log = path.with_name(path.name + suffix)
        if log.exists():
            os.replace(log, aside.with_name(aside.name + suffix))
    os.replace(fresh, path)
    repair.rebuilt_from = str(aside)


def readable_rows(db: sqlite3.Connection, table: str, key: str) -> list[tuple[Any, ...]]:
    """Rows in order, up to the first page that cannot be read."""
    rows: list[tuple[Any, ...]] = []
    try:
        rows.extend(db.execute(f"SELECT * FROM {table} ORDER BY {key}"))
    except sqlite3.DatabaseError:
        return rows
    return rows


def remove_database(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
