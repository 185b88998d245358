"""The clutter of the start: leave-one-out scores against a dense computation, planted rows, and rows that are none."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from shoal.bernoulli import BernoulliMixture
from shoal.bernoulli.adf import Block
from shoal.bernoulli.em_kernels import unseen_scores
from shoal.bernoulli.flat_clutter import Flat, flat_of, received, shares_of_clutter, with_flat
from shoal.bernoulli.statistics import ExpectedCounts, expect, maximize


def table(n, k, seed, n_columns=14, levels=5):
    """A table of categorical columns, one feature for each value."""
    rng = np.random.default_rng(7)
    means = rng.dirichlet(np.full(levels, 0.3), (k, n_columns))
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    values = (rng.random((n, n_columns, 1)) > means[labels].cumsum(axis=2)).sum(axis=2).clip(0, levels - 1)
    return np.eye(levels)[values].reshape(n, -1), labels


def planted(X, n, seed):
    """Rows of as many features as those of ``X``, drawn at random."""
    rng = np.random.default_rng(seed)
    lengths = rng.choice(X.sum(axis=1).astype(int), n)
    rank = np.argsort(np.argsort(rng.random((n, X.shape[1])), axis=1), axis=1)
    return (rank < lengths[:, None]).astype(float)


def test_scores_without_the_row_itself():
    rng = np.random.default_rng(0)
    X = (rng.random((40, 9)) < 0.4).astype(float)
    weights = np.full(40, 1.0)
    background, s = X.mean(axis=0), 2.0
    seeds = ExpectedCounts(X[:3].T.copy(), np.ones(3), 0.0)
    rows = sp.csr_matrix(X)
    stats, _ = expect(Block(rows, weights), maximize(seeds, background, strength=s))
    theta = maximize(stats, background, strength=s)
    out = np.empty(40)
    unseen_scores(rows.indptr, rows.indices, weights, *theta, stats.counts, stats.mass, background, s, out)
    scores = X @ theta.log_odds + theta.base
    shares = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    for row in range(40):
        r = np.where(shares[row] < 1e-4, 0.0, shares[row])
        hits = np.maximum(stats.counts - r * X[row][:, None], 0.0)
        mean = (hits + s * background[:, None]) / (stats.mass - r + s)
        one = theta.base + np.log((stats.mass - r + 1) / (stats.mass + 1))
        one = one + X[row] @ (np.log(mean) - np.log1p(-mean))
        one = np.where(r > 0, one, scores[row])
        assert out[row] == pytest.approx(logsumexp(one), abs=1e-9)


def test_the_flat_component_is_a_distribution_over_rows():
    theta = maximize(ExpectedCounts(np.full((5, 1), 3.0), np.array([9.0]), 0.0), np.full(5, 0.3), strength=1.0)
    both = with_flat(theta, Flat(0.25, 0.2))
    rows = np.array([[(number >> at) & 1 for at in range(5)] for number in range(32)], dtype=float)
    assert np.exp(logsumexp(rows @ both.log_odds + both.base, axis=1)).sum() == pytest.approx(1.0)
    counts, mass = received(sp.csr_matrix(rows), np.full(32, 0.5))
    assert mass == 16
    assert flat_of(counts, mass, 64.0) == pytest.approx((0.25, 0.5))


def test_a_cluster_takes_no_credit_for_what_it_counted():
    rng = np.random.default_rng(1)
    alike = np.zeros((400, 400))
    alike[:, :8] = rng.random((400, 8)) < 0.9
    rows = sp.csr_matrix(np.vstack([rng.random((300, 400)) < 0.02, alike]).astype(float))
    weights = np.ones(700)
    parts = [received(rows[some], weights[some]) for some in (slice(0, 150), slice(150, 300), slice(300, 700))]
    stats = ExpectedCounts(np.stack([part[0] for part in parts], axis=1), np.array([part[1] for part in parts]), 0.0)
    background = np.maximum(stats.counts.sum(axis=1) / 700, 1e-4)
    theta = maximize(stats, background, strength=0.01)
    shares = shares_of_clutter(Block(rows, weights), stats, theta, background, 0.01)
    assert shares is not None
    assert shares[:300].mean() > 0.6  # at one look; their clusters still have all their weight
    assert shares[300:].mean() < 0.01


def test_what_most_rows_do_is_no_clutter():
    rng = np.random.default_rng(1)
    rows = sp.csr_matrix((rng.random((300, 400)) < 0.02).astype(float))
    counts, mass = received(rows, np.ones(300))
    stats, background = ExpectedCounts(counts[:, None], np.array([mass]), 0.0), counts / mass
    theta = maximize(stats, background, strength=0.01)
    assert shares_of_clutter(Block(rows, np.ones(300)), stats, theta, background, 0.01) is None


@pytest.mark.parametrize("k", [5, 9])  # as many as there are, with no place to spare, and more
def test_unrelated_rows_of_a_one_hot_table_are_unassigned(k):
    X, labels = table(4500, 5, 0)
    rows = np.vstack([X, planted(X, 500, 1)])
    model = BernoulliMixture(k, random_state=0).fit(rows)
    unassigned = model.labels_ == -1
    assert unassigned[4500:].mean() > 0.9
    assert unassigned[:4500].mean() < 0.02
    assert model.n_clusters_ >= 5
    assert all((labels[model.labels_[:4500] == id_] == labels[model.labels_[:4500] == id_][0]).mean() > 0.95
               for id_ in np.unique(model.labels_[:4500]) if id_ >= 0)  # fmt: skip


def test_clean_rows_have_no_clutter():
    X, _ = table(4000, 5, 0)
    model = BernoulliMixture(5, random_state=0).fit(X)
    assert (model.labels_ == -1).mean() < 0.005


def test_unrelated_rows_in_a_stream_are_unassigned():
    X, _ = table(4500, 5, 0)
    rows = np.vstack([X, planted(X, 500, 1)])
    order = np.random.default_rng(0).permutation(5000)
    model = BernoulliMixture(6, random_state=0)
    for start in range(0, 5000, 1000):
        model.partial_fit(rows[order[start : start + 1000]])
    unassigned = model.predict(rows) == -1
    assert unassigned[4500:].mean() > 0.9
    assert unassigned[:4500].mean() < 0.02
