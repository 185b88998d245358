"""Do 90 % intervals hold the truth in 90 % of data sets simulated from the model? Weights and means, labels unknown.

python benchmarks/families_intervals.py [n_runs]
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from common import record
from shoal.families import ExponentialFamilyMixture

K, N = 3, 300
LEAST_APART = 3.0  # of centers, in units of a usual deviation: clusters that overlap, but are not one to any method
FAMILIES = ("gaussian", "full", "mixed")


def simulate(family: str, rng: np.random.Generator):
    """(rows, weights, means): parameters from priors, centers a few deviations apart."""
    weights = rng.dirichlet(np.full(K, 6.0))
    truth = rng.choice(K, N, p=weights)
    means = np.zeros((K, 2))
    while min(np.linalg.norm(means[one] - means[two]) for one in range(K) for two in range(one)) < LEAST_APART:
        means = 3 * rng.normal(size=(K, 2))
    if family == "mixed":
        rates, shares = rng.gamma(2.0, 3.0, K), rng.dirichlet(np.full(3, 1.0), K)
        X = pd.DataFrame({
            "a": means[truth, 0] + rng.normal(size=N), "b": means[truth, 1] + rng.normal(size=N),
            "count": rng.poisson(rates[truth]).astype(float),
            "kind": [("p", "q", "r")[rng.choice(3, p=shares[group])] for group in truth],
        }).mask(rng.random((N, 4)) < 0.1)  # fmt: skip
        return X, weights, np.column_stack([means, rates, shares])
    roots = rng.normal(size=(K, 2, 2)) / np.sqrt(2) if family == "full" else np.sqrt(1 / rng.gamma(4, 0.25, (K, 2)))
    noise = rng.normal(size=(N, 2))
    spread = np.einsum("nij,nj->ni", roots[truth], noise) if family == "full" else roots[truth] * noise
    return means[truth] + spread, weights, means


def model_of(family: str, seed: int) -> ExponentialFamilyMixture:
    options = {"n_sweeps": 60, "n_samples": 20, "random_state": seed}
    if family == "mixed":
        columns = {"a": "gaussian", "b": "gaussian", "count": "poisson", "kind": "categorical"}
        return ExponentialFamilyMixture(K, family=columns, **options)
    return ExponentialFamilyMixture(
        K, family="gaussian", covariance="full" if family == "full" else "diagonal", **options
    )


def main() -> None:
    warnings.filterwarnings("ignore")
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for family in FAMILIES:
        held: dict[str, list] = {"weights": [], "means": []}
        fewer, began = 0, time.process_time()
        for seed in range(n_runs):
            X, weights, means = simulate(family, np.random.default_rng(seed))
            model = model_of(family, seed).fit(X)
            if model.n_clusters_ < K:  # two of the simulated clusters are one to any method
                fewer += 1
                continue
            found = model.credible_intervals(0.9)
            scale = means.std(axis=0) + 1e-9
            apart = (((found["means"].mean[:, None] - means[None]) / scale) ** 2).sum(axis=2)
            place = linear_sum_assignment(apart)[1]
            for name, truth in (("weights", weights[place]), ("means", means[place])):
                held[name].append((found[name].low <= truth) & (truth <= found[name].high))
        record(
            "families", workload=f"intervals-{family}-{N}", model="shoal", runs=n_runs, fewer_clusters=fewer,
            seconds=time.process_time() - began, clock="cpu",
            quality=float(np.mean([part.mean() for part in held["means"]])),
            weights=float(np.mean(held["weights"])), means=float(np.mean(held["means"])),
        )  # fmt: skip


if __name__ == "__main__":
    main()
