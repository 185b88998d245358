"""Must show 1: the paper's synthetic test over 20 seeds, with EM, k-means and agglomerative clustering beside it."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans

from common import PLOTS, Timer, peak_mb, record
from shoal.bernoulli import BernoulliMixture
from shoal.datasets import make_bernoulli_profiles

THRESHOLDS = np.linspace(0.1, 0.9, 9)
N_AGGLOMERATIVE = 4000  # rows: its memory grows with their square


def rates(truth: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """True and false positive rate over all pairs at each threshold on p(same) = sum_l r_il r_jl."""
    counts = np.zeros((2, 11))  # pairs by p(same) in tenths, (k / 10, (k + 1) / 10], different and same
    shares = shares.astype(np.float32)
    for first in range(0, truth.size, 1000):
        block = slice(first, first + 1000)
        tenths = np.ceil(10 * np.clip(shares[block] @ shares.T, 0, 1) - 1e-5).astype(np.int64)
        same = truth[block, None] == truth[None, :]
        counts += np.bincount((tenths + 11 * same).ravel(), minlength=22).reshape(2, 11)
        own = tenths[np.arange(same.shape[0]), np.arange(first, first + same.shape[0])]
        counts[1] -= np.bincount(own, minlength=11)  # a row with itself is no pair
    above = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]  # in tenth k or higher
    return np.stack([above[1, 2:11] / counts[1].sum(), above[0, 2:11] / counts[0].sum()], axis=1)


def one_hot(labels: np.ndarray) -> np.ndarray:
    _, labels = np.unique(labels, return_inverse=True)
    return np.eye(labels.max() + 1)[labels]


def answers(X, seed: int):
    """Name, rows used, memberships."""
    with Timer() as timer:
        model = BernoulliMixture(10, random_state=seed).fit(X)
    yield "ADF, defaults", X.shape[0], model.predict_proba(X), timer.seconds
    with Timer() as timer:
        model = BernoulliMixture(10, clutter=False, n_passes=N_PASSES, random_state=seed).fit(X)
    yield "ADF", X.shape[0], model.predict_proba(X), timer.seconds
    with Timer() as timer:
        model = BernoulliMixture(10, clutter=False, inference="em", tol=1e-7, random_state=seed).fit(X)
    yield "EM", X.shape[0], model.predict_proba(X), timer.seconds
    dense = X.toarray()
    with Timer() as timer:
        labels = KMeans(10, n_init=1, random_state=seed).fit_predict(dense)
    yield "k-means", X.shape[0], one_hot(labels), timer.seconds
    with Timer() as timer:
        labels = AgglomerativeClustering(10).fit_predict(dense[:N_AGGLOMERATIVE])
    yield "agglomerative", N_AGGLOMERATIVE, one_hot(labels), timer.seconds


N_PASSES = 5


def main(n_seeds: int) -> None:
    curves: dict[str, list[np.ndarray]] = {}
    seconds: dict[str, list[float]] = {}
    for seed in range(n_seeds):
        data = make_bernoulli_profiles(random_state=seed)
        for name, n_rows, shares, took in answers(data.X, seed):
            curves.setdefault(name, []).append(rates(np.asarray(data.labels)[:n_rows], shares))
            seconds.setdefault(name, []).append(took)
    middle = int(np.argmin(np.abs(THRESHOLDS - 0.5)))
    for name, runs in curves.items():
        tpr, fpr = np.mean([run[middle] for run in runs], axis=0)
        record("bernoulli", workload="synthetic-10000x100", model=name, seconds=float(np.mean(seconds[name][1:])),
               peak_mb=peak_mb(), quality=float(tpr), tpr=float(tpr), fpr=float(fpr), seeds=n_seeds,
               worst_tpr=float(min(run[middle, 0] for run in runs)),
               worst_fpr=float(max(run[middle, 1] for run in runs)))  # fmt: skip
    plot(curves)


def plot(curves: dict[str, list[np.ndarray]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for name, runs in curves.items():
        mean = np.mean(runs, axis=0)
        axis.plot(100 * mean[:, 1], 100 * mean[:, 0], "o-", label=name, markersize=4)
    axis.set(xlabel="false positive rate of pairs, %", ylabel="true positive rate of pairs, %",
             title=f"Same cluster or not: p(same) above 0.1 to 0.9, mean of {len(runs)} seeds")  # fmt: skip
    axis.legend(loc="center")
    axis.grid(alpha=0.3)
    PLOTS.mkdir(exist_ok=True)
    figure.savefig(PLOTS / "bernoulli_roc.png", dpi=130)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
