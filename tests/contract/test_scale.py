"""Law 9: scale and shift where promised, and rows in any order where the model says so."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from contract.cases import CASES, Case, asked, cases, learn, planted_labels
from shoal.errors import BadInput


@cases("empty rows")
def test_empty_rows_are_survived(case: Case) -> None:
    X = sp.vstack([case.rows(), sp.csr_matrix((2, case.rows().shape[1]))]).tocsr()
    model = learn(case.make(), X, 0.0 if case.streams else None)
    assert model.labels_.shape == (X.shape[0],)
    assert np.isfinite(model.assign(X[-2:]).scores).all()


@cases("shifted times")
@pytest.mark.parametrize("origin", [1.6e9, -5e5])
def test_shifting_all_times_changes_nothing(case: Case, origin: float) -> None:
    if not case.streams:
        return
    X = case.rows()
    expected = learn(case.make(), X, 0.0).labels_
    assert adjusted_rand_score(expected, learn(case.make(), X, origin).labels_) > 0.99


@cases("shifted values")
@pytest.mark.parametrize("shift", [1e3, 1e6])
def test_shifting_measurements_keeps_the_clusters(case: Case, shift: float) -> None:
    if case.kind != "measurements":
        return
    X = case.rows().toarray()
    expected = learn(case.make(), X, 0.0 if case.streams else None).labels_
    moved = learn(case.make(), X + shift, 0.0 if case.streams else None).labels_
    assert adjusted_rand_score(expected, moved) > 0.95


@cases("shifted values")
def test_shifting_the_means_of_densities_keeps_the_clusters(case: Case) -> None:
    if case.kind not in ("parameters", "mixtures"):
        return
    X, means = case.rows().toarray(), MEANS[case.kind]
    expected = learn(case.make(), X, None).labels_
    X[:, means] += 1e6
    assert adjusted_rand_score(expected, learn(case.make(), X, None).labels_) > 0.95


MEANS = {"parameters": [0, 1, 2], "mixtures": [2, 3, 4, 5]}
VARIANCES = {"parameters": [3, 4, 5], "mixtures": [6, 7, 8, 9]}


def scaled(case: Case, factor: float) -> sp.csr_matrix:
    """The rows in another unit; the variance of a density goes with the square."""
    X = case.rows().toarray()
    if case.kind in MEANS:
        X[:, MEANS[case.kind]] *= factor
        X[:, VARIANCES[case.kind]] *= factor * factor
        return sp.csr_matrix(X)
    return sp.csr_matrix(X * factor)


@functools.cache
def expected_labels(name: str) -> np.ndarray:
    """Of the rows as they are."""
    return next(case for case in CASES if case.name == name).fitted().labels_


@cases("scaled rows")
@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_rows_of_any_size_keep_their_clusters_or_are_refused(case: Case, factor: float) -> None:
    """Where the unit matters to the model (counts), there is an answer, and it is a number."""
    begin, X = 0.0 if case.streams else None, scaled(case, factor)
    try:
        model = learn(case.make(), X, begin)
        answers = asked(model, X)
    except BadInput:
        return
    for name, answer in answers.items():
        assert not np.isnan(answer).any(), name
    unit_is_nothing = case.kind in ("measurements", "sets", *MEANS) or case.package == "kmeans"
    if unit_is_nothing and hasattr(model, "labels_"):
        assert adjusted_rand_score(expected_labels(case.name), model.labels_) > 0.95


@cases("weights of any size")
@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_weights_of_any_size_keep_the_clusters_or_are_refused(case: Case, weight: float) -> None:
    """A weight of Bernoulli profiles is how often a row came: many are too many to count, few tell nothing."""
    model, X = case.make(), case.rows()
    if "sample_weight" not in inspect.signature(model.fit).parameters:
        return
    try:
        model.fit(X, sample_weight=np.full(X.shape[0], weight))
    except BadInput:
        assert case.package == "bernoulli"
        return
    for name, answer in asked(model, X).items():
        assert not np.isnan(answer).any(), name
    if case.package != "bernoulli":
        assert adjusted_rand_score(expected_labels(case.name), model.labels_) > 0.95


@pytest.mark.parametrize("kernel", ["exponential:half_life=20", "step", "power:scale=9", "periodic:period=30", None])
def test_no_time_kernel_counts_from_zero(kernel: str | None) -> None:
    case = next(case for case in CASES if case.name == "streams-multinomial")
    labels = []
    for origin in (0.0, 1.7e9):
        model = learn(case.make().set_params(kernel=kernel, drift=1e-4), case.rows(), origin)
        learn(model, case.rows(1), origin + 200.0, more=True)
        assert np.isfinite(model.predict_proba(case.rows())).all()
        labels.append(model.all_labels_)
    np.testing.assert_array_equal(*labels)


@cases("planted clusters")
def test_planted_clusters_are_found(case: Case) -> None:
    assert adjusted_rand_score(planted_labels(0), case.fitted().labels_) > 0.8
