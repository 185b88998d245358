"""shoal as a user has it: a plain wheel, built and installed once, and commands run outside the source tree.

Each journey is one person's task, from a file as they have it to the thing they wanted. With ``SHOAL_JOURNEYS=FILE`` a
line for each task is written to that file: task, commands, seconds, lines of output.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A folder that holds what the wheel installs, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    quiet = {"check": True, "capture_output": True, "text": True}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_BUILD")}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, env=environment, **quiet)
    (wheel,) = (folder / "dist").glob("*.whl")
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-compile", "--target", str(folder / "site")]
    subprocess.run([*install, "--disable-pip-version-check", "--no-index", str(wheel)], **quiet)
    return folder / "site"


@dataclass
class Done:
    code: int
    out: str
    err: str


class Person:
    """Somebody at a terminal, in a folder with their files."""

    def __init__(self, task: str, folder: Path, site: Path) -> None:
        self.task, self.folder, self.site = task, folder, site
        self.commands, self.lines, self.began = 0, 0, time.perf_counter()

    def shoal(self, *arguments: object, stdin: str | None = None, code: int = 0) -> Done:
        """Run a command of shoal; it must end with this exit code, and never with a traceback."""
        done = self.run([sys.executable, "-m", "shoal", *map(str, arguments)], stdin)
        assert done.code == code, done
        return done

    def python(self, program: str) -> str:
        """Run a program in Python; what it printed."""
        done = self.run([sys.executable, "-W", "error::UserWarning", "-c", program])
        assert done.code == 0, done
        return done.out

    def run(self, command: list[str], stdin: str | None = None) -> Done:
        environment = os.environ | {"PYTHONPATH": str(self.site), "PYTHONSAFEPATH": "1"}
        ran = subprocess.run(
            command, cwd=self.folder, env=environment, input=stdin, capture_output=True, text=True, timeout=300
        )
        assert "Traceback" not in ran.stderr, ran.stderr
        self.commands += 1
        self.lines += len(ran.stdout.splitlines()) + len(ran.stderr.splitlines())
        return Done(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture
def person(request, tmp_path, site):
    somebody = Person(request.node.name.removeprefix("test_").replace("_", " "), tmp_path, site)
    yield somebody
    if os.environ.get("SHOAL_JOURNEYS"):
        seconds = time.perf_counter() - somebody.began
        with open(os.environ["SHOAL_JOURNEYS"], "a") as table:
            print(f"| {somebody.task} | {somebody.commands} | {seconds:.1f} | {somebody.lines} |", file=table)
