"""Merging, splitting, pinning, naming; differences; models fitted apart; culling; generation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal import cluster_cards
from shoal.bernoulli import BernoulliMixture, Block, accumulate, merge, update
from shoal.bernoulli.culling import culled, without_rows
from shoal.bernoulli.profiles import means_of, rebuilt
from shoal.errors import BadInput, CannotMerge
from shoal.metrics import normalized_mutual_information


def groups(n=1200, k=4, seed=0, per=8):
    rng = np.random.default_rng(seed)
    theta = np.kron(np.eye(k), np.full(per, 0.5)) + 0.02
    labels = rng.integers(k, size=n)
    X = sp.csr_matrix((rng.random((n, k * per)) < theta[labels]).astype(float))
    return X, labels


@pytest.fixture(scope="module")
def fitted():
    X, labels = groups()
    return BernoulliMixture(4, random_state=0, clutter=False).fit(X), X, labels


def copy_of(model):
    again = BernoulliMixture(**model.get_params())
    again.restore_state(model.fitted_state() | {"roster_": model.roster_.copy()})
    return again


def test_a_difference_is_taken_back_exactly():
    X, _ = groups()
    model = BernoulliMixture(5, random_state=0).fit(X[:800])
    before = rebuilt(model.profiles_)
    delta = model.accumulate(X[800:])
    np.testing.assert_array_equal(model.profiles_.mass, before.mass)
    model.update(delta)
    assert model.profiles_.mass.sum() == pytest.approx(before.mass.sum() + 400, abs=1e-3)
    model.forget(delta)
    used = before.n_entries
    assert model.profiles_.n_entries == used
    for name in ("mass", "default_hits", "seen", "background"):
        np.testing.assert_array_equal(getattr(model.profiles_, name), getattr(before, name), err_msg=name)
    for name in ("base", "ratio"):
        np.testing.assert_allclose(
            getattr(model.profiles_, name), getattr(before, name), rtol=1e-9, atol=1e-12, err_msg=name
        )
    for name in ("cluster", "feature", "hits", "hits_from_default", "loss"):
        np.testing.assert_array_equal(getattr(model.profiles_, name)[:used], getattr(before, name)[:used], err_msg=name)


def test_differences_merge_in_any_order(fitted):
    model, X, _ = fitted
    a, b, c = (
        accumulate(Block(X[part], np.ones(len(part))), model.profiles_)[0]
        for part in (np.arange(300), np.arange(300, 700), np.arange(700, 1200))
    )
    one, other = merge(merge(a, b), c), merge(c, merge(b, a))
    for name in ("cluster", "feature", "hits", "loss", "mass", "default_hits"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    in_turn = update(update(update(model.profiles_, a), b), c)
    at_once = update(model.profiles_, one)
    np.testing.assert_array_equal(in_turn.mass, at_once.mass)
    np.testing.assert_allclose(in_turn.hits.sum(), at_once.hits.sum(), rtol=1e-9)
    with pytest.raises(CannotMerge):
        merge(a, b._replace(mass=b.mass[:-1]))
    with pytest.raises(CannotMerge, match="clusters were born"):
        model.update(a._replace(ids=np.array([0, 1])))


def test_blocks_from_one_prior_are_near_the_whole(fitted):
    """How stale a prior is matters little: halves learned apart and added up, and all rows in turn."""
    model, X, _ = fitted
    halves = [accumulate(Block(X[a:b], np.ones(b - a)), model.profiles_)[0] for a, b in ((0, 600), (600, 1200))]
    apart = update(model.profiles_, merge(*halves))
    whole = update(model.profiles_, accumulate(Block(X, np.ones(1200)), model.profiles_)[0])
    np.testing.assert_allclose(apart.mass, whole.mass, rtol=0.01)
    np.testing.assert_allclose(apart.means()[:32], whole.means()[:32], atol=0.02)


def test_users_can_merge_split_pin_and_name(fitted):
    model, X, labels = fitted
    model = copy_of(model)
    a, b = (int(id_) for id_ in model.cluster_ids_[:2])
    mass, sizes = model.profiles_.mass.sum(), dict(zip(model.cluster_ids_.tolist(), model.cluster_sizes_, strict=True))
    model.pin_cluster(a)
    model.name_cluster(a, "first")
    model.merge_clusters([b], into=a)
    assert b not in model.cluster_ids_
    assert model.cluster_sizes_[0] == pytest.approx(sizes[a] + sizes[b])
    assert model.roster_.pinned == [a]
    cards = cluster_cards(model)
    assert sum(card.size for card in cards) == 1200
    assert {card.id for card in cards} == set(model.cluster_ids_.tolist())
    new = model.split_cluster(a, X)
    assert new not in (a, b)
    assert model.profiles_.mass.sum() == pytest.approx(mass, abs=1e-3)
    assert sum(card.size for card in cluster_cards(model)) == 1200
    assert normalized_mutual_information(labels, model.predict(X)) > 0.8
    with pytest.raises(BadInput, match="no cluster has id"):
        model.name_cluster(b, "gone")
    with pytest.raises(BadInput, match="name other clusters"):
        model.merge_clusters(a, into=a)


def test_halves_fitted_apart_make_the_whole():
    X, labels = groups(3000)
    whole = BernoulliMixture(4, random_state=0).fit(X)
    half = BernoulliMixture(4, random_state=1).fit(X[:1500])
    half.name_cluster(2, "kept")
    ids = half.cluster_ids_.tolist()
    half.merge(BernoulliMixture(4, random_state=2).fit(X[1500:]))
    assert half.cluster_ids_.tolist() == ids
    assert half.roster_.names == {2: "kept"}
    assert half.profiles_.mass.sum() == pytest.approx(3000, rel=1e-3)
    assert half.score(X) == pytest.approx(whole.score(X), abs=0.05)
    assert normalized_mutual_information(labels, half.predict(X)) > 0.9
    with pytest.raises(CannotMerge, match="clutter"):
        half.merge(BernoulliMixture(4, clutter=False, random_state=0).fit(X))


def test_culling_keeps_what_tells_clusters_apart_and_all_counts():
    X, _ = groups()
    everywhere = sp.csr_matrix((np.random.default_rng(0).random((X.shape[0], 1)) < 0.5).astype(float))
    model = BernoulliMixture(4, random_state=0).fit(sp.hstack([X, everywhere]).tocsr())
    assert model.profiles_.uninformative.tolist() == [False] * 32 + [True]
    small = culled(model.profiles_, features_kept=5)
    assert np.bincount(small.cluster[: small.n_entries]).max() <= 5
    total = model.profiles_.hits[: model.profiles_.n_entries].sum() + model.profiles_.default_hits.sum()
    assert small.hits[: small.n_entries].sum() + small.default_hits.sum() == pytest.approx(total)


def test_a_removed_cluster_returns_to_the_model(fitted):
    profiles = fitted[0].profiles_
    fewer = without_rows(profiles, np.array([2]))
    assert fewer.n_rows == profiles.n_rows - 1
    assert fewer.mass.sum() == pytest.approx(profiles.mass.sum(), abs=1e-3)


def test_bad_starts_are_recovered_from():
    X, labels = groups(4000, k=10)
    for seed in range(3):
        model = BernoulliMixture(10, init="random", n_passes=2, random_state=seed).fit(X)
        assert normalized_mutual_information(labels, model.labels_) > 0.85


def test_samples_look_like_the_data(fitted):
    model, X, _ = fitted
    drawn, ids = model.sample(4000, random_state=1)
    assert set(ids) <= set(model.cluster_ids_.tolist())
    np.testing.assert_allclose(np.asarray(drawn.mean(axis=0)).ravel(), np.asarray(X.mean(axis=0)).ravel(), atol=0.04)
    assert normalized_mutual_information(ids, model.predict(drawn)) > 0.7
    np.testing.assert_array_equal(drawn.toarray(), model.sample(4000, random_state=1)[0].toarray())


def test_alpha_is_not_fooled_by_rare_features():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((rng.random((2000, 20)) < 0.3 * rng.random(20) + 0.1).astype(float))
    model = BernoulliMixture(1, clutter=False, strength=2.0, random_state=0).fit(X)
    top = model.top_features(0, n=5)
    assert top.values.tolist() == sorted(top.values, reverse=True)
    assert (top.low < top.high).all()
    share = top.values / (model.profiles_.mass[0] + 2)
    assert ((top.low < share) & (share < top.high)).all()
    with pytest.raises(BadInput, match="'alpha'"):
        model.top_features(0, by="size")


def test_a_feature_that_tells_nothing_in_one_half_keeps_its_share_in_what_is_merged():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=8000)
    X = (rng.random((8000, 12)) < np.where(labels[:, None] == np.arange(12) % 2, 0.7, 0.1)).astype(float)
    X[:4000, 0] = rng.random(4000) < 0.5
    X[4000:, 0] = rng.random(4000) < np.where(labels[4000:] == 0, 0.8, 0.4)
    halves = [BernoulliMixture(2, clutter=False, random_state=0).fit(part) for part in (X[:4000], X[4000:])]
    assert [bool(half.profiles_.uninformative[0]) for half in halves] == [True, False]
    merged = halves[0].merge(halves[1])
    means = means_of(merged.profiles_, np.array([0])).ravel()
    np.testing.assert_allclose(np.sort(means), [X[labels == 1, 0].mean(), X[labels == 0, 0].mean()], atol=0.02)
