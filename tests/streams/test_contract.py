"""The laws every shoal model keeps; scikit-learn's own checks are in tests/test_sklearn_contract.py."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import shoal
from shoal.datasets import make_threads
from shoal.errors import BadInput
from shoal.streams import ExponentialKernel, Inference, PeriodicKernel, TimeSensitiveMixture

QUICK = Inference(n_sweeps=20, burn_in=10)


@pytest.fixture(scope="module")
def data():
    return make_threads(
        300, n_features=200, length=15, prior=0.02, zipf=1.0, decay=0.1, concentration=0.5, random_state=1
    )


def test_sparse_equals_dense_and_read_only_is_fine(data):
    model = TimeSensitiveMixture(inference=QUICK, random_state=0)
    X = data.X.copy()
    X.data.flags.writeable = False
    a = clone(model).fit(X, times=data.times)
    b = clone(model).fit(data.X.toarray(), times=data.times)
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_array_equal(a.labels_, clone(model).fit(data).labels_)


@pytest.mark.parametrize("likelihood", ["multinomial", "bernoulli", "gaussian"])
def test_fit_in_any_order_of_rows(data, likelihood):
    """Labels come back in the order of the rows; times alone decide the order of the clock."""
    X = data.X[:80, :30].toarray()
    mixed = np.random.default_rng(0).permutation(80)
    model = TimeSensitiveMixture(likelihood=likelihood, inference=QUICK, random_state=0)
    straight = clone(model).fit(X, times=data.times[:80])
    shuffled = clone(model).fit(X[mixed], times=data.times[:80][mixed])
    np.testing.assert_array_equal(straight.labels_[mixed], shuffled.labels_)
    np.testing.assert_allclose(straight.typicality()[mixed], shuffled.typicality(), rtol=1e-9)
    assert shuffled.samples_.shape == (2, 80)
    assert shuffled.n_clusters_posterior_.sum() == pytest.approx(1.0)
    together = shuffled.same_cluster_matrix()
    assert together.shape == (80, 80)
    assert (np.diag(together) == 1.0).all()


def test_save_and_load_predict_the_same(data, tmp_path):
    kernel = ExponentialKernel(0.1) + 0.1 * PeriodicKernel(50.0, 0.001)
    model = TimeSensitiveMixture(kernel, concentration=1.0, inference=QUICK, random_state=0).fit(data)
    shoal.save(tmp_path / "model.shoal", model)
    again = shoal.load(tmp_path / "model.shoal")
    again = getattr(again, "model", again)
    before = model.labels_.copy()
    for method in ("predict", "predict_proba", "score_samples"):
        asked = getattr(model, method)(data.X[:50], times=data.times[:50])
        np.testing.assert_array_equal(asked, getattr(again, method)(data.X[:50], times=data.times[:50]))
    np.testing.assert_array_equal(model.labels_, before)
    np.testing.assert_array_equal(again.labels_, before)
    assert again.kernel_ == kernel


def test_probabilities_agree_with_predictions(data):
    model = TimeSensitiveMixture(inference=QUICK, random_state=0).fit(data)
    p = model.predict_proba(data.X, times=data.times)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    ids = np.append(model.cluster_ids_, -1)
    np.testing.assert_array_equal(ids[p.argmax(axis=1)], model.predict(data.X, times=data.times))


def test_empty_rows_and_unseen_features_are_survived():
    X = sp.csr_matrix(np.array([[0, 0, 0], [2, 0, 0], [0, 0, 0], [3, 0, 0]]))
    model = TimeSensitiveMixture(inference=QUICK, random_state=0).fit(X)
    assert model.labels_.shape == (4,)
    assert model.predict(np.array([[0, 0, 5]])).shape == (1,)
    stream = TimeSensitiveMixture(random_state=0).partial_fit(X)
    assert stream.labels_.shape == (4,)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"likelihood": "poisson"}, "likelihood"),
        ({"concentration": -1.0}, "concentration"),
        ({"strength": 0.0}, "strength"),
        ({"drift": -1.0}, "drift"),
        ({"base": "flat"}, "base"),
        ({"base": [1.0, 2.0]}, "base"),
        ({"kernel": 0.5}, "kernel"),
        ({"inference": {"sweeps": 3}}, "n_sweeps"),
        ({"inference": {"window": -3}}, "window"),
    ],
)
def test_wrong_options_are_named(options, word):
    with pytest.raises(BadInput, match=word):
        TimeSensitiveMixture(**options).fit(np.eye(3))


def test_wrong_times_are_named():
    model = TimeSensitiveMixture(inference=QUICK)
    with pytest.raises(BadInput, match=r"times has shape \(2,\)"):
        model.fit(np.eye(3), times=[1.0, 2.0])
    with pytest.raises(BadInput, match=r"times\[1\]"):
        model.fit(np.eye(3), times=[1.0, np.nan, 2.0])
    with pytest.raises(BadInput, match="numbers or datetimes"):
        model.fit(np.eye(3), times=["a", "b", "c"])


def test_datetimes_are_seconds():
    times = np.array(["2019-04-01T00:00:00", "2019-04-01T00:00:01", "2019-04-01T00:00:01.5"], dtype="datetime64[ms]")
    model = TimeSensitiveMixture(inference=QUICK, random_state=0).fit(np.eye(3), times=times)
    np.testing.assert_allclose(np.diff(model.all_times_), [1.0, 0.5])


@pytest.mark.parametrize("evidence", [5, "x", [None], [("owner:", 1.0)]])
def test_evidence_that_is_none_is_refused(evidence):
    with pytest.raises(BadInput, match="evidence is"):
        TimeSensitiveMixture(evidence=evidence).fit(np.eye(3))


@pytest.mark.parametrize("items", [sp.eye(3).tocsr(), [[0, 1]], "ab", [0.5], None, [None]])
def test_items_to_split_off_are_places(items):
    model = TimeSensitiveMixture(random_state=0).fit(np.eye(3)[[0, 0, 1, 1]])
    with pytest.raises(BadInput, match=r"items is|no live cluster"):
        model.split_cluster(int(model.cluster_ids_[0]), items)


def test_measurements_whose_squares_vanish_are_refused():
    """All messages were in one cluster, without a word."""
    X = np.random.default_rng(0).normal(size=(30, 2)) + np.repeat(np.eye(2) * 9, 15, axis=0)
    with pytest.raises(BadInput, match="Divide the column by its scale"):
        TimeSensitiveMixture(likelihood="gaussian", random_state=0).fit(X * 1e-200)
