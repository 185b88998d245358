"""Suggestions: the formula, the reasons, and refinement."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from oracles.bernoulli import suggestion_probabilities
from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.suggestion import means_of
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
    return BernoulliMixture(2, random_state=0, adapt=False).fit(shop())


@pytest.mark.parametrize("observed", [[0], [4, 5], [3], []])
@pytest.mark.parametrize("rejected", [[], [2], [6, 7]])
def test_probabilities_follow_the_formula(model, observed, rejected):
    mu = means_of(model.profiles_, np.arange(8))
    expected, _ = suggestion_probabilities(mu, model.profiles_.weights(), observed, rejected)
    found = model.suggest(observed, rejected, n=8)
    assert len(found) == 8 - len(observed) - len(rejected)
    for one in found:
        assert one.probability == pytest.approx(expected[one.feature], abs=2e-4)
    probabilities = [one.probability for one in found]
    assert probabilities == sorted(probabilities, reverse=True)


def test_batch_says_the_same(model):
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


def test_reasons_name_clusters_and_keywords():
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


def test_mistakes_are_named(model):
    data = Dataset(shop(), vocabulary=Vocabulary(WORDS))
    named = BernoulliMixture(2, random_state=0).fit(data)
    with pytest.raises(UnknownFeature, match=r"'window cleanr' is not in the vocabulary.*window clean"):
        named.suggest(["window cleanr"])
    with pytest.raises(UnknownFeature, match="fitted without names"):
        model.suggest(["sedan"])
    with pytest.raises(UnknownFeature, match="feature 99 is not a column"):
        model.suggest([99])
    with pytest.raises(BadInput, match="both observed and rejected"):
        model.suggest([1], rejected=[1])


def test_a_handful_of_baskets_says_what_little_there_is_to_say():
    """Eight rows cannot make a feature three nats likelier; their clusters must be about something all the same."""
    baskets = ["milk bread butter", "beer crisps", "milk butter eggs", "beer crisps nuts"]
    baskets += ["bread butter milk", "nuts beer", "eggs milk bread", "crisps nuts beer"]
    names = ["milk", "bread", "butter", "eggs", "beer", "crisps", "nuts"]
    X = np.array([[name in basket.split() for name in names] for basket in baskets], dtype=float)
    model = BernoulliMixture(2, random_state=0).fit(X)
    assert len(set(model.labels_[[0, 2, 4, 6]])) == len(set(model.labels_[[1, 3, 5, 7]])) == 1
    assert model.labels_[0] != model.labels_[1]
    assert {names[one.feature] for one in model.suggest([0], n=2)} == {"bread", "butter"}
