"""Must show 5, size: a suggester of a million sets over 73,000 features.

    python benchmarks/suggestion_scale.py [rows] [features]

Sets are synthetic: 1,000 topics of 300 features, three quarters of a set from its topic, the rest by popularity.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import scipy.sparse as sp

from bernoulli_rivals import best_columns
from common import peak_mb, record
from shoal import Suggester
from shoal.metrics import ndcg_at, recall_at
from suggestion_data import calibration_floor, expected_calibration_error, hide, split
from suggestion_rivals import warm_up

N_TOPICS, TOPIC_SIZE, OWN = 1000, 300, 0.75


def topic_sets(n_rows: int, n_features: int) -> sp.csr_matrix:
    rng = np.random.default_rng(0)
    topics = np.stack([rng.choice(n_features, TOPIC_SIZE, replace=False) for _ in range(N_TOPICS)])
    row = np.repeat(np.arange(n_rows), 3 + rng.poisson(5, n_rows))
    topic = rng.integers(0, N_TOPICS, n_rows)[row]
    within = np.cumsum(1 / np.arange(1, TOPIC_SIZE + 1) ** 0.8)
    overall = np.cumsum(1 / np.arange(1, n_features + 1))
    own = topics[topic, np.searchsorted(within / within[-1], rng.random(row.size)).clip(0, TOPIC_SIZE - 1)]
    common = np.searchsorted(overall / overall[-1], rng.random(row.size)).clip(0, n_features - 1)
    column = np.where(rng.random(row.size) < OWN, own, common)
    X = sp.csr_matrix((np.ones(row.size), (row, column)), shape=(n_rows, n_features))
    X.sum_duplicates()
    X.data[:] = 1
    return X


def main(n_rows: int = 1_000_000, n_features: int = 73_000) -> None:
    warm_up()
    X = topic_sets(n_rows, n_features)
    train, test = split(X, 0, most_test=1000)
    given, hidden = hide(test, "third", 0)
    began = time.process_time(), time.perf_counter()
    model = Suggester(random_state=0).fit(train)
    cpu, wall = time.process_time() - began[0], time.perf_counter() - began[1]
    began = time.process_time(), time.perf_counter()
    lists, probability = model.suggest_batch(given)
    asking = (time.process_time() - began[0]) / given.shape[0] * 1000
    began_one = time.perf_counter()
    model.suggest(given[0].indices)
    rows = np.repeat(np.arange(lists.shape[0]), lists.shape[1])
    hit = np.asarray(hidden[rows, lists.ravel()]).ravel() > 0
    popular = np.asarray(train.sum(axis=0)).ravel()
    by_popularity = best_columns(np.tile(popular, (given.shape[0], 1)), given, 10)
    stats = model.model_.stats
    kept = [stats.frequency, stats.row_ptr, stats.row_features, *model.model_.postings, model.model_.factors.features]
    sparse = [stats.pairs, *([model.model_.ridge.weights] if model.model_.way == "local" else [])]
    model_bytes = sum(array.nbytes for array in kept)
    model_bytes += sum(part.data.nbytes + part.indices.nbytes + part.indptr.nbytes for part in sparse)
    record("suggestion", workload=f"topics-{n_rows}-x-{n_features}", model="Suggester", seconds=cpu, wall_seconds=wall,
           peak_mb=peak_mb(), quality=recall_at(hidden, lists, 10), ndcg_10=ndcg_at(hidden, lists, 10),
           ece=expected_calibration_error(probability.ravel(), hit), ece_floor=calibration_floor(probability.ravel()),
           ms_a_query=asking, ms_with_reasons=(time.perf_counter() - began_one) * 1000, model_mb=model_bytes / 1e6,
           pairs=int(stats.pairs.nnz), non_zeros=int(X.nnz), ridge=model.model_.way, penalty=model.penalty_,
           factors=model.uses_factors_, popularity=recall_at(hidden, by_popularity, 10))  # fmt: skip


if __name__ == "__main__":
    main(*(int(value) for value in sys.argv[1:]))
