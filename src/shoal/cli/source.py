"""Sources that can be read only once, kept on disk for commands that read them twice."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def rereadable(source: str) -> Iterator[str]:
    """The source itself, or a copy of what came through standard input or a pipe."""
    if source != "-" and not _is_pipe(source):
        yield source
        return
    from shoal.data.files import spooled
    from shoal.errors import ShoalError

    with tempfile.TemporaryDirectory(prefix="shoal-") as folder:
        if source == "-":
            copy = spooled(sys.stdin.buffer, Path(folder), "")
        else:
            with open(source, "rb") as pipe:
                copy = spooled(pipe, Path(folder), Path(source).suffix)
        try:
            yield copy
        except ShoalError as error:  # the user knows nothing of the copy
            called = "standard input" if source == "-" else source
            raise type(error)(str(error).replace(copy, called)) from None


def _is_pipe(source: str) -> bool:
    try:
        return not stat.S_ISREG(mode := os.stat(source).st_mode) and not stat.S_ISDIR(mode)
    except (OSError, ValueError):
        return False
