"""Mergers by new rows against a dense computation; the clutter; overlapping clusters that must not collapse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from oracles.bernoulli import beta_evidence, merger_gain
from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.adf import Block, counted, wholly
from shoal.bernoulli.merging import Merger, evidence_lost, gains_of, merged_down, merged_rows, near_pairs, pair_profiles
from shoal.bernoulli.profiles import empty_profiles, means_of


def clusters(seed, k=4, d=14, n=400):
    """Profiles of known rows, and new rows of the same clusters."""
    rng = np.random.default_rng(seed)
    theta = rng.random((k, d)) ** 2
    labels, new = rng.integers(k, size=n), rng.integers(k, size=200)
    X, fresh = ((rng.random((at.size, d)) < theta[at]).astype(float) for at in (labels, new))
    profiles = empty_profiles(np.append(X.sum(axis=0), n), k, clutter=False, strength=3.0)
    profiles = counted(profiles, Block(sp.csr_matrix(X), np.ones(n)), wholly(labels))
    return profiles, X, labels, Block(sp.csr_matrix(fresh), np.ones(200))


@pytest.mark.parametrize("seed", range(4))
def test_what_new_rows_say_of_a_merger_is_the_change_of_their_likelihood(seed):
    profiles, _, _, new = clusters(seed)
    first, second = near_pairs(profiles, least_cosine=0.0)
    assert first.size == 6
    X, every = new.rows.toarray(), np.arange(14)

    def log_probs(means):
        return X @ np.log(means).T + (1 - X) @ np.log1p(-means).T

    merged = pair_profiles(profiles, first, second)
    expected = [
        merger_gain(np.log(profiles.weights()), log_probs(means_of(profiles, every)), a, b, log_probs(one[None])[:, 0])
        for a, b, one in zip(first, second, means_of(merged, every), strict=True)
    ]
    # The merged cluster has the prior weight of one; rows of which two clusters hold under 1 % are left out.
    np.testing.assert_allclose(gains_of(profiles, first, second, new), expected, rtol=0.05, atol=1.0)


def test_a_merged_cluster_is_the_cluster_of_all_rows():
    profiles, X, labels, _ = clusters(0)
    merged = merged_rows(profiles, [Merger(1, 3)])
    labels = np.where(labels == 3, 1, labels)
    whole = empty_profiles(profiles.seen, 3, clutter=False, strength=3.0)
    whole = counted(whole, Block(sp.csr_matrix(X), np.ones(len(X))), wholly(labels))
    np.testing.assert_allclose(merged.mass, whole.mass)
    np.testing.assert_allclose(means_of(merged, np.arange(14)), means_of(whole, np.arange(14)), atol=1e-6)


def test_evidence_lost_is_that_of_the_betas():
    profiles, X, labels, _ = clusters(1)
    first, second = near_pairs(profiles, least_cosine=0.0)
    for a, b, lost in zip(first, second, evidence_lost(profiles, first, second), strict=True):
        parts = [X[labels == a], X[labels == b], X[(labels == a) | (labels == b)]]
        prior = 3.0 * profiles.background
        one, two, both = (
            sum(beta_evidence(x.sum(), (1 - x).sum(), s, 3.0 - s) for x, s in zip(part.T, prior, strict=True))
            for part in parts
        )
        assert lost == pytest.approx(one + two - both, rel=1e-6)


def test_seeds_merge_down_to_the_clusters_they_came_from():
    profiles, X, labels, _ = clusters(2, d=60, n=900)
    halves = labels * 2 + np.arange(900) % 2
    counts = np.stack([X[halves == half].sum(axis=0) for half in range(8)], axis=1)
    mass = np.bincount(halves).astype(float)
    down, masses = merged_down(counts, mass, profiles.background, 3.0, 4)
    expected = np.stack([X[labels == label].sum(axis=0) for label in range(4)], axis=1)
    order, truth = np.argsort(masses), np.argsort(np.bincount(labels))
    np.testing.assert_allclose(down[:, order], expected[:, truth])


def baskets(n, seed):
    """Twelve kinds of basket that all draw mostly on the same common items."""
    rng = np.random.default_rng(5)
    common = 1 / (np.arange(100) + 6.0)
    theta = common * np.exp(rng.normal(0, 1.2, (8, 100)) * (rng.random((8, 100)) < 0.4))
    theta = np.clip(theta * (6 / theta.sum(axis=1, keepdims=True)), 0, 0.7)
    rng = np.random.default_rng(seed)
    return sp.csr_matrix((rng.random((n, 100)) < theta[rng.integers(8, size=n)]).astype(float))


def test_overlapping_clusters_do_not_collapse():
    X, test = baskets(8000, 0), baskets(2000, 1)
    one = BernoulliMixture(1, random_state=0).fit(X).score(test)
    em = BernoulliMixture(8, inference="em", clutter=False, random_state=0).fit(X).score(test)
    model = BernoulliMixture(8, random_state=0).fit(X)
    assert model.score(test) > em - 0.1 > one
    assert (model.labels_ == -1).mean() < 0.01
    assert model.n_clusters_ >= 5


@pytest.mark.parametrize("flat", [True, False])
def test_rows_of_unrelated_features_are_unassigned(flat):
    rng = np.random.default_rng(0)
    theta = np.where(rng.random((6, 200)) < 0.08, 0.35, 0.002)
    labels = rng.integers(6, size=6000)
    X = rng.random((6000, 200)) < theta[labels]
    clutter = rng.random(6000) < 0.1
    X[clutter] = rng.random((int(clutter.sum()), 200)) < (0.06 if flat else 2 * theta.mean(axis=0))
    model = BernoulliMixture(8, random_state=0).fit(X.astype(float))
    unassigned = model.labels_ == -1
    assert unassigned[clutter].mean() > 0.9
    assert unassigned[~clutter].mean() < 0.02
    assert (model.cluster_sizes_ > 30).sum() in (6, 7)  # 600 rows kept back may leave one in two halves
    assert (BernoulliMixture(8, clutter=False, random_state=0).fit(X.astype(float)).labels_ >= 0).all()


def test_further_passes_keep_a_handful_of_rows_in_their_clusters():
    X = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1], [0, 1, 1, 1], [1, 0, 0, 0]], dtype=float)
    model = BernoulliMixture(2, n_passes=3, random_state=0).fit(X)
    assert (model.labels_ >= 0).all()
    assert model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3]
    assert model.profiles_.n_clutter == 1
    assert model.profiles_.mass.sum() == pytest.approx(5, abs=1e-6)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
