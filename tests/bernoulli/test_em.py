"""EM on sparse rows against the dense textbook version."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from oracles.bernoulli import beta_evidence, em_step
from shoal.bernoulli import BernoulliMixture, Block
from shoal.bernoulli.statistics import ExpectedCounts, add_counts, expect, maximize
from shoal.bernoulli.strength import evidence, learned_strength


def rows(seed=0, n=200, k=3, d=15):
    rng = np.random.default_rng(seed)
    theta = rng.random((k, d)) * 0.8
    X = (rng.random((n, d)) < theta[rng.integers(k, size=n)]).astype(float)
    return X, rng.random((k, d)) * 0.8 + 0.1


def test_one_step_is_the_textbook_step():
    X, theta = rows()
    weights = np.array([0.5, 0.3, 0.2])
    stats = ExpectedCounts(theta.T * (weights * 1e9), weights * 1e9, 0.0)
    model = maximize(stats, X.mean(axis=0), strength=1e-12, weight=1e-9)
    stats, _ = expect(Block(sp.csr_matrix(X), np.ones(len(X))), model)
    new_theta, new_weights, log_likelihood, _ = em_step(X, theta, weights)
    np.testing.assert_allclose(stats.counts / stats.mass, new_theta.T, rtol=1e-9)
    np.testing.assert_allclose(stats.mass / stats.mass.sum(), new_weights, rtol=1e-9)
    np.testing.assert_allclose(stats.log_likelihood, log_likelihood, rtol=1e-9)


def test_blocks_add_up():
    X, theta = rows(1)
    model = maximize(ExpectedCounts(theta.T * 100, np.full(3, 100.0), 0.0), X.mean(axis=0), strength=0.01)
    X = sp.csr_matrix(X)
    whole, _ = expect(Block(X, np.ones(200)), model)
    parts = add_counts(*(expect(Block(X[a:b], np.ones(b - a)), model)[0] for a, b in [(0, 77), (77, 200)]))
    np.testing.assert_allclose(parts.counts, whole.counts, rtol=1e-12)
    np.testing.assert_allclose(parts.log_likelihood, whole.log_likelihood, rtol=1e-12)


def test_cells_without_counts_need_no_logarithm_and_have_the_same_value():
    rng = np.random.default_rng(0)
    background = 10 ** rng.uniform(-6, -1, 300)
    counts = np.where(rng.random((300, 4)) < 0.2, 10 * rng.random((300, 4)), 0.0)
    mass = np.array([50.0, 20.0, 100.0, 3000.0])
    theta = maximize(ExpectedCounts(counts, mass, 0.0), background, strength=2.0, weight=1.0)
    mean = (counts + 2.0 * background[:, None]) / (2.0 + mass)
    np.testing.assert_allclose(theta.log_odds, np.log(mean) - np.log1p(-mean), atol=1e-9)
    np.testing.assert_allclose(
        theta.base, np.log((mass + 1) / (mass + 1).sum()) + np.log1p(-mean).sum(axis=0), atol=1e-9
    )


def test_the_likelihood_never_falls():
    X, _ = rows(2, n=400)
    model = BernoulliMixture(4, inference="em", clutter=False, random_state=0, strength=1e-6, tol=0, max_iter=30)
    history = model.fit(X).objective_history_
    assert (np.diff(history) >= -1e-6 * abs(history[-1])).all()


def test_the_fitted_model_scores_as_em_did():
    X, _ = rows(3, n=400)
    model = BernoulliMixture(3, inference="em", clutter=False, random_state=0, tol=1e-7, max_iter=2000).fit(X)
    assert model.converged_
    np.testing.assert_allclose(model.score(X) * len(X), model.objective_history_[-1], rtol=1e-3)


def test_evidence_is_that_of_the_betas():
    rng = np.random.default_rng(0)
    mass, background = np.array([20.0, 7.0]), np.array([0.3, 0.1, 0.02])
    counts = rng.random((3, 2)) * mass
    expected = sum(
        beta_evidence(counts[d, k], mass[k] - counts[d, k], 5.0 * b, 5.0 * (1 - b))
        for d, b in enumerate(background) for k in range(2)
    )  # fmt: skip
    assert evidence(counts, mass, background, 5.0) == pytest.approx(expected, rel=1e-12)


def test_the_learned_strength_is_that_of_the_rows():
    rng = np.random.default_rng(0)
    background = rng.random(200) * 0.4 + 0.05
    for strength in (1.0, 10.0, 60.0):
        theta = rng.beta(strength * background[:, None], strength * (1 - background)[:, None], (200, 30))
        counts = rng.binomial(500, theta).astype(float)
        found = 2.0
        for _ in range(3):
            found = learned_strength(counts, np.full(30, 500.0), background, found)
        assert found == pytest.approx(strength, rel=0.15)
