"""The page of commands: what each says of itself with ``--help``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest.mock import patch

HEAD = """# Commands

Made from the commands themselves: `shoal COMMAND --help` says the same. Results go to standard output, progress and
messages to standard error. Exit code 0: done; 1: stopped early (the model so far is saved); 2: the input or an option
is wrong.
"""


def write(path: Path) -> None:
    """Write the page, if it is not already so."""
    text = page()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def page() -> str:
    sections = (f"\n## {' '.join(name)}\n\n```text\n{help_of(name[1:])}\n```\n" for name in command_names())
    return HEAD + "".join(sections)


def command_names() -> list[tuple[str, ...]]:
    """Every command by its words, groups opened."""
    import typer

    from shoal.cli.main import app

    return _opened(("shoal",), typer.main.get_command(app))


def _opened(name: tuple[str, ...], command: object) -> list[tuple[str, ...]]:
    inner = getattr(command, "commands", None)
    return [name] if inner is None else [one for part, sub in inner.items() for one in _opened((*name, part), sub)]


def help_of(words: tuple[str, ...]) -> str:
    from typer.testing import CliRunner

    from shoal.cli.main import app

    with patch.dict(os.environ, {"COLUMNS": "100", "TERMINAL_WIDTH": "100"}):
        done = CliRunner().invoke(app, [*words, "--help"], prog_name="shoal")
    if done.exit_code:
        raise RuntimeError(f"shoal {' '.join(words)} --help ended with exit code {done.exit_code}: {done.output}")
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


if __name__ == "__main__":
    sys.stdout.write(page())
