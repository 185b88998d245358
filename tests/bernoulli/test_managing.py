"""Merging, splitting, pinning, naming; differences; models trained apart; culling; generation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.culling import culled, given_back
from shoal.bernoulli.parallel import accumulate, merge, update
from shoal.bernoulli.profiles import copied, rebuilt
from shoal.errors import BadInput, CannotMerge
from shoal.metrics import normalized_mutual_information


def groups(n=1200, k=4, seed=0, per=8):
    rng = np.random.default_rng(seed)
    theta = np.kron(np.eye(k), np.full(per, 0.5)) + 0.02
    labels = rng.integers(k, size=n)
    X = sp.csr_matrix((rng.random((n, k * per)) < theta[labels]).astype(float))
    return X, labels


def test_a_difference_is_taken_back_exactly():
    X, _ = groups()
    model = BernoulliMixture(5, random_state=0).fit(X[:800])
    before = rebuilt(copied(model.profiles_), np.ones(model.profiles_.n_entries, dtype=bool))
    delta = model.accumulate(X[800:])
    np.testing.assert_array_equal(model.profiles_.mass, before.mass)
    model.update(delta)
    assert model.profiles_.mass.sum() == pytest.approx(before.mass.sum() + 400, abs=1e-3)
    model.forget(delta)
    used = before.n_entries
    assert model.profiles_.n_entries == used
    for name in ("mass", "held", "seen", "background", "base", "ratio"):
        np.testing.assert_array_equal(getattr(model.profiles_, name), getattr(before, name), err_msg=name)
    for name in ("cluster", "feature", "hits", "given", "loss", "lift"):
        np.testing.assert_array_equal(getattr(model.profiles_, name)[:used], getattr(before, name)[:used], err_msg=name)


def test_differences_merge_in_any_order():
    X, _ = groups()
    model = BernoulliMixture(4, random_state=0).fit(X)
    weights = np.ones(X.shape[0])
    a, b = (
        accumulate(X, weights, part, model.profiles_, negligible=0.01)[0]
        for part in (np.arange(300), np.arange(300, 700))
    )
    one = update(update(copied(model.profiles_), a), b)
    other = update(copied(model.profiles_), merge(b, a))
    np.testing.assert_array_equal(one.mass, other.mass)
    np.testing.assert_allclose(one.hits[: one.n_entries].sum(), other.hits[: other.n_entries].sum(), rtol=1e-9)
    with pytest.raises(CannotMerge):
        merge(a, b._replace(mass=b.mass[:-1]))
    model.merge_clusters(*model.roster_.ids[:2].tolist())
    with pytest.raises(CannotMerge, match="clusters were born"):
        model.update(a._replace(ids=np.array([0, 1])))


def test_users_can_merge_split_pin_and_name():
    X, labels = groups()
    model = BernoulliMixture(4, random_state=0, clutter=False).fit(X)
    a, b = (int(id_) for id_ in model.roster_.ids[:2])
    mass = model.profiles_.mass.sum()
    model.pin_cluster(a)
    model.name_cluster(a, "first")
    model.merge_clusters(a, b)
    assert model.roster_.ids.tolist() == [id_ for id_ in range(model.roster_.next_id) if id_ in model.roster_.ids]
    assert b not in model.roster_.ids
    assert model.profiles_.mass.sum() == pytest.approx(mass)
    assert model.roster_.pinned == [a]
    new = model.split_cluster(a, X)
    assert new not in (a, b)
    assert model.profiles_.mass.sum() == pytest.approx(mass, abs=1e-3)
    assert normalized_mutual_information(labels, model.predict(X)) > 0.8
    with pytest.raises(BadInput, match="no cluster has id"):
        model.name_cluster(b, "gone")
    with pytest.raises(BadInput, match="two different clusters"):
        model.merge_clusters(a, a)


def test_halves_trained_apart_make_the_whole():
    X, labels = groups(3000)
    whole = BernoulliMixture(4, random_state=0).fit(X)
    half = BernoulliMixture(4, random_state=1).fit(X[:1500])
    half.merge_model(BernoulliMixture(4, random_state=2).fit(X[1500:]))
    assert half.roster_.ids.size <= 4
    assert half.profiles_.mass.sum() == pytest.approx(3000, rel=1e-3)
    assert half.score(X) == pytest.approx(whole.score(X), abs=0.1)
    assert normalized_mutual_information(labels, half.predict(X)) > 0.9
    with pytest.raises(CannotMerge, match="clutter"):
        half.merge_model(BernoulliMixture(4, clutter=False, random_state=0).fit(X))


def test_culling_keeps_what_tells_clusters_apart_and_all_counts():
    X, _ = groups()
    everywhere = sp.csr_matrix((np.random.default_rng(0).random((X.shape[0], 1)) < 0.5).astype(float))
    model = BernoulliMixture(4, random_state=0, adapt=False).fit(sp.hstack([X, everywhere]).tocsr())
    assert model.profiles_.shared.tolist() == [False] * 32 + [True]
    small = culled(copied(model.profiles_), least_gain=3.0, features_kept=5)
    assert np.bincount(small.cluster[: small.n_entries]).max() <= 5
    total = model.profiles_.hits[: model.profiles_.n_entries].sum() + model.profiles_.held.sum()
    assert small.hits[: small.n_entries].sum() + small.held.sum() == pytest.approx(total)


def test_a_removed_cluster_is_given_back():
    X, _ = groups()
    model = BernoulliMixture(4, random_state=0).fit(X)
    mass = model.profiles_.mass.sum()
    fewer = given_back(copied(model.profiles_), np.array([2]), negligible=0.01)
    assert fewer.n_rows == model.profiles_.n_rows - 1
    assert fewer.mass.sum() == pytest.approx(mass, abs=1e-3)


def test_bad_starts_are_recovered_from():
    X, labels = groups(4000, k=10)
    for seed in range(3):
        model = BernoulliMixture(10, init="random", n_passes=3, random_state=seed).fit(X)
        assert normalized_mutual_information(labels, model.labels_) > 0.85


def test_samples_look_like_the_data():
    X, _ = groups(4000)
    model = BernoulliMixture(4, random_state=0).fit(X)
    drawn, ids = model.sample(4000)
    assert set(ids) <= {-1, *model.roster_.ids.tolist()}
    np.testing.assert_allclose(np.asarray(drawn.mean(axis=0)).ravel(), np.asarray(X.mean(axis=0)).ravel(), atol=0.03)
    assert normalized_mutual_information(ids, model.predict(drawn)) > 0.7


def test_alpha_is_not_fooled_by_rare_features():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((rng.random((2000, 20)) < 0.3).astype(float))
    model = BernoulliMixture(1, clutter=False, adapt=False, random_state=0).fit(X)
    top = model.top_features(0, n=5)
    assert top.values.tolist() == sorted(top.values, reverse=True)
    assert (top.low < top.high).all()
    share = top.values / (model.profiles_.mass[0] + 2)
    assert ((top.low < share) & (share < top.high)).all()
    with pytest.raises(BadInput, match="'alpha'"):
        model.top_features(0, by="size")


def test_memory_stays_bounded_on_a_long_stream():
    rng = np.random.default_rng(0)
    model = BernoulliMixture(4, features_kept=20, random_state=0)
    for part in range(6):
        noise = sp.random(3000, 3000, density=0.002, random_state=rng.integers(1 << 30), format="csr")
        noise.data[:] = 1
        model.partial_fit(noise)
        assert np.bincount(model.profiles_.cluster[: model.profiles_.n_entries]).max(initial=0) <= 20, part
