"""Requests a second and their times, with learning going on: 1000 clusters over 100,000 features, on loopback.

    python benchmarks/service_load.py [seconds a phase = 10] [seconds of the memory run = 600]

Callers are processes that keep a connection open and send one request after another. "quiet" is without learning; in
"learning" another process sends 100 items a second. "overload": as many callers as keep ten times the requests under
way that are allowed; 429s are counted, and anything but 202 and 429 is an error. "memory": what the service holds while
one caller teaches and one asks, a line for each tenth of the run and one for its growth over the second half.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
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
from service_callers import N_CLUSTERS, N_FEATURES, WORDS, row_of

N_ROWS, TEACHER_SECONDS = 40_000, 0.05


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


class Callers:
    """Callers of one verb in a process of their own."""

    def __init__(self, url: str, verb: str, n_callers: int, seconds: float, pace: float = 0.0) -> None:
        self.seconds = seconds
        arguments = map(str, (url, verb, n_callers, seconds, pace))
        script = Path(__file__).with_name("service_callers.py")
        self.process = subprocess.Popen([sys.executable, script, *arguments], stdout=subprocess.PIPE, text=True)

    def facts(self) -> dict[str, Any]:
        found = json.loads(self.process.communicate(timeout=self.seconds + 120)[0])
        times, statuses = found["seconds"], found["statuses"]
        p50, p99 = (1e3 * float(np.quantile(times, share)) for share in (0.5, 0.99))
        facts = {"per_second": len(times) / self.seconds, "p50_ms": p50, "p99_ms": p99}
        return facts | {"statuses": dict(sorted(statuses.items()))}


def memory_mb(pid: int) -> float:
    """What a process and its children hold; what they share is counted once."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(process.memory_full_info().pss for process in processes) / 1e6


def note(phase: str, **facts: Any) -> None:
    record("service", workload="load", phase=phase, **facts, load_average=os.getloadavg()[0])


def served(folder: Path, model: Path, workers: int, *options: str) -> Process:
    service = Process(
        folder, "bernoulli", "--publish-seconds", "1", "--workers", str(workers), *options, model=model
    )  # fmt: skip
    while not httpx.get(service.url + "/readyz", timeout=60).is_success:
        time.sleep(0.1)
    return service


def measure(service: Process, seconds: float, workers: int) -> None:
    """Each verb without and with learning, and how much slower learning makes the slowest hundredth."""

    def run(phase: str, verb: str, n_callers: int) -> float:
        teacher = Callers(service.url, "learn", 1, seconds + 2, TEACHER_SECONDS) if phase == "learning" else None
        if teacher is not None:
            time.sleep(1.5)
        facts = Callers(service.url, verb, n_callers, seconds).facts()
        if teacher is not None:
            facts["taught_p99_ms"] = teacher.facts()["p99_ms"]
        note(phase, verb=verb, callers=n_callers, workers=workers, **facts)
        return float(facts["p99_ms"])

    for verb in ("assign", "suggest"):
        quiet = run("quiet", verb, 1)
        learning = run("learning", verb, 1)
        note("ratio", verb=verb, workers=workers, p99_learning_over_quiet=learning / quiet)
        run("learning", verb, 4)
    run("quiet", "learn", 4)


def memory_run(service: Process, seconds: float) -> None:
    """What the service holds while it is taught and asked."""
    callers = [Callers(service.url, verb, 1, seconds, TEACHER_SECONDS) for verb in ("learn", "assign")]
    held = []
    for tenth in range(10):
        time.sleep(seconds / 10)
        held.append(memory_mb(service.pid))
        note("memory", seconds=seconds * (tenth + 1) / 10, memory_mb=held[-1])
    asked = [one.facts() for one in callers]
    items = httpx.get(service.url + "/stats", timeout=60).json()["items"]
    note("memory growth", grew_mb=held[-1] - held[4], items=items, statuses=[one["statuses"] for one in asked])


def overload(folder: Path, model: Path, seconds: float) -> None:
    service = served(folder, model, 1, "--queue-items", "2000", "--max-requests", "6")
    flood, asker = Callers(service.url, "learn", 60, seconds), Callers(service.url, "assign", 1, seconds)
    facts = flood.facts()
    n_errors = sum(n for status, n in facts["statuses"].items() if status not in ("202", "429"))
    note("overload", verb="learn", callers=60, workers=1, errors=n_errors, **facts)
    note("overload", verb="assign", callers=1, workers=1, **asker.facts())
    assert service.end(TERM) == 0


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    memory_seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 600.0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        model = made_model(folder)
        for workers in (1, 2):
            service = served(folder / f"with-{workers}", model, workers)
            measure(service, seconds, workers)
            if workers == 1 and memory_seconds:
                memory_run(service, memory_seconds)
            assert service.end(TERM) == 0
        overload(folder / "overload", model, seconds)


if __name__ == "__main__":
    main()
