"""The estimator: suggestions, reasons, learning in parts, merging, files, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given as each
from hypothesis import settings
from hypothesis import strategies as st

import shoal
from shoal import Dataset, Suggester
from shoal.data import Vocabulary
from shoal.errors import BadInput, BadModelFile, CannotMerge, UnknownFeature
from shoal.suggestion.candidate_kernels import FACTOR, LOG_FACTOR

from .test_scores import WAYS, random_sets


@pytest.fixture(scope="module")
def sets():
    return sp.csr_matrix(random_sets(0, n_rows=300, n_features=40, density=0.2))


@pytest.fixture(scope="module")
def fitted(sets):
    return {way: Suggester(ridge=way, random_state=0).fit(sets) for way in WAYS}


@pytest.fixture(scope="module")
def shop():
    baskets = [["tea", "milk"], ["tea", "milk", "sugar"], ["beer", "crisps"], ["beer", "crisps", "nuts"]] * 25
    return shoal.read(pa.table({"basket": [f"b{k}" for k in range(100)], "items": baskets}), item="basket")


def test_the_answer_worked_by_hand(shop):
    model = Suggester(random_state=0).fit(shop)
    found = model.suggest(["beer"], n=2)
    assert [one.name for one in found] == ["crisps", "nuts"]
    assert found[0].probability > 0.8 > found[1].probability
    assert model.vocabulary_[found[0].feature] == "crisps"


def test_nothing_given_gives_the_most_common_features(sets, fitted):
    order = np.argsort(-np.asarray(sets.sum(axis=0)).ravel(), kind="stable")
    for model in fitted.values():
        counts = np.asarray(sets.sum(axis=0)).ravel()
        assert counts[[one.feature for one in model.suggest([], n=5)]].tolist() == counts[order[:5]].tolist()


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_gives_what_single_sets_give_on_any_number_of_threads(way, sets, fitted):
    model = fitted[way]
    features, probabilities = model.suggest_batch(sets[:30], n=6)
    for row in range(30):
        found = model.suggest(sets[row].indices, n=6)
        assert [one.feature for one in found] == features[row].tolist()
        np.testing.assert_allclose([one.probability for one in found], probabilities[row], rtol=1e-9)
    for n_threads in (1, 3):
        again = Suggester(ridge=way, random_state=0, n_threads=n_threads).fit(sets).suggest_batch(sets[:30], n=6)
        assert np.array_equal(again[0], features)
        assert np.array_equal(again[1], probabilities)


@pytest.mark.parametrize("way", WAYS)
def test_reasons_add_up_to_the_number_stated(way, sets, fitted):
    model = fitted[way]
    for row in range(20):
        given = sets[row].indices
        rejected = [int(np.setdiff1d(np.arange(40), given)[row % 3])]
        for one in model.suggest(given, rejected, n=5):
            assert sum(reason.share * one.probability for reason in one.reasons) == pytest.approx(
                one.probability, abs=1e-9
            )
            assert {reason.kind for reason in one.reasons} <= {"feature", "rows", "base"}
        asked = [one.feature for one in model.suggest(given, rejected, n=5)]
        parts = model.explain(given, asked, rejected)
        total = parts.base + parts.of_given.sum(axis=0) + parts.of_rows.sum(axis=0)
        np.testing.assert_allclose(total, parts.probability, atol=1e-9)


def test_what_explain_states_is_what_suggest_states(sets, fitted):
    for model in fitted.values():
        found = {one.feature: one.probability for one in model.suggest([1, 2], n=8)}
        parts = model.explain([1, 2], sorted(found))
        np.testing.assert_allclose(parts.probability, [found[k] for k in sorted(found)], rtol=1e-9)


def test_reasons_are_grouped_by_the_clusters_of_a_fitted_model(shop):
    clusters = shoal.SphericalKMeans(2, random_state=0).fit(shop)
    model = Suggester(clusters, random_state=0).fit(shop)
    assert np.array_equal(model.row_clusters_, clusters.predict(shop.X))
    best = model.suggest(["beer"], n=1)[0]
    grouped = [reason for reason in best.reasons if reason.kind == "cluster"]
    assert [reason.cluster for reason in grouped] == [int(clusters.predict(shop.X[2])[0])]
    assert set(grouped[0].because) <= {f"b{k}" for k in range(100)}
    assert sum(reason.share for reason in best.reasons) == pytest.approx(1, abs=1e-9)
    model.partial_fit(shop[:4])
    assert model.row_clusters_.size == model.n_rows_ == 104


def test_columns_of_the_clusters_are_matched_by_name(shop):
    clusters = shoal.SphericalKMeans(2, random_state=0).fit(shop)
    backwards = np.arange(shop.X.shape[1])[::-1]
    mirrored = Dataset(shop.X[:, backwards], Vocabulary([shop.vocabulary[at] for at in backwards]), shop.ids)
    assert np.array_equal(Suggester(clusters, random_state=0).fit(mirrored).row_clusters_, clusters.predict(shop.X))


def test_rows_that_show_nothing_are_short_ones():
    """Long rows have the common features; of rows that show nothing with half of all entries hidden, few are long."""
    long, short = np.zeros((40, 25)), np.zeros((360, 25))
    long[:, :10] = 1
    short[np.arange(360), 10 + np.arange(360) % 15] = 1
    model = Suggester(random_state=0).fit(np.vstack([long, short]))
    chance = np.array([40 * 0.5**10, 360 * 0.5])
    stated = [one.probability for one in model.suggest([], n=10, hidden=0.5)]
    assert np.mean(stated) == pytest.approx(chance[0] / chance.sum(), rel=0.25)
    assert np.mean([one.probability for one in model.suggest([], n=10, hidden=2.0)]) > 0.05


@each(
    st.integers(0, 2**32 - 1), st.lists(st.integers(0, 39), max_size=8), st.lists(st.integers(0, 39), max_size=4),
    st.sampled_from(["third", "one", 0.05, 0.5, 0.99, 1, 30.0]), st.sampled_from(WAYS),
)  # fmt: skip
@settings(max_examples=150)
def test_every_probability_is_strictly_between_0_and_1(fitted, seed, given, rejected, hidden, way):
    rejected = [feature for feature in rejected if feature not in given]
    found = fitted[way].suggest(given, rejected, n=60, hidden=hidden)
    assert all(0 < one.probability < 1 for one in found)
    listed = [one.feature for one in found]
    assert len(set(listed)) == len(listed) == 40 - len({*given, *rejected})
    assert listed == [one.feature for one in sorted(found, key=lambda one: -one.probability)]


@each(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 12), st.floats(0, 1), st.sampled_from(WAYS))
@settings(max_examples=40)
def test_any_small_matrix_gives_probabilities(seed, n_rows, n_features, density, way):
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix((rng.random((n_rows, n_features)) < density).astype(float))
    model = Suggester(ridge=way, random_state=0).fit(X)
    features, probabilities = model.suggest_batch(X, n=n_features)
    some = features >= 0
    assert ((probabilities[some] > 0) & (probabilities[some] < 1)).all()
    assert (some.sum(axis=1) == n_features - np.diff(X.indptr)).all()
    for one in model.suggest([0], n=3):
        assert sum(reason.share for reason in one.reasons) == pytest.approx(1, abs=1e-9)


def test_unknown_names_are_left_out_and_counted(shop):
    model = Suggester(random_state=0).fit(shop)
    found = model.suggest(["beer", "gin"], ["rum"], n=1)
    assert (found[0].name, found.unknown, found.n_unknown) == ("crisps", ["gin", "rum"], 2)
    wide = shoal.read(pa.table({"basket": ["x"], "items": [["beer", "gin"]]}))
    features, _ = model.suggest_batch(wide, n=1)
    assert model.vocabulary_[features[0, 0]] == "crisps"


def test_refused_features_are_never_suggested(sets, fitted):
    model = fitted["dense"]
    first = [one.feature for one in model.suggest([0], n=3)]
    assert not {one.feature for one in model.suggest([0], first, n=10)} & set(first)
    rejected = np.zeros((2, 40))
    rejected[:, first] = 1
    given = np.zeros((2, 40))
    given[:, 0] = 1
    features, _ = model.suggest_batch(given, rejected, n=10)
    assert not set(features.ravel()) & set(first)


def test_more_is_expected_of_a_set_of_which_little_is_seen(sets, fitted):
    by_rate = [fitted["dense"].suggest([0, 1], n=1, hidden=rate)[0].probability for rate in (0.7, 0.5, 0.1)]
    assert by_rate == sorted(by_rate, reverse=True)


# --- learning in parts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_halves_merged_are_the_whole(way, sets):
    whole = Suggester(ridge=way, random_state=0).fit(sets)
    first = Suggester(ridge=way, random_state=0).fit(sets[:150])
    first.merge(Suggester(ridge=way, random_state=1).fit(sets[150:]))
    for mine, theirs in zip(first.suggest_batch(sets[:20]), whole.suggest_batch(sets[:20]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    assert first.penalty_ == whole.penalty_


def test_partial_fit_counts_what_fit_counts(sets):
    model = Suggester(random_state=0)
    for start in range(0, 300, 30):
        model.partial_fit(sets[start : start + 30])
    whole = Suggester(random_state=0).fit(sets)
    assert model.n_rows_ == 300
    np.testing.assert_array_equal(model.model_.stats.pairs.toarray(), whole.model_.stats.pairs.toarray())
    hits = [np.mean(np.isin(model.suggest_batch(sets)[0][:, :5], whole.suggest_batch(sets)[0][:, :5]))]
    assert hits[0] > 0.8


def test_a_few_more_rows_keep_the_weights_and_change_the_ridge(sets):
    model = Suggester(random_state=0).fit(sets[:280])
    before = model.model_
    model.partial_fit(sets[280:])
    assert np.array_equal(model.model_.weights, before.weights)
    assert not np.array_equal(model.model_.ridge.inverse, before.ridge.inverse)
    assert before.stats.n_rows == 280


def test_new_names_become_new_features(shop):
    model = Suggester(random_state=0).fit(shop)
    more = shoal.read(pa.table({"basket": range(20), "items": [["gin", "tonic"], ["gin", "tonic", "ice"]] * 10}))
    model.partial_fit(more)
    assert model.n_features_in_ == 9
    assert model.suggest(["gin"], n=1)[0].name == "tonic"
    assert model.suggest(["beer"], n=1)[0].name == "crisps"
    other = Suggester(random_state=0).fit(shop).merge(Suggester(random_state=0).fit(more))
    assert other.suggest(["gin"], n=1)[0].name == "tonic"


def test_models_of_other_columns_do_not_merge(sets):
    model = Suggester(random_state=0).fit(sets)
    before = pickle.dumps(model.model_.weights)
    with pytest.raises(CannotMerge, match="40 features, the other 39"):
        model.merge(Suggester(random_state=0).fit(sets[:, :39]))
    with pytest.raises(CannotMerge, match="Suggester"):
        model.merge(shoal.SphericalKMeans(2).fit(sets))
    assert pickle.dumps(model.model_.weights) == before


def test_no_square_of_the_features_is_kept_for_many_features():
    rng = np.random.default_rng(0)
    features = rng.integers(0, 5500, (6000, 3))
    X = sp.csr_matrix((np.ones(features.size), (np.repeat(np.arange(6000), 3), features.ravel())), shape=(6000, 5500))
    model = Suggester(random_state=0, n_sample=100).fit(X)
    arrays = [value for part in (model.model_.stats, model.model_.ridge, model.model_.postings) for value in part]
    sizes = [value.nnz if sp.issparse(value) else value.size for value in arrays]
    assert model.model_.way == "local"
    assert max(sizes) < 64 * 5500


# --- files and bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_a_loaded_model_is_the_model(way, sets, fitted, tmp_path):
    shoal.save(tmp_path / "s.shoal", fitted[way])
    loaded = shoal.load(tmp_path / "s.shoal")
    for mine, theirs in zip(loaded.suggest_batch(sets), fitted[way].suggest_batch(sets), strict=True):
        assert np.array_equal(mine, theirs)
    assert loaded.suggest([1, 2]) == fitted[way].suggest([1, 2])
    again = pickle.loads(pickle.dumps(fitted[way])).partial_fit(sets[:200])
    loaded.partial_fit(sets[:200])
    for mine, theirs in zip(loaded.suggest_batch(sets), again.suggest_batch(sets), strict=True):
        assert np.array_equal(mine, theirs)


def test_clusters_and_names_are_in_the_file(shop, tmp_path):
    clusters = shoal.SphericalKMeans(2, random_state=0).fit(shop)
    model = Suggester(clusters, random_state=0).fit(shop)
    shoal.save(tmp_path / "s.shoal", model)
    assert shoal.load(tmp_path / "s.shoal").suggest(["beer"]) == model.suggest(["beer"])


def test_a_state_that_contradicts_itself_is_refused(sets):
    model = Suggester(random_state=0).fit(sets)
    features = model.model_.stats.row_features.copy()
    features[3] = 40
    model.model_ = model.model_._replace(stats=model.model_.stats._replace(row_features=features))
    with pytest.raises(BadModelFile, match="rows"):
        model.check_state()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.suggest([1], [1]), "both observed and rejected"),
        (lambda m: m.suggest([40]), "columns run from 0 to 39"),
        (lambda m: m.suggest([1.5]), "names or column numbers"),
        (lambda m: m.suggest(["tea"]), "fitted without names"),
        (lambda m: m.suggest("tea"), r"\['tea'\]"),
        (lambda m: m.suggest([1], n=0), "n is 0"),
        (lambda m: m.suggest([1], hidden="half"), "hidden is 'half'"),
        (lambda m: m.suggest([1], hidden=0), "hidden is 0"),
        (lambda m: m.explain([1], [1]), "is given"),
        (lambda m: m.suggest_batch(np.ones((2, 40)), np.ones((1, 40))), "one row for each"),
        (lambda m: m.suggest_batch(np.ones((1, 40)), np.ones((1, 40))), "both observed and rejected in row 0"),
        (lambda m: m.suggest_batch(np.ones((1, 39))), "39 features"),
    ],
)
def test_bad_questions_are_refused_by_name(call, message, fitted):
    with pytest.raises((BadInput, UnknownFeature), match=message):
        call(fitted["dense"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": "fast"}, "ridge is 'fast'"),
        ({"n_sample": -1}, "n_sample"),
        ({"n_candidates": 0}, "n_candidates"),
        ({"clusters": shoal.SphericalKMeans(2)}, "not a fitted"),
    ],
)
def test_bad_options_leave_the_model_as_it_was(options, message, sets):
    model = Suggester(random_state=0).fit(sets)
    before = dict(vars(model))
    model.set_params(**options)
    with pytest.raises(BadInput, match=message):
        model.fit(sets[:100])
    for name in ("model_", "n_features_in_"):
        assert vars(model)[name] is before[name]


def test_asking_changes_nothing(sets, fitted):
    model = fitted["dense"]
    before = pickle.dumps(vars(model))
    model.suggest([1, 2], [3])
    model.suggest_batch(sets)
    model.explain([1], [2])
    assert pickle.dumps(vars(model)) == before


@pytest.mark.parametrize(("least_gain", "kept"), [(-1.0, True), (1.0, False)])
def test_factors_are_kept_only_where_they_gain_enough(least_gain, kept, sets, monkeypatch):
    monkeypatch.setattr("shoal.suggestion.learning.LEAST_GAIN", least_gain)
    model = Suggester(random_state=0).fit(sets)
    assert model.uses_factors_ == kept
    assert model.model_.weights[[FACTOR, LOG_FACTOR]].any() == kept
    asked = [one.feature for one in model.suggest([1, 2, 3], [4], n=5)]
    parts = model.explain([1, 2, 3], asked, [4])
    total = parts.base + parts.of_given.sum(axis=0) + parts.of_rows.sum(axis=0)
    np.testing.assert_allclose(total, parts.probability, atol=1e-9)
    found = {one.feature: one.probability for one in model.suggest([1, 2, 3], [4], n=5)}
    np.testing.assert_allclose(parts.probability, [found[feature] for feature in sorted(asked)], rtol=1e-9)
