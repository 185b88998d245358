"""What a round costs on a cluster: seconds and bytes on the wire on threads, 1 worker and 2, in the same run.

python benchmarks/engine_overhead.py [rows] [k] [rounds] [repeats]

The rows are those of ``make_zipf_topics`` with 100,000 words, as files in 16 parts; a round is an iteration of k-means.
Threads and one worker have one core each, so their times compare; the machine should have nothing else to do. Bytes are
those that the loopback interface carried.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import shoal
from common import record
from shoal.datasets import make_zipf_topics
from shoal.engine import read_partitions, using

N_PARTS, CACHE = 16, Path(tempfile.gettempdir()) / "shoal-benchmarks"


def write(n_rows: int) -> str:
    folder = CACHE / f"overhead-{n_rows}"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        X = make_zipf_topics(n_rows, n_features=100_000, n_clusters=1000, length=60, random_state=0).X
        for part, rows in enumerate(np.array_split(np.arange(n_rows), N_PARTS)):
            sp.save_npz(folder / f"part-{part:02d}.npz", X[rows], compressed=False)
        (folder / "done").touch()
    return str(folder / "part-*.npz")


def wire_bytes() -> int:
    """Bytes that the loopback interface has carried."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return int(next(line for line in lines if line.strip().startswith("lo:")).split()[1])


def rounds(source: Any, k: int, n_rounds: int) -> tuple[list[float], int, np.ndarray]:
    """(seconds of each round, bytes of all, labels); the first rounds place the parts and are not counted."""
    model = shoal.SphericalKMeans(k, algorithm="sparse", features_kept=50, init="random", n_init=1, max_iter=n_rounds,
                                  tol=0, random_state=0, n_threads=1)  # fmt: skip
    before = wire_bytes()
    model.fit(source)
    assert model.iteration_seconds_ is not None
    return model.iteration_seconds_.tolist(), wire_bytes() - before, model.labels_


def main() -> None:
    given = [int(each) for each in sys.argv[1:]]
    n_rows, k, n_rounds, repeats = (*given, *(1_000_000, 1000, 8, 2)[len(given) :])
    from distributed import Client, LocalCluster

    source = write(n_rows)
    parts = read_partitions(source, weighting="tfidf")
    blocks = [part.load(*part.needs()) for part in parts]  # threads have their rows in memory, as workers have
    labels = None
    for repeat in range(repeats):
        for n_workers in (0, 1, 2):
            if n_workers == 0:
                seconds, n_bytes, found = rounds(blocks, k, n_rounds)
            else:
                cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
                with cluster, Client(cluster) as client, using(client):
                    seconds, n_bytes, found = rounds(parts, k, n_rounds)
            labels = found if labels is None else labels
            record(
                "engine", workload=f"overhead-{n_rows}-{k}", model=f"{n_workers} workers" if n_workers else "1 thread",
                repeat=repeat, seconds=float(np.median(seconds[2:])), rounds=[round(each, 3) for each in seconds],
                wire_mb_a_round=n_bytes / n_rounds / 1e6 if n_workers else 0.0, same=bool((found == labels).all()),
            )  # fmt: skip


if __name__ == "__main__":
    main()
