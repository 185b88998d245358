"""A fitted model that cannot be saved where it was asked for is saved elsewhere: hours of work are not lost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.errors import BadSource


@contextmanager
def rescued(model: Any, dataset: Any) -> Iterator[None]:
    """Run a save; if it fails, save to the folder for temporary files and say where that is."""
    from shoal import save

    try:
        yield
    except BadSource as error:
        with tempfile.NamedTemporaryFile(prefix="shoal-rescued-", suffix=".shoal", delete=False) as file:
            path = Path(file.name)
        try:
            save(path, model, dataset=dataset)
        except BadSource:
            path.unlink(missing_ok=True)
            raise error from None
        raise BadSource(f"{error} The model itself is not lost: it is saved at {path}.") from None
