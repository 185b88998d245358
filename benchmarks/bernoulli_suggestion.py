"""Must show 5: a third of each test row's keywords hidden; recall at 5 and 10, ours beside recommenders."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from bernoulli_data import askubuntu, cdnjs, debian, hide_third, recipes, split
from bernoulli_rivals import ease, implicit_als, implicit_knn, item_cosine, popularity
from common import Timer, peak_mb, record
from shoal.bernoulli import BernoulliMixture
from shoal.metrics import recall_at

SETS = {"debian": debian, "cdnjs": cdnjs, "recipes": recipes, "askubuntu": askubuntu}


def by_model(**options):
    def suggest(train, given, n):
        return BernoulliMixture(random_state=0, **options).fit(train).suggest_batch(given, n=n)[0]

    return suggest


def ways(n_rows: int):
    yield "shoal clusters K=100", by_model(n_clusters=100)
    yield "shoal clusters K=1000", by_model(n_clusters=1000, n_partitions=2)
    yield "EM K=100", by_model(n_clusters=100, inference="em", clutter=False, strength=2.0)
    yield "popularity", popularity
    yield "item cosine", item_cosine
    for ridge in (10.0, 50.0, 200.0):
        yield f"EASE ridge {ridge:g}", lambda *a, ridge=ridge: ease(*a, ridge=ridge)
    for factors in (16, 64):
        yield (
            f"ALS {factors}",
            lambda *a, f=factors: implicit_als(*a, factors=f, regularization=0.05, alpha=10.0),
        )
    yield "implicit item-kNN", lambda *a: implicit_knn(*a, neighbours=100)


def main(name: str, most_test: int = 5000) -> None:
    data = SETS[name]()
    train, test = split(data.X.shape[0], 0)
    test = test[np.random.default_rng(0).permutation(test.size)[:most_test]]
    given, hidden = hide_third(data.X[test], 0)
    for label, suggest in ways(data.X.shape[0]):
        with Timer() as timer:
            ranked = suggest(data.X[train], given, 10)
        at_10 = recall_at(hidden, ranked, 10)
        record("bernoulli", workload=f"suggest-{name}", model=label, seconds=timer.seconds, peak_mb=peak_mb(),
               quality=at_10, recall_5=recall_at(hidden, ranked, 5), recall_10=at_10,
               train=int(train.size), test=int(test.size))  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for one in sys.argv[1:] or SETS:
        main(one)
