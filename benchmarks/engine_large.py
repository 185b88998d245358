"""Data larger than a worker: k-means of 1M x 7M (k = 1000) and 1.3M ads, from files, on workers of 1 GB each.

python benchmarks/engine_large.py kmeans|ads [share of the rows] [workers]

Workers have Dask's memory limit, and a hard one of the system (RLIMIT_DATA): an allocation beyond it fails. What each
process held at most is read from /proc at the end; a worker that died has another process id than at the start.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import shoal
from common import record
from shoal.datasets import make_zipf_ads, make_zipf_topics

GIGABYTE = 1_000_000_000
CACHE = Path(tempfile.gettempdir()) / "shoal-benchmarks"
ROWS = {"kmeans": 1_000_000, "ads": 1_300_000}
ROWS_A_PART = 12_500


def files_of(name: str, share: float) -> str:
    """Part files, kept between runs."""
    folder, n_rows = CACHE / f"large-{name}-{share:g}", int(share * ROWS[name])
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        if name == "kmeans":
            X = make_zipf_topics(n_rows, n_features=7_000_000, n_clusters=1000, length=112, random_state=0).X
        else:
            ads = make_zipf_ads(n_rows, n_features=73_000, n_clusters=100, keywords_per_item=20.0, random_state=0)
            X = ads.X
        for part, first in enumerate(range(0, n_rows, ROWS_A_PART)):
            sp.save_npz(folder / f"part-{part:04d}.npz", X[first : first + ROWS_A_PART], compressed=False)
        (folder / "done").touch()
    return str(folder / "part-*.npz")


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTE, GIGABYTE))


def peak_mb(pid: int | str) -> float:
    """The most that a process has held at once."""
    return int(re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0]) * 1024 / 1e6


def started(command: list[str], wait_for: str, **more: Any) -> tuple[subprocess.Popen[str], str]:
    """A process, and the line in which it says so."""
    process = subprocess.Popen([sys.executable, "-m", "dask", *command], stderr=subprocess.PIPE, text=True, **more)
    assert process.stderr is not None
    for line in process.stderr:
        if wait_for in line:
            break
    return process, line


def fit(name: str, source: str) -> tuple[Any, dict[str, Any]]:
    """The fit, and facts about it."""
    if name == "kmeans":
        parts = shoal.engine.read_partitions(source, weighting="tfidf")
        began = time.perf_counter()
        model = shoal.SphericalKMeans(1000, algorithm="sparse", features_kept=50, n_init=1, max_iter=5, tol=0,
                                      random_state=0).fit(parts)  # fmt: skip
        quality = {"quality": float(model.mean_similarity_), "measure": "psi", "iterations": model.n_iter_}
    else:
        parts = shoal.engine.read_partitions(source, weighting="binary")
        began = time.perf_counter()
        model = shoal.BernoulliMixture(100, random_state=0).fit(parts)
        quality = {
            "quality": float(model.objective_history_[-1]),
            "measure": "log probability of a row",
            "iterations": 1,
        }
    size = {"rows": parts.n_items, "features": len(parts.columns.vocabulary), "parts": len(parts)}
    return model, size | quality | {"seconds": time.perf_counter() - began}


def main() -> None:
    name = sys.argv[1]
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    if name == "write":
        print(files_of(sys.argv[3], share))
        return
    n_workers = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    # In a process of its own, so that the rows are not in the client's peak.
    written = subprocess.run([sys.executable, __file__, "write", str(share), name], check=True, capture_output=True,
                             text=True)  # fmt: skip
    source = written.stdout.strip()
    scheduler, line = started(["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"], "Scheduler at:")
    address = re.findall(r"tcp://\S+", line)[0]
    options = ["--nworkers", str(n_workers), "--nthreads", "1", "--memory-limit", str(GIGABYTE), "--no-dashboard"]
    with tempfile.TemporaryDirectory() as spill:
        workers, _ = started(["worker", address, *options, "--local-directory", spill], "Start", preexec_fn=limited)
        for process in (scheduler, workers):  # nobody reads on, and a full pipe would stop them
            subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        try:
            from distributed import Client

            with Client(address) as client, shoal.engine.using(client):
                client.wait_for_workers(n_workers)
                pids = set(client.run(_pid).values())
                _, facts = fit(name, source)
                alive = set(client.run(_pid).values())
                peaks = {"workers": sorted(round(peak_mb(pid)) for pid in alive), "client": round(peak_mb("self")),
                         "scheduler": round(peak_mb(scheduler.pid)), "nanny": round(peak_mb(workers.pid))}  # fmt: skip
                spilled = sum(file.stat().st_size for file in Path(spill).rglob("*") if file.is_file())
            record("engine", workload=f"large-{name}", share=share, n_workers=n_workers, limit_mb=1000, peaks_mb=peaks,
                   died=len(pids - alive), spilled_mb=round(spilled / 1e6), **facts)  # fmt: skip
        finally:
            for process in (workers, scheduler):
                process.terminate()
                process.wait(30)


def _pid() -> int:
    import os

    return os.getpid()


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
