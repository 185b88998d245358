"""The laws every estimator keeps, along every path of this one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import shoal
from shoal.bernoulli import BernoulliMixture
from shoal.data import Dataset, Vocabulary
from shoal.errors import BadInput


def rows(seed=0, n=300, d=30):
    rng = np.random.default_rng(7)
    theta = np.where(rng.random((4, d)) < 0.3, 0.6, 0.03)
    rng = np.random.default_rng(seed)
    return sp.csr_matrix((rng.random((n, d)) < theta[rng.integers(4, size=n)]).astype(float))


def arrays_of(model):
    return model.profiles_._asdict() | {"ids": model.roster_.ids, "labels": model.labels_}


def assert_same(one, two):
    for name, value in arrays_of(one).items():
        np.testing.assert_array_equal(value, arrays_of(two)[name], err_msg=name)


def partly(X, **options):
    model = BernoulliMixture(5, random_state=1, **options)
    for first in range(0, X.shape[0], 1500):
        model.partial_fit(X[first : first + 1500])
    return model


PATHS = [{}, {"inference": "em"}, {"n_partitions": 3}, {"n_passes": 3}, {"background": "flat"}]


@pytest.mark.parametrize("options", PATHS)
def test_seed_decides_and_threads_do_not(options):
    X = rows(n=4000)
    one = BernoulliMixture(5, random_state=1, n_threads=1, **options).fit(X)
    two = BernoulliMixture(5, random_state=1, n_threads=3, **options).fit(X)
    assert_same(one, two)
    np.testing.assert_array_equal(one.suggest_batch(X[:50])[1], two.suggest_batch(X[:50])[1])


def test_sparse_equals_dense_and_counts_equal_presence():
    X = rows()
    a = BernoulliMixture(4, random_state=0).fit(X)
    b = BernoulliMixture(4, random_state=0).fit(X.toarray() * 7)
    np.testing.assert_array_equal(a.labels_, b.labels_)


def test_weights_count_as_repetitions():
    X = rows(n=1500)
    weights = np.random.default_rng(0).integers(0, 3, 1500).astype(float)
    once = BernoulliMixture(4, random_state=0).fit(X, sample_weight=weights)
    repeated = BernoulliMixture(4, random_state=0).fit(X[np.repeat(np.arange(1500), weights.astype(int))])
    assert once.cluster_sizes_.sum() == pytest.approx(weights.sum(), abs=1e-3)
    assert once.score(X) == pytest.approx(repeated.score(X), abs=0.05)


@pytest.mark.parametrize("make", [lambda X: BernoulliMixture(4, random_state=0).fit(X), partly])
def test_asking_changes_nothing_and_threads_agree(make):
    X = rows(n=2000)
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    model = make(X)
    before = {name: np.array(value) for name, value in arrays_of(model).items()}

    def ask(_):
        return model.predict_proba(X), model.predict(X), model.suggest_batch(X)[1], model.score_samples(X)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    for answer in answers:
        for one, other in zip(answer, ask(0), strict=True):
            np.testing.assert_array_equal(one, other)
    for name, value in before.items():
        np.testing.assert_array_equal(value, arrays_of(model)[name], err_msg=name)
    np.testing.assert_allclose(answers[0][0].sum(axis=1), 1.0)
    last = model.labels_.size
    np.testing.assert_array_equal(model.labels_, model.predict(X[X.shape[0] - last :]))
    labels, scores = model.assign(X)
    np.testing.assert_array_equal(labels, answers[0][1])
    np.testing.assert_allclose(scores, answers[0][0].max(axis=1), rtol=1e-6)


@pytest.mark.parametrize("make", [lambda X: BernoulliMixture(4, random_state=0).fit(X), partly])
def test_a_loaded_model_is_the_model(make, tmp_path):
    X, more = rows(n=1600), rows(1)
    model = make(X)
    shoal.save(tmp_path / "m.shoal", model)
    again = shoal.load(tmp_path / "m.shoal")
    assert_same(model, again)
    delta = again.accumulate(more)
    for one in (model, again):
        one.partial_fit(more)
    assert_same(model, again)
    assert again.suggest([0], n=3) == model.suggest([0], n=3)
    loaded = shoal.load(tmp_path / "m.shoal")
    loaded.update(delta).forget(delta)
    a, b = (int(id_) for id_ in loaded.cluster_ids_[:2])
    loaded.merge_clusters(b, into=a)
    loaded.split_cluster(a, X)
    loaded.merge(shoal.load(tmp_path / "m.shoal"))


def test_a_failed_call_leaves_the_model_as_it_was(monkeypatch):
    X = rows(n=1500)
    model = BernoulliMixture(4, random_state=0).fit(X)
    before = {name: np.array(value) for name, value in arrays_of(model).items()}
    width = model.n_features_in_
    with pytest.raises(BadInput, match="sample_weight"):
        model.partial_fit(X, sample_weight=[1.0])
    monkeypatch.setattr(BernoulliMixture, "_look_back", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    for learn in (model.partial_fit, model.fit):
        with pytest.raises(KeyboardInterrupt):
            learn(rows(1))
    for name, value in before.items():
        np.testing.assert_array_equal(value, arrays_of(model)[name], err_msg=name)
    assert model.n_features_in_ == width


def test_an_empty_row_and_new_features_are_survived():
    X = sp.vstack([rows(), sp.csr_matrix((2, 30))]).tocsr()
    names = [f"f{at}" for at in range(32)]
    model = BernoulliMixture(4, random_state=0).fit(Dataset(X, vocabulary=Vocabulary(names[:30])))
    assert np.isfinite(model.score_samples(X)).all()
    wide = sp.hstack([rows(1), sp.csr_matrix(np.ones((300, 2)))]).tocsr()
    model.partial_fit(Dataset(wide, vocabulary=Vocabulary(names)))
    assert model.profiles_.n_features == model.n_features_in_ == 32
    assert model.suggest(["f30"], n=1)[0].name == "f31"
    with pytest.raises(BadInput):
        model.partial_fit(rows())  # a bare matrix of another width


def test_rows_without_any_feature_are_one_cluster():
    model = BernoulliMixture(2, random_state=0).fit(sp.csr_matrix((30, 4)))
    assert np.isfinite(model.score_samples(np.eye(4))).all()
    assert (model.predict_proba(np.eye(4)) >= 0).all()


def test_wrong_options_are_named():
    X = rows()
    with pytest.raises(BadInput, match=r"inference is 'vb'.*'adf', 'em'"):
        BernoulliMixture(3, inference="vb").fit(X)
    for name, wrong in [("n_clusters", 0), ("n_clusters", 2.5), ("strength", 0), ("strength", "x"), ("n_passes", "x"),
                        ("n_partitions", 0), ("features_kept", -1), ("background", "x"), ("init", 3), ("tol", "a"),
                        ("random_state", "x")]:  # fmt: skip
        with pytest.raises(BadInput, match=name):
            BernoulliMixture(**({"n_clusters": 3} | {name: wrong})).fit(X)
    with pytest.raises(BadInput, match="n_clusters is 301"):
        BernoulliMixture(301).fit(X)
    with pytest.raises(AttributeError, match="partial_fit"):
        BernoulliMixture(3, inference="em").partial_fit(X)


@pytest.mark.parametrize("inference", ["adf", "em"])
def test_weights_that_cannot_be_counted_are_refused(inference):
    """A weight is how often a row came; 1e300 made every probability NaN. Small ones are rows that hardly came."""
    X = sp.csr_matrix(np.kron(np.eye(3), np.ones((8, 4))))
    model = BernoulliMixture(3, inference=inference, random_state=0)
    for weight in (1e300, 1e17):
        with pytest.raises(BadInput, match="Divide them all by the largest"):
            model.fit(X, sample_weight=np.full(24, weight))
        with pytest.raises(BadInput, match="Divide them all by the largest"):
            BernoulliMixture(3, inference=inference, random_state=0).fit(X).accumulate(X, np.full(24, weight))
    for weight in (1e-300, 1e-10, 1e12):
        model.fit(X, sample_weight=np.full(24, weight))
        assert np.isfinite(model.predict_proba(X)).all()
        assert np.isfinite(model.score_samples(X)).all()
