"""The paper's experiment over many generated sets: VI in nats of the time-sensitive mixture and of the plain one.

Zhu, Ghahramani and Lafferty (2005) show one set of each kind: hard 0.927 (DPM 1.863), easy 0.125 (DPM 0.663).
"""

from __future__ import annotations

import sys

import numpy as np

from common import PLOTS, Timer, record
from shoal.datasets import make_threads
from shoal.metrics import variation_of_information
from shoal.streams import ExponentialKernel, Inference, StepKernel, TimeSensitiveMixture, plots

PAPER = {"hard": (20, 0.927, 1.863), "easy": (50, 0.125, 0.663)}


def main(n_sets: int) -> None:
    inference = Inference(n_sweeps=100 + 109 * 11, burn_in=100, thin=11)
    for name, (length, *published) in PAPER.items():
        results: dict[str, list[tuple[float, float, float]]] = {"tDPM": [], "DPM": []}
        with Timer() as timer:
            for seed in range(n_sets):
                data = make_threads(100, length=length, random_state=seed)
                truth = np.asarray(data.labels)
                for model, kernel in (("tDPM", ExponentialKernel(0.5)), ("DPM", StepKernel())):
                    fitted = TimeSensitiveMixture(
                        kernel,
                        concentration=0.2,
                        base="uniform",
                        strength=3.0,
                        inference=inference,
                        random_state=seed,
                    ).fit(data.X, times=data.times)
                    vi = np.mean([variation_of_information(sample, truth) for sample in fitted.samples_])
                    mode = int(np.argmax(fitted.n_clusters_posterior_))
                    results[model].append((float(vi), mode, variation_of_information(fitted.labels_, truth)))
                    if seed == 0:
                        PLOTS.mkdir(exist_ok=True)
                        plots.same_cluster_plot(fitted).savefig(
                            PLOTS / f"streams_same_cluster_{name}_{model}.png", dpi=80
                        )
                        number = plots.number_of_clusters(fitted, truth=int(np.unique(truth).size))
                        number.savefig(PLOTS / f"streams_number_{name}_{model}.png", dpi=80)
        ours, plain = np.array(results["tDPM"]), np.array(results["DPM"])
        for model, found, paper in (("tDPM", ours, published[0]), ("DPM", plain, published[1])):
            record(
                "streams",
                workload=f"paper {name}, {n_sets} sets",
                model=model,
                seconds=timer.seconds,
                quality=float(found[:, 0].mean()),
                sd=float(found[:, 0].std()),
                mode_of_k=float(found[:, 1].mean()),
                vi_of_consensus=float(found[:, 2].mean()),
                tdpm_better_on=int((ours[:, 0] < plain[:, 0]).sum()),
                paper=paper,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
