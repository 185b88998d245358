"""Must show 7: a cluster where sorting by mean shows a spurious keyword near the top, and sorting by alpha does not.

Spurious: a keyword near the top by mean that is not among the first five by alpha: fewer effective ads stand behind it
than behind keywords below it, because ambiguous ads took pseudo-counts away.
"""

from __future__ import annotations

import sys

import numpy as np

from bernoulli_data import cdnjs, debian, ira, snapchat
from common import peak_mb, record
from shoal.bernoulli import BernoulliMixture


def main(name: str, k: int = 40, seed: int = 1) -> None:
    data = {"debian": debian, "cdnjs": cdnjs, "snapchat": snapchat, "ira": ira}[name]()
    model = BernoulliMixture(k, random_state=seed).fit(data.X)
    profiles = model.profiles_
    used = profiles.n_entries
    alphas, totals = profiles.alphas(), profiles.totals()
    found = []
    for cluster in model.roster_.ids:
        by_mean, by_alpha = model.top_features(int(cluster), 5, by="mean"), model.top_features(int(cluster), 5)
        slots = np.flatnonzero(profiles.cluster[:used] == model.roster_.row_of(int(cluster)) + profiles.n_clutter)
        pair = {int(profiles.feature[slot]): (alphas[slot], totals[slot]) for slot in slots}
        for place, feature in enumerate(by_mean.features[:4]):
            below = [pair[int(other)][0] for other in by_mean.features[place + 1 :]]
            width = by_mean.high[place] - by_mean.low[place]
            if below and feature not in by_alpha.features:
                found.append((max(below) / pair[int(feature)][0] * width, int(cluster), place, int(feature), pair))
    if not found:
        print(f"{name}: no cluster of this run shows it")
        return
    _, cluster, place, feature, pair = max(found, key=lambda one: (-one[2], one[0]))  # the nearest to the top
    rows = {
        by: [
            f"{data.names[f]} (alpha {pair[int(f)][0]:.1f}, beta {pair[int(f)][1] - pair[int(f)][0]:.1f})"
            for f in model.top_features(cluster, 6, by=by).features
        ]
        for by in ("mean", "alpha")
    }
    record("bernoulli", workload=f"spurious-{name}", model=f"ADF K={k} seed={seed}", seconds=0.0, peak_mb=peak_mb(),
           quality=place, cluster=cluster, ads=float(model.cluster_sizes_[model.roster_.row_of(cluster)]),
           spurious=data.names[feature], **{f"by_{by}": shown for by, shown in rows.items()})  # fmt: skip


if __name__ == "__main__":
    for one in sys.argv[1:] or ["ira", "snapchat", "cdnjs", "debian"]:
        main(one)
