"""Sets drawn from the model: VI with defaults and with a known base measure, and the joint less that of the truth.

    python benchmarks/streams_synthetic.py recipes [SETS] [1000x20]  vocabularies and lengths of nine kinds
    python benchmarks/streams_synthetic.py paper [SETS] [easy]       sets of the paper, with and without time

100 messages, rate of arrival 1, decay .5 and concentration .2 (both given). The joint is that of the generating model.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from scipy.special import gammaln

from common import record
from shoal.datasets import make_threads
from shoal.metrics import variation_of_information
from shoal.streams import ExponentialKernel, StepKernel, TimeSensitiveMixture

RECIPES = [(3, 20), (3, 50), (3, 100), (4, 50), (10, 20), (10, 50), (100, 20), (1000, 20), (1000, 100)]
DECAY, CONCENTRATION = 0.5, 0.2
PAPER = {"hard": 20, "easy": 50}


def log_joint(times: np.ndarray, labels: np.ndarray, X: np.ndarray) -> float:
    """Of the generating model: every message given those before it, and Dirichlet-multinomials with a base of ones."""
    weights = np.tril(np.exp(-DECAY * np.abs(times[:, None] - times[None, :])), -1)
    same = (weights * (labels[:, None] == labels[None, :])).sum(axis=1)
    total = np.log(np.where(same > 0, same, CONCENTRATION)).sum() - np.log(weights.sum(axis=1) + CONCENTRATION).sum()
    counts = np.array([X[labels == label].sum(axis=0) for label in np.unique(labels)])
    width = X.shape[1]
    words = gammaln(counts + 1.0).sum() + (gammaln(width) - gammaln(counts.sum(axis=1) + width)).sum()
    return float(total + words)


def fitted(data: Any, seed: int, kernel: Any = None, **options: Any) -> tuple[TimeSensitiveMixture, float]:
    began = time.process_time()
    kernel = ExponentialKernel(DECAY) if kernel is None else kernel
    model = TimeSensitiveMixture(kernel, concentration=CONCENTRATION, random_state=seed, **options)
    model.fit(data.X, times=data.times)
    return model, time.process_time() - began


def recipes(n_sets: int, only: str) -> None:
    for width, length in RECIPES:
        if only not in ("", f"{width}x{length}"):
            continue
        rows = []
        for seed in range(n_sets):
            data = make_threads(100, n_features=width, length=length, random_state=seed)
            truth, X = np.asarray(data.labels), data.X.toarray().astype(float)
            at_truth = log_joint(data.times, truth, X)
            model, seconds = fitted(data, seed)
            known, _ = fitted(data, seed, base="uniform", strength=float(width))
            rows.append((
                variation_of_information(model.labels_, truth), variation_of_information(known.labels_, truth),
                log_joint(data.times, model.labels_, X) - at_truth, model.n_clusters_, np.unique(truth).size, seconds,
                float(model.diagnostics_["r_hat_n_clusters"]),
            ))  # fmt: skip
        mean = np.mean(rows, axis=0)
        record(
            "streams", workload=f"synthetic {width} words, length {length}, {n_sets} sets",
            model="TimeSensitiveMixture",
            quality=mean[0], vi_known_base=mean[1], ratio=mean[0] / mean[1], joint_less_truth=mean[2],
            worst_joint_less_truth=np.min(rows, axis=0)[2], k=mean[3], true_k=mean[4], cpu_seconds=mean[5],
            r_hat_k=mean[6],
        )  # fmt: skip


def paper(n_sets: int, only: str) -> None:
    """Mean VI of the samples to the truth, as the paper has it, and of the labels that are shown."""
    for name, length in PAPER.items():
        if only not in ("", name):
            continue
        rows: dict[str, list[tuple[float, ...]]] = {"tDPM": [], "DPM": []}
        for seed in range(n_sets):
            data = make_threads(100, length=length, random_state=seed)
            truth = np.asarray(data.labels)
            for model_name, kernel in (("tDPM", None), ("DPM", StepKernel())):
                model, seconds = fitted(data, seed, kernel)
                of_samples = np.mean([variation_of_information(sample, truth) for sample in model.samples_])
                mode = int(np.argmax(model.n_clusters_posterior_))
                rows[model_name].append((of_samples, variation_of_information(model.labels_, truth), mode, seconds))
        ours, plain = np.array(rows["tDPM"]), np.array(rows["DPM"])
        for model_name, found in (("tDPM", ours), ("DPM", plain)):
            record(
                "streams", workload=f"paper {name} with defaults, {n_sets} sets", model=model_name,
                quality=found[:, 0].mean(), sd=found[:, 0].std(), vi_of_labels=found[:, 1].mean(),
                mode_of_k=found[:, 2].mean(), cpu_seconds=found[:, 3].mean(),
                tdpm_better_on=int((ours[:, 0] < plain[:, 0]).sum()),
            )  # fmt: skip


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "recipes"
    {"recipes": recipes, "paper": paper}[what](
        int(sys.argv[2]) if len(sys.argv) > 2 else 20, sys.argv[3] if len(sys.argv) > 3 else ""
    )
