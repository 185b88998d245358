"""The laws every shoal model keeps; scikit-learn's own checks are in tests/test_sklearn_contract.py."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.kmeans import SphericalKMeans


def words(seed=0, n=300, d=60):
    rng = np.random.default_rng(seed)
    topics = rng.random((5, d)) ** 6
    counts = rng.poisson(topics[rng.integers(5, size=n)])
    counts[:, 0] += 1
    return sp.csr_matrix(counts.astype(np.float64))


def test_sparse_equals_dense_and_all_number_types():
    X = words()
    model = SphericalKMeans(5, random_state=1).fit(X)
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for same in (X.toarray(), X.astype(np.float32), wide, sp.csc_matrix(X), sp.csr_array(X)):
        other = SphericalKMeans(5, random_state=1).fit(same)
        np.testing.assert_array_equal(model.labels_, other.labels_)
        np.testing.assert_array_equal(model.predict(X), other.predict(same))


def test_read_only_input_is_left_alone():
    X = words()
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)
    before = X.copy()
    model = SphericalKMeans(4, random_state=0).fit(X)
    model.predict(X)
    assert (before != X).nnz == 0


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
def test_the_seed_decides_and_threads_do_not(init):
    X = words(n=5000)
    fits = [SphericalKMeans(6, init=init, random_state=3, n_threads=n).fit(X) for n in (1, 2, 5)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].labels_, other.labels_)
        np.testing.assert_array_equal(fits[0].similarities_, other.similarities_)
        assert (fits[0].cluster_centers_ != other.cluster_centers_).nnz == 0
    assert (SphericalKMeans(6, init=init, random_state=4).fit(X).labels_ != fits[0].labels_).any()


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_the_order_of_the_rows_does_not_matter(init):
    X = words()
    shuffled = np.random.default_rng(0).permutation(X.shape[0])
    one = SphericalKMeans(5, init=init, random_state=7).fit(X)
    other = SphericalKMeans(5, init=init, random_state=7).fit(X[shuffled])
    np.testing.assert_array_equal(one.labels_[shuffled], other.labels_)


def test_predict_changes_nothing():
    X = words()
    model = SphericalKMeans(4, random_state=0).fit(X)
    state = {name: np.copy(value) for name, value in model.fitted_state().items() if isinstance(value, np.ndarray)}
    model.predict(X), model.transform(X), model.score(X)
    for name, value in state.items():
        np.testing.assert_array_equal(value, getattr(model, name))


def test_assign_gives_the_cosine_to_the_cluster_it_gives():
    X = words()
    model = SphericalKMeans(5, random_state=0).fit(X)
    labels, cosines = model.assign(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(cosines, model.transform(X)[np.arange(X.shape[0]), labels], rtol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"algorithm": "sparse", "features_kept": 9}, {"algorithm": "wand", "top": 20}, {"bisecting": True}]
)
def test_a_saved_model_predicts_the_same_and_can_go_on_learning(tmp_path, options):
    import shoal

    X = words()
    model = SphericalKMeans(5, random_state=0, **options).fit(X)
    shoal.save(tmp_path / "model.shoal", model)
    again = shoal.load(tmp_path / "model.shoal")
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    np.testing.assert_array_equal(model.labels_, again.labels_)
    np.testing.assert_array_equal(model.top_features(2).features, again.top_features(2).features)
    assert again.score(X) == model.score(X)
    again.partial_fit(X)
    assert again.cluster_ids_.tolist() == list(range(5))
