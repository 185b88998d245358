"""SIGKILL of workers and of the client at random moments of a fit: is the model that of an undisturbed fit?

python benchmarks/engine_kills.py [worker kills] [client kills] [rows]

Workers are killed one fit after another, each at a random moment of its fit, and then several in one fit; the client is
killed several times in one fit, which is each time taken up again with --resume. Counts matter here, not times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import shoal
from common import record
from shoal.store.container import ModelFile

N_PARTS, N_WORKERS, KILLS_IN_ONE_FIT = 8, 2, 5
warnings.filterwarnings("ignore", module="distributed")


def write_parts(folder: Path, n_rows: int) -> str:
    """Rows of eight words of one of fifty kinds, in files."""
    words = np.random.default_rng(0)
    topic = words.integers(0, 50, n_rows)
    tags = np.char.add("w", (200 * topic[:, None] + words.integers(0, 200, (n_rows, 8))).astype(str))
    for part, rows in enumerate(np.array_split(np.arange(n_rows), N_PARTS)):
        pq.write_table(pa.table({"id": rows, "tags": tags[rows].tolist()}), folder / f"part-{part}.parquet")
    return str(folder / "part-*.parquet")


def fitted(parts: Any) -> tuple[bytes, ...]:
    """What a fit finds, as bytes."""
    model = shoal.SphericalKMeans(100, n_init=1, max_iter=12, tol=0, random_state=0).fit(parts)
    return model.labels_.tobytes(), model.cluster_centers_.data.tobytes(), model.cluster_centers_.indices.tobytes()


class Killer(threading.Thread):
    """Kills workers at the given moments, in seconds from the start."""

    def __init__(self, client: Any, moments: list[float], rng: random.Random) -> None:
        super().__init__(daemon=True)
        self.client, self.moments, self.rng = client, sorted(moments), rng
        self.killed = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        began = time.monotonic()
        for moment in self.moments:
            if self.stopped.wait(max(0.0, began + moment - time.monotonic())):
                return
            nannies, known = self.client.cluster.workers, self.client.scheduler_info(n_workers=-1)["workers"].values()
            pids = [nannies[worker["id"]].pid for worker in known if worker["id"] in nannies]
            pids = [pid for pid in pids if pid]  # of workers that have arrived
            if pids:
                os.kill(self.rng.choice(pids), signal.SIGKILL)
                self.killed += 1


def disturbed(parts: Any, moments: list[float] | None, rng: random.Random) -> tuple[tuple[bytes, ...], int, float]:
    """(what a fit finds while workers of a new cluster are killed, kills, seconds)."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client, shoal.engine.using(client):
        killer = Killer(client, moments or [], rng)
        killer.start()
        began = time.monotonic()
        found = fitted(parts)
        seconds = time.monotonic() - began
        killer.stopped.set()
        killer.join()
    return found, killer.killed, seconds


def kill_workers(source: str, n_kills: int, n_rows: int, rng: random.Random) -> None:
    """One kill a fit, then several in one."""
    parts = shoal.engine.read_partitions(source, item="id", features="tags")
    on_threads = fitted(parts)
    undisturbed, _, seconds = disturbed(parts, None, rng)
    same, kills = [undisturbed == on_threads], 0
    while kills < n_kills:
        found, killed, _ = disturbed(parts, [seconds * rng.random()], rng)
        kills += killed
        if killed:
            same.append(found == on_threads)
    moments = [seconds * (0.3 + at) for at in range(KILLS_IN_ONE_FIT)]
    found, killed, _ = disturbed(parts, moments, rng)
    record("engine", workload="kills", of="workers", engine="dask", workers=N_WORKERS, kills=kills, fits=len(same),
           same=sum(same), kills_in_one_fit=killed, same_in_one_fit=found == on_threads, rows=n_rows)  # fmt: skip


def arrays_of(path: Path) -> dict[str, bytes]:
    with ModelFile(path) as file:
        return {name: array.tobytes() for name, array in file.arrays().items()}


def kill_client(source: str, n_kills: int, n_rows: int, rng: random.Random, engine: list[str], folder: Path) -> None:
    """Kill the command at random moments, each time taken up again with --resume."""
    run, name = folder / f"run-{len(engine)}", "dask" if engine else "threads"
    options = ["--item", "id", "--features", "tags", "-k", "100", "--set", "n_init=1", "--set", "max_iter=30"]
    options += engine or ["--batch-rows", "10000"]
    fit = [sys.executable, "-m", "shoal", "fit", source, *options, "--quiet", "--checkpoint", str(run)]
    whole, resumed = folder / f"whole-{name}.shoal", folder / f"resumed-{name}.shoal"
    began = time.monotonic()
    subprocess.run([*fit, "--out", str(whole)], check=True, capture_output=True)
    seconds = time.monotonic() - began
    done, ended_before = [], 0
    again = [*fit, "--resume", "--out", str(resumed), "--overwrite"]
    while len(done) < n_kills:
        process = subprocess.Popen(again, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds * (0.3 + 0.5 * rng.random()))
        ended_before += process.poll() is not None
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            done.append(len(list(run.glob("*.done"))) if run.exists() else 0)
        process.wait()
    subprocess.run(again, check=True, capture_output=True)
    same = arrays_of(whole) == arrays_of(resumed)
    record("engine", workload="kills", of="client", engine=name, kills=n_kills, ended_before=ended_before,
           passes_kept=done, same=same, rows=n_rows)  # fmt: skip


def main() -> None:
    worker_kills, client_kills, n_rows = (int(a) for a in [*sys.argv[1:], *("10", "5", "60000")[len(sys.argv) - 1 :]])
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write_parts(folder, n_rows)
        if worker_kills:
            kill_workers(source, worker_kills, n_rows, rng)
        if client_kills:
            from distributed import LocalCluster

            with LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=None) as cluster:
                engine = ["--engine", "dask", "--scheduler", cluster.scheduler_address]
                kill_client(source, client_kills, n_rows, rng, engine, folder)
            kill_client(source, client_kills, n_rows, rng, [], folder)


if __name__ == "__main__":
    main()
