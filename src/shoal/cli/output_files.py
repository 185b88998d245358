"""Checks of output files before any work is done: they can be written, and nothing of the user's is lost."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path

from shoal.atomic import check_output
from shoal.errors import BadInput, BadSource

OTHER_REPORTS = (".pdf", ".docx", ".md", ".png", ".svg", ".json", ".ipynb")
TABLES = (".csv", ".jsonl", ".parquet")


def check_outputs(
    outputs: dict[str, Path | None], *, inputs: Iterable[str | Path] = (), overwrite: bool = False
) -> None:
    """Refuse, by the option's name, an output that cannot be written, is an input, or is a file of another kind."""
    files = [path for one in inputs for path in input_files(one)]
    seen: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        try:
            target = check_output(path, files)
        except BadSource as error:
            raise BadSource(f"{option}: {error}") from None
        if target in seen:
            raise BadInput(f"{option} and {seen[target]} are both {path}. Give two names.")
        seen[target] = option
        if option == "--report" and target.suffix.lower() in OTHER_REPORTS:
            raise BadInput(f"{option} {path}: a report is a page of HTML. Let its name end in .html.")
        if not overwrite and target.exists() and target.stat().st_size and not _is_of_its_kind(target, option):
            raise BadInput(
                f"{option} {path}: there is a file already that shoal did not write. Give another name, or --overwrite "
                "to replace it."
            )


def make_folder(out: Path) -> None:
    """Make the folder that files will be written to, and see that they can be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSource(f"--out {out}: the folder cannot be made ({error.strerror}). Give another.") from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise BadSource(f"--out {out}: you may not create files in that folder. Give another.")


def check_table_format(out: Path | None, *, json_lines: bool = False) -> None:
    """A table's format is read off its name; refuse one that cannot be."""
    if out is not None and not json_lines and out.suffix.lower() not in TABLES:
        raise BadInput(f"--out {out}: its format is not clear from {out.suffix!r}. Use .csv, .jsonl or .parquet.")


def input_files(source: str | Path) -> list[str]:
    """The files a source stands for, as far as they can be seen: also those in quotes in a query."""
    text = os.fspath(source)
    found = [text, *re.findall(r"'([^'\n]+)'", text)]
    paths = [path for name in found for path in ([name] if os.path.exists(name) else _matching(name))]
    folders = [path for path in paths if os.path.isdir(path)]
    inside = [os.path.join(top, name) for folder in folders for top, _, names in os.walk(folder) for name in names]
    return [path for path in paths if path not in folders] + inside


def _matching(pattern: str) -> list[str]:
    try:
        return glob.glob(pattern, recursive=True) if glob.has_magic(pattern) else []
    except (OSError, ValueError):
        return []


def _is_of_its_kind(path: Path, option: str) -> bool:
    """Whether an older file looks like one that shoal wrote under this option."""
    with open(path, "rb") as file:
        start = file.read(512).lstrip()
    if option == "--report":
        return start[:9].lower() == b"<!doctype"
    if path.suffix.lower() in TABLES and option == "--out":
        return start.startswith((b"PAR1", b'"item"', b'{"item"', b"item,"))
    return start[8:9] == b"{" and b"__metadata__" in start
