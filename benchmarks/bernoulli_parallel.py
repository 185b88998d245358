"""Must show 6: training in four shares against serial training; two halves merged against the whole; forgetting."""

from __future__ import annotations

import numpy as np

from common import Timer, peak_mb, record
from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.profiles import copied, rebuilt
from shoal.datasets import make_zipf_ads
from shoal.metrics import normalized_mutual_information, owner_entropy

N_TRAIN, N_TEST, K = 40_000, 10_000, 50


def judged(model: BernoulliMixture, ads, test: slice) -> dict[str, float]:
    labels = model.predict(ads.X)
    return {
        "nll": -model.score(ads.X[test]),
        "nmi": normalized_mutual_information(np.asarray(ads.labels), labels),
        "owner_entropy": owner_entropy(ads.owners, labels),
    }


def forgets(model: BernoulliMixture, X) -> bool:
    """Is the model the same after learning and forgetting?"""
    before = rebuilt(copied(model.profiles_), np.ones(model.profiles_.n_entries, dtype=bool))
    delta = model.accumulate(X)
    model.update(delta)
    model.forget(delta)
    after, used = model.profiles_, before.n_entries
    same = after.n_entries == used and all(
        np.array_equal(getattr(after, name), getattr(before, name)) for name in ("mass", "held", "seen", "base")
    )
    return same and all(
        np.array_equal(getattr(after, name)[:used], getattr(before, name)[:used])
        for name in ("cluster", "feature", "hits", "loss", "lift")
    )


def main(n_seeds: int = 5) -> None:
    results: dict[str, list[dict[str, float]]] = {}
    exact = []
    for seed in range(n_seeds):
        ads = make_zipf_ads(N_TRAIN + N_TEST, n_features=2000, n_clusters=K, random_state=seed)
        test, half = slice(N_TRAIN, None), N_TRAIN // 2
        for name, options in {"serial": {}, "four partitions": {"n_partitions": 4}}.items():
            with Timer() as timer:
                model = BernoulliMixture(K, random_state=seed, **options).fit(ads.X[:N_TRAIN])
            results.setdefault(name, []).append(judged(model, ads, test) | {"seconds": timer.seconds})
        exact.append(forgets(model, ads.X[test]))
        with Timer() as timer:
            merged = BernoulliMixture(K, random_state=seed).fit(ads.X[:half])
            merged.merge(BernoulliMixture(K, random_state=seed + 100).fit(ads.X[half:N_TRAIN]))
        results.setdefault("two halves merged", []).append(judged(merged, ads, test) | {"seconds": timer.seconds})
    for name, runs in results.items():
        means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        spread = {f"{key}_sd": float(np.std([run[key] for run in runs], ddof=1)) for key in ("nll", "nmi")}
        record("bernoulli", workload="parallel-40000x2000", model=name, peak_mb=peak_mb(), quality=means["nll"],
               seeds=n_seeds, forgets_exactly=bool(all(exact)), **means, **spread)  # fmt: skip


if __name__ == "__main__":
    main()
