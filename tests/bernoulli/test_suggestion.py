"""Suggestions: the formula, what the probability means, the reasons, and refinement."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.bernoulli import suggestion_probabilities
from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.calibration import hidden_entries, without
from shoal.bernoulli.profiles import means_of
from shoal.bernoulli.suggestion import memberships, one_row, suggested
from shoal.data import Dataset, Vocabulary
from shoal.errors import BadInput, UnknownFeature

WORDS = ["window cleaner", "window cleaning", "cleaning tips", "sponge", "sedan", "nissan", "tyres", "garage"]


def shop(n=400, seed=0):
    rng = np.random.default_rng(seed)
    theta = np.array([[0.8, 0.8, 0.3, 0.5, 0.01, 0.01, 0.02, 0.02], [0.01, 0.01, 0.02, 0.1, 0.7, 0.6, 0.6, 0.5]])
    X = (rng.random((n, 8)) < theta[rng.integers(2, size=n)]).astype(float)
    return sp.csr_matrix(X[X.sum(axis=1) > 0])


@pytest.fixture(scope="module")
def model():
    return BernoulliMixture(2, random_state=0).fit(shop())


@pytest.mark.parametrize("observed", [[0], [4, 5], [3], []])
@pytest.mark.parametrize("rejected", [[], [2], [6, 7]])
def test_numbers_follow_the_formula(model, observed, rejected):
    mu = means_of(model.profiles_, np.arange(8))
    expected, _ = suggestion_probabilities(mu, model.profiles_.weights(), observed, rejected)
    features, raw = suggested(
        model.profiles_, one_row(np.array(observed, dtype=int), 8), one_row(np.array(rejected, dtype=int), 8), 8
    )
    found = model.suggest(observed, rejected, n=8)
    assert [one.feature for one in found] == features[0][features[0] >= 0].tolist()
    assert len(found) == 8 - len(observed) - len(rejected)
    for feature, value in zip(features[0], raw[0], strict=True):
        if feature >= 0:
            assert value == pytest.approx(expected[feature], abs=2e-4)
    probabilities = [one.probability for one in found]
    assert probabilities == sorted(probabilities, reverse=True)


def test_batch_gives_the_same(model):
    X = shop()[:20]
    features, probabilities = model.suggest_batch(X, n=3)
    for row in range(20):
        given = X.indices[X.indptr[row] : X.indptr[row + 1]]
        found = model.suggest(given, n=3)
        kept = features[row] >= 0
        assert [one.feature for one in found] == features[row][kept].tolist()
        np.testing.assert_allclose([one.probability for one in found], probabilities[row][kept])
    features, _ = model.suggest_batch(X, rejected=1 - X.toarray(), n=3)
    assert (features == -1).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 5), st.floats(0.02, 0.95), st.sampled_from(["adf", "em"]))
def test_every_probability_is_one(seed, k, density, inference):
    """Few rows, many features; a cluster for one row; columns that all rows have."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(k, 60)), int(rng.integers(2, 30))
    X = (rng.random((n, d)) < density * rng.random((3, d))[rng.integers(3, size=n)] * 1.5).astype(float)
    model = BernoulliMixture(k, inference=inference, features_kept=int(rng.integers(1, 30)), random_state=0).fit(X)
    asked = (rng.random((8, d)) < rng.random()).astype(float)
    for hidden in ("third", "one", 0.2, 3):
        features, probabilities = model.suggest_batch(
            asked, rejected=(rng.random((8, d)) < 0.1) * (1 - asked), hidden=hidden
        )
        assert np.isfinite(probabilities).all()
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        order = np.where(features >= 0, probabilities, -1.0)
        assert (np.diff(order, axis=1) <= 1e-12).all()
    assert ((model.predict_proba(asked) >= 0) & (model.predict_proba(asked) <= 1)).all()
    one = model.suggest(np.flatnonzero(asked[0]), n=3)
    assert all(0 <= s.probability <= 1 and s.name for s in one)


def baskets(n, seed):
    """Eight overlapping clusters; the features of a row are not independent within one."""
    rng = np.random.default_rng(3)
    theta = 0.25 * rng.random((8, 60)) ** 3 + 0.3 * (rng.random((8, 60)) < 0.1)
    rng = np.random.default_rng(seed)
    busy = rng.gamma(2.0, 0.5, n)[:, None]
    X = rng.random((n, 60)) < np.clip(theta[rng.integers(8, size=n)] * busy, 0, 0.97)
    return sp.csr_matrix(X[X.sum(axis=1) >= 2].astype(float))


@pytest.mark.parametrize("hidden", ["third", "one", 0.5, 0.2])
def test_stated_probabilities_are_the_frequencies(hidden):
    model = BernoulliMixture(8, random_state=0).fit(baskets(6000, 0))
    test = baskets(4000, 1)
    visible = without(test, hidden_entries(test, hidden, np.random.default_rng(0)))
    assert visible.nnz < test.nnz
    features, probabilities = model.suggest_batch(visible, hidden=hidden)
    hits = np.asarray(test[np.arange(test.shape[0])[:, None], features].todense()) > 0
    edges = np.quantile(probabilities, np.linspace(0, 1, 11)[1:-1])
    bins = np.searchsorted(edges, probabilities.ravel())
    gap = np.abs(np.bincount(bins, weights=(hits - probabilities).ravel(), minlength=10)).sum() / hits.size
    assert gap < 0.02


def test_the_order_does_not_depend_on_what_is_hidden(model):
    features = [model.suggest([0], n=6, hidden=hidden) for hidden in ("third", "one", 0.2, 5)]
    assert len({tuple(one.feature for one in found) for found in features}) == 1
    with pytest.raises(BadInput, match="hidden is 'half'"):
        model.suggest([0], hidden="half")
    with pytest.raises(BadInput, match="hidden is -1"):
        model.suggest([0], hidden=-1)


def test_reasons_name_clusters_and_features():
    data = Dataset(shop(), vocabulary=Vocabulary(WORDS))
    model = BernoulliMixture(2, random_state=0).fit(data)
    cleaning = int(model.predict(np.array([[1, 1, 0, 0, 0, 0, 0, 0]]))[0])
    model.name_cluster(cleaning, "clean windows")
    best = model.suggest(["window cleaner"], n=1)[0]
    assert best.name == "window cleaning"
    assert best.reasons[0].cluster == cleaning
    assert best.reasons[0].name == "clean windows"
    assert best.reasons[0].because == ["window cleaner"]
    refused = model.suggest(["sponge"], rejected=["window cleaner", "window cleaning"], n=3)
    assert {"sedan", "nissan", "tyres", "garage"} & {one.name for one in refused}


def test_reasons_are_the_parts_of_the_number(model):
    given = np.array([0, 3])
    shares = memberships(model.profiles_, given, np.zeros(0, dtype=int))
    features, raw = suggested(model.profiles_, one_row(given, 8), None, 6)
    for feature, value in zip(features[0], raw[0], strict=True):
        parts = shares * means_of(model.profiles_, np.array([feature]))[:, 0]
        assert parts.sum() == pytest.approx(value, rel=1e-9)
        found = next(one for one in model.suggest(given, n=6) if one.feature == feature)
        assert found.reasons[0].share == pytest.approx(parts.max() / parts.sum(), rel=1e-9)


def test_mistakes_are_named(model):
    data = Dataset(shop(), vocabulary=Vocabulary(WORDS))
    named = BernoulliMixture(2, random_state=0).fit(data)
    with pytest.raises(UnknownFeature, match=r"'window cleanr' is not in the vocabulary.*window clean"):
        named.suggest(["window cleanr"])
    with pytest.raises(UnknownFeature, match="fitted without names"):
        model.suggest(["sedan"])
    with pytest.raises(UnknownFeature, match="feature 99 of observed is not a column"):
        model.suggest([99])
    with pytest.raises(BadInput, match="both observed and rejected"):
        model.suggest([1], rejected=[1])


def test_a_handful_of_baskets_gives_what_little_there_is():
    """Eight rows cannot make a feature a nat likelier; their clusters must be about something all the same."""
    baskets = ["milk bread butter", "beer crisps", "milk butter eggs", "beer crisps nuts"]
    baskets += ["bread butter milk", "nuts beer", "eggs milk bread", "crisps nuts beer"]
    names = ["milk", "bread", "butter", "eggs", "beer", "crisps", "nuts"]
    X = np.array([[name in basket.split() for name in names] for basket in baskets], dtype=float)
    model = BernoulliMixture(2, random_state=0).fit(X)
    assert len(set(model.labels_[[0, 2, 4, 6]])) == len(set(model.labels_[[1, 3, 5, 7]])) == 1
    assert model.labels_[0] != model.labels_[1]
    assert {names[one.feature] for one in model.suggest([0], n=2)} == {"bread", "butter"}
