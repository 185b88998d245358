import copy

import numpy as np
import pytest
import scipy.sparse as sp

import shoal
from oracles import densities as oracle
from shoal.densities import FAMILIES, DensityKMeans
from shoal.densities.gaussian import GaussianMixture
from shoal.densities.options import SIMPLE_FAMILIES
from shoal.densities.statistics import (
    accumulate,
    blocks_of,
    center_side,
    centers_of,
    divergences,
    merge,
    nearest_centers,
    row_side,
)
from shoal.errors import BadInput, BadModelFile


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


@pytest.mark.parametrize("direction", ["center", "pooled"])
@pytest.mark.parametrize("family", FAMILIES)
def test_statistics_of_halves_merge_to_the_whole(family, direction):
    X = data(family)
    made = GaussianMixture(2) if family == "gaussian_mixture" else SIMPLE_FAMILIES[family]()
    model = centers_of(made, direction, X[:3])
    weights = np.random.default_rng(0).gamma(1, 1, len(X))
    halves = (slice(50), slice(50, None))
    parts = [accumulate(*blocks_of(made, direction, X[at], weights[at]), model)[0] for at in halves]
    whole = accumulate(*blocks_of(made, direction, X, weights), model)[0]
    for merged in (merge(*parts), merge(*parts[::-1])):
        for found, wanted in zip(merged, whole, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("direction", ["center", "pooled"])
@pytest.mark.parametrize("family", FAMILIES)
def test_models_of_halves_merge_to_the_whole(family, direction):
    """One cluster: its center is the average of all rows, whoever has seen which half."""
    X = data(family)
    options = {"family": family, "direction": direction, "init": X[:1], "smoothing": 0}
    one, other, whole = (DensityKMeans(1, **options).fit(rows) for rows in (X[:40], X[40:], X))
    np.testing.assert_allclose(one.merge(other).cluster_centers_, whole.cluster_centers_, rtol=1e-7)
    np.testing.assert_allclose(one.masses_, whole.masses_)
    np.testing.assert_array_equal(one.cluster_sizes_, whole.cluster_sizes_)


def test_copies_that_went_on_learning_merge_with_their_base_counted_once():
    X = data("gaussian")
    base = DensityKMeans(3, smoothing=0, random_state=0).fit(X[:60])
    one, other = (copy.deepcopy(base).partial_fit(rows) for rows in (X[60:90], X[90:]))
    one.merge(other, base=base)
    assert one.cluster_sizes_.sum() == len(X)
    centers = base._centers(SIMPLE_FAMILIES["gaussian"]())
    assert np.abs(one.cluster_centers_ - base.cluster_centers_).max() < 2
    assert centers.parameters.shape == one.cluster_centers_.shape


def test_batches_average_to_the_whole():
    X = data("gamma")
    streamed = DensityKMeans(1, family="gamma", init=X[:1], smoothing=0)
    for at in (slice(0, 10), slice(10, 70), slice(70, None)):
        streamed.partial_fit(X[at])
    whole = DensityKMeans(1, family="gamma", init=X[:1], smoothing=0).fit(X)
    np.testing.assert_allclose(streamed.cluster_centers_, whole.cluster_centers_, rtol=1e-9)
    assert streamed.cluster_sizes_.tolist() == [len(X)]
    assert streamed.n_iter_ == 3


def test_clusters_can_be_merged_split_and_named():
    X = data("gaussian")
    model = DensityKMeans(4, smoothing=0, random_state=0).fit(X)
    model.name_cluster(2, "far")
    sizes = model.cluster_sizes_
    model.merge_clusters([1, 3], into=0)
    assert model.cluster_ids_.tolist() == [0, 2]
    assert model.cluster_sizes_.tolist() == [sizes[[0, 1, 3]].sum(), sizes[2]]
    together = np.isin(model.labels_, [0])
    alone = DensityKMeans(1, init=X[:1], smoothing=0).fit(X[together])
    np.testing.assert_allclose(model.cluster_centers_[0], alone.cluster_centers_[0], rtol=1e-9)
    new = model.split_cluster(0, X)
    assert new == 4
    assert model.cluster_ids_.tolist() == [0, 2, 4]
    assert model.cluster_sizes_.sum() == len(X)
    assert set(model.predict(X)) == {0, 2, 4}
    assert [event["kind"] for event in model.roster_.events] == ["name", "merge", "merge", "split"]
    with pytest.raises(BadInput, match="no cluster has id 1"):
        model.merge_clusters([1], into=0)
    assert model.cluster_ids_.tolist() == [0, 2, 4]


def test_a_refused_call_changes_nothing():
    X = data("gaussian")
    model = DensityKMeans(3, random_state=0).fit(X)
    before = copy.deepcopy(vars(model))
    for call in (
        lambda: model.fit(X, sample_weight=[1.0]),
        lambda: model.partial_fit(X * np.nan),
        lambda: model.partial_fit(X[:, :1]),
        lambda: model.merge(DensityKMeans(2, random_state=0).fit(X)),
        lambda: model.split_cluster(0, X[:1]),
        lambda: model.fit(sp.csr_matrix((10, 10**10))),
        lambda: model.fit(X * 1e160),
        lambda: model.fit(X, sample_weight=np.full(len(X), 1e308)),
    ):
        with pytest.raises(BadInput):
            call()
        for name, value in before.items():
            np.testing.assert_equal(*(vars(v) if name == "roster_" else v for v in (vars(model)[name], value)))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_weights_of_any_size(scale):
    X = data("gaussian")
    one = DensityKMeans(3, random_state=0).fit(X)
    other = DensityKMeans(3, random_state=0).fit(X, sample_weight=np.full(len(X), scale / 2))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-9)
    other.partial_fit(X[:5], sample_weight=np.full(5, scale))
    assert np.isfinite(other.cluster_centers_).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cluster_centers_", np.full((3, 2), -1.0)),
        ("cluster_centers_", np.zeros(3)),
        ("masses_", np.zeros(2)),
        ("origin_", np.array([np.nan, 0.0])),
        ("labels_", np.zeros((2, 2))),
        ("cluster_sizes_", np.zeros(3)),
        ("n_features_in_", 7),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(name, value):
    model = DensityKMeans(3, random_state=0).fit(data("gaussian"))
    model.check_state()
    setattr(model, name, value)
    with pytest.raises(BadModelFile):
        model.check_state()


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
