"""InvertedIndex against a full scan."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from oracles import kmeans as oracle
from shoal.errors import BadInput
from shoal.kmeans import InvertedIndex


@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 60), d=st.integers(1, 25), density=st.sampled_from([0.05, 0.3, 0.9]),
    top=st.sampled_from([1, 3, 200]), signed=st.booleans(),
)  # fmt: skip
def test_top_equals_a_full_scan(seed, n, d, density, top, signed):
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density, format="csr", random_state=rng)
    X.data = rng.normal(size=X.nnz) if signed else rng.integers(1, 5, X.nnz).astype(float)
    query = np.where(rng.random(d) < 0.6, rng.normal(size=d) if signed else rng.random(d), 0)
    unit_query = oracle.unit(query[None])[0]
    _, scores = oracle.scan(oracle.unit(X), unit_query, top)
    hits = InvertedIndex(X).top(query, top)
    positive = scores[scores > 1e-6]
    assert hits.scores.size >= positive.size
    np.testing.assert_allclose(hits.scores[: positive.size], positive, rtol=2e-6, atol=2e-7)  # sums of float32
    np.testing.assert_allclose(oracle.unit(X)[hits.rows] @ unit_query, hits.scores, atol=2e-6)
    assert np.unique(hits.rows).size == hits.rows.size
    assert (np.diff(hits.scores) <= 0).all()


def test_ties_come_by_row_number():
    index = InvertedIndex(np.ones((5, 2)))
    assert index.top([1, 1], 3).rows.tolist() == [0, 1, 2]


def test_nothing_in_common_finds_nothing():
    index = InvertedIndex(np.array([[1.0, 0], [2, 0]]))
    assert index.top([0, 1]).rows.size == 0
    assert index.top([0, 0]).rows.size == 0


@pytest.mark.parametrize(
    ("query", "n", "said"), [([1, 2, 3], 1, r"shape \(1, 3\)"), ([1, 2], 0, "n is 0"), (np.ones((2, 2)), 1, "shape")]
)
def test_wrong_queries_are_named(query, n, said):
    with pytest.raises(BadInput, match=said):
        InvertedIndex(np.eye(2)).top(query, n)


def test_values_must_be_finite():
    with pytest.raises(BadInput, match="NaN"):
        InvertedIndex(np.array([[np.nan, 1]]))


def test_a_long_list_is_galloped_over():
    X = sp.csr_matrix((np.ones(40_000), (np.arange(40_000), np.zeros(40_000, int))), shape=(40_000, 2)).tolil()
    X[39_999, 1] = 1
    index = InvertedIndex(X)
    hits = index.top([0.01, 1], 1)
    assert hits.rows.tolist() == [39_999]
