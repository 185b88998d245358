"""Visits decided side by side: wall time a sweep on one and two threads, with and without, from the same start.

python benchmarks/families_parallel.py [n_rows] [n_clusters]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from common import peak_mb, record
from families_synthetic import begin, warm_up
from shoal.datasets import make_zipf_topics
from shoal.families.consensus import variation
from shoal.families.options import Settings
from shoal.families.samplers.count_problem import CountProblem
from shoal.families.samplers.schedule import Schedule

N_SWEEPS = 20


def measure(problem: CountProblem, truth, labels, lists, *, parallel: bool, n_threads: int) -> np.ndarray:
    """Sweep as a fit would, without splits and merges; the labels at the end."""
    problem.settings = problem.settings._replace(parallel=parallel, n_threads=n_threads)
    warm_up(problem, "indexed", labels, split_merge=False)
    chain, schedule, times = (
        begin(problem, "indexed", labels, lists),
        Schedule(N_SWEEPS, N_SWEEPS // 2, 1, split_merge=False),
        [],
    )
    for sweep in range(N_SWEEPS):
        if sweep >= schedule.burn_in:
            chain.freeze_adaptation()
        began = time.perf_counter()
        chain.sweep()
        times.append(1e6 * (time.perf_counter() - began) / len(truth))
    record(
        "families", workload=f"parallel-{len(truth)}-{chain.n_clusters}", model="parallel" if parallel else "in turn",
        n_threads=n_threads, seconds=sum(times) * len(truth) / 1e6, peak_mb=peak_mb(),
        quality=variation(truth, chain.labels), log_joint=chain.log_joint(), us_per_item=[round(t, 2) for t in times],
        early_us=round(float(np.sum(times[: schedule.burn_in])), 2), clock="wall",
        late_us=round(float(np.median(times[schedule.burn_in :])), 2),
    )  # fmt: skip
    return chain.labels.copy()


def main() -> None:
    n, k = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (100_000, 1000)
    data = make_zipf_topics(n, n_features=50_000, n_clusters=k, random_state=0)
    truth = np.asarray(data.labels)
    settings = Settings(k, "multinomial", "dirichlet", 1.0, 0.0, 500.0, 64, "ranked", "diagonal", 10)
    problem = CountProblem(data.X, settings)
    labels = problem.first_labels(0)
    lists = problem.start_lists[1]
    for parallel in (False, True):
        ends = [measure(problem, truth, labels, lists, parallel=parallel, n_threads=t) for t in (1, 2)]
        assert (ends[0] == ends[1]).all(), "the number of threads shows"


if __name__ == "__main__":
    main()
