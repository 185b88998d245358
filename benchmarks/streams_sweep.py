"""A Gibbs sweep: against the literal O(n^2) one at n = 10,000, and time per item from n = 1,000 to 1,000,000."""

from __future__ import annotations

import math
import sys

import numpy as np

from common import Timer, peak_mb, record
from shoal.datasets import make_threads
from shoal.jit import kernel
from shoal.streams import ExponentialKernel, base_measures
from shoal.streams.inference.gibbs import reach_of
from shoal.streams.state.stream_state import StreamState


@kernel
def literal_scores(times, labels, n_clusters, i, rate, alpha, weights, last, scores):
    """Figure 3 for document i: for each candidate, walk the whole history and future again."""
    for c in range(n_clusters):
        weights[:] = 0.0
        score = 0.0
        for j in range(len(times)):
            label = c if j == i else labels[j]
            weight = weights[label] * math.exp(-rate * (times[j] - last[label])) if weights[label] > 0.0 else 0.0
            if j >= i:
                score += math.log(weight) if weight > 0.0 else math.log(alpha)
            weights[label] = weight + 1.0
            last[label] = times[j]
        scores[c] = score


def started(n: int, seed: int) -> tuple[StreamState, np.ndarray, float]:
    data = make_threads(n, length=20, random_state=seed)
    X = data.X.astype(np.float64)
    prior = base_measures.make_prior(3, strength=3.0)
    state = StreamState.start(kernel=ExponentialKernel(0.5), concentration=0.2, family=0, prior=prior, seed=seed)
    state.append(X, data.times, first_number=0)
    state.place(np.asarray(data.labels, dtype=np.int64))
    return state, data.times, float(base_measures.surprise(X, 0, prior, 0.5, (0.5, 0.5)).max())


def literal_sweep_seconds(n: int, n_timed: int) -> float:
    """Seconds of a literal sweep, from some of its documents spread over the whole."""
    state, times, _ = started(n, 0)
    labels = np.unique(state.labels, return_inverse=True)[1].astype(np.int64)
    k = int(labels.max()) + 1
    weights, last, scores = np.zeros(k), np.zeros(k), np.zeros(k)
    literal_scores(times[:5], labels[:5], 2, 1, 0.5, 0.2, weights, last, scores)
    few = 10  # candidates timed; the literal algorithm does the same for each of the k
    with Timer() as timer:
        for i in np.linspace(0, n - 1, n_timed).astype(int):
            literal_scores(times, labels, few, i, 0.5, 0.2, weights, last, scores)
    return timer.seconds / few * (k + 1) / n_timed * n


def main(sizes: list[int]) -> None:
    state, _, least = started(1000, 1)
    state.sweep(state.uniforms(1000), reach=reach_of(state, least, 1e-9))
    for n in sizes:
        state, _, least = started(n, 0)
        reach = reach_of(state, least, 1e-9)
        seconds = []
        for _ in range(5 if n < 100_000 else 1):
            with Timer() as timer:
                state.sweep(state.uniforms(n), reach=reach)
            seconds.append(timer.seconds)
        record(
            "streams",
            workload=f"Gibbs sweep n={n}",
            model="TimeSensitiveMixture",
            seconds=min(seconds),
            peak_mb=peak_mb(),
            quality=None,
            microseconds_per_item=min(seconds) / n * 1e6,
            n_clusters=state.n_live,
        )
        if n == 10_000:
            literal = literal_sweep_seconds(n, 20)
            record(
                "streams",
                workload=f"Gibbs sweep n={n}",
                model="literal Figure 3 (compiled, extrapolated from 20 documents and 10 candidates)",
                seconds=literal,
                quality=None,
                times_slower=literal / min(seconds),
            )


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1].split(",")] if len(sys.argv) > 1 else [1000, 10_000, 100_000, 1_000_000])
