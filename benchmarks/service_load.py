"""Requests a second and their times, with learning going on: 1000 clusters over 100,000 features, on loopback.

    python benchmarks/service_load.py [seconds] [workers]

Callers keep connections open and send one request after another. "quiet" is without learning. "overload" sends ten
times as many learning callers at a short queue: 429s are counted, and anything but 202 and 429 is an error.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from common import record
from service.crashes import TERM, Process

N_CLUSTERS, N_FEATURES, N_ROWS, WORDS = 1000, 100_000, 40_000, 10


def made_model(folder: Path) -> Path:
    """A Bernoulli mixture of planted clusters, saved."""
    from shoal import BernoulliMixture, Dataset, save
    from shoal.data import Vocabulary

    rng = np.random.default_rng(0)
    columns = np.array([row_of(rng, n % N_CLUSTERS) for n in range(N_ROWS)]).ravel()
    X = sp.csr_matrix((np.ones(columns.size), columns, np.arange(0, columns.size + 1, WORDS)), (N_ROWS, N_FEATURES))
    X.sum_duplicates()
    X.data[:] = 1
    dataset = Dataset(X, Vocabulary([f"f{n}" for n in range(N_FEATURES)]))
    save(folder / "load.shoal", BernoulliMixture(N_CLUSTERS, random_state=0).fit(dataset))
    return folder / "load.shoal"


def row_of(rng: np.random.Generator, cluster: int) -> np.ndarray:
    """Features of a row: mostly its cluster's own hundred."""
    own = cluster * 100 + rng.integers(0, 100, WORDS)
    return np.where(rng.random(WORDS) < 0.8, own, rng.integers(0, N_FEATURES, WORDS))


class Callers:
    """Threads that send one kind of request as fast as it is answered."""

    def __init__(self, url: str, verb: str, n_callers: int, seconds: float) -> None:
        self.times: list[float] = []
        self.statuses: dict[int, int] = {}
        self.end = time.monotonic() + seconds
        self.threads = [threading.Thread(target=self._call, args=(url, verb, seed)) for seed in range(n_callers)]
        for thread in self.threads:
            thread.start()

    def _call(self, url: str, verb: str, seed: int) -> None:
        rng = np.random.default_rng([seed, hash(verb) % 2**31])
        with httpx.Client(base_url=url, timeout=60) as client:
            while time.monotonic() < self.end:
                names = [f"f{n}" for n in row_of(rng, int(rng.integers(N_CLUSTERS)))]
                body: Any = {"features": names}
                if verb == "suggest":
                    body = {"observed": names[:3], "n": 10}
                if verb == "learn":
                    body = {"items": [{"features": names}] * 5}
                began = time.perf_counter()
                try:
                    status = client.post(f"/{verb}", content=json.dumps(body), headers=JSON).status_code
                except httpx.HTTPError:
                    status = 0
                self.times.append(time.perf_counter() - began)
                self.statuses[status] = self.statuses.get(status, 0) + 1

    def join(self) -> None:
        for thread in self.threads:
            thread.join()

    def facts(self, seconds: float) -> dict[str, Any]:
        times = np.array(self.times)
        return {
            "per_second": len(times) / seconds, "p50_ms": 1e3 * float(np.quantile(times, 0.5)),
            "p99_ms": 1e3 * float(np.quantile(times, 0.99)), "statuses": {str(k): n for k, n in self.statuses.items()},
        }  # fmt: skip


JSON = {"Content-Type": "application/json"}


def memory_mb(pid: int) -> float:
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(process.memory_info().rss for process in processes) / 1e6


def measure(url: str, pid: int, seconds: float, workers: int) -> None:
    def run(name: str, learning: int, verb: str, n_callers: int) -> None:
        teachers = Callers(url, "learn", learning, seconds) if learning else None
        askers = Callers(url, verb, n_callers, seconds)
        askers.join()
        if teachers is not None:
            teachers.join()
        facts = askers.facts(seconds) | {"memory_mb": memory_mb(pid), "load_average": os.getloadavg()[0]}
        record("service", workload="load", phase=name, verb=verb, callers=n_callers, workers=workers, **facts)

    for verb in ("assign", "suggest"):
        run("quiet", 0, verb, 1)
        run("learning", 1, verb, 1)
        run("learning", 1, verb, 4)
    run("learning", 0, "learn", 4)


def main() -> None:
    seconds, workers = float(sys.argv[1] if len(sys.argv) > 1 else 10), int(sys.argv[2] if len(sys.argv) > 2 else 1)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        model = made_model(folder)
        service = Process(folder / "service", "bernoulli", "--workers", str(workers), model=model)
        wait_ready(service.url)
        measure(service.url, service.process.pid, seconds, workers)
        assert service.end(TERM) == 0
        service = Process(folder / "service", "bernoulli", "--queue-items", "2000", "--max-requests", "50", model=model)
        wait_ready(service.url)
        flood = Callers(service.url, "learn", 60, seconds)
        flood.join()
        record(
            "service", workload="load", phase="overload", verb="learn", callers=60, workers=1, **flood.facts(seconds)
        )
        assert service.end(TERM) == 0


def wait_ready(url: str) -> None:
    while not httpx.get(url + "/readyz", timeout=60).is_success:
        time.sleep(0.1)


if __name__ == "__main__":
    main()
