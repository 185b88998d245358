"""Time and memory of the large generators, each in a fresh process, compile time apart.

python benchmarks/datasets_generators.py
"""

from __future__ import annotations

import multiprocessing
from typing import Any

import numpy as np

from common import Timer, peak_mb, record

CHAT = {"n_features": 100_000, "length": 10, "arrival_rate": 20.0, "prior": 0.001, "zipf": 1.05}
ADS = {"n_features": 73_000, "keywords_per_item": 28, "words_per_topic": 200}
MANY = {"n_clusters": 1000}
WORKLOADS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "topics-50k-100k",
        "make_zipf_topics",
        {"n_items": 50_000, "n_features": 100_000, "n_clusters": 1000, "length": 93},
    ),
    (
        "topics-1m-7m",
        "make_zipf_topics",
        {"n_items": 1_000_000, "n_features": 7_000_000, "n_clusters": 1000, "length": 107},
    ),
    ("ads-207k-2k", "make_zipf_ads", {"n_items": 207_000, "n_features": 2_000, "n_clusters": 100}),
    ("ads-1.3m-73k", "make_zipf_ads", {"n_items": 1_300_000} | ADS),
    ("threads-1m", "threads", {"n_items": 1_000_000} | CHAT),
]


def measure(workload: str, name: str, options: dict[str, Any]) -> None:
    from shoal import datasets

    generate = getattr(datasets, name)
    generate(**(options | {"n_items": 100}), random_state=0)  # compile
    with Timer() as timer:
        dataset = generate(**options, random_state=0)
    assert dataset.X.shape == (options["n_items"], options["n_features"])
    assert dataset.X.has_canonical_format
    record(
        "datasets",
        workload=workload,
        model=name,
        seconds=timer.seconds,
        peak_mb=peak_mb(),
        quality=dataset.X.nnz / dataset.X.shape[0],
        quality_is="non-zeros a row",
        clusters=int(np.unique(dataset.labels).size),
    )


if __name__ == "__main__":
    fresh = multiprocessing.get_context("spawn")
    for workload in WORKLOADS:
        process = fresh.Process(target=measure, args=workload)
        process.start()
        process.join()
        assert process.exitcode == 0
