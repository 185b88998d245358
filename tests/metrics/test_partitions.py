"""Measures of two clusterings, against scikit-learn and against their definitions."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from oracles import metrics as oracle
from shoal import metrics
from shoal.errors import BadInput

labels = st.integers(0, 5)
pairs = st.lists(st.tuples(labels, labels), min_size=1, max_size=40).map(lambda rows: tuple(zip(*rows, strict=True)))


@given(pairs)
def test_against_scikit_learn(pair):
    a, b = pair
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it wonders about as many classes as items
        for average in ("arithmetic", "geometric"):
            ours = metrics.normalized_mutual_information(a, b, average=average)
            assert ours == pytest.approx(sk.normalized_mutual_info_score(a, b, average_method=average), abs=1e-9)
        assert metrics.adjusted_rand_index(a, b) == pytest.approx(sk.adjusted_rand_score(a, b), abs=1e-12)
        assert metrics.v_measure(a, b) == pytest.approx(sk.homogeneity_completeness_v_measure(a, b), abs=1e-9)
        tilted = sk.homogeneity_completeness_v_measure(a, b, beta=2.5)
        assert metrics.v_measure(a, b, beta=2.5) == pytest.approx(tilted, abs=1e-9)
        table = metrics.contingency(a, b)
        np.testing.assert_array_equal(table.counts.toarray(), sk.cluster.contingency_matrix(a, b))


@given(pairs)
def test_against_definitions(pair):
    a, b = pair
    assert metrics.variation_of_information(a, b) == pytest.approx(oracle.variation_of_information(a, b), abs=1e-12)
    bits = metrics.variation_of_information(a, b, base="bits")
    assert bits == pytest.approx(oracle.variation_of_information(a, b) / math.log(2), abs=1e-12)
    assert metrics.purity(a, b) == pytest.approx(oracle.purity(a, b), abs=1e-12)
    assert metrics.b_cubed(a, b)[:2] == pytest.approx(oracle.b_cubed(a, b), abs=1e-12)
    assert metrics.owner_entropy(a, b) == pytest.approx(oracle.owner_entropy(a, b), abs=1e-12)


@given(pairs, pairs)
def test_variation_of_information_is_a_distance(pair, other):
    n = min(len(pair[0]), len(other[0]))
    a, b, c = pair[0][:n], pair[1][:n], other[0][:n]
    distance = metrics.variation_of_information
    assert distance(a, a) == 0
    assert distance(a, b) == pytest.approx(distance(b, a), abs=1e-12)
    assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-12


SIX = st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=1, max_size=25)


@given(st.data())
def test_items_that_belong_nowhere(data):
    a = np.array(data.draw(SIX))
    b = np.array(data.draw(st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=len(a), max_size=len(a))))
    singles_a, singles_b = (np.where(x == -1, 100 + np.arange(len(x)), x) for x in (a, b))
    kept = (a != -1) & (b != -1)
    for measure in (
        metrics.variation_of_information, metrics.normalized_mutual_information, metrics.adjusted_rand_index,
        metrics.purity, metrics.b_cubed, metrics.v_measure,
    ):  # fmt: skip
        assert measure(a, b) == pytest.approx(measure(np.where(a == -1, 9, a), np.where(b == -1, 9, b)))
        assert measure(a, b, outliers="singletons") == pytest.approx(measure(singles_a, singles_b))
        assert measure(a, b, outliers="drop") == pytest.approx(measure(a[kept], b[kept]))


@pytest.mark.parametrize(
    "spelling",
    [
        lambda x: np.array(x, np.int32),
        lambda x: np.array(x) * 10**15 + (np.array(x) == -1) * (10**15 - 1),
        lambda x: np.array(x, float),
        lambda x: [None if v == -1 else f"label {v}" for v in x],
        lambda x: np.array([math.nan if v == -1 else v for v in x]),
        lambda x: [None if v == -1 else (v if v else "zero") for v in x],
    ],
)
def test_labels_may_be_spelt_in_many_ways(spelling):
    a, b = [0, 0, 1, 2, -1, -1, 1], [0, 1, 1, 2, 2, -1, -1]
    for outliers in ("cluster", "singletons", "drop"):
        expected = metrics.evaluate(a, b, outliers=outliers)
        assert metrics.evaluate(spelling(a), spelling(b), outliers=outliers) == pytest.approx(expected)


def test_contingency_names_its_labels():
    table = metrics.contingency(["b", None, "a", "b"], [7, 7, -1, 3])
    assert table.rows.tolist() == ["a", "b", -1]
    assert table.columns.tolist() == [3, 7, -1]
    assert table.counts.toarray().tolist() == [[0, 0, 1], [1, 1, 0], [0, 1, 0]]


def test_nothing_to_judge_is_no_fault():
    nothing = metrics.evaluate([], [])
    assert nothing["vi"] == 0
    assert nothing["nmi"] == nothing["ari"] == nothing["purity"] == nothing["b_cubed_f1"] == 1
    assert metrics.adjusted_rand_index([3], [4]) == 1


def test_a_million_items_quickly():
    rng = np.random.default_rng(0)
    a = rng.integers(1000, size=1_000_000)
    b = np.where(rng.random(a.size) < 0.8, a, rng.integers(1000, size=a.size))
    assert metrics.normalized_mutual_information(a, b) == pytest.approx(sk.normalized_mutual_info_score(a, b), abs=1e-9)


def test_evaluate_gives_plain_numbers():
    scores = metrics.evaluate(["a", "a", "b"], [0, 0, -1], owners=[1, 1, 2], clutter=-1, base="bits")
    assert scores["unassigned"] == 1
    assert scores["clusters"] == 1
    assert scores["owner_entropy"] == scores["owner_entropy_without_clutter"] == 0
    assert {type(value) for value in scores.values()} == {int, float}


def test_owner_entropy_by_hand():
    owners, found = ["a", "a", "a", "a", "b", None], [0, 0, 1, 1, 5, 6]
    assert metrics.owner_entropy(owners, found) == pytest.approx(4 / 5 * math.log(2))
    assert metrics.owner_entropy(owners, found, base="bits", clutter=1) == 0
    assert metrics.owner_entropy(owners, found, clutter=5) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.purity([1, 2], [1]), "first labels are 2 and the second 1"),
        (lambda: metrics.purity([[1, 2]], [[1, 2]]), r"shape \(1, 2\)"),
        (lambda: metrics.purity([1], [1], outliers="ignore"), "outliers is 'ignore'"),
        (lambda: metrics.variation_of_information([1], [1], base="trits"), "base is 'trits'"),
        (lambda: metrics.normalized_mutual_information([1], [1], average="max"), "average is 'max'"),
        (lambda: metrics.owner_entropy([1, 2], [1]), "2 owners and labels of shape"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(BadInput, match=message):
        call()


@pytest.mark.parametrize("seed", range(5))
def test_owner_information_is_what_entropy_loses(seed):
    rng = np.random.default_rng(seed)
    owners, found = rng.integers(5, size=200), rng.integers(-1, 4, size=200)
    expected = oracle.entropy(found) - oracle.owner_entropy(owners, found)
    assert metrics.owner_information(owners, found) == pytest.approx(expected, abs=1e-12)
    assert metrics.owner_information(owners, owners * 0) == 0
    assert metrics.owner_information([], []) == 0
    assert metrics.effective_number_of_clusters(found[found >= 0]) == pytest.approx(
        math.exp(oracle.entropy(found[found >= 0]))
    )
    assert metrics.effective_number_of_clusters(found) == metrics.effective_number_of_clusters(found[found >= 0])
    assert metrics.effective_number_of_clusters([-1, -1]) == 0
