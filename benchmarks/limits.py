"""Speed against the limit: seconds of a pass as a multiple of reading the rows once, same threads, same run.

Reading: a compiled sum over the indices and values of the CSR rows, on as many threads. For k-means (a step, exact and
sparse), one pass of Bernoulli profiles, a late sweep of the indexed mixture, and the stream, each at three sizes.

    python benchmarks/limits.py             # all; about four minutes on a quiet machine
    python benchmarks/limits.py 2000 4000   # other sizes
    python benchmarks/limits.py plot        # the roofline picture, from the latest lines
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numba import njit

from common import RESULTS, ROOT, peak_mb, record
from shoal import BernoulliMixture, SphericalKMeans, TimeSensitiveMixture
from shoal.datasets import make_threads, make_zipf_ads, make_zipf_topics
from shoal.families.options import Settings
from shoal.families.samplers.count_problem import CountProblem
from shoal.threads import n_threads_available, ordered_map, row_blocks

SIZES = (10_000, 50_000, 250_000)
K = 100
WHAT_BOUNDS = {
    "k-means exact": "an add for each entry and center that shares its feature, in the cache",
    "k-means sparse": "the same with thinned centers: list entries a row meets",
    "ADF": "about two divisions and a logarithm for each entry and cluster that may own the row",
    "mixture": "logarithms: each entry against the few candidates of its row",
    "stream": "one message after another on one thread: look-ups in hash tables of live clusters",
}


@njit(nogil=True, cache=True)
def sum_entries(indptr, indices, values, first, last):
    """Reads every index and value once."""
    total = 0.0
    for at in range(indptr[first], indptr[last]):
        total += values[at] + indices[at]
    return total


def reading(X: Any, n_threads: int) -> float:
    """The least of several readings, in seconds."""
    blocks = row_blocks(X.shape[0], -(-X.shape[0] // n_threads))

    def one(block: tuple[int, int]) -> float:
        return float(sum_entries(X.indptr, X.indices, X.data, *block))

    spent = []
    for _ in range(7):
        began = perf_counter()
        list(ordered_map(one, blocks, n_threads))
        spent.append(perf_counter() - began)
    return min(spent)


def kmeans(algorithm: str, n: int) -> tuple[Any, float]:
    X = make_zipf_topics(n, n_features=100_000, n_clusters=K, random_state=0).X
    options: dict[str, Any] = {"features_kept": 50} if algorithm == "sparse" else {}
    model = SphericalKMeans(K, algorithm=algorithm, init="random", max_iter=6, tol=0, random_state=0, **options).fit(X)
    return X, float(np.median(model.iteration_seconds_[1:]))


def adf(n: int) -> tuple[Any, float]:
    """A pass over the rows, the start left out: what a second pass costs more."""
    X = make_zipf_ads(n, n_features=20_000, n_clusters=K, random_state=0).X
    spent = []
    for n_passes in (1, 3):
        began = perf_counter()
        BernoulliMixture(K, n_passes=n_passes, n_threads=1, random_state=0).fit(X)
        spent.append(perf_counter() - began)
    return X, (spent[1] - spent[0]) / 2


def mixture(n: int) -> tuple[Any, float]:
    X = make_zipf_topics(n, n_features=100_000, n_clusters=K, random_state=0).X
    problem = CountProblem(X, Settings(K, "multinomial", "dirichlet", 1.0, 0.0, 500.0, 64, "ranked", "diagonal", 10))
    chain = problem.chain("indexed", 0)
    chain.set_labels(problem.first_labels(0))
    spent = []
    for _ in range(6):
        began = perf_counter()
        chain.sweep()
        spent.append(perf_counter() - began)
    return X, min(spent[3:])


def stream(n: int) -> tuple[Any, float]:
    chat = make_threads(n, n_features=50_000, length=12, arrival_rate=1.0, decay=0.01, prior=0.001, zipf=1.05,
                        random_state=0)  # fmt: skip
    model = TimeSensitiveMixture(half_life=70.0, concentration=0.2, random_state=0)
    began = perf_counter()
    model.partial_fit(chat)
    return chat.X, perf_counter() - began


PASSES: dict[str, tuple[Callable[[int], tuple[Any, float]], int | None]] = {
    "k-means exact": (lambda n: kmeans("exact", n), None),
    "k-means sparse": (lambda n: kmeans("sparse", n), None),
    "ADF": (adf, 1),
    "mixture": (mixture, 1),
    "stream": (stream, 1),
}


def main(sizes: list[int]) -> None:
    for name, (one_pass, threads) in PASSES.items():
        one_pass(1000)  # compiles
        for n in sizes:
            X, seconds = one_pass(n)
            n_threads = threads or n_threads_available()
            limit = reading(X, n_threads)
            record(
                "limits", workload=f"a pass over {n:,} rows", model=name, seconds=seconds, peak_mb=peak_mb(),
                quality=None, reading_seconds=limit, ratio=seconds / limit, threads=n_threads, entries=int(X.nnz),
                nanoseconds_per_entry=seconds / X.nnz * 1e9,
                gigabytes_per_second=X.nnz * (X.indices.itemsize + X.data.itemsize) / limit / 1e9,
                bound=WHAT_BOUNDS[name],
            )  # fmt: skip


def plot() -> None:
    """Nanoseconds an entry against the size of the rows, with reading as the floor."""
    from matplotlib.figure import Figure

    with open(RESULTS / "limits.jsonl") as text:
        last = {(line["model"], line["workload"]): line for line in map(json.loads, text)}
    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    axes = figure.subplots()
    for at, name in enumerate(PASSES):
        found = sorted((line for (model, _), line in last.items() if model == name), key=lambda line: line["entries"])
        entries = [line["entries"] for line in found]
        axes.loglog(entries, [line["nanoseconds_per_entry"] for line in found], "o-", color=f"C{at}", label=name)
        floor = [line["reading_seconds"] / line["entries"] * 1e9 for line in found]
        axes.loglog(entries, floor, ":", color=f"C{at}", alpha=0.7)
        axes.annotate(f" {found[-1]['ratio']:.0f} x reading", (entries[-1], found[-1]["nanoseconds_per_entry"]),
                      fontsize=8, va="center")  # fmt: skip
    axes.plot([], [], ":", color="grey", label="reading the same rows once")
    axes.set(xlabel="entries of the rows", ylabel="nanoseconds an entry and pass")
    axes.margins(x=0.2)
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(ROOT / "docs" / "_static" / "limits.png", dpi=130)


if __name__ == "__main__":
    if sys.argv[1:] != ["plot"]:
        main([int(word) for word in sys.argv[1:]] or list(SIZES))
    plot()
