"""Does ``choose_n_clusters`` find the number of clusters that was planted? The four generators, ten seeds each.

The truth is the number of planted clusters that hold one row in a hundred or more; it is found if ``n_found`` is within
a tenth of it. Threads come from a Dirichlet process, which has no number of clusters but many sizes: rows of those
smaller than one in a hundred are left out. Times are CPU time.

``stability`` asks whether a cluster's stability tells planted from noise clusters: half of the rows are planted, the
columns of the other half are shuffled, and the area under the ROC curve is that of clusters whose rows are mostly
planted against those whose rows are mostly noise.

    python benchmarks/selection_number.py [generator,generator|stability|all] [seeds]
"""

from __future__ import annotations

import dataclasses
import sys
import time

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import roc_auc_score

from common import record
from shoal import (
    BernoulliMixture,
    Dataset,
    ExponentialFamilyMixture,
    SphericalKMeans,
    choose_n_clusters,
    cluster_stability,
)
from shoal.datasets import make_bernoulli_profiles, make_threads, make_zipf_ads, make_zipf_topics

# name -> (the model, rows of a seed with a number of clusters)
GENERATORS = {
    "zipf topics": (
        SphericalKMeans(),
        lambda k, seed: weighted(
            make_zipf_topics(3000, n_features=5000, n_clusters=k, length=60, random_state=seed)
        ),
    ),
    "zipf ads": (
        BernoulliMixture(),
        lambda k, seed: make_zipf_ads(4000, n_features=600, n_clusters=k, random_state=seed),
    ),
    "bernoulli profiles": (
        BernoulliMixture(clutter=False),
        lambda k, seed: make_bernoulli_profiles(3000, n_clusters=k, n_features=100, random_state=seed),
    ),
    "threads": (ExponentialFamilyMixture(n_sweeps=20), lambda k, seed: large_threads(k, seed)),
}  # fmt: skip
LEAST_SHARE = 0.01
NUMBERS = (5, 8, 10, 12, 15, 18, 20, 24, 30, 40)  # planted, by seed


def weighted(data: Dataset) -> Dataset:
    """TF-IDF, as k-means of texts wants it."""
    return dataclasses.replace(data, X=TfidfTransformer(sublinear_tf=True).fit_transform(data.X))


def large_threads(k: int, seed: int) -> Dataset:
    """Threads of a Dirichlet process that has about ``k`` large ones."""
    data = make_threads(
        3000, n_features=400, length=30, decay=0.0, concentration=k / 2.5, prior=0.05, random_state=seed
    )  # fmt: skip
    sizes = np.bincount(data.labels)
    return data[np.flatnonzero(sizes[data.labels] >= LEAST_SHARE * len(data))]


def stability(n_seeds: int) -> None:
    for name, (model, make) in GENERATORS.items():
        scores, planted, began = [], [], time.process_time()
        for seed in range(n_seeds):
            data = make(NUMBERS[seed], seed)
            rng = np.random.default_rng(seed)
            rows = data.X.tocsr()
            half = rng.permutation(rows.shape[0])
            known, noise = rows[np.sort(half[: len(half) // 2])], shuffled(rows[half[len(half) // 2 :]], rng)
            X = sp.vstack([known, noise], format="csr")
            fitted = clone(model).set_params(n_clusters=2 * NUMBERS[seed], random_state=seed).fit(X)
            found = cluster_stability(fitted, X, n_resamples=6, random_state=seed)
            is_planted = np.arange(X.shape[0]) < known.shape[0]
            for id_, score in zip(fitted.cluster_ids_, found, strict=True):
                if (members := fitted.labels_ == id_).any():
                    scores.append(float(score))
                    planted.append(bool(is_planted[members].mean() > 0.5))
        if len(set(planted)) < 2:
            print(f"{name}: no cluster of noise was found")
            continue
        record(
            "selection", workload=f"stability of clusters: {name}", model=type(model).__name__, seeds=n_seeds,
            clusters=len(planted), planted=int(np.sum(planted)), seconds=round(time.process_time() - began, 2),
            clock="cpu", quality=float(roc_auc_score(planted, scores)), measure="AUC of planted against noise",
            mean_planted=float(np.mean([s for s, p in zip(scores, planted, strict=True) if p])),
            mean_noise=float(np.mean([s for s, p in zip(scores, planted, strict=True) if not p])),
        )  # fmt: skip


def shuffled(X: sp.csr_matrix, rng: np.random.Generator) -> sp.csr_matrix:
    """Rows of the same lengths and features of the same frequencies, nothing else."""
    return sp.csr_matrix((X.data, rng.permutation(X.indices), X.indptr), shape=X.shape)


def main() -> None:
    chosen = sys.argv[1] if len(sys.argv) > 1 else "all"
    n_seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    if chosen in ("stability", "all"):
        stability(n_seeds)
    if chosen == "stability":
        return
    for name in GENERATORS if chosen == "all" else chosen.split(","):
        model, make = GENERATORS[name]
        close = []
        for seed in range(n_seeds):
            data = make(NUMBERS[seed], seed)
            sizes = np.unique(data.labels, return_counts=True)[1]
            truth = int((sizes >= LEAST_SHARE * len(data)).sum())
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
