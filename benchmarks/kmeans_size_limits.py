"""What limits on the sizes of clusters cost: seconds and psi with and without limits.

arXiv titles, k = 1000, CPU seconds; "million": 1,000,000 rows of 12 words on a quiet machine, k = 300, wall seconds.

    python benchmarks/kmeans_size_limits.py [million]
"""

from __future__ import annotations

import sys
import time
from typing import Any

from common import peak_mb, record
from kmeans_common import STEPS, arxiv_titles, compile_kernels, seed_rows
from shoal.datasets import make_zipf_topics
from shoal.kmeans import SphericalKMeans


def main(million: bool) -> None:
    compile_kernels()
    if million:
        k, n_rows = 300, 1_000_000
        X: Any = make_zipf_topics(n_rows, n_features=50_000, n_clusters=k, length=12, random_state=0).X
        name, clock, timer = "zipf topics", "wall", time.perf_counter
    else:
        k, X = 1000, arxiv_titles()[0]
        name, clock, timer = "arXiv titles", "cpu", time.process_time
    seeds = seed_rows(X, k)
    SphericalKMeans(k, init=seeds, max_iter=2, max_cluster_size=15_000 // k * 2).fit(X[:15_000])  # compiles
    mean, without = X.shape[0] // k, 0.0
    for limits in ({}, {"max_cluster_size": 2 * mean}, {"min_cluster_size": mean // 3, "max_cluster_size": 2 * mean}):
        model = SphericalKMeans(k, init=seeds, max_iter=STEPS, tol=0, algorithm="exact", **limits)
        began = timer()
        model.fit(X)
        seconds = timer() - began
        without = without or seconds
        record(
            "kmeans", workload=f"{name} n={X.shape[0]} k={k}, limits on sizes", model=f"SphericalKMeans {limits}",
            clock=clock, seconds=seconds, times_the_fit_without=round(seconds / without, 2), peak_mb=peak_mb(),
            quality=model.mean_similarity_, measure="psi", smallest=int(model.cluster_sizes_.min()),
            largest=int(model.cluster_sizes_.max()), cost=model.certificate_.get("cost_of_size_limits", 0.0),
        )  # fmt: skip


if __name__ == "__main__":
    main(million="million" in sys.argv[1:])
