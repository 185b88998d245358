"""Asking a fitted mixture: the best clusters without a table of rows x clusters, and what zeros and huge values do."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from scipy.stats import beta
from sklearn.metrics import adjusted_rand_score

from shoal.families import Bernoulli, ExponentialFamilyMixture, Multinomial, Poisson
from shoal.families.distributions.counts import CountFamily
from shoal.families.samplers.gibbs import GibbsChain
from shoal.families.samplers.held_out import HeldOut, Unions
from shoal.families.samplers.items import as_items
from shoal.families.samplers.split_merge import move_rows

FAMILIES: list[CountFamily] = [
    Multinomial(mean=np.full(40, 1 / 40), strength=3.0, smoothing=0.1),
    Poisson(mean=np.linspace(0.1, 2, 40), strength=0.7),
    Bernoulli(mean=np.linspace(0.02, 0.95, 40), strength=2.5),
]


def table(seed: int, n: int = 60, d: int = 40, share: float = 0.2) -> sp.csr_matrix:
    rng = np.random.default_rng(seed)
    return sp.csr_matrix(rng.poisson(2.0, (n, d)) * (rng.random((n, d)) < share), dtype=np.float64)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("n_rows", [30, 20_000])
def test_scores_of_all_clusters_are_those_of_each(family: CountFamily, n_rows: int) -> None:
    """Few rows a cluster take every factor; many take the series in a / (t + n)."""
    X, k = table(0), 6
    labels = np.random.default_rng(1).integers(0, k, n_rows)
    stats = family.statistics(sp.csr_matrix(sp.vstack([X] * (n_rows // 60 + 1)))[:n_rows], labels, k)
    log_weights = np.log(np.arange(1.0, k + 1))
    scorer = family.scorer(stats, log_weights)
    scores = scorer.all(X)
    for cluster in range(k):
        one = family.log_predictive_at(stats, X, np.full(60, cluster)) + log_weights[cluster]
        np.testing.assert_allclose(scores[:, cluster], one, rtol=1e-9)
    best = scorer.best(X, 4)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(best.clusters, order)
    np.testing.assert_allclose(best.scores, np.take_along_axis(scores, order, 1), rtol=1e-12)
    np.testing.assert_allclose(best.total, logsumexp(scores, axis=1), rtol=1e-12)
    np.testing.assert_allclose(best.fresh, family.log_predictive_at(stats, X, np.full(60, -1)), rtol=1e-9)


def test_memberships_are_the_largest_probabilities() -> None:
    X = table(2, n=300)
    model = ExponentialFamilyMixture(8, n_sweeps=6, random_state=0).fit(X)
    whole, some = model.predict_proba(X), model.memberships(X, top=2)
    assert some.shape == whole.shape
    kept = some.toarray()
    assert (np.count_nonzero(kept, axis=1) <= 2).all()
    np.testing.assert_allclose(kept[kept > 0], whole[kept > 0], rtol=1e-12)
    np.testing.assert_allclose(np.sort(kept, axis=1)[:, -2:], np.sort(whole, axis=1)[:, -2:], rtol=1e-12)
    assigned = model.assign(X)
    np.testing.assert_array_equal(assigned.labels, model.predict(X))
    np.testing.assert_array_equal(assigned.labels, model.roster_.ids[whole.argmax(axis=1)])
    np.testing.assert_allclose(assigned.scores, whole.max(axis=1), rtol=1e-12)


@pytest.mark.parametrize("family", ["multinomial", "poisson", "bernoulli"])
def test_a_zero_that_is_stored_is_a_zero(family: str) -> None:
    X = table(3)
    stored = X.copy()
    stored.data[::3] = 0.0
    assert stored.nnz == X.nnz
    plain = sp.csr_matrix(stored.toarray())
    one, two = (ExponentialFamilyMixture(4, family=family, n_sweeps=4, random_state=0).fit(Y) for Y in (plain, stored))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.predict_proba(plain), one.predict_proba(stored))
    np.testing.assert_array_equal(one.partial_fit(plain).labels_, two.partial_fit(stored).labels_)


def one_hot(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Six columns of four categories in three groups, and a column that every row has."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    shares = rng.dirichlet(np.full(4, 0.3), (3, 6))
    levels = (rng.random((n, 6, 1)) > shares[truth].cumsum(axis=2)).sum(axis=2).clip(0, 3)
    return np.column_stack([np.eye(4)[levels].reshape(n, 24), np.ones(n)]), truth


@pytest.mark.parametrize("sampler", ["gibbs", "indexed"])
def test_a_one_hot_table_and_a_column_that_all_rows_have(sampler: str) -> None:
    X, truth = one_hot(400)
    options: dict[str, Any] = {"family": "bernoulli", "sampler": sampler, "random_state": 0}
    model = ExponentialFamilyMixture(6, **options).fit(X)
    assert 3 <= model.n_clusters_ <= 6
    assert adjusted_rand_score(truth, model.labels_) > 0.5
    assert ExponentialFamilyMixture(3, **options).fit(np.ones((60, 3))).n_clusters_ == 1


def baskets(n: int, seed: int = 0) -> sp.csr_matrix:
    """Overlapping baskets of about four items: what is common to all, and a taste of its own for each group."""
    rng = np.random.default_rng(seed)
    common = 1 / (np.arange(40) + 8.0)
    taste = common * np.exp(rng.normal(0, 1.5, (4, 40)) * (rng.random((4, 40)) < 0.35))
    taste *= 4 / taste.sum(axis=1, keepdims=True)
    return sp.csr_matrix((rng.random((n, 40)) < np.minimum(taste, 0.6)[rng.integers(0, 4, n)]).astype(float))


def test_overlapping_sets_keep_their_clusters() -> None:
    X = baskets(3000)
    model = ExponentialFamilyMixture(4, family="bernoulli", init="random", random_state=0).fit(X[:2500])
    one = ExponentialFamilyMixture(1, family="bernoulli", random_state=0).fit(X[:2500])
    assert model.n_clusters_ > 1
    assert model.score(X[2500:]) > one.score(X[2500:])
    assert model.family_.strength <= 2500 / (2 * 4)


def test_huge_and_distant_values_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 80)
    X = np.array([[0.0, 0.0], [8.0, 9.0]])[truth] + rng.normal(size=(80, 2))
    expected = ExponentialFamilyMixture(4, family="gaussian", random_state=0).fit(X)
    for scale, shift in ((1e160, 0.0), (1e-160, 0.0), (1.0, 1e9)):
        model = ExponentialFamilyMixture(4, family="gaussian", random_state=0).fit(X * scale + shift)
        assert model.n_clusters_ == expected.n_clusters_ == 2
        assert np.isfinite(model.predict_proba(X * scale + shift)).all()
        assert np.isfinite(model.score_samples(X * scale + shift)).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_measurements_can_be_fitted_before_and_after_a_fork() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2))

    def fitted() -> int:
        return ExponentialFamilyMixture(3, family="gaussian", n_sweeps=2, random_state=0).fit(rows).n_clusters_

    expected = fitted()
    child = os.fork()
    if child == 0:
        os._exit(0 if fitted() == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def left_out(family: Any, X: np.ndarray, labels: np.ndarray, row: int, cluster: int) -> float:
    """log(rows of the cluster) + log p(row | the cluster's other rows), by the mean of each Beta, or word by word."""
    members = (labels == cluster) & (np.arange(len(X)) != row)
    a, score = family.shape + X[members].sum(axis=0), float(np.log(members.sum() + 0.5))
    if isinstance(family, Bernoulli):
        p = beta.mean(a, family.strength + members.sum() - a)
        return score + float(np.log(np.where(X[row] > 0, p, 1 - p)).sum())
    for feature in np.repeat(np.arange(X.shape[1]), X[row].astype(int)):
        score += float(np.log(a[feature] / a.sum()))
        a[feature] += 1
    return score


@pytest.mark.parametrize("sets", [True, False])
def test_a_merge_is_decided_by_rows_left_out(sets: bool) -> None:
    rng = np.random.default_rng(4)
    X = (rng.random((30, 7)) < 0.4) * (1.0 if sets else rng.integers(1, 4, (30, 7)))
    X[:, 6] = 1.0
    X[X.sum(axis=1) == 0, 0] = 1.0
    labels = rng.integers(0, 3, 30).astype(np.int32)
    family = Bernoulli(np.full(7, 0.4), 1.5) if sets else Multinomial(np.full(7, 1 / 7), 0.0, 0.3)
    items, indexed, _ = as_items(sp.csr_matrix(X), binary=sets, n_clusters=4, budget=100, least=2)
    chain = GibbsChain(items, indexed, family.prior(alpha=0.5, n_rows=30), 4, seed=0)
    chain.set_labels(labels + 1)  # the first cluster is empty
    unions = Unions(chain)
    rows = unions.rows.rows
    expected = [[left_out(family, X, labels, row, cluster) for row in rows] for cluster in range(3)]
    np.testing.assert_allclose(unions.scores, expected, rtol=1e-10)
    assert unions.held_out.log_likelihood() == pytest.approx(logsumexp(expected, axis=0).sum(), rel=1e-10)
    before = logsumexp(expected, axis=0)
    gain = unions.gain(1, 3)
    merged = np.where(labels == 2, 0, labels)
    together = np.array([left_out(family, X, merged, row, 0) for row in rows])
    np.testing.assert_allclose(unions.column, together, rtol=1e-10)
    assert gain == pytest.approx((np.logaddexp(together, expected[1]) - before).sum(), rel=1e-9)
    np.testing.assert_allclose(unions.gains(np.array([[1, 3], [1, 2]]))[0], gain, rtol=1e-12)
    unions.gain(1, 3)
    move_rows(chain, np.flatnonzero(chain.labels == 3), 1)
    unions.accepted(1, 3)
    all_rows = np.array([left_out(family, X, np.zeros(30, int), row, 0) for row in rows])
    assert unions.gain(1, 2) == pytest.approx((all_rows - np.logaddexp(together, expected[1])).sum(), rel=1e-9)
    np.testing.assert_allclose(HeldOut(chain, 30).scores()[:, 0], together, rtol=1e-10)
