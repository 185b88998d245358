"""One command at a time changes a model file: a second would overwrite what the first has learned."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.errors import BadSource


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file for the work inside; a file that another command holds is refused at once."""
    if sys.platform == "win32" or not path.is_file():
        yield
        return
    import fcntl

    if not os.access(path, os.R_OK):
        raise BadSource(f"cannot read {path}: you may not. Ask its owner.")
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadSource(f"another command is changing {path} at this moment. Wait until it is done.") from None
        yield
