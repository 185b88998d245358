"""One pass against EM, with their defaults: held-out likelihood, clusters in effect, owners, processor time.

python benchmarks/bernoulli_quality.py [set] ... [--seeds N]
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from bernoulli_data import askubuntu, cdnjs, debian, ira, recipes, snapchat, split
from common import peak_mb, record
from shoal.bernoulli import BernoulliMixture
from shoal.metrics import effective_number_of_clusters, normalized_mutual_information, owner_entropy, owner_information

SETS = {
    "debian": (debian, 60), "cdnjs": (cdnjs, 40), "snapchat": (snapchat, 30), "ira": (ira, 30),
    "recipes": (recipes, 40), "askubuntu": (askubuntu, 50),
}  # fmt: skip
WAYS = {
    "one pass": {},
    "one pass, 4 partitions": {"n_partitions": 4},
    "two passes": {"n_passes": 2},
    "EM": {"inference": "em", "clutter": False},
}


def measured(X, owners, k: int, seed: int, options: dict) -> dict[str, float]:
    """One fit on four fifths of the rows."""
    train, test = split(X.shape[0], seed)
    began = time.process_time()
    model = BernoulliMixture(k, random_state=seed, **options).fit(X[train])
    facts = {"cpu": time.process_time() - began, "nll": -model.score(X[test]), "strength": model.strength_}
    labels = model.predict(X)
    facts |= {
        "effective_clusters": effective_number_of_clusters(labels),
        "n_clusters": float(model.n_clusters_),
        "unassigned": float((labels == -1).mean()),
    }
    if len(set(owners.tolist())) > 1:
        facts |= {
            "nmi": normalized_mutual_information(owners, labels),
            "owner_entropy": owner_entropy(owners, labels),
            "owner_information": owner_information(owners, labels),
        }
    return facts


def main(name: str, seeds: int) -> None:
    make, k = SETS[name]
    data = make()
    for options in WAYS.values():
        BernoulliMixture(5, random_state=0, **options).fit(data.X[:2000])  # compile
    for label, options in WAYS.items():
        runs = [measured(data.X, data.owners, k, seed, options) for seed in range(seeds)]
        means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        record("bernoulli", workload=f"quality-{name}", model=label, seconds=means["cpu"], peak_mb=peak_mb(),
               quality=means["nll"], k=k, seeds=seeds, rows=data.X.shape[0], **means)  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    n_seeds = int(arguments.pop(arguments.index("--seeds") + 1)) if "--seeds" in arguments else 3
    for one in [argument for argument in arguments if argument != "--seeds"] or SETS:
        main(one, n_seeds)
