"""Small kernels in files of their own, edited between two runs of a fresh Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CONSTANTS = "SCALE = 2.0\n"
HELPERS = """
from shoal.jit import kernel

@kernel
def shifted(value):
    return value + 1.0
"""
KERNELS = """
from typing import NamedTuple

import numpy as np

import constants
from constants import SCALE
from helpers import shifted
from shoal.jit import kernel


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


@kernel
def total(values):
    # a comment
    result = 0.0
    for at in range(len(values)):
        result += SCALE * shifted(values[at])
    return result


@kernel
def plain(values):
    return values[0]


@kernel
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@kernel
def by_module(values):
    return constants.SCALE * values[0]


@kernel
def of_pair(pair):
    return pair.first[0] - pair.second[0]
"""
RUN = """
import json, sys
import numpy as np
from numba.core import event

compiled = []

class Compiled(event.Listener):
    def on_start(self, what):
        name = what.data["dispatcher"].py_func.__module__
        if name in ("kernels", "helpers"):
            compiled.append(what.data["dispatcher"].py_func.__name__)
    def on_end(self, what): ...

event.register("numba:compile", Compiled())
import kernels

values = np.arange(1.0, 4.0)
answers = [kernels.total(values), kernels.plain(values), kernels.factorial(5), kernels.by_module(values),
           kernels.of_pair(kernels.Pair(values, values + 1))]
print(json.dumps([answers, sorted(set(compiled))]))
"""


def write_kernels(folder: Path, **files: str) -> None:
    """The three files, or what is given in their place."""
    for name, text in {"constants": CONSTANTS, "helpers": HELPERS, "kernels": KERNELS, **files}.items():
        (folder / f"{name}.py").write_text(text)


def start(folder: Path, **environment: str) -> subprocess.Popen[str]:
    """A fresh Python that calls each kernel."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "SHOAL_", "XDG_"))}
    paths = [str(folder), *sys.path]
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", RUN],
        env={**inherited, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answers_of(process: subprocess.Popen[str]) -> tuple[list[Any], list[str]]:
    """The values of the kernels, and which of them were compiled."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert not err
    values, compiled = json.loads(out)
    return values, compiled


def run(folder: Path, **environment: str) -> tuple[list[Any], list[str]]:
    """Call each kernel in a fresh Python; their values, and which of them were compiled."""
    return answers_of(start(folder, **environment))
