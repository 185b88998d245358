"""SIGKILL at random moments of ``shoal learn``: the model file is afterwards the old one or the new one, whole.

python benchmarks/cli_kills.py [kills]
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import shoal
from common import record
from shoal.store.container import ModelFile


def write_day(path: Path, day: int, n: int = 20_000) -> None:
    rng = np.random.default_rng(day)
    topic = rng.integers(0, 50, n)
    words = 200 * topic[:, None] + rng.integers(0, 200, (n, 8)) + 1000 * day * (rng.random((n, 8)) < 0.02)
    names = np.array([f"w{at}" for at in range(20_000)])[words]
    lists = pa.ListArray.from_arrays(np.arange(0, 8 * n + 1, 8, dtype=np.int32), pa.array(names.ravel()))
    pq.write_table(pa.table({"id": np.arange(n), "tags": lists}), path)


def state_of(path: Path) -> dict[str, bytes]:
    with ModelFile(path) as file:
        return {name: array.tobytes() for name, array in file.arrays().items()}


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    random.seed(0)
    counts = {"old": 0, "new": 0, "neither": 0, "ended_before": 0}
    with tempfile.TemporaryDirectory() as folder:
        model, start, after = (Path(folder, name) for name in ("m.shoal", "start.shoal", "after.shoal"))
        days = [Path(folder, f"{day}.parquet") for day in (1, 2)]
        for day, path in enumerate(days, 1):
            write_day(path, day)
        dataset = shoal.read(days[0], item="id", features="tags", weighting="count")
        shoal.save(start, shoal.SphericalKMeans(50, max_iter=3, random_state=0).fit(dataset), dataset=dataset)
        command = [sys.executable, "-m", "shoal", "learn", str(model), str(days[1]), "--batch-rows", "5000", "--quiet"]
        shutil.copy(start, model)
        began = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        seconds = time.monotonic() - began
        shutil.copy(model, after)
        old, new = state_of(start), state_of(after)
        for _ in range(kills):
            shutil.copy(start, model)
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # Half of the moments near the end, where the file is written.
            time.sleep(seconds * (random.random() if random.random() < 0.5 else 0.85 + 0.2 * random.random()))
            counts["ended_before"] += process.poll() is not None
            process.send_signal(signal.SIGKILL)
            process.wait()
            found = state_of(model)  # raises if the file is not whole
            shoal.load(model)
            counts["old" if found == old else "new" if found == new else "neither"] += 1
        left = [path.name for path in Path(folder).iterdir() if path.name.endswith(".tmp")]
    record("cli_kills", command="learn", kills=kills, **counts, left_over=len(left), seconds=round(seconds, 2))


if __name__ == "__main__":
    main()
