"""Does the chain find the parameters that made the data, and no forgetting where time has no structure?"""

from __future__ import annotations

import sys

import numpy as np

from common import Timer, record
from shoal.datasets import make_threads
from shoal.streams import ExponentialKernel, Inference, TimeSensitiveMixture
from shoal.streams.inference.parameter_learning import maximize


def main(n_sets: int, n: int, n_sweeps: int, *which: int) -> None:
    inference = Inference(n_sweeps=n_sweeps, burn_in=n_sweeps // 2, thin=10)
    for decay, concentration in [((0.5, 0.2), (0.0, 2.0))[at] for at in which or (0, 1)]:
        draws, from_truth = [], []
        with Timer() as timer:
            for seed in range(n_sets):
                data = make_threads(n, length=50, decay=decay, concentration=concentration, random_state=seed)
                model = TimeSensitiveMixture(base="uniform", strength=3.0, inference=inference, random_state=seed)
                model.fit(data.X, times=data.times)
                draws.append(np.stack([model.parameter_draws_["rate"], model.parameter_draws_["concentration"]]))
                kernel, alpha = maximize(data.times, [np.asarray(data.labels)], ExponentialKernel(1.0))
                from_truth.append((float(kernel.parameters()[0]), alpha))
        workload = f"learning, rate {decay} concentration {concentration}, n={n}, {n_sets} sets"
        span = n  # messages come one a unit of time
        means, sds = np.array([d.mean(axis=1) for d in draws]), np.array([d.std(axis=1) for d in draws])
        inside = [
            [
                bool(lo <= value <= hi)
                for lo, hi, value in zip(*np.quantile(d, (0.025, 0.975), axis=1), truth, strict=True)
            ]
            for d, truth in ((d, (decay, concentration)) for d in draws)
        ]
        record(
            "streams",
            workload=workload,
            model="posterior of the chain",
            seconds=timer.seconds,
            quality=float(means[:, 0].mean()),
            sd=float(means[:, 0].std()),
            posterior_sd=float(sds[:, 0].mean()),
            concentration=float(means[:, 1].mean()),
            concentration_sd=float(means[:, 1].std()),
            concentration_posterior_sd=float(sds[:, 1].mean()),
            rates=means[:, 0].round(4).tolist(),
            concentrations=means[:, 1].round(4).tolist(),
            rate_in_95_percent_interval=sum(each[0] for each in inside),
            concentration_in_95_percent_interval=sum(each[1] for each in inside),
            weight_left_after_all=float(np.mean([np.exp(-d[0] * span).mean() for d in draws])),
        )
        found = np.array(from_truth)
        record(
            "streams",
            workload=workload,
            model="maximum given the true labels",
            seconds=timer.seconds,
            quality=float(found[:, 0].mean()),
            sd=float(found[:, 0].std()),
            concentration=float(found[:, 1].mean()),
            concentration_sd=float(found[:, 1].std()),
            weight_left_after_all=float(np.exp(-found[:, 0] * span).mean()),
        )


if __name__ == "__main__":
    args = [int(arg) for arg in sys.argv[1:]]
    main(*(args or [5, 2000, 240]))
