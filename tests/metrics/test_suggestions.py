"""Suggestions, against definitions and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from oracles import metrics as oracle
from shoal.errors import BadInput
from shoal.metrics import ndcg_at, recall_at


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_against_definitions(seed, n):
    rng = np.random.default_rng(seed)
    hidden = rng.random((6, 10)) < 0.3
    hidden[0, 0] = True
    scores = rng.permuted(np.tile(np.arange(10.0), (6, 1)), axis=1)
    ranked = np.argsort(-scores, axis=1)
    relevant = [np.flatnonzero(row) for row in hidden]
    expected = oracle.recall_at(relevant, ranked.tolist(), n)
    assert recall_at(relevant, ranked, n) == pytest.approx(expected)
    assert recall_at(sp.csr_matrix(hidden), ranked, n) == pytest.approx(expected)
    asked = hidden.any(axis=1)
    expected = ndcg_score(hidden[asked], scores[asked], k=n)
    assert ndcg_at(relevant, ranked, n) == pytest.approx(expected)


def test_by_hand():
    assert recall_at([[1, 2, 3]], [[3, 1]], 1) == pytest.approx(1 / 3)
    assert recall_at([[1, 2, 3]], [[3, 1]], 1, capped=True) == 1
    assert recall_at([[1], []], [[1], [2]], 5) == 1, "a query with nothing to find is not counted"
    assert recall_at([[1, 2]], [[1, 1, 1]], 3) == 0.5, "found twice is found once"
    assert recall_at([[1, 2]], np.array([[1, -1, -1]]), 3) == 0.5
    assert ndcg_at([["x", "y"]], [["x", "y"]], 2) == 1
    assert ndcg_at([["x"]], [["no", "x"]], 5) == pytest.approx(1 / math.log2(3))
    assert math.isnan(recall_at([[]], [[1]], 3))
    assert math.isnan(ndcg_at([], [], 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: recall_at([[1]], [[1]], 0), "n is 0"),
        (lambda: recall_at([[1]], [[1], [2]], 1), "relevant has 1 queries and ranked 2"),
        (lambda: recall_at(["jazz"], [["jazz"]], 1), r"relevant\[0\] is 'jazz'"),
        (lambda: ndcg_at([[1]], [3], 1), r"ranked\[0\] is 3"),
    ],
)
def test_errors_say_what_to_do(call, message):
    with pytest.raises(BadInput, match=message):
        call()
