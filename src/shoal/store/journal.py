"""The journal: everything a service was asked to learn or edit, on disk before it is acknowledged.

One SQLite file in WAL mode with synchronous=FULL. Entries are numbered without gaps; the number is their *position*. A
commit may hold the entries of many requests (group commit). Which entries were learned together is written down too, as
a *batch*, before they are learned: a model depends on its batches, so replaying the same batches gives the same bits.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from shoal.errors import BadSource
from shoal.store.journal_repair import Repair, repaired

SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    position INTEGER PRIMARY KEY, kind TEXT NOT NULL, n_items INTEGER NOT NULL, body BLOB NOT NULL,
    checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS ids (id TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ids_by_position ON ids (position);
CREATE TABLE IF NOT EXISTS batches (last INTEGER PRIMARY KEY, first INTEGER NOT NULL);
"""
PAGE_BYTES = 4096
ENTRIES_A_READ = 256
ROWS_A_TRIM = 2000  # short transactions, so that trimming never holds up a commit for long
CANNOT_WRITE = (
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY,
)  # fmt: skip


class JournalFull(BadSource):
    """The journal cannot be written now: the disk is full, or failing. What was acknowledged is safe."""


class Entry(NamedTuple):
    """One request, as it was acknowledged."""

    position: int
    kind: str  # "learn" or "edit"
    body: Any  # what JSON can hold; a list of items for "learn"


class Request(NamedTuple):
    """What a caller wants written. Items of a "learn" are dictionaries; those with an "id" are written only once."""

    kind: str
    body: Any


class Receipt(NamedTuple):
    """What was written for one request."""

    position: int  # of its entry; if all its items were known already, of the newest of those
    accepted: int
    known: int  # items whose id had been written before


class Journal:
    """Durable, ordered requests.

    Parameters
    ----------
    path : str or path
        The SQLite file; made if it is not there.
    n_ids : int
        How many of the newest item ids are remembered, so that sending an item again does not learn it twice.

    Attributes
    ----------
    repair : what had to be cut off when the file was opened

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> journal = Journal(folder.name + "/journal.sqlite")
    >>> journal.append([Request("learn", [{"id": "a", "features": ["x"]}])])
    [Receipt(position=1, accepted=1, known=0)]
    >>> journal.append([Request("learn", [{"id": "a", "features": ["x"]}])])
    [Receipt(position=1, accepted=0, known=1)]
    >>> [entry.body for entry in journal.entries(after=0)]
    [[{'id': 'a', 'features': ['x']}]]
    >>> journal.close(); folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, n_ids: int = 5_000_000) -> None:
        self.path = Path(path)
        self.n_ids = n_ids
        self._lock = threading.RLock()
        self.repair: Repair = repaired(self.path, checksum_of)
        self._open()
        self.last_position = self._last()

    def _open(self) -> None:
        try:
            self._db = connect(self.path)
            self._db.executescript(SCHEMA)
        except sqlite3.OperationalError as error:
            raise JournalFull(f"cannot open the journal {self.path}: {error}. Check the folder and the disk.") from None

    def _last(self) -> int:
        newest = self._db.execute("SELECT max(position) FROM entries").fetchone()[0]
        return max(newest or 0, self.trimmed_to)

    # --- writing ------------------------------------------------------------------------------------------------------

    def append(self, requests: Sequence[Request]) -> list[Receipt]:
        """Write the requests in one transaction. When this returns, they survive a power failure."""
        with self._lock, self._transaction() as db:
            position, receipts = self.last_position, []
            for request in requests:
                receipt, position = self._write(db, request, position)
                receipts.append(receipt)
        self.last_position = position
        return receipts

    def _write(self, db: sqlite3.Connection, request: Request, position: int) -> tuple[Receipt, int]:
        body, newest_known, n_known = request.body, 0, 0
        if request.kind == "learn":
            body = []
            for item in request.body:
                known = self._claim(db, item.get("id"), position + 1)
                if known is None:
                    body.append(item)
                else:
                    n_known, newest_known = n_known + 1, max(newest_known, known)
            if not body:
                return Receipt(min(newest_known, position), 0, n_known), position
        position += 1
        encoded = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        n_items = len(body) if request.kind == "learn" else 0
        row = (position, request.kind, n_items, encoded, checksum_of(position, request.kind, encoded))
        db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", row)
        return Receipt(position, n_items, n_known), position

    @staticmethod
    def _claim(db: sqlite3.Connection, id_: str | None, position: int) -> int | None:
        """The position under which this id is known; None if it is new, and it is noted then."""
        if id_ is None:
            return None
        found = db.execute("SELECT position FROM ids WHERE id = ?", (id_,)).fetchone()
        if found is not None:
            return int(found[0])
        db.execute("INSERT INTO ids VALUES (?, ?)", (id_, position))
        return None

    def mark_batch(self, first: int, last: int) -> None:
        """Write down that the entries from ``first`` to ``last`` are learned together."""
        with self._lock, self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO batches VALUES (?, ?)", (last, first))

    def set_fact(self, name: str, value: str) -> None:
        """Keep a plain fact with the journal."""
        with self._lock, self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def _give_up(self, error: sqlite3.Error) -> None:
        """Take the transaction back, and go on from what is on disk if a new connection can be had."""
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        # What a connection believes after a failed write is not to be trusted; on a full disk there may be no other.
        with suppress(sqlite3.Error):
            fresh = connect(self.path)
            self._db.close()
            self._db = fresh
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in CANNOT_WRITE:
            raise JournalFull(
                f"the journal {self.path} cannot be written now: {error}. Free some disk space; nothing else is needed."
            ) from None
        raise error

    # --- reading ------------------------------------------------------------------------------------------------------

    def entries(self, after: int, upto: int | None = None) -> Iterator[Entry]:
        """The entries with positions in (after, upto], in order, a few at a time."""
        end = self.last_position if upto is None else upto
        query = (
            "SELECT position, kind, body FROM entries WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
        )
        while after < end:
            with self._lock:
                rows = self._db.execute(query, (after, end, ENTRIES_A_READ)).fetchall()
            if not rows:
                return
            for position, kind, body in rows:
                yield Entry(position, kind, json.loads(body))
            after = rows[-1][0]

    def batch_after(self, position: int) -> tuple[int, int] | None:
        """The batch that begins right after ``position``, if one was marked."""
        with self._lock:
            row = self._db.execute(
                "SELECT first, last FROM batches WHERE last > ? ORDER BY last LIMIT 1", (position,)
            ).fetchone()
        return (row[0], row[1]) if row is not None and row[0] == position + 1 else None

    def n_items_after(self, position: int) -> int:
        """Items in entries behind this position."""
        with self._lock:
            query = "SELECT coalesce(sum(n_items), 0) FROM entries WHERE position > ?"
            return int(self._db.execute(query, (position,)).fetchone()[0])

    def fact(self, name: str) -> str | None:
        """A fact that :meth:`set_fact` kept."""
        with self._lock:
            row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    @property
    def trimmed_to(self) -> int:
        """Entries up to this position are removed; a snapshot contains their effect."""
        return int(self.fact("trimmed_to") or 0)

    @property
    def n_bytes(self) -> int:
        """Bytes on disk, with what has not been folded into the main file yet."""
        files = [self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal")]
        return sum(file.stat().st_size for file in files if file.exists())

    # --- keeping it small ---------------------------------------------------------------------------------------------

    def trim(self, upto: int) -> int:
        """Forget the entries up to a position, which some snapshot must hold; how many went. Ids stay known."""
        gone = 0
        upto = min(upto, self.last_position)
        while True:
            with self._lock, self._transaction() as db:
                query = "SELECT position FROM entries WHERE position <= ? ORDER BY position LIMIT 1 OFFSET ?"
                end = db.execute(query, (upto, ROWS_A_TRIM - 1)).fetchone()
                to = upto if end is None else end[0]
                if to > self.trimmed_to:
                    db.execute("INSERT OR REPLACE INTO facts VALUES ('trimmed_to', ?)", (str(to),))
                removed = db.execute("DELETE FROM entries WHERE position <= ?", (to,)).rowcount
                db.execute("DELETE FROM batches WHERE last <= ?", (to,))
            gone += removed
            if end is None:
                break
        self._forget_old_ids()
        with self._lock:
            self._db.executescript("PRAGMA incremental_vacuum")  # execute() would free one page alone
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return gone

    def _forget_old_ids(self) -> None:
        with self._lock, self._transaction() as db:
            excess = db.execute("SELECT count(*) FROM ids").fetchone()[0] - self.n_ids
            if excess > 0:
                query = "DELETE FROM ids WHERE id IN (SELECT id FROM ids ORDER BY position LIMIT ?)"
                db.execute(query, (excess,))

    def close(self) -> None:
        """Fold the log into the main file and close it."""
        with self._lock:
            self._db.close()


def copy_journal(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """A consistent copy of a whole journal as it is now, while others go on writing to it."""
    with closing(connect(Path(source))) as from_, closing(sqlite3.connect(target)) as to:
        from_.backup(to, pages=-1)  # in one step: a copy in pieces begins again whenever somebody writes


def connect(path: Path) -> sqlite3.Connection:
    """A connection that waits for its turn, writes ahead, and flushes every commit to the disk."""
    db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    db.execute(f"PRAGMA page_size={PAGE_BYTES}")
    db.execute("PRAGMA auto_vacuum=INCREMENTAL")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    return db


def checksum_of(position: int, kind: str, body: bytes) -> int:
    """What an entry's contents must give."""
    return zlib.crc32(body, zlib.crc32(f"{position} {kind} ".encode()))
