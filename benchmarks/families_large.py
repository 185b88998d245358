"""710,000 documents x 5.6 million features, k = 1000 (generated): a sweep's time, peak memory, and quality.

python benchmarks/families_large.py [n_rows] [n_sweeps]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from common import peak_mb, record
from shoal.datasets import zipf_topics
from shoal.families.consensus import variation
from shoal.families.problem import CountProblem
from shoal.families.settings import Settings


def main() -> None:
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 710_000
    n_sweeps = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    data = zipf_topics(n_rows, n_features=5_600_000, n_clusters=1000, random_state=0)
    truth = np.asarray(data.labels)
    data_mb = peak_mb()
    settings = Settings(1000, "multinomial", "dirichlet", 1.0, 0.0, 500.0, 64, "ranked", "diagonal", 10, 2)
    CountProblem(data.X[:300], settings._replace(n_clusters=20)).first_labels(0)
    began = time.perf_counter()
    problem = CountProblem(data.X, settings)
    labels = problem.first_labels(0)
    start_seconds = time.perf_counter() - began
    chain = problem.chain("indexed", 0)
    chain.set_labels(labels)
    seconds, apart = [], [variation(truth, labels)]
    for _ in range(n_sweeps):
        began = time.perf_counter()
        chain.sweep()
        seconds.append(time.perf_counter() - began)
        apart.append(variation(truth, chain.labels))
    record(
        "families", workload=f"large-{n_rows}-5.6M-1000", model="indexed", seconds=start_seconds + sum(seconds),
        peak_mb=peak_mb(), data_mb=data_mb, quality=apart[-1], start_seconds=start_seconds,
        sweep_seconds=[round(s, 2) for s in seconds], vi=[round(v, 4) for v in apart], threads=2,
    )  # fmt: skip


if __name__ == "__main__":
    main()
