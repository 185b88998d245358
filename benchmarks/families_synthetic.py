"""Synthetic topics at k = 100, 1000 and 10,000: time per document and variation of information, every sampler.

All samplers share the start (one pass, or random) and the prior (background 500, concentration 1), on one thread; times
are CPU time of that thread.
The uncollapsed baseline is the paper's: topics drawn from their Dirichlet posteriors, then every label over all k.
    python benchmarks/families_synthetic.py 1000 [one-pass|random] [full|part]
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np
from numba import njit

from common import peak_mb, record
from shoal.datasets import zipf_topics
from shoal.families.consensus import variation
from shoal.families.problem import CountProblem
from shoal.families.settings import Settings

N_ROWS = {100: 50_000, 1000: 50_000, 10_000: 200_000}
N_FEATURES = 50_000


@njit(cache=True)
def label_rows(ptr, features, counts, log_shares, log_weights, first, last, labels):
    """The slides' baseline: for every row, every cluster's dense log shares, cluster by cluster."""
    k = len(log_weights)
    scores = np.zeros(k)
    for row in range(first, last):
        for cluster in range(k):
            score = log_weights[cluster]
            for at in range(ptr[row], ptr[row + 1]):
                score += counts[at] * log_shares[cluster, features[at]]
            scores[cluster] = score
        best = scores.max()
        mass = 0.0
        for cluster in range(k):
            mass += math.exp(scores[cluster] - best)
        draw = np.random.random() * mass  # noqa: NPY002 - the only generator compiled code has
        for cluster in range(k):
            draw -= math.exp(scores[cluster] - best)
            if draw <= 0:
                labels[row] = cluster
                break


def uncollapsed_us(problem: CountProblem, labels: np.ndarray, n_rows: int) -> tuple[float, float]:
    """(us a document for labels, us a document for drawing the topics), from a part of the rows and of the topics."""
    k, n = problem.settings.n_clusters, len(labels)
    rng = np.random.default_rng(0)
    stats = problem.statistics(labels, k)
    shape = problem.family.shape
    some = min(k, 20)
    began = time.process_time()
    drawn = rng.standard_gamma(shape[None, :] + stats.sums[:some].toarray())
    np.log(np.maximum(drawn / drawn.sum(axis=1, keepdims=True), 1e-300))
    draw_us = (time.process_time() - began) / some * k / n * 1e6
    log_shares = np.log(shape[None, :] + stats.sums.toarray()).astype(np.float32)
    log_weights = np.log(stats.size + 1.0)
    items, out = problem.items, labels.copy()
    label_rows(items.ptr, items.features, items.counts, log_shares, log_weights, 0, 1, out)
    began = time.process_time()
    label_rows(items.ptr, items.features, items.counts, log_shares, log_weights, 0, n_rows, out)
    return (time.process_time() - began) / n_rows * 1e6, draw_us


def measure(problem, truth, sampler, start, labels, start_us, n_sweeps, part=None, **options):
    """Sweep, and record the time and the variation of information after each sweep."""
    problem.settings = problem.settings._replace(**options)
    n = len(truth)
    warm = problem.chain(sampler, 0)
    warm.set_labels(labels)
    warm.visit(0, 200)  # compiles, or loads what was compiled
    del warm
    chain = problem.chain(sampler, 0)
    chain.set_labels(labels)
    chain.visit(0, 1)
    times, apart, accepted = [], [], 0.0
    for _ in range(n_sweeps):
        began = time.process_time()
        if part is None:
            facts = chain.sweep()
            accepted = facts.moved / max(facts.proposed, 1)
        else:
            chain.visit(0, part)
        times.append((time.process_time() - began) / (part or n) * 1e6)
        apart.append(variation(truth, chain.labels) if part is None else None)
    record(
        "families", workload=f"topics-{problem.settings.n_clusters}", model=sampler, start=start, rows=n,
        measured_rows=part or n,
        seconds=sum(times) * n / 1e6, peak_mb=peak_mb(), quality=apart[-1], us_per_item=[round(t, 2) for t in times],
        vi=[round(v, 4) for v in apart if v is not None], start_us=round(start_us, 1),
        acceptance=round(accepted, 4), clock="cpu", **options,
    )  # fmt: skip
    return times, apart


def main() -> None:
    k = int(sys.argv[1])
    start = sys.argv[2] if len(sys.argv) > 2 else "one-pass"
    only = sys.argv[3].split(",") if len(sys.argv) > 3 else ["indexed", "gibbs", "uncollapsed", "fastex"]
    data = zipf_topics(N_ROWS[k], n_features=N_FEATURES, n_clusters=k, random_state=0)
    truth = np.asarray(data.labels)
    settings = Settings(k, "multinomial", "dirichlet", 1.0, 0.0, 500.0, 64, "ranked", "diagonal", 10)
    CountProblem(data.X[:300], settings).first_labels(0)
    began = time.process_time()
    problem = CountProblem(data.X, settings)
    labels = problem.first_labels(0)
    start_us = (time.process_time() - began) / len(truth) * 1e6
    start_vi = variation(truth, labels)
    if start == "random":
        labels, start_us = np.random.default_rng(0).integers(0, k, len(truth)).astype(np.int32), 0.0
    print(f"k={k} start {start} VI {start_vi:.4f}, {start_us:.1f} us; auto: {problem.choose_sampler()}", flush=True)
    few = 3000 if k == 10_000 else None
    if "indexed" in only:
        measure(problem, truth, "indexed", start, labels, start_us, 8)
    if "gibbs" in only:
        measure(problem, truth, "gibbs", start, labels, start_us, 1 if few else 5, few)
    if "uncollapsed" in only:
        label_us, draw_us = uncollapsed_us(problem, labels, 500 if k == 10_000 else 2000)
        record(
            "families", workload=f"topics-{k}", model="uncollapsed", start=start, rows=len(truth),
            seconds=(label_us + draw_us) * len(truth) / 1e6, peak_mb=peak_mb(), quality=None,
            us_per_item=[round(label_us + draw_us, 1)],
            label_us=label_us, draw_us=draw_us, measured_rows=500 if k == 10_000 else 2000,
        )  # fmt: skip
    if "fastex" in only:
        for n_bits, hashes in ((32, "published"), (32, "ranked"), (64, "ranked"), (128, "ranked"), (512, "ranked")):
            n_sweeps = 3 if k < 10_000 else 1
            measure(problem, truth, "fastex", start, labels, start_us, n_sweeps, few, n_bits=n_bits, hashes=hashes)


if __name__ == "__main__":
    main()
