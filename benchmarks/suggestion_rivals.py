"""Must show 5: a third of each test row hidden; ours compared with recommenders tuned on a part of the training rows.

    python benchmarks/suggestion_rivals.py                          # every development set, every method, seed 0
    python benchmarks/suggestion_rivals.py --sets debian,mathsx --methods Suggester,EASE --seeds 0,1,2

Seconds are CPU seconds of one fit, and of the whole grid (tuning included): wall time depends on what else runs.
iALS and SLIM are irspack's, item-kNN implicit's (pip install irspack implicit); methods that cannot be imported are
skipped by name.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from bernoulli_rivals import best_columns, ease, popularity
from common import peak_mb, record
from shoal import BernoulliMixture, Suggester
from shoal.metrics import ndcg_at, recall_at
from suggestion_data import DEVELOPMENT, SETS, calibration_floor, expected_calibration_error, hide, split

Ranker = Callable[[sp.csr_matrix, sp.csr_matrix], np.ndarray]


def user_knn(train: sp.csr_matrix, given: sp.csr_matrix, *, neighbors: int, idf: float) -> np.ndarray:
    """Cosine between rows, features weighted by idf; the nearest rows vote."""
    weight = np.log(train.shape[0] / np.maximum(1, np.asarray(train.sum(0)).ravel())) ** idf
    rows = train.multiply(weight).tocsr()
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(1)).ravel())
    columns = (sp.diags_array(1 / np.maximum(length, 1e-9)) @ rows).T.tocsr()
    lists = []
    for start in range(0, given.shape[0], 250):
        part = given[start : start + 250]
        similarity = (part.multiply(weight) @ columns).toarray()
        k = min(neighbors, similarity.shape[1] - 1)
        similarity[similarity < -np.partition(-similarity, k, axis=1)[:, k : k + 1]] = 0
        lists.append(best_columns((sp.csr_matrix(similarity) @ train).toarray(), part, 10))
    return np.concatenate(lists)


def item_knn(train: sp.csr_matrix, given: sp.csr_matrix, *, neighbors: int, kind: str) -> np.ndarray:
    from implicit import nearest_neighbours

    model = getattr(nearest_neighbours, f"{kind}Recommender")(K=neighbors, num_threads=1)
    model.fit(train.tocsr(), show_progress=False)
    return best_columns((given @ model.similarity).toarray(), given, 10)


def irspack_model(train: sp.csr_matrix, given: sp.csr_matrix, *, name: str, **options: Any) -> np.ndarray:
    from irspack import recommenders

    model = getattr(recommenders, name)(train, n_threads=1, **options).learn()
    parts = [given[start : start + 500] for start in range(0, given.shape[0], 500)]
    return np.concatenate([best_columns(np.asarray(model.get_score_cold_user(part)), part, 10) for part in parts])


def ials(factors: int, reg: float, alpha0: float) -> dict[str, Any]:
    return {"name": "IALSRecommender", "n_components": factors, "reg": reg, "alpha0": alpha0, "train_epochs": 10}


GRIDS: dict[str, tuple[Callable[..., np.ndarray], list[dict[str, Any]]]] = {
    "popularity": (lambda train, given: popularity(train, given, 10), [{}]),
    "EASE": (
        lambda train, given, ridge: ease(train, given, 10, ridge=ridge),
        [{"ridge": ridge} for ridge in (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)],
    ),
    "user-kNN": (user_knn, [{"neighbors": k, "idf": idf} for k in (30, 150, 700) for idf in (0.0, 1.0)]),
    "item-kNN": (item_knn, [{"neighbors": k, "kind": kind} for k in (20, 100, 500) for kind in ("Cosine", "BM25")]),
    "iALS": (
        irspack_model,
        [
            ials(factors, reg, alpha0)
            for factors in (32, 128)
            for reg, alpha0 in ((0.003, 0.01), (0.01, 0.03), (0.03, 0.03), (0.03, 0.1), (0.1, 0.03))
        ],
    ),
    "SLIM": (
        irspack_model,
        [
            {"name": "SLIMRecommender", "alpha": alpha, "l1_ratio": l1, "n_iter": 30}
            for alpha, l1 in ((0.001, 0.3), (0.01, 0.01), (0.1, 0.01), (0.01, 0.3))
        ],
    ),
}


def tuned(name: str, train: sp.csr_matrix) -> tuple[dict[str, Any], float, int]:
    """The best options on a tenth of the training rows (at most 1,000), the CPU seconds of the grid, and its size."""
    run, grid = GRIDS[name]
    if len(grid) == 1:
        return grid[0], 0.0, 1
    n_valid = min(train.shape[0] // 10, 1000)
    given, hidden = hide(train[:n_valid], "third", 7)
    began, quality = time.process_time(), []
    for options in grid:
        lists = run(train[n_valid:], given, **options)
        quality.append(recall_at(hidden, lists, 10) + ndcg_at(hidden, lists, 10))
    return grid[int(np.argmax(quality))], time.process_time() - began, len(grid)


def measure_rival(workload: str, name: str, train: sp.csr_matrix, given: sp.csr_matrix, hidden: sp.csr_matrix) -> None:
    options, tuning, n_tried = tuned(name, train)
    began = time.process_time()
    lists = GRIDS[name][0](train, given, **options)
    seconds = time.process_time() - began
    write(workload, name, lists, hidden, seconds=seconds, tuning_seconds=tuning, chosen=str(options), tried=n_tried)


def measure_model(workload: str, name: str, model: Any, train: sp.csr_matrix, test: sp.csr_matrix, seed: int) -> None:
    """Ranking, and how far stated probabilities are from shares of hits, under several ways of hiding."""
    given, hidden = hide(test, "third", seed)
    began = time.process_time()
    model.fit(train)
    seconds = time.process_time() - began
    began = time.process_time()
    lists, probability = model.suggest_batch(given, n=10)
    asking = (time.process_time() - began) / given.shape[0] * 1000
    facts = calibration(lists, probability, hidden)
    if isinstance(model, Suggester):
        for how in (0.3, 0.5, 0.67, 0.85, "one"):
            seen, unseen = hide(test, how, seed)
            facts |= {
                f"{key} {how}": value
                for key, value in calibration(
                    *model.suggest_batch(seen, n=10, hidden=how if how == "one" else 1 - how), unseen
                ).items()
                if key in ("ece", "ece_floor")
            }
        facts |= {"penalty": model.penalty_, "ridge": model.model_.way}
    write(workload, name, lists, hidden, seconds=seconds, ms_a_query=asking, **facts)


def calibration(lists: np.ndarray, probability: np.ndarray, hidden: sp.csr_matrix) -> dict[str, float]:
    """Expected calibration error of all top-ten suggestions, what a perfect model would show, and the extremes."""
    some = lists >= 0
    rows = np.broadcast_to(np.arange(lists.shape[0])[:, None], lists.shape)[some]
    hit = np.asarray(hidden[rows, lists[some]]).ravel() > 0
    stated = probability[some]
    return {
        "ece": expected_calibration_error(stated, hit),
        "ece_floor": calibration_floor(stated),
        "stated": float(stated.mean()),
        "true": float(hit.mean()),
        "largest": float(stated.max()),
    }


def write(workload: str, name: str, lists: np.ndarray, hidden: sp.csr_matrix, **facts: Any) -> None:
    recall, ndcg = recall_at(hidden, lists, 10), ndcg_at(hidden, lists, 10)
    record("suggestion", workload=workload, model=name, quality=recall, recall_10=recall, ndcg_10=ndcg,
           peak_mb=peak_mb(), **facts)  # fmt: skip


def warm_up() -> None:
    """Compile every kernel before anything is timed."""
    X = sp.csr_matrix((np.random.default_rng(0).random((200, 30)) < 0.2).astype(float))
    for ridge in ("dense", "dual", "local"):
        model = Suggester(ridge=ridge, random_state=0).fit(X)
        model.suggest_batch(X)
        model.suggest([0])
    BernoulliMixture(5, random_state=0).fit(X).suggest_batch(X)


def main(names: list[str], methods: list[str], seeds: list[int]) -> None:
    warm_up()
    for name in names:
        X = SETS[name]()
        for seed in seeds:
            train, test = split(X, seed)
            workload = f"hide-a-third-{name}-seed-{seed}"
            for method in methods:
                if method == "Suggester":
                    measure_model(workload, method, Suggester(random_state=seed), train, test, seed)
                elif method == "profiles":
                    measure_model(workload, method, BernoulliMixture(random_state=seed), train, test, seed)
                else:
                    try:
                        measure_rival(workload, method, train, *hide(test, "third", seed))
                    except ImportError as error:
                        print(f"{method} is skipped: {error}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(DEVELOPMENT))
    parser.add_argument("--methods", default=",".join(["Suggester", "profiles", *GRIDS]))
    parser.add_argument("--seeds", default="0")
    asked = parser.parse_args()
    main(asked.sets.split(","), asked.methods.split(","), [int(seed) for seed in asked.seeds.split(",")])
