"""How the cost of an iteration grows with k: 100 to 10,000 clusters of 50,000 Zipf documents, and a plot."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np

from common import PLOTS, peak_mb, record
from kmeans_common import compile_kernels, psi_of, seed_rows, zipf_documents
from shoal.kmeans import SphericalKMeans

KS = (100, 300, 1000, 3000, 10_000)
STEPS = 6


def main() -> None:
    compile_kernels()
    X = zipf_documents(50_000, 100_000, 1000, 95, "tf-idf")
    curves: dict[str, list[float]] = {"exact": [], "sparse p=50": []}
    for k in KS:
        seeds = seed_rows(X, k, "random")
        for name, options in {
            "exact": {"algorithm": "exact"}, "sparse p=50": {"algorithm": "sparse", "features_kept": 50},
        }.items():  # fmt: skip
            model = SphericalKMeans(k, init=seeds, max_iter=STEPS, tol=0, **options).fit(X)
            seconds = float(model.iteration_seconds_.mean())
            curves[name].append(seconds)
            record(
                "kmeans", workload=f"growth: zipf n=50,000 d=100,000 tf-idf k={k}", model=f"SphericalKMeans {name}",
                seconds=seconds, peak_mb=peak_mb(), quality=psi_of(X, model.labels_), measure="psi", iterations=STEPS,
            )  # fmt: skip
    plot(curves)


def plot(curves: dict[str, list[float]]) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for (name, seconds), color in zip(curves.items(), ("#1f5f8b", "#c8553d"), strict=True):
        power = np.polyfit(np.log(KS), np.log(seconds), 1)[0]
        axes.loglog(KS, seconds, "o-", color=color, label=f"{name}: time ~ k^{power:.2f}")
        line = [seconds[0] * k / KS[0] for k in KS]
        axes.loglog(KS, line, ":", color=color, alpha=0.6, label=f"{name}, if it grew as k")
    axes.set(xlabel="clusters k", ylabel="seconds per iteration", title="50,000 Zipf documents, 100,000 words, 2 cores")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3, which="both", linewidth=0.5)
    PLOTS.mkdir(exist_ok=True)
    figure.savefig(PLOTS / "kmeans_growth.png", dpi=130)


if __name__ == "__main__":
    main()
