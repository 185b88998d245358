"""Must show 1: one pass against EM, both with their defaults, on the sets of ``bernoulli_sets.py``.

The likelihood of held-out rows is computed densely from the Betas; labels are compared with owners or classes.

    python benchmarks/bernoulli_quality.py [set] ... [--seeds N] [--ways "one pass,EM"]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp

from bernoulli_data import Rows, split
from bernoulli_sets import SETS
from common import peak_mb, record
from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.profiles import Profiles, means_of
from shoal.metrics import (
    adjusted_rand_index,
    effective_number_of_clusters,
    normalized_mutual_information,
    owner_entropy,
    owner_information,
)

WAYS = {
    "one pass": {},
    "four partitions": {"n_partitions": 4},
    "two passes": {"n_passes": 2},
    "EM": {"inference": "em", "clutter": False},
}


def held_out(profiles: Profiles, X: sp.csr_matrix) -> float:
    """Negative log likelihood a row, from the means of all Betas alone."""
    means = means_of(profiles, np.arange(profiles.n_features))
    absent, odds, total = np.log1p(-means).sum(axis=1), (np.log(means) - np.log1p(-means)).T, 0.0
    for start in range(0, X.shape[0], 4096):
        scores = X[start : start + 4096] @ odds + absent + np.log(profiles.weights())
        best = scores.max(axis=1)
        total += float((best + np.log(np.exp(scores - best[:, None]).sum(axis=1))).sum())
    return -total / X.shape[0]


def measured(data: Rows, k: int, seed: int, options: dict) -> dict[str, float]:
    """One fit on four fifths of the rows."""
    train, test = split(data.X.shape[0], seed)
    began = time.process_time()
    model = BernoulliMixture(k, random_state=seed, **options).fit(data.X[train])
    facts = {"cpu": time.process_time() - began, "nll": held_out(model.profiles_, data.X[test])}
    labels = model.predict(data.X)
    facts |= {
        "strength": model.strength_,
        "effective_clusters": effective_number_of_clusters(labels),
        "n_clusters": float(model.n_clusters_),
        "unassigned": float((labels == -1).mean()),
    }
    if len(set(data.owners.tolist())) > 1:
        facts |= {
            "nmi": normalized_mutual_information(data.owners, labels),
            "ari": adjusted_rand_index(data.owners, labels),
            "owner_entropy": owner_entropy(data.owners, labels),
            "owner_information": owner_information(data.owners, labels),
        }
    return facts


def main(name: str, seeds: int, ways: list[str]) -> None:
    data, k = SETS[name].rows(), SETS[name].k
    for way in ways:
        runs = [measured(data, k, seed, WAYS[way]) for seed in range(seeds)]
        means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        record("bernoulli", workload=f"quality-{name}", model=way, seconds=means["cpu"], peak_mb=peak_mb(),
               quality=means["nll"], k=k, seeds=seeds, rows=data.X.shape[0], features=data.X.shape[1],
               **means)  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", default=",".join(WAYS))
    asked = parser.parse_args()
    chosen = asked.ways.split(",")
    warm = SETS["paper"].rows().X[:2000]
    for way in chosen:
        BernoulliMixture(5, random_state=0, **WAYS[way]).fit(warm).predict(warm)  # compile
    for one in asked.sets:
        main(one, asked.seeds, chosen)
