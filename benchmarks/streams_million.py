"""A million messages of 50 words in one pass on one core: speed, memory, quality; rivals on what they can finish.

The generator draws from the model itself: Zipf words, 60,000 of them, thousands of clusters alive at once.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from common import Timer, peak_mb, record
from shoal.datasets import make_threads
from shoal.metrics import normalized_mutual_information
from shoal.streams import Inference, TimeSensitiveMixture

VOCABULARY = 60_000


def messages(n: int) -> Any:
    return make_threads(
        n, n_features=VOCABULARY, length=50, arrival_rate=1.0, decay=1 / 20_000, concentration=500.0,
        prior=200 / VOCABULARY, zipf=1.05, random_state=3,
    )  # fmt: skip


class PlainMStreamF:
    """MStream with forgetting (Yin et al. 2018), one pass, in plain Python: the oracle compared with the stream."""

    def __init__(self, alpha: float, beta: float, keep: int) -> None:
        self.alpha, self.beta, self.keep = alpha, beta, keep
        self.clusters: dict[int, list[Any]] = {}  # id -> [documents, words, counts, last document]
        self.next_id = self.n = 0

    def learn_one(self, words: list[int]) -> int:
        counts = Counter(words)
        v_beta = VOCABULARY * self.beta
        best, best_score = -1, math.log(self.alpha * self.n + 1e-9)
        best_score += sum(math.log(self.beta + j) for c in counts.values() for j in range(c))
        best_score -= sum(math.log(v_beta + j) for j in range(len(words)))
        for id_, (n_docs, n_words, table, _) in self.clusters.items():
            score = math.log(n_docs)
            for word, c in counts.items():
                had = table.get(word, 0)
                for j in range(c):
                    score += math.log(had + self.beta + j)
            score -= sum(math.log(n_words + v_beta + j) for j in range(len(words)))
            if score > best_score:
                best, best_score = id_, score
        if best < 0:
            best, self.next_id = self.next_id, self.next_id + 1
            self.clusters[best] = [0, 0, Counter(), 0]
        cluster = self.clusters[best]
        cluster[0] += 1
        cluster[1] += len(words)
        cluster[2].update(counts)
        cluster[3] = self.n
        self.n += 1
        if self.n % 500 == 0:
            self.clusters = {id_: c for id_, c in self.clusters.items() if self.n - c[3] < self.keep}
        return best


class TextClust:
    """river's TextClust with the same face; a message is labelled after it was learned, which is kind to it."""

    def __init__(self, radius: float) -> None:
        from river import cluster

        self.model = cluster.TextClust(real_time_fading=False, fading_factor=1e-4, tgap=100, radius=radius)

    def learn_one(self, words: list[int]) -> int:
        message = Counter(f"w{word}" for word in words)
        self.model.learn_one(message)
        return int(self.model.predict_one(message, type="micro") or 0)


def go_through(model: Any, rows: list[list[int]], seconds: float) -> tuple[list[int], float]:
    """Labels of as many messages as are finished in the time, and the time."""
    labels, began = [], time.perf_counter()
    for row in rows:
        labels.append(model.learn_one(row))
        if time.perf_counter() - began > seconds:
            break
    return labels, time.perf_counter() - began


def tuned(make: Callable[[float], Any], values: Iterable[float], rows: list[list[int]], truth: np.ndarray) -> float:
    """The value that does best on the first messages, chosen by the true labels, which favors the rival."""
    found = {}
    for value in values:
        labels = go_through(make(value), rows[:1500], 8.0)[0]
        found[normalized_mutual_information(labels, truth[: len(labels)])] = value
    return found[max(found)]


def as_words(X: Any, n: int) -> list[list[int]]:
    return [
        np.repeat(X.indices[X.indptr[i] : X.indptr[i + 1]], X.data[X.indptr[i] : X.indptr[i + 1]].astype(int)).tolist()
        for i in range(n)
    ]


def resident_mb() -> float:
    """What the process holds now, in megabytes."""
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * 4096 / 1e6


def all_labels(model: Any, folder: str) -> np.ndarray:
    """Settled labels from the history folder, and those of the window."""
    return np.concatenate([np.fromfile(f"{folder}/labels.int64", dtype="<i8"), model.all_labels_])


def main(n: int, **options: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        million(n, folder, options)


def million(n: int, folder: str, options: dict[str, int]) -> None:
    name = "TimeSensitiveMixture" + "".join(f", {key} {value}" for key, value in options.items())
    data = messages(n)
    truth = np.asarray(data.labels)
    TimeSensitiveMixture(random_state=0).partial_fit(data.X[:2000], times=data.times[:2000])  # compile
    model = TimeSensitiveMixture(inference=options, history_dir=folder, random_state=0)
    before, spent = resident_mb(), 0.0
    tenth = n // 10
    for part in range(10):
        rows = slice(part * tenth, (part + 1) * tenth)
        X, times = data.X[rows], data.times[rows]
        with Timer() as timer:
            model.partial_fit(X, times=times)
        spent += timer.seconds
        state = model.stream_.state
        arrays = [a for g in (state.clusters, state.tables, state.postings, state.window, state.prior) for a in g]
        record(
            "streams",
            workload=f"{n:,} messages, part {part + 1}",
            model=name,
            seconds=timer.seconds,
            peak_mb=peak_mb(),
            quality=normalized_mutual_information(all_labels(model, folder)[rows], truth[rows]),
            items_per_second=tenth / timer.seconds,
            n_live=state.n_live,
            words_held=int(state.clusters.record.n_terms[state.live].sum()),
            engine_mb=sum(array.nbytes for array in arrays) / 1e6,
            resident_mb_more=resident_mb() - before,
        )
    labels = all_labels(model, folder)
    record(
        "streams",
        workload=f"{n:,} messages",
        model=name,
        seconds=spent,
        peak_mb=peak_mb(),
        quality=normalized_mutual_information(labels, truth[: 10 * tenth]),
        items_per_second=10 * tenth / spent,
        n_clusters=int(np.unique(labels).size),
        true_clusters=int(np.unique(truth[: 10 * tenth]).size),
        rate=float(model.kernel_.parameters()[0]) if model.kernel_.parameters().size else 0.0,
    )


def rivals(n: int, seconds: float) -> None:
    data = messages(n)
    truth, rows = np.asarray(data.labels), as_words(data.X, n)
    for name, make, values in (
        ("MStreamF in plain Python, beta", lambda beta: PlainMStreamF(5.0, beta, 20_000), (1e-3, 3e-4, 1e-4, 1e-5)),
        ("river TextClust, radius", TextClust, (0.3, 0.5, 0.7)),
    ):
        value = tuned(make, values, rows, truth)
        labels, spent = go_through(make(value), rows, seconds)
        report(f"{name} {value:g}", labels, truth, spent)
        m = len(labels)
        with Timer() as timer:
            ours = TimeSensitiveMixture(random_state=0).partial_fit(data.X[:m], times=data.times[:m]).labels_
        report("TimeSensitiveMixture", ours.tolist(), truth, timer.seconds)


def report(model: str, labels: list[int], truth: np.ndarray, seconds: float) -> None:
    record(
        "streams",
        workload=f"first {len(labels):,} of the messages",
        model=model,
        seconds=seconds,
        quality=normalized_mutual_information(labels, truth[: len(labels)]),
        items_per_second=len(labels) / seconds,
        n_clusters=len(set(labels)),
    )


def beside_batch(n: int, n_sweeps: int) -> None:
    """The stream beside batch Gibbs on the same part."""
    data = messages(n)
    truth = np.asarray(data.labels)
    for name, fit in (
        ("stream", lambda model: model.partial_fit(data.X, times=data.times)),
        ("batch Gibbs", lambda model: model.fit(data.X, times=data.times)),
    ):
        inference = Inference(n_sweeps=n_sweeps, burn_in=n_sweeps - 3, thin=1)
        with Timer() as timer:
            labels = fit(TimeSensitiveMixture(inference=inference, random_state=0)).labels_
        report(f"{name}", labels.tolist(), truth, timer.seconds)


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "million"
    if what == "million":
        options = {key: int(value) for key, value in (arg.split("=") for arg in sys.argv[3:])}
        main(int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000, **options)
    elif what == "rivals":
        rivals(20_000, float(sys.argv[2]) if len(sys.argv) > 2 else 60.0)
    else:
        beside_batch(int(sys.argv[2]) if len(sys.argv) > 2 else 20_000, int(sys.argv[3]) if len(sys.argv) > 3 else 15)
