"""ADF on sparse profiles against the dense textbook version."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.bernoulli import DenseADF, moment_match
from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.adf import Block, counted, filtered, wholly
from shoal.bernoulli.moment_matching_kernels import match_moments
from shoal.bernoulli.profiles import empty_profiles, means_of, refreshed
from shoal.bernoulli.scoring import log_likelihoods


def separated_rows(seed, n=300, k=3, d=40):
    """Clusters that share no feature, so that every row's responsibilities are 0 or 1."""
    rng = np.random.default_rng(seed)
    theta = np.full((k, d), 1e-4)
    for cluster in range(k):
        theta[cluster, cluster * 12 : cluster * 12 + 12] = 0.6
    labels = rng.integers(k, size=n)
    X = (rng.random((n, d)) < theta[labels]).astype(float)
    X[np.arange(n), labels * 12] = 1.0
    return X, labels


def block_of(X, weight=1.0):
    return Block(sp.csr_matrix(X), np.full(X.shape[0], weight))


def start(X, k, strength=2.0, first_weight=0.5, clutter=False):
    """A prior that knows one row of each cluster, sparse and dense."""
    seen = np.append(X.sum(axis=0), X.shape[0])
    profiles = empty_profiles(seen, k, clutter=clutter, strength=strength)
    seeds = np.arange(k)
    profiles = counted(profiles, block_of(X[seeds], first_weight), wholly(seeds + clutter))
    b = profiles.background
    dense = DenseADF(
        strength * b + first_weight * X[seeds],
        strength * (1 - b) + first_weight * (1 - X[seeds]),
        np.full(k, 1.0 + first_weight),
    )
    return profiles, dense


def dense_betas(profiles):
    """alpha and beta of every cluster and feature."""
    n = np.tile(profiles.strength + profiles.mass[:, None], (1, profiles.n_features))
    alpha = means_of(profiles, np.arange(profiles.n_features)) * n
    beta = n - alpha
    used = profiles.n_entries
    spot = profiles.cluster[:used], profiles.feature[:used]
    alpha[spot], beta[spot] = profiles.alphas(), profiles.betas()
    return alpha, beta


@given(st.floats(0.05, 50), st.floats(0.05, 50), st.floats(0, 1))
def test_moments_are_matched(alpha, beta, share):
    new_alpha, new_n = match_moments(alpha, alpha + beta, share)
    expected = moment_match(alpha, beta, 1.0, share)
    np.testing.assert_allclose([new_alpha, new_n - new_alpha], expected, rtol=1e-9)


def test_confusion_loses_certainty_most_near_four_tenths():
    shares = np.linspace(0.01, 0.99, 99)
    totals = [match_moments(1.0, 10.0, share)[1] for share in shares]
    assert shares[int(np.argmin(totals))] == pytest.approx(0.4, abs=0.06)
    assert min(totals) < 10


@pytest.mark.parametrize("seed", range(5))
def test_clear_rows_are_learned_exactly_as_in_the_textbook(seed):
    X, _ = separated_rows(seed)
    order = np.concatenate([[np.flatnonzero(X[:, c * 12] > 0)[0] for c in range(3)], np.arange(X.shape[0])])
    X = X[order]
    profiles, dense = start(X, 3, first_weight=3.0)
    profiles, found = filtered(profiles, block_of(X), width=3, negligible=1e-300)
    worst = 0.0
    for row, x in enumerate(X):
        mine = np.zeros(3)
        mine[found.rows[row][found.rows[row] >= 0]] = found.values[row][found.rows[row] >= 0]
        worst = max(worst, np.abs(mine - dense.learn(x)).max())
    assert worst < 2e-3  # sums are refreshed when a mass has grown by 5 %
    alpha, beta = dense_betas(refreshed(profiles))
    np.testing.assert_allclose(alpha + beta, dense.alpha + dense.beta, rtol=2e-3)
    np.testing.assert_allclose(alpha, dense.alpha, rtol=2e-2, atol=1e-2)
    np.testing.assert_allclose(profiles.mass, dense.gamma - 1.0, atol=0.05)


@pytest.mark.parametrize("clutter", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_probabilities_of_all_rows_sum_to_one(seed, clutter):
    """Every set of 12 features, common and rare ones, with entries for some and a default for the others."""
    rng = np.random.default_rng(seed)
    rates = np.concatenate([rng.random(6), 0.015 * rng.random(6)])
    X = (rng.random((400, 12)) < rates * rng.random((4, 12))[rng.integers(4, size=400)] * 1.2).astype(float)
    model = BernoulliMixture(3, clutter=clutter, features_kept=4, random_state=0).fit(X)
    every = np.array(list(itertools.product([0.0, 1.0], repeat=12)))
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1.0, abs=1e-6)
    means = means_of(model.profiles_, np.arange(12))
    assert ((means > 0) & (means < 1)).all()


@pytest.mark.parametrize(
    "options", [{}, {"n_passes": 3}, {"background": "flat"}, {"strength": 2.0}, {"inference": "em"}]
)
def test_scores_are_those_of_the_dense_betas(options):
    rng = np.random.default_rng(0)
    theta = rng.random((5, 40))
    X = (rng.random((2000, 40)) < theta[rng.integers(5, size=2000)]).astype(float)
    model = BernoulliMixture(5, features_kept=20, random_state=0, **options).fit(X)
    alpha, beta = dense_betas(model.profiles_)
    dense = DenseADF(alpha, beta, model.profiles_.prior[1] + model.profiles_.mass)
    expected = [dense.log_likelihood(x) for x in X[:300]]
    np.testing.assert_allclose(model.score_samples(X[:300]), expected, rtol=1e-6)


def test_a_model_that_was_read_scores_as_its_betas_once_refreshed():
    X, _ = separated_rows(1)
    profiles, _ = start(X, 3)
    profiles, _ = filtered(profiles, block_of(X))
    profiles = refreshed(profiles)
    alpha, beta = dense_betas(profiles)
    dense = DenseADF(alpha, beta, 1.0 + profiles.mass)
    expected = [dense.log_likelihood(x) for x in X]
    np.testing.assert_allclose(log_likelihoods(profiles, sp.csr_matrix(X)), expected, rtol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_running_sums_stay_near_a_full_recomputation(seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((60, 12)) < rng.random(12) * 0.5).astype(float)
    profiles, _ = start(X, 3, clutter=True)
    profiles, _ = filtered(profiles, block_of(X))
    again = refreshed(profiles)
    # Since the last refresh a mass has grown by 5 % at most, so its default would be 5 % smaller, for each feature.
    np.testing.assert_allclose(profiles.base, again.base, atol=0.06 * 12)


def test_all_that_was_read_is_accounted_for():
    X, _ = separated_rows(2)
    profiles, _ = start(X, 3)
    before = profiles.hits[: profiles.n_entries].sum() + profiles.default_hits.sum()
    mass = profiles.mass.sum()
    profiles, _ = filtered(profiles, block_of(X))
    assert profiles.mass.sum() - mass == pytest.approx(X.shape[0], abs=1e-4)
    gained = profiles.hits[: profiles.n_entries].sum() + profiles.default_hits.sum() - before
    assert gained == pytest.approx(X.sum(), rel=0.02)  # moment matching keeps means, not counts
