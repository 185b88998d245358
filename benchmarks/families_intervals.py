"""Do 90 % intervals hold the truth in 90 % of data sets simulated from the model? Does R-hat flag chains that disagree?

Weights and means, labels unknown. A run in which two of the simulated clusters were found as one counts as a miss of
every number of one cluster. Chains are made to disagree by starting each in another wrong place with a sampler that
cannot leave it, and left to agree on the same rows with the sampler that can.

    python benchmarks/families_intervals.py [n_runs] [intervals,chains]
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
CONCENTRATION = 6.0  # of the weights: they are drawn from the prior that the model is given
LEAST_APART = 3.0  # of centers, in deviations of the wider cluster: some rows overlap, but no two clusters are one
FAMILIES = ("gaussian", "full", "mixed")


def simulate(family: str, rng: np.random.Generator):
    """(rows, weights, means): parameters from priors, centers a few deviations apart."""
    weights = rng.dirichlet(np.full(K, CONCENTRATION))
    truth = rng.choice(K, N, p=weights)
    roots = roots_of(family, rng)
    widths = np.linalg.norm(roots, 2, axis=(1, 2))
    means = np.zeros((K, 2))
    while any(
        np.linalg.norm(means[one] - means[two]) < LEAST_APART * max(widths[one], widths[two])
        for one in range(K) for two in range(one)
    ):  # fmt: skip
        means = 3 * rng.normal(size=(K, 2))
    if family == "mixed":
        rates, shares = rng.gamma(2.0, 3.0, K), rng.dirichlet(np.full(3, 1.0), K)
        X = pd.DataFrame({
            "a": means[truth, 0] + rng.normal(size=N), "b": means[truth, 1] + rng.normal(size=N),
            "count": rng.poisson(rates[truth]).astype(float),
            "kind": [("p", "q", "r")[rng.choice(3, p=shares[group])] for group in truth],
        }).mask(rng.random((N, 4)) < 0.1)  # fmt: skip
        return X, weights, np.column_stack([means, rates, shares])
    return means[truth] + np.einsum("nij,nj->ni", roots[truth], rng.normal(size=(N, 2))), weights, means


def roots_of(family: str, rng: np.random.Generator) -> np.ndarray:
    """(K, 2, 2) roots of the covariances."""
    if family == "full":
        return rng.normal(size=(K, 2, 2)) / np.sqrt(2)
    variances = np.ones((K, 2)) if family == "mixed" else 1 / rng.gamma(4, 0.25, (K, 2))
    return np.sqrt(variances)[:, :, None] * np.eye(2)


def model_of(family: str, seed: int) -> ExponentialFamilyMixture:
    options = {"n_sweeps": 60, "n_samples": 20, "concentration": CONCENTRATION, "random_state": seed}
    if family == "mixed":
        columns = {"a": "gaussian", "b": "gaussian", "count": "poisson", "kind": "categorical"}
        return ExponentialFamilyMixture(K, family=columns, **options)
    return ExponentialFamilyMixture(
        K, family="gaussian", covariance="full" if family == "full" else "diagonal", **options
    )


def held_by(model: ExponentialFamilyMixture, weights: np.ndarray, means: np.ndarray) -> dict[str, np.ndarray]:
    """Which numbers the intervals hold, clusters matched to the nearest; those of a cluster not found are not held."""
    found = model.credible_intervals(0.9)
    scale = means.std(axis=0) + 1e-9
    apart = (((found["means"].mean[:, None] - means[None]) / scale) ** 2).sum(axis=2)
    mine, place = linear_sum_assignment(apart)
    held = {"weights": np.zeros(K, bool), "means": np.zeros(means.shape, bool)}
    for name, truth in (("weights", weights), ("means", means)):
        held[name][place] = (found[name].low[mine] <= truth[place]) & (truth[place] <= found[name].high[mine])
    return held


def intervals(n_runs: int) -> None:
    for family in FAMILIES:
        held: dict[str, list] = {"weights": [], "means": []}
        fewer, began = 0, time.process_time()
        for seed in range(n_runs):
            X, weights, means = simulate(family, np.random.default_rng(seed))
            model = model_of(family, seed).fit(X)
            fewer += model.n_clusters_ < K
            for name, inside in held_by(model, weights, means).items():
                held[name].append(inside)
        record(
            "families", workload=f"intervals-{family}-{N}", model="shoal", runs=n_runs, fewer_clusters=fewer,
            seconds=time.process_time() - began, clock="cpu", quality=float(np.mean(held["means"])),
            weights=float(np.mean(held["weights"])), means=float(np.mean(held["means"])),
        )  # fmt: skip


def chains(n_runs: int) -> None:
    flagged: dict[str, list[bool]] = {"made to disagree": [], "left to agree": []}
    began = time.process_time()
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        rows = np.kron(np.eye(12), np.full((6, 4), 3.0)) + (rng.random((72, 48)) < 0.05)
        stuck = {"init": "random", "sampler": "fastex", "n_bits": 16, "hashes": "published"}
        for name, options in (("made to disagree", stuck), ("left to agree", {})):
            model = ExponentialFamilyMixture(12, n_chains=4, n_sweeps=24, random_state=seed, **options).fit(rows)
            flagged[name].append(model.diagnostics_.disagree)
    record(
        "families", workload="chains-72-48", model="shoal", runs=n_runs, seconds=time.process_time() - began,
        clock="cpu", quality=float(np.mean(flagged["made to disagree"])), measure="share flagged by R-hat",
        flagged_where_chains_agree=float(np.mean(flagged["left to agree"])),
    )  # fmt: skip


def main() -> None:
    warnings.filterwarnings("ignore")
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    parts = sys.argv[2].split(",") if len(sys.argv) > 2 else ["intervals", "chains"]
    for part in parts:
        {"intervals": intervals, "chains": chains}[part](n_runs)


if __name__ == "__main__":
    main()
