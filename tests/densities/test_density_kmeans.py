import numpy as np
import pytest

import shoal
from oracles import densities as oracle
from shoal.densities import FAMILIES, DensityKMeans
from shoal.densities.density_kmeans import SIMPLE_FAMILIES
from shoal.densities.gaussian import GaussianMixture
from shoal.densities.statistics import accumulate, center_side, divergences, merge, nearest_centers, row_side
from shoal.errors import BadInput


def data(family, n=120, seed=0):
    return oracle.rows_of(family, n, np.random.default_rng(seed))


@pytest.mark.parametrize("direction", ["center", "pooled"])
@pytest.mark.parametrize("family", FAMILIES)
def test_fit_keeps_its_promises(family, direction):
    X = data(family)
    model = DensityKMeans(5, family=family, direction=direction, random_state=0, smoothing=0, tol=0).fit(X)
    history = np.array(model.objective_history_)
    assert (np.diff(history) <= 1e-9 * history[:-1]).all()
    C = model.cluster_centers_
    D = oracle.table(family, C, X).T if direction == "center" else oracle.table(family, X, C)
    np.testing.assert_array_equal(model.labels_, D.argmin(1))
    np.testing.assert_allclose(model.divergences_, D.min(1), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.transform(X), D, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.objective_ == pytest.approx(D.min(1).sum())
    assert model.score(X) == pytest.approx(-model.objective_)


@pytest.mark.parametrize("max_iter", [1, 3])
def test_stopped_early_attributes_still_agree(max_iter):
    X = data("gaussian_mixture")
    model = DensityKMeans(6, family="gaussian_mixture", max_iter=max_iter, random_state=1).fit(X)
    assert model.n_iter_ == max_iter
    assert not model.converged_
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.objective_ == pytest.approx(model.divergences_.sum())


@pytest.mark.parametrize("direction", ["center", "pooled"])
def test_same_partition_as_plain_lloyd(direction):
    X, weights = data("gaussian_mixture", 60), np.random.default_rng(1).gamma(1, 1, 60)
    family = GaussianMixture(2)

    def average(rows, w):
        w = w / w.sum()
        if direction == "center":
            return family.from_natural((w @ family.natural(rows))[None])[0]
        return family.from_expectation((w @ family.expectation(rows))[None])[0]

    model = DensityKMeans(4, family="gaussian_mixture", direction=direction, n_init=1, smoothing=0, tol=0)
    model.random_state = 3
    model.fit(X, sample_weight=weights)
    labels, history = oracle.lloyd("gaussian_mixture", direction, X, weights, model.cluster_centers_, average, 3)
    np.testing.assert_array_equal(labels, model.labels_)
    np.testing.assert_allclose(history, model.objective_, rtol=1e-9)


def test_weights_are_repetitions():
    X = data("gamma", 40)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    by_weight = DensityKMeans(1, family="gamma", random_state=0, smoothing=0).fit(X, sample_weight=weights)
    repeated = DensityKMeans(1, family="gamma", random_state=0, smoothing=0).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(by_weight.cluster_centers_, repeated.cluster_centers_, rtol=1e-12)


def test_labels_are_those_of_double_precision_even_when_centers_nearly_coincide():
    rng = np.random.default_rng(0)
    family = GaussianMixture(2)
    X = oracle.rows_of("gaussian_mixture", 3000, rng)
    centers = np.concatenate([X[:20], X[:20] * (1 + 1e-9), X[:20]])
    centers[:, :2] /= centers[:, :2].sum(1, keepdims=True)
    for direction in ("center", "pooled"):
        rows, side = row_side(family, direction, X), center_side(family, direction, centers)
        labels, costs = nearest_centers(rows, side)
        D = divergences(rows, side)
        np.testing.assert_allclose(costs, D.min(1), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(D[np.arange(3000), labels], D.min(1), rtol=1e-9, atol=1e-11)
        assert (labels < 40).all()  # an exact repetition never wins over the first


def test_thread_count_does_not_matter(monkeypatch):
    X = np.tile(data("gaussian", 500), (80, 1))
    fits = []
    for threads in ("1", "2"):
        monkeypatch.setenv("SHOAL_NUM_THREADS", threads)
        fits.append(DensityKMeans(7, n_init=1, random_state=0, max_iter=4).fit(X).cluster_centers_)
    np.testing.assert_array_equal(*fits)


def test_two_halves_merge_to_the_whole():
    family, X = SIMPLE_FAMILIES["beta"](), data("beta")
    rows, centers = row_side(family, "center", X), center_side(family, "center", X[:3])
    labels, costs = nearest_centers(rows, centers)
    weights = np.ones(len(X))
    parts = [
        accumulate(type(rows)(rows.stats[at], rows.constants[at]), weights[at], labels[at], costs[at], 3)
        for at in (slice(0, 50), slice(50, None))
    ]
    whole = accumulate(rows, weights, labels, costs, 3)
    for found, wanted in zip(merge(*parts), whole, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_smoothing_keeps_an_empty_component_from_ruling():
    X = data("gaussian_mixture", 50)
    X[0, :2] = [1.0, 0.0]
    model = DensityKMeans(3, family="gaussian_mixture", random_state=0).fit(X)
    assert np.isfinite(model.objective_)
    assert (model.cluster_centers_[:, :2] > 1e-3).all()


def test_fewer_different_rows_than_clusters():
    X = np.repeat([[0.0, 1.0], [4.0, 1.0]], 5, axis=0)
    model = DensityKMeans(4, random_state=0).fit(X)
    assert model.objective_ == pytest.approx(0, abs=1e-12)


def test_far_from_zero_nothing_is_lost():
    X = data("gaussian", 100)
    far = X.copy()
    far[:, :2] += 1e6
    near_fit, far_fit = (DensityKMeans(4, random_state=0).fit(rows) for rows in (X, far))
    np.testing.assert_array_equal(near_fit.labels_, far_fit.labels_)


@pytest.mark.parametrize(
    ("options", "X", "words"),
    [
        ({"family": "cauchy"}, [[0, 1]] * 9, "family is 'cauchy'"),
        ({"direction": "left"}, [[0, 1]] * 9, "direction is 'left'"),
        ({}, [[0.0, 1, 1]] * 9, "multiple of 2"),
        ({}, [[0.0, -1]] * 9, "variance must be above 0"),
        ({"family": "gaussian_mixture"}, [[0.7, 0.7, 0, 0, 1, 1]] * 9, "sum to 1.4"),
        ({"family": "gaussian_mixture"}, [[0.7, 0.3, 0, 0, 1]] * 9, r"2 \+ 4 \* d columns"),
        ({"family": "categorical"}, [[0.0, 0.0]] * 9, "all zeros"),
        ({"n_clusters": 20}, [[0.0, 1]] * 9, "n_clusters=20"),
        ({"smoothing": 1.5}, [[0.0, 1]] * 9, "smoothing is 1.5"),
    ],
)
def test_errors_name_what_is_wrong(options, X, words):
    with pytest.raises(BadInput, match=words):
        DensityKMeans(**{"n_clusters": 2, **options}).fit(X)


@pytest.mark.parametrize("family", ["gaussian_mixture", "gamma", "categorical"])
def test_saved_and_loaded_it_predicts_the_same(family, tmp_path):
    X = data(family)
    model = DensityKMeans(4, family=family, random_state=0).fit(X)
    shoal.save(tmp_path / "model.shoal", model)
    back = shoal.load(tmp_path / "model.shoal")
    back = back[0] if isinstance(back, tuple) else back
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    np.testing.assert_allclose(back.transform(X), model.transform(X))


def test_cluster_cards_have_something_to_say():
    X = data("gaussian")
    model = DensityKMeans(3, random_state=0).fit(X)
    top = model.top_features(1, n=2)
    np.testing.assert_array_equal(top.values, model.cluster_centers_[1, top.features])
    np.testing.assert_array_equal(model.typicality(), -model.divergences_)
