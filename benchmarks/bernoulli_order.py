"""Must show 2, 3 and 4: planted clutter, rows sorted by class, clusters that change half-way, and rows in parts.

    python benchmarks/bernoulli_order.py [clutter] [order] [drift] [parts] [--seeds N]

Held-out negative log likelihoods are computed densely from the Betas, on a fifth of the rows.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp

from bernoulli_data import split
from bernoulli_quality import held_out
from bernoulli_sets import SETS
from common import peak_mb, record
from shoal.bernoulli import BernoulliMixture
from shoal.metrics import normalized_mutual_information

CHUNK = 1000


def streamed(rows: sp.csr_matrix, k: int, seed: int, chunk: int = CHUNK) -> BernoulliMixture:
    model = BernoulliMixture(k, random_state=seed)
    for start in range(0, rows.shape[0], chunk):
        model.partial_fit(rows[start : start + chunk])
    return model


def with_clutter(X: sp.csr_matrix, seed: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """A tenth more rows, of the same lengths, whose features have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    n = X.shape[0] // 9
    lengths = rng.choice(np.maximum(np.diff(X.indptr), 1), n)
    keys = rng.random((n, X.shape[1]))
    rank = np.argsort(np.argsort(keys, axis=1), axis=1)
    extra = sp.csr_matrix((rank < lengths[:, None]).astype(float))
    order = rng.permutation(X.shape[0] + n)
    planted = np.append(np.zeros(X.shape[0], bool), np.ones(n, bool))
    return sp.vstack([X, extra], format="csr")[order], planted[order]


def clutter(seeds: int) -> None:
    """How much of planted clutter is labelled -1, and how much of the rest."""
    for name in ("ads", "onehot", "titles", "debian", "recipes", "snapchat", "cdnjs"):
        caught, wrong, cpu = [], [], 0.0
        for seed in range(seeds):
            if name == "ads":
                rng = np.random.default_rng(seed)
                theta = np.where(rng.random((12, 400)) < 0.03, 0.5, 0.002)
                X, k = sp.csr_matrix((rng.random((18_000, 400)) < theta[rng.integers(12, size=18_000)]) * 1.0), 15
            else:
                X, k = SETS[name].rows().X, SETS[name].k
            rows, planted = with_clutter(X, seed)
            began = time.process_time()
            unassigned = BernoulliMixture(k, random_state=seed).fit(rows).labels_ == -1
            cpu += time.process_time() - began
            caught.append(float(unassigned[planted].mean()))
            wrong.append(float(unassigned[~planted].mean()))
        record("bernoulli", workload=f"planted-clutter-{name}", model="one pass", seconds=cpu / seeds,
               peak_mb=peak_mb(), quality=float(np.mean(caught)), caught=caught, others_unassigned=wrong,
               seeds=seeds)  # fmt: skip


def order(seeds: int) -> None:
    """A stream sorted by class against the same rows in random order, and against fit."""
    for name in ("titles", "onehot", "recipes", "debian"):
        data, k = SETS[name].rows(), SETS[name].k
        found: dict[str, list[float]] = {}
        for seed in range(seeds):
            train, test = split(data.X.shape[0], seed)
            X, T = data.X[np.random.default_rng(seed).permutation(train)], data.X[test]
            in_order = data.X[train[np.argsort(data.owners[train], kind="stable")]]
            for way, model in (
                ("shuffled", streamed(X, k, seed)),
                ("sorted", streamed(in_order, k, seed)),
                ("fit", BernoulliMixture(k, random_state=seed).fit(X)),
            ):
                found.setdefault(way, []).append(held_out(model.profiles_, T))
        means = {way: float(np.mean(values)) for way, values in found.items()}
        record("bernoulli", workload=f"sorted-{name}", model="partial_fit", seconds=0.0, peak_mb=peak_mb(),
               quality=means["sorted"], gap=means["sorted"] - means["shuffled"], seeds=seeds, **means)  # fmt: skip


def drift(seeds: int) -> None:
    """Half of the clusters are replaced half-way: rows until the new ones are told apart, and the likelihood then."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        theta = np.where(rng.random((15, 300)) < 0.05, 0.4, 0.003)
        labels = np.concatenate([rng.integers(10, size=30_000), rng.integers(5, 15, size=30_000)])
        X = sp.csr_matrix((rng.random((60_000, 300)) < theta[labels]).astype(float))
        after = rng.integers(5, 15, size=4000)
        T = sp.csr_matrix((rng.random((4000, 300)) < theta[after]).astype(float))
        model, found_after = streamed(X[:30_000], 15, seed), 0
        for start in range(30_000, 60_000, 500):
            model.partial_fit(X[start : start + 500])
            if not found_after and normalized_mutual_information(after, model.predict(T)) > 0.95:
                found_after = start + 500 - 30_000
        both = np.random.default_rng(seed).permutation(60_000)
        shuffled = streamed(X[both], 15, seed)
        facts = {"drifting": held_out(model.profiles_, T), "shuffled": held_out(shuffled.profiles_, T)}
        record("bernoulli", workload=f"drift-seed-{seed}", model="partial_fit", seconds=0.0, peak_mb=peak_mb(),
               quality=float(found_after), rows_until_found=found_after, gap=facts["drifting"] - facts["shuffled"],
               **facts)  # fmt: skip


def parts(seeds: int) -> None:
    """Fitted whole, in ten parts, as two halves merged, and in four partitions."""
    for name in ("baskets", "onehot", "plants", "recipes", "mathsx", "snapchat", "titles"):
        data, k = SETS[name].rows(), SETS[name].k
        found: dict[str, list[float]] = {}
        for seed in range(seeds):
            train, test = split(data.X.shape[0], seed)
            X, T = data.X[np.random.default_rng(seed).permutation(train)], data.X[test]
            half = X.shape[0] // 2
            halves = [BernoulliMixture(k, random_state=seed).fit(part) for part in (X[:half], X[half:])]
            for way, model in (
                ("whole", BernoulliMixture(k, random_state=seed).fit(X)),
                ("ten parts", streamed(X, k, seed, -(-X.shape[0] // 10))),
                ("halves merged", halves[0].merge(halves[1])),
                ("four partitions", BernoulliMixture(k, n_partitions=4, random_state=seed).fit(X)),
            ):
                found.setdefault(way, []).append(held_out(model.profiles_, T))
        means = {way: float(np.mean(values)) for way, values in found.items()}
        spread = max(means.values()) - min(means.values())
        record("bernoulli", workload=f"parts-{name}", model="all ways", seconds=0.0, peak_mb=peak_mb(),
               quality=spread, spread=spread, seeds=seeds, **means)  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    n_seeds = int(arguments.pop(arguments.index("--seeds") + 1)) if "--seeds" in arguments else 2
    every = {"clutter": clutter, "order": order, "drift": drift, "parts": parts}
    for one in [argument for argument in arguments if argument != "--seeds"] or every:
        every[one](n_seeds)
