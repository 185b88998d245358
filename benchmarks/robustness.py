"""Kills, full disks and damaged files: counts of what was lost, and of what was loaded that should not be.

    python benchmarks/robustness.py                # 500 kills, 50 full disks, 10,000 damaged files
    python benchmarks/robustness.py kills 50       # one of them, as often

Kills: a process saves a model, learns and saves, writes a report, or assigns and writes a table, over and over; it is
ended by SIGKILL at a random moment, or as soon as it has begun to write. What is at the path afterwards has to be
whole. Full disks: the same onto a file system of 1 MB (needs the right to mount one); the old file has to be whole.
Damage: bytes flipped, the file cut, blocks exchanged or zeroed; no such file may be loaded.
"""

from __future__ import annotations

import functools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import shoal
from common import record
from shoal.errors import BadModelFile, BadSource
from shoal.report import write_report

N_ROWS = 4000
TABLE_ROWS = 20_000


def main(arguments: list[str]) -> None:
    """One kind, or all."""
    kinds = {"kills": (kills, 500), "disks": (disks, 50), "damage": (damage, 10_000)}
    for kind in arguments[:1] or list(kinds):
        work, count = kinds[kind]
        with tempfile.TemporaryDirectory(prefix="shoal-robustness-") as folder:
            work(Path(folder), int(arguments[1]) if len(arguments) > 1 else count)


# --- what is written ------------------------------------------------------------------------------------------------


@functools.cache
def model_and_rows() -> tuple[Any, Any]:
    """A fitted model and its rows."""
    rows = sp.random(N_ROWS, 200, density=0.05, format="csr", random_state=0)
    return shoal.SphericalKMeans(10, random_state=0).fit(rows), rows


def save(path: Path) -> None:
    """Save the model."""
    shoal.save(path, model_and_rows()[0])


def learn(path: Path) -> None:
    """Load, learn some rows, save."""
    model = shoal.load(path) if path.exists() else model_and_rows()[0]
    shoal.save(path, model.partial_fit(model_and_rows()[1][:50]))


def report(path: Path) -> None:
    """Write a report."""
    write_report(path, model_and_rows()[0])


def assign(path: Path) -> None:
    """Write a table of clusters as the command line does."""
    import pyarrow as pa
    import pyarrow.csv

    from shoal.atomic import atomic_write

    labels = np.resize(model_and_rows()[0].labels_, TABLE_ROWS)
    with atomic_write(path) as out:
        pa.csv.write_csv(pa.table({"item": np.arange(TABLE_ROWS), "cluster": labels}), out)


def is_whole_model(path: Path) -> bool:
    """It loads, and has all its labels or those learned last."""
    return int(shoal.load(path).labels_.size) in (N_ROWS, 50)


def is_whole_page(path: Path) -> bool:
    """It ends as pages do."""
    return path.read_text().rstrip().endswith("</html>")


def is_whole_table(path: Path) -> bool:
    """A head and every row."""
    return path.read_bytes().count(b"\n") == TABLE_ROWS + 1


JOBS: dict[str, tuple[Callable[[Path], None], Callable[[Path], bool], str]] = {
    "save": (save, is_whole_model, "m.shoal"),
    "learn": (learn, is_whole_model, "m.shoal"),
    "report": (report, is_whole_page, "r.html"),
    "assign": (assign, is_whole_table, "a.csv"),
}

# --- what happens to it ---------------------------------------------------------------------------------------------


def kills(folder: Path, count: int) -> None:
    """SIGKILL at random moments."""
    import pyarrow.csv  # noqa: F401  (imported before the processes are forked)

    chance = random.Random(0)
    for name, (work, is_whole, file) in JOBS.items():
        path = folder / name / file
        path.parent.mkdir()
        work(path)
        began = time.perf_counter()
        work(path)
        typical = time.perf_counter() - began
        lost = interrupted = 0
        for trial in range(count // len(JOBS)):
            before = left_over(path)
            worker = os.fork()
            if not worker:
                while True:
                    work(path)
            if trial % 2:
                time.sleep(chance.uniform(0, 3 * typical))
            else:
                wait_for_temporary(path, before, 6 * typical)
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
            lost += not is_whole(path)
            interrupted += left_over(path) > before
        record("robustness", workload=f"kill {name}", trials=count // len(JOBS), in_the_middle=interrupted, lost=lost)


def wait_for_temporary(path: Path, before: int, seconds: float) -> None:
    """Until the writer has begun a file: a random moment falls into so short a time only now and then."""
    end = time.perf_counter() + seconds
    while left_over(path) <= before and time.perf_counter() < end:
        pass


def left_over(path: Path) -> int:
    """Temporaries of killed writers."""
    return sum(1 for one in path.parent.iterdir() if one.name.endswith(".tmp"))


def disks(folder: Path, count: int) -> None:
    """Each job onto a file system that fills up."""
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True).returncode:
        print("full disks need the right to mount a file system")
        return
    chance = random.Random(0)
    found: Counter[str] = Counter()
    try:
        for trial in range(count):
            work, is_whole, file = list(JOBS.values())[trial % len(JOBS)]
            for one in disk.iterdir():
                one.unlink()
            work(disk / file)
            size = (disk / file).stat().st_size
            room = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            (disk / "filler").write_bytes(bytes(max(0, room - chance.randrange(max(size - 4096, 1)))))
            try:
                work(disk / file)
                found["written"] += 1
            except BadSource:
                found["refused"] += 1
            found["lost"] += not is_whole(disk / file)
            found["left_over"] += left_over(disk / file)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    facts = {name: found[name] for name in ("refused", "written", "lost", "left_over")}
    record("robustness", workload="full disk", trials=count, **facts)


def damage(folder: Path, count: int) -> None:
    """Files with flipped bytes, cuts, exchanged and zeroed blocks."""
    path = folder / "m.shoal"
    save(path)
    whole = path.read_bytes()
    chance = random.Random(0)
    loaded: Counter[str] = Counter()
    for trial in range(count):
        kind = ("flip", "cut", "exchange", "zero", "append")[trial % 5]
        damaged = damaged_by(kind, whole, chance)
        path.write_bytes(damaged)
        try:
            shoal.load(path)
            loaded[kind] += damaged != whole
        except BadModelFile:
            pass
    record("robustness", workload="damaged files", trials=count, loaded=loaded.total())


def damaged_by(kind: str, whole: bytes, chance: random.Random) -> bytes:
    """The file with damage of one kind."""
    content = bytearray(whole)
    at, other = chance.randrange(len(whole) - 512), chance.randrange(len(whole) - 512)
    if kind == "flip":
        content[at] ^= chance.randrange(1, 256)
    elif kind == "cut":
        del content[at:]
    elif kind == "exchange":
        content[at : at + 512], content[other : other + 512] = content[other : other + 512], content[at : at + 512]
    elif kind == "zero":
        content[at : at + 512] = bytes(512)
    else:
        content += chance.randbytes(chance.randrange(1, 100))
    return bytes(content)


if __name__ == "__main__":
    main(sys.argv[1:])
