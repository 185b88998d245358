"""Must show 3: 207,000 x 2,000 and 1,300,000 x 73,000 ads, K = 100: ADF against EM run to convergence.

EM stops when the log likelihood moves by less than 1e-7 of itself in one pass (about one nat over all 207,000 ads); a
third argument gives it at most so many seconds, and what it had reached by then is recorded as not converged.
`em-numpy` times a few passes of EM as it is usually written, with numpy and scipy's sparse products, for comparison.
    python benchmarks/bernoulli_scale.py small|large adf|adf-serial|em|em-numpy [seconds]
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings

import numpy as np

from common import Timer, peak_mb, record
from shoal.bernoulli import BernoulliMixture
from shoal.datasets import make_zipf_ads
from shoal.metrics import normalized_mutual_information, owner_entropy

SIZES = {"small": (207_000, 2_000, 10.0), "large": (1_300_000, 73_000, 20.0)}
EM_TOLERANCE = 1e-7


def numpy_passes(X, k: int, n_passes: int = 3) -> float:
    """Seconds for one pass of EM by matrix products, the best of a few."""
    X = X.astype(np.float64)
    theta = np.random.default_rng(0).uniform(0.5, 1.5, (k, X.shape[1])) * np.asarray(X.mean(axis=0)).ravel()
    weights, took = np.full(k, 1 / k), []
    for _ in range(n_passes):
        with Timer() as timer:
            theta = np.clip(theta, 1e-9, 1 - 1e-9)
            absent = np.log1p(-theta)
            scores = X @ (np.log(theta) - absent).T + (np.log(weights) + absent.sum(axis=1))
            scores -= scores.max(axis=1, keepdims=True)
            shares = np.exp(scores)
            shares /= shares.sum(axis=1, keepdims=True)
            mass = shares.sum(axis=0)
            theta, weights = (X.T @ shares).T / mass[:, None], mass / mass.sum()
        took.append(timer.seconds)
    return min(took)


def main(size: str, which: str, seconds: float | None = None) -> None:
    n_rows, n_features, length = SIZES[size]
    ads = make_zipf_ads(n_rows, n_features=n_features, n_clusters=100, keywords_per_item=length, random_state=0)
    if which == "em-numpy":
        record("bernoulli", workload=f"scale-{size}-{n_rows}x{n_features}", model="em-numpy, one pass",
               seconds=numpy_passes(ads.X, 100), peak_mb=peak_mb(), quality=None)  # fmt: skip
        return
    options = {
        "adf": {"n_partitions": 2},
        "adf-serial": {},
        "em": {"inference": "em", "clutter": False, "tol": EM_TOLERANCE, "max_iter": 1000},
    }[which]
    BernoulliMixture(10, random_state=0, **(options | {"max_iter": 2})).fit(ads.X[:20_000])  # compile
    stop = threading.Timer(seconds or 0.0, os.kill, (os.getpid(), signal.SIGINT))  # as Ctrl-C does: a usable model
    if seconds:
        stop.start()
    with Timer() as timer:
        model = BernoulliMixture(100, random_state=0, **options).fit(ads.X)
    stop.cancel()
    entropy = owner_entropy(ads.owners, model.labels_)
    tolerance = {"tol": f"{EM_TOLERANCE:g}"} if which == "em" else {}
    record("bernoulli", workload=f"scale-{size}-{n_rows}x{n_features}", model=which, seconds=timer.seconds,
           peak_mb=peak_mb(), quality=entropy, owner_entropy=entropy, n_iter=model.n_iter_,
           converged=model.converged_, nmi=normalized_mutual_information(ads.labels, model.labels_),
           score=model.score(ads.X[:50_000]), clutter_share=float((model.labels_ == -1).mean()),
           live=int(model.roster_.ids.size), entries=model.profiles_.n_entries, **tolerance)  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:3], *map(float, sys.argv[3:4]))
