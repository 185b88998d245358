"""Learning as a fold: what blocks add up to, what is left alone, and what models make of one another."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import shoal
from shoal.engine import fold
from shoal.errors import BadInput, CannotMerge
from shoal.families import Bernoulli, ExponentialFamilyMixture, Gaussian, Multinomial, Poisson
from shoal.families.statistics import Memory, Model, accumulate, add, merge, redraw, update

NAMES = ["multinomial", "poisson", "bernoulli", "gaussian"]


def counts(n: int = 400, seed: int = 0, length: int = 14) -> tuple[sp.csr_matrix, np.ndarray]:
    """Four topics of eight words each, and eight common words."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)
    own = truth[:, None] * 8 + rng.integers(0, 8, (n, length))
    words = np.where(rng.random((n, length)) < 0.3, 32 + rng.integers(0, 8, (n, length)), own)
    return sp.csr_matrix((np.ones(n * length), (np.repeat(np.arange(n), length), words.ravel())), shape=(n, 40)), truth


def rows(family: str, n: int = 400, seed: int = 0) -> tuple[Any, np.ndarray]:
    if family == "gaussian":
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 4, n)
        return np.array([[0, 0], [9, 0], [0, 9], [9, 9.0]])[truth] + rng.normal(size=(n, 2)), truth
    return counts(n, seed)


def model_of(family: str, X: Any, labels: np.ndarray, n_clusters: int = 6) -> Model:
    kinds: dict[str, Any] = {
        "multinomial": Multinomial, "poisson": Poisson, "bernoulli": Bernoulli, "gaussian": Gaussian,
    }  # fmt: skip
    made = kinds[family].for_rows(X)
    return Model(made, made.statistics(X, labels, int(labels.max()) + 1), n_clusters, 0.1, False)


def assert_same(one: Any, two: Any) -> None:
    for a, b in zip(one, two, strict=True):
        a, b = (part.toarray() if sp.issparse(part) else part for part in (a, b))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", NAMES)
def test_halves_make_the_whole_and_nothing_is_changed(family: str) -> None:
    X, truth = rows(family)
    known = truth < 3  # the fourth group is new to the model
    model = model_of(family, X[known][:100], truth[known][:100])
    before = copy.deepcopy(model)
    new = sp.csr_matrix(X[known]) if family != "gaussian" else X[known]
    whole, memory = accumulate(new, model)
    half = new.shape[0] // 2
    one, first = accumulate(new[:half], model)
    two, second = accumulate(new[half:], model)
    np.testing.assert_array_equal(memory.labels, np.concatenate([first.labels, second.labels]))
    assert_same(merge(one, two).known, whole.known)
    assert_same(merge(two, one).known, whole.known)
    assert_same(update(model, whole).stats, add(before.stats, whole.known))
    assert_same(model.stats, before.stats)


@pytest.mark.parametrize("family", NAMES)
def test_a_group_that_is_new_in_two_blocks_is_one_cluster(family: str) -> None:
    X, truth = rows(family)
    old, new = np.flatnonzero(truth < 3), np.flatnonzero(truth == 3)
    model = model_of(family, X[old], truth[old])
    blocks = [X[new[:40]], X[new[40:]]]
    answers = [fold(blocks, accumulate, merge, model, n_threads=n) for n in (1, 2)]
    assert_same(answers[0].stats.fresh, answers[1].stats.fresh)
    after = update(model, answers[0].stats)
    assert after.k == 4
    assert int(after.stats.size[3]) == len(new)
    bounded = update(model._replace(n_clusters=3), answers[0].stats)
    assert bounded.k == 3
    assert bounded.stats.size.sum() == 400


@pytest.mark.parametrize("family", NAMES)
def test_left_out_is_the_model_without_the_row(family: str) -> None:
    X, truth = rows(family, n=60)
    model = model_of(family, X, truth)
    left_out = model.family.log_predictive_left_out(model.stats, X, truth)
    for row in range(0, 60, 7):
        others = model.family.statistics(X, np.where(np.arange(60) == row, -1, truth), 4)
        expected = model.family.log_predictive_at(others, X[row : row + 1], truth[row : row + 1])
        np.testing.assert_allclose(left_out[row], expected[0], rtol=1e-9)


@pytest.mark.parametrize("family", NAMES)
def test_passes_over_blocks_find_what_the_exact_chain_finds(family: str) -> None:
    """Blocks drawn again against a model one round old; deltas keep the statistics those of the labels."""
    X, truth = rows(family)
    start = np.where(np.random.default_rng(1).random(400) < 0.4, np.random.default_rng(2).integers(0, 4, 400), truth)
    model = model_of(family, X, start, n_clusters=4)
    bounds = [(0, 150), (150, 300), (300, 400)]
    blocks = [X[first:last] for first, last in bounds]
    memories = [Memory(start[first:last], 0) for first, last in bounds]
    for _ in range(6):
        folded = fold(blocks, accumulate, merge, model, memories=memories)
        model, memories = update(model, folded.stats), folded.memories
    labels = np.concatenate([memory.labels for memory in memories])
    assert adjusted_rand_score(truth, labels) > 0.95
    assert_same(model.stats, model.family.statistics(X, labels, 4))
    assert (redraw(blocks[0], model, memories[0]) == redraw(blocks[0], model, memories[0])).all()


@pytest.mark.parametrize("family", NAMES)
def test_models_of_halves_merge_to_a_model_of_the_whole(family: str) -> None:
    X, _ = rows(family, n=800)
    options: dict[str, Any] = {"family": family, "n_sweeps": 8, "random_state": 0}
    one, two = ExponentialFamilyMixture(6, **options).fit(X[:400]), ExponentialFamilyMixture(6, **options).fit(X[400:])
    sizes = sorted((one.stats_.size.sum(), two.stats_.size.sum()))
    merged, reverse = copy.deepcopy(one).merge(two), copy.deepcopy(two).merge(one)
    assert merged.n_rows_ == merged.stats_.size.sum() == sum(sizes)
    whole = ExponentialFamilyMixture(6, **options).fit(X)
    assert adjusted_rand_score(whole.predict(X), merged.predict(X)) > 0.95
    assert adjusted_rand_score(merged.predict(X), reverse.predict(X)) > 0.99
    np.testing.assert_allclose(np.sort(merged.stats_.size), np.sort(reverse.stats_.size))
    with pytest.raises(CannotMerge, match="another of its kind"):
        merged.merge(shoal.SphericalKMeans(2))


def test_clusters_are_merged_split_and_named() -> None:
    X, truth = counts()
    model = ExponentialFamilyMixture(8, n_sweeps=10, random_state=0).fit(X)
    assert model.n_clusters_ == 4
    model.name_cluster(0, "first")
    model.merge_clusters([2], into=1)
    assert model.cluster_ids_.tolist() == [0, 1, 3]
    assert model.cluster_sizes_.sum() == 400
    assert model.cluster_sizes_[1] == (model.predict(X) == 1).sum() == (model.labels_ == 1).sum()
    new = model.split_cluster(1, X)
    assert model.cluster_ids_.tolist() == [0, 1, 3, new] == [0, 1, 3, 4]
    assert adjusted_rand_score(truth, model.predict(X)) > 0.95
    assert model.stats_.sums.sum() == X.sum()
    assert [event["kind"] for event in model.roster_.events] == ["name", "merge", "split"]
    assert model.roster_.names == {0: "first"}
    with pytest.raises(BadInput, match="edited"):
        model.resume(X)


@pytest.mark.parametrize("family", ["multinomial", "gaussian"])
def test_a_loaded_model_learns_on_and_a_failed_call_changes_nothing(family: str, tmp_path: Any) -> None:
    X, _ = rows(family)
    model = ExponentialFamilyMixture(6, family=family, n_sweeps=6, random_state=0).fit(X[:200])
    shoal.save(tmp_path / "model.shoal", model)
    loaded = shoal.load(tmp_path / "model.shoal")
    assert_same(loaded.partial_fit(X[200:]).stats_, model.partial_fit(X[200:]).stats_)
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    before = {name: id(value) for name, value in vars(loaded).items()}
    with pytest.raises(BadInput):
        loaded.partial_fit(np.full((3, X.shape[1]), np.nan))
    with pytest.raises(BadInput):
        loaded.set_params(n_sweeps=0).fit(X)
    loaded.set_params(n_sweeps=6)
    assert {name: id(value) for name, value in vars(loaded).items() if name != "n_sweeps"} == {
        name: value for name, value in before.items() if name != "n_sweeps"
    }


def test_a_fitted_model_of_another_kind_gives_the_first_labels() -> None:
    X, truth = counts()
    start = shoal.SphericalKMeans(4, random_state=0).fit(X)
    model = ExponentialFamilyMixture(6, init=start, n_sweeps=4, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.95


def test_a_bound_that_decides_is_told(caplog: pytest.LogCaptureFixture) -> None:
    X, _ = counts()
    with caplog.at_level("INFO", logger="shoal"):
        assert ExponentialFamilyMixture(2, n_sweeps=4, random_state=0).fit(X).bound_reached_
    assert "all 2 clusters are in use: the number is your bound, not a finding" in caplog.text
    assert not ExponentialFamilyMixture(12, n_sweeps=10, random_state=0).fit(X).bound_reached_
