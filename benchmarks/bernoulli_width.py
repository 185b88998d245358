"""Must show 2: cost per ad at a million keywords against two thousand (same shape of ads, same K)."""

from __future__ import annotations

import numpy as np

from common import Timer, peak_mb, record
from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.adf import filtered
from shoal.datasets import make_zipf_ads

N_FIT, N_TIMED = 60_000, 100_000


def main() -> None:
    cost = {}
    for n_features in (2_000, 2_000, 1_000_000):  # the first compiles
        ads = make_zipf_ads(N_FIT + N_TIMED, n_features=n_features, n_clusters=100, random_state=0)
        model = BernoulliMixture(100, random_state=0).fit(ads.X[:N_FIT])
        order, weights = np.arange(N_FIT, N_FIT + N_TIMED), np.ones(ads.X.shape[0])
        with Timer() as timer:
            filtered(model.profiles_, ads.X, weights, order, negligible=0.01)
        cost[n_features] = 1e6 * timer.seconds / N_TIMED
        facts = {"us_per_ad": cost[n_features], "entries": model.profiles_.n_entries}
    for n_features, microseconds in cost.items():
        record("bernoulli", workload=f"width-{n_features}", model="ADF", seconds=microseconds * N_TIMED / 1e6,
               peak_mb=peak_mb(), quality=microseconds / cost[2_000], us_per_ad=microseconds, k=100)  # fmt: skip
    print(f"cost per ad at 1,000,000 keywords is {cost[1_000_000] / cost[2_000]:.2f}x that at 2,000", facts)


if __name__ == "__main__":
    main()
