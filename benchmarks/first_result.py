"""CPU seconds from nothing to the clusters of a 100-row file: fresh virtual environment, nothing cached.

    python benchmarks/first_result.py            # builds the wheel (some 4 minutes) and a pure one
    python benchmarks/first_result.py WHEEL      # an installed wheel only

Each figure is user + system time of ``shoal fit FILE -m MODEL --json`` in a process of its own with an empty home, the
least of three. "compiled" is how many kernels the first run compiled and kept; 0 with the packs of the wheel.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from common import ROOT, record

MODELS = ("kmeans", "bernoulli", "mixture", "stream")
RUNS = 3


def main(arguments: list[str]) -> None:
    """Measure each wheel in turn."""
    with tempfile.TemporaryDirectory(prefix="shoal-first-") as name:
        folder = Path(name)
        if arguments:
            measure(Path(arguments[0]).resolve(), folder)
            return
        for kind, levels in (("packed", "x86-64-v3"), ("pure", "")):
            measure(build(folder / kind, levels), folder)


def build(out: Path, levels: str) -> Path:
    """A wheel with the kernels compiled for these levels."""
    environment = {**os.environ, "SHOAL_BUILD_LEVELS": levels}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def measure(wheel: Path, folder: Path) -> None:
    """Install the wheel and what it needs, and fit each model."""
    home = folder / f"venv-{wheel.stem}"
    venv.create(home, with_pip=True)
    install = [home / "bin" / "python", "-m", "pip", "install", "--quiet", str(wheel), *pins()]
    subprocess.run(install, check=True)
    rows = folder / "rows.csv"
    write_rows(rows)
    for model in MODELS:
        figures = [first_fit(home / "bin" / "shoal", rows, model) for _ in range(RUNS)]
        seconds, compiled = min(figures)
        record(
            "first_result",
            workload="100 rows",
            model=model,
            wheel_mb=wheel.stat().st_size / 1e6,
            packed="-any" not in wheel.name,
            cpu_seconds=seconds,
            compiled=compiled,
        )


def pins() -> list[str]:
    """The versions the packs were compiled with."""
    from importlib.metadata import version

    return [f"{name}=={version(name)}" for name in ("numba", "llvmlite", "numpy")]


def first_fit(shoal: Path, rows: Path, model: str) -> tuple[float, int]:
    """CPU seconds of the first fit of an empty home, and the number of kernels that it kept."""
    with tempfile.TemporaryDirectory(prefix="shoal-home-") as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "TMPDIR": home}
        columns = ["--item", "id", "--features", "tags", "--time", "time"]
        n_clusters = [] if model == "stream" else ["-k", "5"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [shoal, "fit", rows, "-m", model, *columns, *n_clusters, "-q", "--json"]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        kept = sum(1 for path in Path(home).rglob("*") if path.is_file())
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, kept


def write_rows(path: Path) -> None:
    """100 rows of 4 to 8 of 60 tags."""
    from shoal.warm_up import write_files

    write_files(path.parent)["tags.csv"].rename(path)


if __name__ == "__main__":
    main(sys.argv[1:])
