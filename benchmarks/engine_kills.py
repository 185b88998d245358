"""SIGKILL of a fit at random moments, each time taken up again with --resume: is the model that of an undisturbed fit?

python benchmarks/engine_kills.py [kills] [rows]
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from common import record
from shoal.store.container import ModelFile


def arrays_of(path: Path) -> dict[str, bytes]:
    with ModelFile(path) as file:
        return {name: array.tobytes() for name, array in file.arrays().items()}


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    n_rows = int(sys.argv[2]) if len(sys.argv) > 2 else 60_000
    rng = random.Random(0)
    words = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        source, run = Path(folder, "rows.parquet"), Path(folder, "run")
        topic = words.integers(0, 50, n_rows)
        tags = np.char.add("w", (200 * topic[:, None] + words.integers(0, 200, (n_rows, 8))).astype(str))
        pq.write_table(pa.table({"id": np.arange(n_rows), "tags": tags.tolist()}), source)
        options = ["--item", "id", "--features", "tags", "-k", "100", "--set", "n_init=1", "--batch-rows", "10000"]
        fit = [sys.executable, "-m", "shoal", "fit", str(source), *options, "--quiet", "--checkpoint", str(run)]
        began = time.monotonic()
        subprocess.run([*fit, "--out", f"{folder}/whole.shoal"], check=True, capture_output=True)
        seconds = time.monotonic() - began
        done, ended_before = [], 0
        for _ in range(kills):
            command = [*fit, "--resume", "--out", f"{folder}/resumed.shoal", "--overwrite"]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(seconds * (0.4 + 0.4 * rng.random()))
            ended_before += process.poll() is not None
            process.send_signal(signal.SIGKILL)
            process.wait()
            done.append(len(list(run.glob("*.done"))) if run.exists() else 0)
        command = [*fit, "--resume", "--out", f"{folder}/resumed.shoal", "--overwrite"]
        subprocess.run(command, check=True, capture_output=True)
        same = arrays_of(Path(folder, "whole.shoal")) == arrays_of(Path(folder, "resumed.shoal"))
    record("engine_kills", engine="threads", kills=kills, ended_before=ended_before, passes_kept=done, same=same,
           rows=n_rows, seconds=round(seconds, 2))  # fmt: skip


if __name__ == "__main__":
    main()
