"""Does stochastic EM find the parameters that made the data, and no forgetting where time has no structure?"""

from __future__ import annotations

import sys

import numpy as np

from common import Timer, record
from shoal.datasets import threads
from shoal.streams import ExponentialKernel, Inference, TimeSensitiveMixture
from shoal.streams.learning import maximise


def main(n_sets: int, n: int, n_sweeps: int) -> None:
    inference = Inference(n_sweeps=n_sweeps, burn_in=n_sweeps - 20, thin=5)
    for decay, concentration in ((0.5, 0.2), (0.0, 2.0)):
        learned, from_truth = [], []
        with Timer() as timer:
            for seed in range(n_sets):
                data = threads(n, length=50, decay=decay, concentration=concentration, random_state=seed)
                model = TimeSensitiveMixture(base="uniform", strength=3.0, inference=inference, random_state=seed)
                model.fit(data.X, data.times)
                learned.append((float(model.kernel_.parameters()[0]), model.concentration_))
                kernel, alpha = maximise(data.times, [np.asarray(data.labels)], ExponentialKernel(1.0))
                from_truth.append((float(kernel.parameters()[0]), alpha))
        span = n  # messages come one a unit of time
        for model_name, found in (
            ("stochastic EM", np.array(learned)),
            ("given the true labels", np.array(from_truth)),
        ):
            record(
                "streams",
                workload=f"learning, rate {decay} concentration {concentration}, n={n}, {n_sets} sets",
                model=model_name,
                seconds=timer.seconds,
                quality=float(found[:, 0].mean()),
                sd=float(found[:, 0].std()),
                concentration=float(found[:, 1].mean()),
                concentration_sd=float(found[:, 1].std()),
                weight_left_after_all=float(np.exp(-found[:, 0] * span).mean()),
            )


if __name__ == "__main__":
    args = [int(arg) for arg in sys.argv[1:]]
    main(*(args or [5, 2000, 300]))
