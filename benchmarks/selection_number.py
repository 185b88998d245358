"""Does ``choose_n_clusters`` find the number of clusters that was planted? The four generators, ten seeds each.

The truth is the number of planted clusters that hold one row in a hundred or more; it is found if ``n_found`` is within
a tenth of it. Times are CPU time.

    python benchmarks/selection_number.py [generator,generator|all] [seeds]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from common import record
from shoal import BernoulliMixture, ExponentialFamilyMixture, SphericalKMeans, choose_n_clusters
from shoal.datasets import make_bernoulli_profiles, make_threads, make_zipf_ads, make_zipf_topics

# name -> (the model, rows of a seed with a number of clusters)
GENERATORS = {
    "zipf topics": (
        SphericalKMeans(),
        lambda k, seed: make_zipf_topics(3000, n_features=5000, n_clusters=k, length=60, random_state=seed),
    ),
    "zipf ads": (
        BernoulliMixture(),
        lambda k, seed: make_zipf_ads(4000, n_features=600, n_clusters=k, random_state=seed),
    ),
    "bernoulli profiles": (
        BernoulliMixture(clutter=False),
        lambda k, seed: make_bernoulli_profiles(3000, n_clusters=k, n_features=100, random_state=seed),
    ),
    "threads": (
        ExponentialFamilyMixture(n_sweeps=20),
        lambda k, seed: make_threads(
            2000, n_features=400, length=30, decay=0.005, arrival_rate=1.0, concentration=0.05, prior=0.05,
            random_state=seed,
        ),
    ),
}  # fmt: skip
NUMBERS = (5, 8, 10, 12, 15, 18, 20, 24, 30, 40)  # planted, by seed


def main() -> None:
    chosen = sys.argv[1] if len(sys.argv) > 1 else "all"
    n_seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    for name in GENERATORS if chosen == "all" else chosen.split(","):
        model, make = GENERATORS[name]
        close = []
        for seed in range(n_seeds):
            data = make(NUMBERS[seed], seed)
            sizes = np.unique(data.labels, return_counts=True)[1]
            truth = int((sizes >= 0.01 * len(data)).sum())
            began = time.process_time()
            choice = choose_n_clusters(model, data.X, random_state=seed)
            seconds = time.process_time() - began
            close.append(abs(choice.n_found - truth) <= 0.1 * truth)
            at = int(np.flatnonzero(choice.tried == choice.n_clusters)[0])
            record(
                "selection", workload=f"number of clusters: {name}", model=type(model).__name__, seed=seed, true=truth,
                found=choice.n_found, allowed=choice.n_clusters, seconds=round(seconds, 2), clock="cpu",
                quality=float(close[-1]), measure="within a tenth", agreement=round(float(choice.agreement[at]), 3),
                tried=len(choice.tried),
            )  # fmt: skip
        print(f"{name}: {sum(close)} of {n_seeds} seeds within a tenth of the planted number")


if __name__ == "__main__":
    main()
