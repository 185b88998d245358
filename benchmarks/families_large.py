"""710,000 documents x 5.6 million features, k = 1000 (generated): a sweep's time, peak memory, and quality.

python benchmarks/families_large.py [n_rows] [n_sweeps]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from common import peak_mb, record
from shoal.datasets import make_zipf_topics
from shoal.families.consensus import variation
from shoal.families.options import Settings
from shoal.families.samplers.count_problem import CountProblem
from shoal.families.samplers.schedule import Schedule, prepare


def main() -> None:
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 710_000
    n_sweeps = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    data = make_zipf_topics(n_rows, n_features=5_600_000, n_clusters=1000, random_state=0)
    truth = np.asarray(data.labels)
    data_mb = peak_mb()
    settings = Settings(1000, "multinomial", "dirichlet", 1.0, 0.0, 500.0, 64, "ranked", "diagonal", 10, 2)
    few = CountProblem(data.X[:300], settings._replace(n_clusters=20))  # compiles, or loads what was compiled
    chain = few.chain("indexed", 0)
    few.begin(chain, few.first_labels(0))
    chain.sweep()
    few.split_merge(chain)
    chain.freeze_adaptation()
    chain.sweep()
    began = time.perf_counter()
    problem = CountProblem(data.X, settings)
    labels = problem.first_labels(0)
    start_seconds = time.perf_counter() - began
    chain = problem.chain("indexed", 0)
    problem.begin(chain, labels)
    schedule = Schedule(n_sweeps, n_sweeps // 2, 1, True)
    seconds, split_merge_seconds, apart = [], [], [variation(truth, labels)]
    for sweep in range(n_sweeps):
        began = time.perf_counter()
        prepare(problem, chain, schedule)
        split_merge_seconds.append(time.perf_counter() - began)
        began = time.perf_counter()
        chain.sweep()
        seconds.append(time.perf_counter() - began)
        apart.append(variation(truth, chain.labels))
        print(f"sweep {sweep}: {seconds[-1]:.2f} s, VI {apart[-1]:.4f}", flush=True)
    record(
        "families", workload=f"large-{n_rows}-5.6M-1000", model="indexed",
        seconds=start_seconds + sum(seconds) + sum(split_merge_seconds), peak_mb=peak_mb(),
        data_mb=data_mb, quality=apart[-1],
        start_seconds=start_seconds, sweep_seconds=[round(s, 2) for s in seconds],
        split_merge_seconds=[round(s, 2) for s in split_merge_seconds], vi=[round(v, 4) for v in apart], threads=2,
    )  # fmt: skip


if __name__ == "__main__":
    main()
