"""The five models before and after the contract, in turns on one machine: seconds and their ratio.

    python benchmarks/contract_speed.py OLD/src NEW/src [workload ...]

Each workload runs in a process of its own for each source folder: once on little data, so that kernels are compiled,
then on the same data in turns. The least of the seconds counts. Data is made here, so that both sides have the same.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

N_TURNS = 3


def topics(n: int, n_features: int, k: int, length: int, *, binary: bool = False) -> sparse.csr_matrix:
    """Rows of ``length`` words, 60 % from the 50 words of a topic, the rest by Zipf's law."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, k, n).repeat(length)
    common = np.minimum((n_features ** rng.random(labels.size)).astype(np.int64), n_features - 1)
    own = (labels * 7919 + rng.integers(0, 50, labels.size) * 104729) % n_features
    columns = np.where(rng.random(labels.size) < 0.6, own, common)
    X = sparse.csr_matrix((np.ones(labels.size), columns, np.arange(0, labels.size + 1, length)), (n, n_features))
    X.sum_duplicates()
    if binary:
        X.data[:] = 1.0
    return X


def known(make: Any, **options: Any) -> Any:
    """An estimator with those of the options that this version has."""
    names = inspect.signature(make.__init__).parameters
    return make(**{name: value for name, value in options.items() if name in names})


def kmeans(small: bool) -> Callable[[], Any]:
    from shoal import SphericalKMeans

    X = topics(2_000 if small else 60_000, 50_000, 200, 30)
    k = 20 if small else 500
    model = known(SphericalKMeans, n_clusters=k, algorithm="exact", init=X[:k], n_init=1, max_iter=10, random_state=0)
    return lambda: model.fit(X)


def bernoulli(small: bool) -> Callable[[], Any]:
    from shoal import BernoulliMixture

    X = topics(2_000 if small else 60_000, 2_000, 100, 10, binary=True)
    model = known(BernoulliMixture, n_clusters=10 if small else 100, random_state=0)
    return lambda: model.fit(X)


def families(small: bool) -> Callable[[], Any]:
    from shoal import ExponentialFamilyMixture

    X = topics(2_000 if small else 20_000, 20_000, 1_000, 60)
    k = 50 if small else 1_000
    options = {"n_clusters": k, "sampler": "indexed", "n_sweeps": 6, "random_state": 0, "n_threads": 1}
    model = known(ExponentialFamilyMixture, **options, init="one-pass", start="one-pass")
    return lambda: model.fit(X)


def streams(small: bool) -> Callable[[], Any]:
    from shoal import TimeSensitiveMixture

    X = topics(1_000 if small else 10_000, 20_000, 1_000, 12)
    times = np.arange(X.shape[0], dtype=float)

    def learn() -> None:
        model = TimeSensitiveMixture(random_state=0)
        for start in range(0, X.shape[0], 1_000):
            model.partial_fit(X[start : start + 1_000], times=times[start : start + 1_000])

    return learn


def replays(small: bool) -> Callable[[], Any]:
    from shoal import auction

    market = auction.Market(50 if small else 500, n_days=2, page_views_per_day=200 if small else 10_000, random_state=0)
    found = getattr(auction, "baseline_policy", None) or auction.production
    log = market.log(found(market, tuning="coarse").policy)
    return lambda: auction.replay(log)


WORKLOADS = {"kmeans": kmeans, "bernoulli": bernoulli, "families": families, "streams": streams, "replay": replays}


def serve(name: str) -> None:
    """Measure once for each line of input."""
    WORKLOADS[name](small=True)()
    work = WORKLOADS[name](small=False)
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        work()
        print(json.dumps(time.perf_counter() - began), flush=True)


def start(source: str, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--serve", name]
    environment = os.environ | {"PYTHONPATH": source}
    process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    line = process.stdout.readline()
    while line and line != "ready\n":
        line = process.stdout.readline()
    return process


def measured(process: subprocess.Popen[str]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main(old: str, new: str, names: list[str]) -> None:
    from common import record

    for name in names:
        sides = {"old": start(old, name), "new": start(new, name)}
        seconds: dict[str, list[float]] = {"old": [], "new": []}
        for _ in range(N_TURNS):
            for side, process in sides.items():
                seconds[side].append(measured(process))
        for process in sides.values():
            process.communicate()
        ratio = min(seconds["new"]) / min(seconds["old"])
        record("contract_speed", workload=name, seconds_old=min(seconds["old"]), seconds_new=min(seconds["new"]),
               ratio=ratio, all_old=seconds["old"], all_new=seconds["new"],
               old=subprocess.run(["git", "-C", str(Path(old).parent), "rev-parse", "--short", "HEAD"],
                                  capture_output=True, text=True).stdout.strip())  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        main(sys.argv[1], sys.argv[2], sys.argv[3:] or list(WORKLOADS))
