"""partial_fit: from the first row on, in any parts, sorted by cluster, and while clusters change."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.bernoulli import BernoulliMixture
from shoal.metrics import normalized_mutual_information

THETA = np.where(np.random.default_rng(0).random((9, 120)) < 0.12, 0.4, 0.005)


def rows_of(labels, seed):
    return sp.csr_matrix((np.random.default_rng(seed).random((len(labels), 120)) < THETA[labels]).astype(float))


def learned(X, parts, **options):
    model = BernoulliMixture(12, random_state=0, **options)
    for part in np.array_split(np.arange(X.shape[0]), parts):
        model.partial_fit(X[part])
    return model


def test_parts_shuffled_or_sorted_are_near_the_whole():
    rng = np.random.default_rng(1)
    labels = rng.integers(9, size=4000)
    X, test = rows_of(labels, 1), rows_of(rng.integers(9, size=2000), 2)
    whole = BernoulliMixture(12, random_state=0).fit(X).score(test)
    shuffled, in_order = learned(X, 6), learned(X[np.argsort(labels, kind="stable")], 6)
    assert shuffled.score(test) == pytest.approx(whole, abs=0.05)
    assert in_order.score(test) == pytest.approx(whole, abs=0.1)
    assert shuffled.profiles_.mass.sum() == pytest.approx(4000, rel=1e-3)
    assert normalized_mutual_information(labels[-shuffled.labels_.size :], shuffled.labels_) > 0.9


def test_one_row_at_a_time():
    X = rows_of(np.random.default_rng(3).integers(3, size=60), 3)
    model = BernoulliMixture(3, random_state=0)
    for row in range(60):
        model.partial_fit(X[row])
        assert model.labels_.shape == (1,)
    assert model.profiles_.mass.sum() == pytest.approx(60, abs=1e-3)
    assert np.isfinite(model.score(X))


def test_new_clusters_are_found_soon_and_ids_stay():
    rng = np.random.default_rng(4)
    before, after = rng.integers(5, size=5000), rng.integers(3, 8, size=2000)
    model = BernoulliMixture(12, random_state=0).partial_fit(rows_of(before, 4))
    model.name_cluster(int(model.cluster_ids_[0]), "kept")
    ids = set(model.cluster_ids_.tolist())
    for part in np.array_split(np.arange(2000), 2):
        model.partial_fit(rows_of(after, 5)[part])
    known = model.predict(rows_of(np.repeat(np.arange(8), 200), 6)).reshape(8, 200)
    ids_of = [np.bincount(row[row >= 0]).argmax() for row in known]
    assert len(set(ids_of)) == 8
    assert min((row == id_).mean() for row, id_ in zip(known, ids_of, strict=True)) > 0.8
    assert {ids_of[5], ids_of[6], ids_of[7]}.isdisjoint(ids)
    assert model.roster_.names == {int(model.cluster_ids_[0]): "kept"}


def test_a_pinned_cluster_stays_and_memory_is_bounded():
    rng = np.random.default_rng(0)
    model = BernoulliMixture(4, features_kept=20, random_state=0)
    for part in range(5):
        noise = sp.random(1000, 1000, density=0.004, random_state=int(rng.integers(1 << 30)), format="csr")
        noise.data[:] = 1
        model.partial_fit(noise)
        if part == 0:
            model.pin_cluster(int(model.cluster_ids_[-1]))
        assert set(model.roster_.pinned) <= set(model.cluster_ids_.tolist())
        assert np.bincount(model.profiles_.cluster[: model.profiles_.n_entries]).max(initial=0) <= 20, part
    assert model.stream_.rows.shape[0] <= 20_000
