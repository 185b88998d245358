"""predict and assign of 1,000,000 rows x 10,000 clusters: memory beyond the data, and seconds.

    python benchmarks/contract_memory.py [kmeans|families|bernoulli|all] [rows] [clusters]

Each model has a process of its own. It is fitted to 60,000 rows; the clusters are as many as it is asked for.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from scipy import sparse

from common import Timer, peak_mb, record
from shoal import BernoulliMixture, ExponentialFamilyMixture, SphericalKMeans

NAMES = ("kmeans", "families", "bernoulli")


def rows_of(n_rows: int, n_clusters: int, seed: int) -> sparse.csr_matrix:
    """Rows of 12 features, eight of them from the six of a cluster's own."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_clusters, n_rows).repeat(12)
    own = np.tile(np.arange(12) < 8, n_rows)
    columns = np.where(own, labels * 6 + rng.integers(0, 6, own.size), rng.integers(0, n_clusters * 6, own.size))
    X = sparse.csr_matrix((np.ones(own.size), columns, np.arange(0, own.size + 1, 12)), (n_rows, n_clusters * 6))
    X.sum_duplicates()
    return X


def fitted(name: str, n_clusters: int) -> object:
    X = rows_of(6 * n_clusters, n_clusters, 0)
    if name == "kmeans":
        return SphericalKMeans(n_clusters, init="random", max_iter=2, n_init=1, random_state=0).fit(X)
    if name == "bernoulli":
        X.data[:] = 1.0
        return BernoulliMixture(n_clusters, clutter=False, random_state=0).fit(X)
    return ExponentialFamilyMixture(n_clusters, n_sweeps=2, init="one-pass", random_state=0).fit(X)


def run(name: str, n_rows: int, n_clusters: int) -> None:
    model = fitted(name, n_clusters)
    X = rows_of(n_rows, n_clusters, 1)
    model.predict(X[:1000])  # type: ignore[attr-defined]
    before = current_mb()
    reset_peak()
    with Timer() as predicting:
        labels = model.predict(X)  # type: ignore[attr-defined]
    with Timer() as assigning:
        model.assign(X)  # type: ignore[attr-defined]
    record(
        "contract_memory",
        model=type(model).__name__, rows=n_rows, clusters=len(model.cluster_ids_),  # type: ignore[attr-defined]
        seconds_predict=predicting.seconds, seconds_assign=assigning.seconds,
        mb_beyond_data_and_model=peak_mb() - before, distinct=int(np.unique(labels).size),
    )  # fmt: skip


def current_mb() -> float:
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024 / 1e6


def reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as out:
        out.write("5")


if __name__ == "__main__":
    which = sys.argv[1] if len(sys.argv) > 1 else "all"
    size = [int(text) for text in sys.argv[2:4]]
    n_rows, n_clusters = (*size, *(1_000_000, 10_000)[len(size) :])
    if which == "all":
        for each in NAMES:
            subprocess.run([sys.executable, __file__, each, str(n_rows), str(n_clusters)], check=True)
    else:
        run(which, n_rows, n_clusters)
