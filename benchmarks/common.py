"""What every benchmark shares: where the data is, how long and how much, and one JSON line for each result."""

from __future__ import annotations

import datetime
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PLOTS = ROOT / "benchmarks" / "plots"


def data_dir() -> Path:
    """The folder of measuring data: ``SHOAL_DATA``, or ``../shared/data`` beside the project."""
    folder = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        sys.exit(f"no data folder at {folder}: set SHOAL_DATA to the folder that holds the measuring data")
    return folder


class Timer:
    """``with Timer() as timer: ...`` then ``timer.seconds``."""

    seconds = 0.0

    def __enter__(self) -> Timer:
        self.began = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.seconds = time.perf_counter() - self.began


def peak_mb() -> float:
    """The most memory this process has held at once, in MB (10^6 bytes)."""
    status = Path("/proc/self/status")
    if status.exists():  # unlike ru_maxrss, VmHWM does not begin with the parent's peak
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def record(results: str, /, **facts: Any) -> dict[str, Any]:
    """Append one line to ``benchmarks/results/<results>.jsonl`` and print it."""
    line = facts | {
        "commit": _commit(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    }
    line = {name: round(value, 6) if isinstance(value, float) else value for name, value in line.items()}
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / f"{results}.jsonl", "a") as out:
        out.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)
    return line


def _commit() -> str:
    """The short commit, with ``+`` when measured code differs from it."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True).stdout.strip()
    return commit + ("+" if changed else "")
