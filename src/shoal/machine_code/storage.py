"""Where entries are kept: a folder of this user's, and the packs of the wheel.

What is read from a folder is run, so a folder counts only if it belongs to this user and nobody else may write to it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from shoal.machine_code import keys

MAGIC = b"shoal machine code\x00"
DIGEST = 32
MOST_ENTRIES = 6000  # in a folder; an installed version needs some 500, and somebody who edits kernels leaves old ones
ABANDONED = 3600.0  # seconds after which a file that was never finished is removed


def switched_off() -> bool:
    """Whether the user asked for code to be compiled in every process."""
    return os.environ.get("SHOAL_MACHINE_CODE", "").lower() == "off"


class Folder:
    """Entries as files, each named by its key: no index that two processes could disagree about."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pruned = False

    def get(self, key: str) -> bytes | None:
        """An entry, or None. One that is damaged is removed."""
        try:
            raw = (self.path / key).read_bytes()
        except OSError:
            return None
        start, packed = len(MAGIC) + DIGEST, raw[len(MAGIC) + DIGEST :]
        if raw[:start] == MAGIC + _checksum(key, packed):
            return zlib.decompress(packed)
        self.discard(key)
        return None

    def put(self, key: str, payload: bytes) -> None:
        """Whole or not at all; of two processes the later wins, and both wrote the same."""
        self._prune()
        packed = zlib.compress(payload, 1)
        handle, name = tempfile.mkstemp(dir=self.path, prefix=".new-")
        try:
            with open(handle, "wb") as file:
                file.write(MAGIC + _checksum(key, packed) + packed)
            os.replace(name, self.path / key)
        except BaseException:
            self.discard(name)
            raise

    def discard(self, key: str) -> None:
        """Remove an entry, if it is there and this process may."""
        with contextlib.suppress(OSError):
            (self.path / key).unlink()

    def _prune(self) -> None:
        """Once in a process: the oldest half when there are too many, and what a killed process left unfinished."""
        if self.pruned:
            return
        self.pruned = True
        changed = {}
        for path in self.path.iterdir():
            with contextlib.suppress(OSError):  # another process may remove it first
                changed[path.name] = path.stat().st_mtime
        abandoned = [name for name in changed if name.startswith(".new-") and time.time() - changed[name] > ABANDONED]
        oldest = sorted(changed, key=changed.__getitem__)
        for name in abandoned + (oldest[: len(oldest) // 2] if len(oldest) > MOST_ENTRIES else []):
            self.discard(name)


def _checksum(key: str, packed: bytes) -> bytes:
    return hashlib.sha256(key.encode() + packed).digest()


@functools.cache
def user_folder() -> Folder | None:
    """The folder for code compiled by this compiler for this CPU: the first that can be made and written."""
    name = hashlib.sha256(f"{keys.versions()} {keys.cpu()}".encode()).hexdigest()[:20]
    for base in _base_folders():
        with contextlib.suppress(OSError):
            path = base / name
            base.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.mkdir(exist_ok=True, mode=0o700)
            if _is_private(base) and _is_private(path):
                tempfile.TemporaryFile(dir=path).close()
                return Folder(path)
    return None


def _base_folders() -> Iterator[Path]:
    if os.environ.get("SHOAL_CACHE_DIR"):
        yield Path(os.environ["SHOAL_CACHE_DIR"]).absolute()
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"]).absolute() / "shoal"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if os.path.isabs(home):
        yield Path(home) / "shoal"
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    yield Path(tempfile.gettempdir()) / f"shoal-{user}"


def _is_private(path: Path) -> bool:
    if not hasattr(os, "getuid"):  # Windows: a user's folders are the user's
        return True
    facts = os.lstat(path)
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o022
