"""Each score against its slow version, and as if a row had never been seen against a refit without that row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import suggestion as oracle
from shoal import hidden_entries
from shoal.suggestion.calibration import Calibration
from shoal.suggestion.factors import fit_factors
from shoal.suggestion.learning import update
from shoal.suggestion.logistic import fit_logistic
from shoal.suggestion.model import Settings, empty_model, new_queries
from shoal.suggestion.ranking import predictors_of
from shoal.suggestion.ridge import LOCAL_WIDTH, ridge_of, ridge_way
from shoal.suggestion.statistics import accumulate, no_rows

WAYS = ("dense", "dual", "local")


def random_sets(seed, n_rows=40, n_features=15, density=0.25):
    rng = np.random.default_rng(seed)
    tastes = rng.random((3, n_features)) ** 3
    X = rng.random((n_rows, n_features)) < np.clip(tastes[rng.integers(0, 3, n_rows)] * density * 4, 0, 0.9)
    return X.astype(float)


def model_of(X, way="dense", penalty=2.0):
    stats, _ = accumulate(sp.csr_matrix(X))
    model = update(empty_model(no_rows(X.shape[1]), Settings(ridge=way)), stats)
    return model._replace(penalty=penalty, ridge=ridge_of(stats, penalty, way))


def queries_of(sets, refused, own, n_features):
    def matrix(rows):
        X = np.zeros((len(rows), n_features))
        for at, row in enumerate(rows):
            X[at, list(row)] = 1
        return sp.csr_matrix(X)

    queries = new_queries(matrix(sets), matrix(refused), np.full(len(sets), 0.3))
    return queries._replace(own=np.array(own, np.int64))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("way", ["dense", "dual"])
def test_ridge_scores_are_those_of_a_general_inverse(way, seed):
    X = random_sets(seed)
    stats, _ = accumulate(sp.csr_matrix(X))
    ridge = ridge_of(stats, 2.0, way)
    given = sp.csr_matrix((np.random.default_rng(seed).random((6, X.shape[1])) < 0.2).astype(float))
    B = oracle.ridge_weights(X, 2.0)
    closed = given.toarray() > 0  # e of a given feature means nothing
    np.testing.assert_allclose(ridge.scores(stats, given)[~closed], (given @ B)[~closed], atol=1e-11)
    np.testing.assert_allclose(
        ridge.weights_to(stats, np.array([0, 3]), np.array([1, 2])), B[[0, 3]][:, [1, 2]], atol=1e-11
    )


@pytest.mark.parametrize("seed", range(3))
def test_local_ridge_is_ridge_regression_on_the_features_that_explain_most(seed, monkeypatch):
    X = random_sets(seed, n_rows=60, n_features=20)
    stats, _ = accumulate(sp.csr_matrix(X))
    np.testing.assert_allclose(
        ridge_of(stats, 2.0, "local").weights.toarray(), oracle.local_ridge_weights(X, 2.0, LOCAL_WIDTH), atol=1e-11
    )
    monkeypatch.setattr("shoal.suggestion.ridge.LOCAL_WIDTH", 4)
    np.testing.assert_allclose(
        ridge_of(stats, 2.0, "local").weights.toarray(), oracle.local_ridge_weights(X, 2.0, 4), atol=1e-11
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("way", ["dense", "dual"])
def test_forgetting_a_row_equals_a_refit_without_it(way, seed):
    X = random_sets(seed)
    X[0, :3] = 1  # a row long enough to hide something from
    model = model_of(X, way)
    given = [list(np.flatnonzero(X[0])[:2])]
    candidates, found = predictors_of(model, queries_of(given, [[]], [0], X.shape[1]), 50)
    rest = np.delete(X, 0, axis=0)
    assert (candidates[0] >= 0).sum() == X.shape[1] - 2
    for feature, numbers in zip(candidates[0], found[0], strict=True):
        if feature >= 0:
            np.testing.assert_allclose(
                numbers, oracle.predictors(rest, given[0], feature, 2.0, 0.3, model.factors.features), atol=1e-10
            )


@pytest.mark.parametrize("seed", range(4))
def test_predictors_of_new_sets_with_refusals(seed):
    X = random_sets(seed)
    model = model_of(X)
    sets, refused = [[0, 4], [2], []], [[7], [], [1]]
    candidates, found = predictors_of(model, queries_of(sets, refused, [-1] * 3, X.shape[1]), 50)
    for at in range(3):
        left = set(range(X.shape[1])) - set(sets[at]) - set(refused[at])
        assert set(candidates[at][candidates[at] >= 0]) == left
        for feature, numbers in zip(candidates[at], found[at], strict=True):
            if feature >= 0:
                expected = oracle.predictors(X, sets[at], feature, 2.0, 0.3, model.factors.features, refused[at])
                np.testing.assert_allclose(numbers, expected, atol=1e-10)


def test_factors_solve_their_least_squares():
    X = random_sets(3, n_rows=200, n_features=30)
    factors = fit_factors(sp.csr_matrix(X), 0)
    given = sp.csr_matrix(X[:5])
    scores = factors.scores(given, sp.csr_matrix(given.shape))
    for row in range(5):
        expected = [oracle.factor_score(factors.features, given[row].indices, [], d) for d in range(30)]
        np.testing.assert_allclose(scores[row], expected, atol=1e-10)
    # Alternating least squares has come to rest when the features' side solves its own normal equations.
    U = np.array(
        [
            np.linalg.lstsq(factors.features, score, rcond=None)[0]
            for score in factors.scores(sp.csr_matrix(X), sp.csr_matrix(X.shape))
        ]
    )
    for d in range(5):
        rows = np.flatnonzero(X[:, d])
        A = 0.03 * U.T @ U + U[rows].T @ U[rows] + 0.03 * (rows.size + 0.03 * len(U)) * np.eye(U.shape[1])
        expected = np.linalg.solve(A, U[rows].sum(axis=0))
        assert np.corrcoef(expected, factors.features[d])[0, 1] > 0.98


@pytest.mark.parametrize("hidden", ["third", 0.3, 0.85])
def test_expected_hidden_entries_by_enumeration(hidden):
    n_rows = np.array([4, 0, 7, 3, 9, 1, 0, 2])
    for n_given in range(8):
        expected = oracle.expected_hidden(n_rows, n_given, hidden)
        if expected is not None:
            found = hidden_entries.expected_hidden(np.arange(8), n_rows, np.array([n_given]), hidden)[0]
            assert found == pytest.approx(max(expected, hidden_entries.LEAST), abs=1e-12)


def test_hidden_may_be_a_number_and_scales_beyond_the_longest_row():
    rows = np.arange(3), np.array([0, 1, 1])
    assert hidden_entries.expected_hidden(*rows, np.array([1, 9]), 3.0).tolist() == [3.0, 3.0]
    assert hidden_entries.expected_hidden(*rows, np.array([1, 9]), "one").tolist() == [1.0, 1.0]
    assert hidden_entries.expected_hidden(*rows, np.array([10]), 0.5).tolist() == [10.0]
    assert hidden_entries.expected_hidden(*rows, np.array([10]), "third").tolist() == [5.0]


@pytest.mark.parametrize("seed", range(20))
def test_calibration_is_the_integral_of_its_slope_and_rises(seed):
    rng = np.random.default_rng(seed)
    curve = Calibration(np.sort(rng.normal(size=3)), rng.normal(size=9))
    scores = np.sort(rng.normal(0, 3, 30))
    found = curve.probability(scores, np.array(0.4), np.array(1.2))
    expected = [oracle.calibrated(curve.knots, curve.weights, score, 0.4, 1.2) for score in scores]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (np.diff(found) > 0).all()


def test_newton_steps_are_halved_where_plain_ones_diverge():
    rng = np.random.default_rng(0)
    predictors = np.concatenate([rng.normal(size=(4000, 3)), rng.exponential(size=(4000, 3)) ** 4], axis=1)
    outcome = (rng.random(4000) < 1 / (1 + np.exp(7 - 2 * predictors[:, 0]))).astype(float)
    weights = fit_logistic(predictors, outcome, penalty=1.0)
    probability = 1 / (1 + np.exp(-(predictors @ weights[:-1] + weights[-1])))
    # At the optimum of the intercept, the mean probability is the share of ones.
    assert probability.mean() == pytest.approx(outcome.mean(), rel=1e-3)
    assert weights[0] == pytest.approx(2.0, abs=0.5)


def test_the_way_follows_from_the_shape_and_never_makes_a_large_square():
    assert ridge_way(100, 200) == "dual"
    assert ridge_way(300, 200) == "dense"
    assert ridge_way(6000, 5001) == "local"
    assert ridge_way(5000, 5001) == "dual"
    for way, shape in (("dense", (10, 5001)), ("dual", (5001, 10))):
        with pytest.raises(ValueError, match="local"):
            ridge_way(*shape, way)
