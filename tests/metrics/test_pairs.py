"""Every pair of items, against a loop over pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from oracles import metrics as oracle
from shoal import metrics
from shoal.errors import BadInput


def soft(seed, n, k, sharpness):
    """Memberships between vague (small) and nearly certain (large), some rows exactly certain, some empty."""
    rng = np.random.default_rng(seed)
    members = rng.dirichlet(np.full(k, 1 / sharpness), size=n)
    members[rng.random(n) < 0.1] = np.eye(k)[0]
    members[rng.random(n) < 0.1] = 0
    return members, rng.integers(k, size=n)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 5), st.sampled_from([0.5, 3, 30, 300]))
def test_soft_rates_against_a_loop(seed, n, k, sharpness):
    members, truth = soft(seed, n, k, sharpness)
    thresholds = [0.5, 0.1, 0.9, 0.3]
    roc = metrics.pair_roc(truth, members, thresholds=thresholds)
    for at, threshold in enumerate(thresholds):
        expected = oracle.pair_rates(truth, lambda i, j, t=threshold: members[i] @ members[j] > t)
        np.testing.assert_allclose((roc.tpr[at], roc.fpr[at]), expected, rtol=1e-12)
        one = metrics.pair_rates(truth, sp.csr_matrix(members), threshold=threshold)
        np.testing.assert_allclose(one, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_blocks_do_not_matter(seed, monkeypatch):
    members, truth = soft(seed, 300, 4, 3)
    whole = metrics.pair_roc(truth, members)
    monkeypatch.setattr("shoal.metrics.pairs.BLOCK_ROWS", 7)
    monkeypatch.setattr("shoal.metrics.pairs.BLOCK_COLUMNS", 11)
    cut = metrics.pair_roc(truth, members)
    np.testing.assert_array_equal(whole.tpr, cut.tpr)
    np.testing.assert_array_equal(whole.fpr, cut.fpr)
    monkeypatch.setenv("SHOAL_NUM_THREADS", "1")
    np.testing.assert_array_equal(whole.fpr, metrics.pair_roc(truth, members).fpr)


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1, max_size=25))
def test_hard_rates_against_a_loop(rows):
    truth, labels = (np.array(column) for column in zip(*rows, strict=True))
    expected = oracle.pair_rates(truth, lambda i, j: labels[i] == labels[j])
    np.testing.assert_allclose(metrics.pair_rates(truth, labels), expected, rtol=1e-12)


def test_certain_memberships_give_the_hard_rates():
    rng = np.random.default_rng(1)
    truth, labels = rng.integers(5, size=(2, 2000))
    np.testing.assert_allclose(metrics.pair_rates(truth, np.eye(5)[labels]), metrics.pair_rates(truth, labels))


def test_many_nearly_certain_items_need_no_matrix():
    """100,000 items would be an 80 GB matrix; 200 of them are uncertain."""
    rng = np.random.default_rng(2)
    truth = rng.integers(10, size=100_000)
    members = np.full((truth.size, 10), 1e-4, np.float32)
    members[np.arange(truth.size), truth] = 1 - 9e-4
    members[:200] = 0.1
    rates = metrics.pair_rates(truth, members)
    assert 0.995 < rates.tpr < 0.997
    assert rates.fpr == 0


def test_truth_that_belongs_nowhere():
    members = np.array([[1, 0], [1, 0], [0, 1], [1.0, 0]])
    truth = [0, -1, 0, -1]
    assert metrics.pair_rates(truth, members) == (0.5, 0.5)
    assert metrics.pair_rates(truth, members, outliers="drop")[0] == 0
    assert metrics.pair_rates(truth, members, outliers="singletons") == (0, 3 / 5)


def test_same_cluster_matrix():
    members, _ = soft(3, 12, 3, 1)
    np.testing.assert_allclose(metrics.same_cluster_matrix(members), members @ members.T)
    np.testing.assert_allclose(metrics.same_cluster_matrix(sp.csr_matrix(members)), members @ members.T)
    together = metrics.same_cluster_matrix([0, 1, 0, -1, -1])
    assert together.tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.same_cluster_matrix(np.zeros(6000, int)), r"6,000 items would take 0\.3 GB.*pair_rates"),
        (lambda: metrics.pair_roc([0], [[0.5]], thresholds=[2]), "thresholds must be probabilities"),
        (lambda: metrics.pair_roc([0, 1], [[0.5, 0.9], [0, 1]]), r"row 0 sums to 1\.4"),
        (lambda: metrics.pair_roc([0, 1], [[1.5, -0.9], [0, 1]]), "some are negative"),
        (lambda: metrics.pair_roc([0, 1], [[np.nan, 1], [0, 1]]), "row 0 sums to nan"),
        (lambda: metrics.pair_roc([0, 1, 2], [[1.0, 0], [0, 1]]), "first labels are 3 and the second 2"),
        (lambda: metrics.pair_roc([0, 1], [0, 1]), "a row for each item"),
    ],
)
def test_errors_say_what_to_do(call, message):
    with pytest.raises(BadInput, match=message):
        call()
