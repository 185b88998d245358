"""What limits on the sizes of clusters cost: arXiv titles, k = 1000, CPU seconds and psi with and without limits.

python benchmarks/kmeans_size_limits.py
"""

from __future__ import annotations

import time

from common import peak_mb, record
from kmeans_common import STEPS, arxiv_titles, compile_kernels, seed_rows
from shoal.kmeans import SphericalKMeans

K = 1000


def main() -> None:
    compile_kernels()
    X, _ = arxiv_titles()
    seeds = seed_rows(X, K)
    SphericalKMeans(K, init=seeds, max_iter=2, max_cluster_size=20).fit(X[:15_000])  # compiles
    mean = X.shape[0] // K
    for limits in ({}, {"max_cluster_size": 2 * mean}, {"min_cluster_size": mean // 3, "max_cluster_size": 2 * mean}):
        model = SphericalKMeans(K, init=seeds, max_iter=STEPS, tol=0, algorithm="exact", **limits)
        began = time.process_time()
        model.fit(X)
        record(
            "kmeans", workload=f"arXiv titles n={X.shape[0]} k={K}, limits on sizes", model=f"SphericalKMeans {limits}",
            clock="cpu", seconds=time.process_time() - began, peak_mb=peak_mb(), quality=model.mean_similarity_,
            measure="psi", smallest=int(model.cluster_sizes_.min()), largest=int(model.cluster_sizes_.max()),
            cost=model.certificate_.get("cost_of_size_limits", 0.0),
        )  # fmt: skip


if __name__ == "__main__":
    main()
