"""EM on sparse rows against the dense textbook version."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from oracles.bernoulli import em_step
from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.em import Stats, accumulate, merge, update


def rows(seed=0, n=200, k=3, d=15):
    rng = np.random.default_rng(seed)
    theta = rng.random((k, d)) * 0.8
    X = (rng.random((n, d)) < theta[rng.integers(k, size=n)]).astype(float)
    return X, rng.random((k, d)) * 0.8 + 0.1


def test_one_step_is_the_textbook_step():
    X, theta = rows()
    weights = np.array([0.5, 0.3, 0.2])
    background = X.mean(axis=0)
    counts = theta.T * (weights * 1e9)
    model = update(Stats(counts, weights * 1e9, 0.0), background, strength=1e-12, clutter=False)
    stats = accumulate(sp.csr_matrix(X), np.ones(len(X)), model)
    new_theta, new_weights, log_likelihood, _ = em_step(X, theta, weights)
    np.testing.assert_allclose(stats.counts / stats.mass, new_theta.T, rtol=1e-9)
    np.testing.assert_allclose(stats.mass / stats.mass.sum(), new_weights, rtol=1e-9)
    np.testing.assert_allclose(stats.log_likelihood, log_likelihood, rtol=1e-9)


def test_blocks_add_up():
    X, theta = rows(1)
    model = update(Stats(theta.T * 100, np.full(3, 100.0), 0.0), X.mean(axis=0), strength=0.01, clutter=False)
    X = sp.csr_matrix(X)
    whole = accumulate(X, np.ones(200), model)
    parts = merge(accumulate(X, np.ones(200), model, 0, 77), accumulate(X, np.ones(200), model, 77, 200))
    np.testing.assert_allclose(parts.counts, whole.counts, rtol=1e-12)
    np.testing.assert_allclose(parts.log_likelihood, whole.log_likelihood, rtol=1e-12)


def test_the_likelihood_never_falls():
    X, _ = rows(2, n=400)
    for clutter in (False, True):
        model = BernoulliMixture(4, inference="em", clutter=clutter, random_state=0, strength=1e-6, tol=0, max_iter=30)
        history = model.fit(X).log_likelihoods_
        assert (np.diff(history) >= -1e-6 * abs(history[-1])).all()


def test_the_fitted_model_scores_as_em_did():
    X, _ = rows(3, n=400)
    model = BernoulliMixture(3, inference="em", clutter=False, random_state=0, tol=1e-9, max_iter=300).fit(X)
    assert model.converged_
    np.testing.assert_allclose(model.score(X) * len(X), model.log_likelihoods_[-1], rtol=1e-3)
