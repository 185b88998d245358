"""Files that appear whole or not at all: models, reports and tables are all written here.

A new file is written under a random name in the same folder, flushed to the disk, and renamed over the old one.
Renaming replaces the old file as such: one that is write-protected is replaced, too, and a hard link keeps the old
content.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from shoal.errors import BadInput, BadSource

if sys.platform != "win32":
    import fcntl

STALE_SECONDS = 60.0  # after which a temporary file that nobody holds counts as left over
LONGEST_STEM_BYTES = 200  # of a temporary's name; file systems allow 255 in all
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
# A pipe under the name of a temporary must not stop the search for left-overs.
LOOK = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)

KINDS = (
    (stat.S_ISDIR, "a folder", "Give the name of a file in it."),
    (stat.S_ISFIFO, "a pipe", "Give the name of a file."),
    (stat.S_ISCHR, "a device", "Give the name of a file."),
    (stat.S_ISBLK, "a device", "Give the name of a file."),
    (stat.S_ISSOCK, "a socket", "Give the name of a file."),
)


def check_output(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> Path:
    """Refuse, before any work is done, a path that cannot be written to or that is one of the ``inputs``.

    Returns the file that would be written: where ``path`` is a link, the file it leads to.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_output(folder)
    Traceback (most recent call last):
        ...
    shoal.errors.BadSource: cannot write ...: it is a folder. Give the name of a file in it.
    """
    target = Path(os.path.realpath(as_path(path)))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise cannot_write(path, error) from error
    if mode is not None:
        for is_kind, kind, advice in KINDS:
            if is_kind(mode):
                raise BadSource(f"cannot write {path}: it is {kind}. {advice}")
        for one in inputs:
            if os.path.exists(one) and os.path.samefile(one, target):
                raise BadSource(f"cannot write {path}: it is also an input, {one}. Give another name.")
    if not target.parent.is_dir():
        raise BadSource(f"cannot write {path}: there is no folder {target.parent}. Create it first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise BadSource(f"cannot write {path}: you may not create files in {target.parent}. Write elsewhere.")
    return target


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb", *, n_bytes: int = 0) -> Iterator[IO[Any]]:
    """An open file that replaces ``path`` when the block ends, and leaves no trace if the block raises.

    Parameters
    ----------
    path : path
        A plain file, new or not, in a folder that exists. Pipes, devices and folders are refused. A link keeps leading
        where it did, and the permissions of an older file are kept.
    mode : {"wb", "w"}
        Bytes, or UTF-8 text without translation of line ends.
    n_bytes : int
        About how much will be written, for the message on a full disk.

    Raises
    ------
    BadSource
        If ``path`` cannot be written to. Errors of the system inside the block become one, too.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "greeting.txt")
    ...     with atomic_write(path, "w") as out:
    ...         _ = out.write("hello")
    ...     path.read_text()
    'hello'
    """
    target = check_output(path)
    _remove_left_overs(target)
    temporary = target.with_name(f".{_stem(target.name)}.{secrets.token_hex(6)}.tmp")
    try:
        raw = io.FileIO(os.open(temporary, NEW_FILE, 0o666), "w")
    except OSError as error:
        raise cannot_write(path, error, n_bytes) from error
    try:
        with _buffered(raw, mode) as out:
            _lock(out)
            yield out
            out.flush()
            _keep_permissions(raw, target)
            os.fsync(raw.fileno())
            os.replace(temporary, target)
    except BadSource:
        raise
    except OSError as error:
        raise cannot_write(path, error, n_bytes) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    _sync_folder(target.parent)


def as_path(path: Any) -> str:
    """The path as text; anything else that Python would take for one is refused."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise BadInput(f"{path!r} is not a path: it is a {type(path).__name__}. Give text or a pathlib.Path.")
    if not text or "\0" in text:
        raise BadInput(f"{text!r} is not a path: it {'contains a NUL' if text else 'is empty'}. Give another name.")
    return text


def cannot_write(path: str | os.PathLike[str], error: OSError, n_bytes: int = 0) -> BadSource:
    """What an error of the system means for somebody who wanted to write a file."""
    full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    needed = f"About {n_bytes / 1e6:,.1f} MB are needed: free" if n_bytes else "Free"
    advice = f"{needed} some space or write elsewhere." if full else "Write elsewhere."
    with contextlib.suppress(OSError):
        if os.path.exists(path):
            advice = f"The file that was there before is unchanged. {advice}"
    wrapped = BadSource(f"cannot write {path}: {error.strerror or error}. {advice}")
    wrapped.errno = error.errno
    return wrapped


def _buffered(raw: io.FileIO, mode: str) -> IO[Any]:
    binary = io.BufferedWriter(raw)
    if mode == "wb":
        return binary
    return io.TextIOWrapper(binary, encoding="utf-8", newline="", errors="backslashreplace")


def _stem(name: str) -> str:
    return os.fsdecode(os.fsencode(name)[:LONGEST_STEM_BYTES])


def _keep_permissions(raw: io.FileIO, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        permissions = stat.S_IMODE(target.stat().st_mode)
        if hasattr(os, "fchmod"):
            os.fchmod(raw.fileno(), permissions)


def _lock(out: IO[Any]) -> None:
    """Mark a temporary file as being written, so that nobody takes it for a left-over."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # not every file system can lock
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_left_overs(target: Path) -> None:
    """Remove the temporaries of killed writers of this file: own plain files that nobody holds and that are old."""
    if sys.platform == "win32":
        return
    for left in target.parent.glob(f".{_escape_glob(_stem(target.name))}.????????????.tmp"):
        with contextlib.suppress(OSError):
            handle = os.open(left, LOOK)
            try:
                facts = os.fstat(handle)
                if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if time.time() - facts.st_mtime > STALE_SECONDS:
                        left.unlink()
            finally:
                os.close(handle)


def _escape_glob(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable."""
    if sys.platform == "win32":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a folder that may be written to and not read cannot be flushed
        return
    try:
        os.fsync(handle)
    except OSError as error:
        raise BadSource(
            f"the file is written, but its folder {folder} could not be flushed to disk ({error.strerror}): "
            "a power failure now may bring the old file back. Check the disk."
        ) from error
    finally:
        os.close(handle)
