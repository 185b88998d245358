"""Every code block and shell line of the pages runs: those of a page in turn, in one empty folder and one namespace.

``python`` blocks are doctests (or plain code, which must not fail). In a ``console`` block each line that begins with
``$`` is a command that must end with exit code 0; lines after it are what it prints, ``...`` for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sybil import Sybil
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
collect_ignore_glob = ["*.py", "_build/*", "notebooks/*"]


def run_console(example: Any) -> str | None:
    """Run the commands of a block and compare what they print."""
    for command, expected in commands_of(str(example.parsed)):
        code, output = run(command)
        if code:
            return f"{command!r} ended with exit code {code}:\n{output}"
        if expected.strip() and not doctest.OutputChecker().check_output(expected, output, FLAGS):
            return f"{command!r} printed\n{output}\nbut the page says\n{expected}"
    return None


def commands_of(block: str) -> list[tuple[str, str]]:
    """Each command with what the page says that it prints."""
    found: list[tuple[str, str]] = []
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
            found.append((command, ""))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found


def run(command: str) -> tuple[int, str]:
    """A plain ``shoal`` command in this process, which is much quicker; the rest in a shell."""
    command = command.partition("  #")[0].strip()
    words = shlex.split(command)
    if words[0] == "shoal" and not set("|<>&;$") & set(command.replace("'|'", "")):
        return run_shoal(words[1:])
    folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "150"}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr


def run_shoal(words: list[str]) -> tuple[int, str]:
    from shoal.cli.main import app

    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(words, standalone_mode=False)
        except SystemExit as done:
            code = int(done.code or 0)
        except Exception as error:
            code = 2
            print(f"{type(error).__name__}: {error}", file=err)
    return code, out.getvalue() if code == 0 else out.getvalue() + err.getvalue()


@pytest.fixture(scope="module")
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A page's commands and code begin in an empty folder."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("page"))
    yield
    os.chdir(before)


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=FLAGS),
        CodeBlockParser(language="console", evaluator=run_console),
    ],
    patterns=["*.md"],
    fixtures=["empty_folder"],
).pytest()
