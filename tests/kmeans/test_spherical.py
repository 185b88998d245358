"""SphericalKMeans against plain k-means, its definitions, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from oracles import kmeans as oracle
from shoal.errors import BadInput, InterruptedWarning
from shoal.kmeans import SphericalKMeans, memory_needed

TIE = 1e-6  # scores are summed in float32: two centers nearer to one another than this are a tie


def random_rows(seed, n=80, d=30, density=0.2, signed=False):
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density, format="csr", random_state=rng)
    X.data = rng.normal(size=X.nnz) if signed else rng.random(X.nnz) + 0.05
    return X


def full_rows(seed, **kind):
    X = random_rows(seed, **kind)
    return X[np.diff(X.indptr) > 0]


def test_a_case_worked_by_hand():
    X = np.array([[2, 0, 0], [3, 3, 0], [0, 0, 5]])
    model = SphericalKMeans(2, init=[[1, 0, 0], [0, 0, 1]], max_iter=5).fit(X)
    assert model.labels_.tolist() == [0, 0, 1]
    half = np.cos(np.pi / 8)  # rows at 0 and 45 degrees: the center is at 22.5, each is cos(22.5 degrees) away
    np.testing.assert_allclose(model.similarities_, [half, half, 1], rtol=1e-6)
    np.testing.assert_allclose(model.cluster_centers_.toarray()[0], [half, np.sin(np.pi / 8), 0], rtol=1e-6)
    assert model.mean_similarity_ == pytest.approx((2 * half + 1) / 3)
    assert model.converged_
    assert model.cluster_sizes_.tolist() == [2, 1]


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 6), st.booleans())
def test_exact_is_lloyd_label_for_label(seed, k, n_iter, signed):
    X = full_rows(seed, n=70, signed=signed)
    rng = np.random.default_rng(seed)
    seeds = X[rng.choice(X.shape[0], min(k, X.shape[0]), replace=False)].toarray()
    weights = rng.integers(1, 4, X.shape[0]).astype(float)
    steps, _, gap = oracle.lloyd(X, seeds, n_iter + 1, weights)
    complete = all(len(np.unique(step)) == len(seeds) for step in steps)
    if gap < TIE or not complete:  # a tie may go either way; an empty cluster is repaired, which plain Lloyd does not
        return
    model = SphericalKMeans(len(seeds), algorithm="exact", init=seeds, max_iter=n_iter, tol=0)
    model.fit(X, sample_weight=weights)
    np.testing.assert_array_equal(model.labels_, steps[-1] if not model.converged_ else steps[model.n_iter_ - 1])


@pytest.mark.parametrize("max_iter", [1, 3, 100])
def test_fitted_attributes_are_what_they_say(max_iter):
    X = full_rows(5, n=300)
    model = SphericalKMeans(7, max_iter=max_iter, random_state=0).fit(X)
    centers = model.cluster_centers_.toarray()
    np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 1, rtol=1e-6)
    labels, similarities, _ = oracle.nearest(X, centers)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_allclose(model.similarities_, similarities, atol=1e-6)
    np.testing.assert_array_equal(model.typicality(), model.similarities_)
    assert model.mean_similarity_ == pytest.approx(similarities.mean(), abs=1e-6)
    assert model.score(X) == pytest.approx(similarities.mean(), abs=1e-6)
    np.testing.assert_array_equal(model.cluster_sizes_, np.bincount(labels, minlength=7))
    np.testing.assert_allclose(model.transform(X), oracle.unit(X) @ oracle.unit(centers).T, atol=1e-6)
    assert model.n_iter_ == len(model.objective_history_) <= max_iter
    assert model.converged_ == (max_iter == 100)
    if model.converged_:
        np.testing.assert_allclose(centers, oracle.means(X, labels, 7), atol=1e-3)


@given(st.integers(0, 10**6), st.integers(1, 20))
def test_the_objective_never_decreases(seed, k):
    X = full_rows(seed, n=120)
    model = SphericalKMeans(k, random_state=seed, tol=0).fit(X)
    assert (np.diff(model.objective_history_) > -1e-6).all()


def test_top_features_are_the_heaviest():
    X = np.array([[3.0, 2, 0, 1], [0, 0, 1, 0]])
    model = SphericalKMeans(2, init=X).fit(X)
    top = model.top_features(0, n=2)
    assert top.features.tolist() == [0, 1]
    np.testing.assert_allclose(top.values, np.array([3, 2]) / np.sqrt(14), rtol=1e-6)
    assert top.meaning == "weight in the center"
    with pytest.raises(BadInput, match="no cluster has id 9"):
        model.top_features(9)


def test_a_row_that_belongs_nowhere():
    X = sp.csr_matrix(np.array([[1.0, 1, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0]]))
    model = SphericalKMeans(2, random_state=0).fit(X)
    assert model.labels_[1] == -1
    assert model.outliers_.tolist() == [False, True, False]
    assert model.similarities_[1] == 0
    assert model.predict(sp.csr_matrix(([2.0], ([0], [3])), shape=(1, 4))).tolist() == [-1]  # a feature never seen


def test_empty_clusters_are_repaired():
    X = np.eye(6) + 0.01
    starts = np.ones((4, 6))  # four equal centers: three get no rows
    starts[0, 0] = 2
    model = SphericalKMeans(4, init=starts).fit(X)
    assert (model.cluster_sizes_ > 0).all()


def test_rows_that_cancel_do_not_break_a_cluster():
    X = np.array([[1.0, 0], [-1, 0], [0, 1], [0.1, 1]])
    model = SphericalKMeans(2, init=[[1.0, 1e-9], [1e-9, 1]]).fit(X)
    assert np.isfinite(model.cluster_centers_.toarray()).all()
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_.toarray(), axis=1), 1, rtol=1e-6)


def test_the_best_of_several_starts_is_kept():
    X = full_rows(2, n=200)
    many = SphericalKMeans(10, n_init=8, random_state=0).fit(X)
    assert many.mean_similarity_ >= SphericalKMeans(10, n_init=1, random_state=0).fit(X).mean_similarity_


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
def test_as_many_clusters_as_distinct_rows(init):
    X = full_rows(3, n=25)
    doubled = sp.vstack([X, 3 * X, sp.csr_matrix((2, X.shape[1]))])
    model = SphericalKMeans(X.shape[0], init=init, random_state=0).fit(doubled)
    assert model.mean_similarity_ * doubled.shape[0] == pytest.approx(2 * X.shape[0])
    with pytest.raises(BadInput, match=f"n_clusters={X.shape[0] + 1} is more than the {X.shape[0]} distinct rows"):
        SphericalKMeans(X.shape[0] + 1, init=init).fit(doubled)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_clusters": 0}, "n_clusters is 0"),
        ({"n_clusters": 2.5}, "n_clusters is 2.5"),
        ({"n_init": 0}, "n_init is 0"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"tol": -1}, "tol is -1"),
        ({"algorithm": "fast"}, "algorithm is 'fast'; it must be one of 'auto', 'exact'"),
        ({"init": "best"}, "init is 'best'"),
        ({"init": np.ones((3, 3))}, r"init has shape \(3, 3\)"),
        ({"init": np.full((8, 30), np.nan)}, "init holds NaN"),
    ],
)
def test_wrong_options_are_named(options, said):
    with pytest.raises(BadInput, match=said):
        SphericalKMeans(**options).fit(random_rows(0))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite(bad):
    X = random_rows(0).toarray()
    X[3, 4] = bad
    with pytest.raises(BadInput, match=r"NaN|infinity"):
        SphericalKMeans(3).fit(X)


def test_all_rows_empty():
    with pytest.raises(BadInput, match="there is nothing to cluster"):
        SphericalKMeans(1).fit(sp.csr_matrix((4, 3)))


def test_interrupting_leaves_a_usable_model(monkeypatch):
    import signal

    from shoal.kmeans import lloyd

    plain = lloyd.improved

    def interrupt(*args):
        signal.raise_signal(signal.SIGINT)
        return plain(*args)

    monkeypatch.setattr(lloyd, "improved", interrupt)
    X = full_rows(1, n=200)
    with pytest.warns(InterruptedWarning):
        model = SphericalKMeans(5, random_state=0, tol=0).fit(X)
    assert model.n_iter_ == 1
    assert not model.converged_
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_memory_needed_grows_with_the_data_and_not_with_k_times_d():
    assert memory_needed(10**6, 95 * 10**6, 7 * 10**6, 6000) < 6e9
    assert memory_needed(1000, 10**5, 10**6, 10) < memory_needed(1000, 10**6, 10**6, 10)
