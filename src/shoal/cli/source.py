"""Sources that can be read only once, kept on disk for commands that read them twice."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def rereadable(source: str) -> Iterator[str]:
    """The source itself, or a copy of what came through standard input or a pipe."""
    if source != "-" and not _is_pipe(source):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="shoal-") as folder:
        copy = os.path.join(folder, "stdin" if source == "-" else os.path.basename(source))
        with open(copy, "wb") as out:
            if source == "-":
                shutil.copyfileobj(sys.stdin.buffer, out, 1 << 20)
            else:
                with open(source, "rb") as pipe:
                    shutil.copyfileobj(pipe, out, 1 << 20)
        yield copy


def _is_pipe(source: str) -> bool:
    try:
        return not stat.S_ISREG(mode := os.stat(source).st_mode) and not stat.S_ISDIR(mode)
    except (OSError, ValueError):
        return False
