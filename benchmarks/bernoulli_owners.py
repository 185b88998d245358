"""Must show 4: test likelihood and owner entropy on real ads and packages (the paper's Table 2).

Owner entropy is taken over all rows that EM, k-means and ADF label (the test fifth), the clutter counted as one more
cluster, and also without the clutter's rows; effective clusters (exp of the entropy of cluster sizes) stand beside it,
since fewer clusters scatter owners less, and EM and k-means are also run with as many clusters as ADF has in effect.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from bernoulli_data import cdnjs, debian, ira, snapchat, split
from common import Timer, peak_mb, record
from shoal.bernoulli import BernoulliMixture
from shoal.kmeans import SphericalKMeans
from shoal.metrics import owner_entropy


def effective(labels: np.ndarray) -> float:
    shares = np.unique(labels, return_counts=True)[1] / labels.size
    return float(np.exp(-(shares * np.log(shares)).sum()))


def models(k: int, seed: int):
    yield "ADF", BernoulliMixture(k, random_state=seed)
    yield "ADF 5 passes", BernoulliMixture(k, random_state=seed, n_passes=5)
    yield "ADF no clutter", BernoulliMixture(k, clutter=False, random_state=seed)
    for strength in (0.01, 0.3, 2.0):
        yield (
            f"EM strength {strength}",
            BernoulliMixture(k, inference="em", clutter=False, strength=strength, random_state=seed),
        )
    yield "k-means", SphericalKMeans(k, random_state=seed)


def of_the_same_size(k: int, seed: int):
    yield (
        "EM as many as ADF",
        BernoulliMixture(k, inference="em", clutter=False, strength=2.0, random_state=seed),
    )
    yield "k-means as many as ADF", SphericalKMeans(k, random_state=seed)


def run(name: str, k: int, seeds: int) -> None:
    data = {"debian": debian, "cdnjs": cdnjs, "snapchat": snapchat, "ira": ira}[name]()
    results: dict[str, list[dict]] = {}
    for seed in range(seeds):
        train, test = split(data.X.shape[0], seed)
        adf = effective(BernoulliMixture(k, random_state=seed).fit(data.X[train]).predict(data.X))
        for label, model in (*models(k, seed), *of_the_same_size(max(2, round(adf)), seed)):
            with Timer() as timer:
                model.fit(data.X[train])
            labels = model.predict(data.X)
            facts = {
                "seconds": timer.seconds,
                "owner_entropy": owner_entropy(data.owners, labels),
                "owner_entropy_test": owner_entropy(data.owners[test], labels[test]),
                "effective_clusters": effective(labels),
            }
            if hasattr(model, "score_samples"):
                facts["nll"] = -model.score(data.X[test])
                facts["nll_train"] = -model.score(data.X[train])
                facts["owner_entropy_unclutter"] = owner_entropy(data.owners, labels, clutter=-1)
                facts["clutter_share"] = float((labels == -1).mean())
            results.setdefault(label, []).append(facts)
    for label, runs in results.items():
        means = {key: float(np.mean([one[key] for one in runs])) for key in runs[0]}
        record("bernoulli", workload=f"owners-{name}", model=label, peak_mb=peak_mb(), quality=means["owner_entropy"],
               n_clusters=k, seeds=seeds, rows=data.X.shape[0], features=data.X.shape[1], **means)  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for one in sys.argv[1:] or ["debian", "snapchat", "ira", "cdnjs"]:
        run(one, 100, 3)
