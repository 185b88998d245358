"""The laws every estimator keeps."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.bernoulli import BernoulliMixture
from shoal.errors import BadInput


def rows(seed=0, n=300, d=30):
    rng = np.random.default_rng(seed)
    theta = np.where(rng.random((4, d)) < 0.3, 0.6, 0.03)
    return sp.csr_matrix((rng.random((n, d)) < theta[rng.integers(4, size=n)]).astype(float))


@pytest.mark.parametrize("options", [{}, {"inference": "em"}, {"n_shares": 3}, {"n_passes": 3}, {"background": "flat"}])
def test_seed_decides_and_threads_do_not(options, monkeypatch):
    X = rows(n=5000)
    one = BernoulliMixture(5, random_state=1, **options).fit(X)
    monkeypatch.setenv("SHOAL_NUM_THREADS", "3")
    two = BernoulliMixture(5, random_state=1, **options).fit(X)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    for name, value in one.profiles_._asdict().items():
        np.testing.assert_array_equal(value, getattr(two.profiles_, name))


def test_sparse_equals_dense_and_counts_equal_presence():
    X = rows()
    a = BernoulliMixture(4, random_state=0).fit(X)
    b = BernoulliMixture(4, random_state=0).fit(X.toarray() * 7)
    np.testing.assert_array_equal(a.labels_, b.labels_)


def test_predict_changes_nothing_and_read_only_input_is_fine():
    X = rows()
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    model = BernoulliMixture(4, random_state=0).fit(X)
    before = {name: value.copy() for name, value in model.profiles_._asdict().items()}
    first = model.predict_proba(X)
    np.testing.assert_array_equal(first, model.predict_proba(X))
    for name, value in before.items():
        np.testing.assert_array_equal(value, getattr(model.profiles_, name))
    np.testing.assert_allclose(first.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_an_empty_row_and_unseen_features_are_survived():
    X = sp.vstack([rows(), sp.csr_matrix((2, 30))]).tocsr()
    model = BernoulliMixture(4, random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    wide = sp.hstack([rows(1), sp.csr_matrix(np.ones((300, 2)))]).tocsr()
    model.partial_fit(wide)
    assert model.profiles_.n_features == model.n_features_in_ == 32
    best = model.suggest([30], n=1)[0]
    assert best.feature == 31


def test_wrong_options_are_named():
    X = rows()
    with pytest.raises(BadInput, match="inference is 'vb'; choose one of 'adf', 'em'"):
        BernoulliMixture(3, inference="vb").fit(X)
    with pytest.raises(BadInput, match="n_clusters is 0"):
        BernoulliMixture(0).fit(X)
    with pytest.raises(BadInput, match="n_clusters is 301"):
        BernoulliMixture(301).fit(X)
    with pytest.raises(BadInput, match="strength"):
        BernoulliMixture(3, strength=0).fit(X)
    with pytest.raises(AttributeError, match="partial_fit"):
        BernoulliMixture(3, inference="em").partial_fit(X)
