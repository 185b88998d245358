"""Law 9: scale and shift where promised, and rows in any order where the model says so."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from contract.cases import Case, cases, learn, planted_labels


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


@cases("scaled rows")
@pytest.mark.parametrize("factor", [1e-200, 1e-30, 1e30, 1e150])
def test_k_means_does_not_depend_on_the_length_of_rows(case: Case, factor: float) -> None:
    if case.package != "kmeans":
        return
    X = case.rows()
    expected = learn(case.make(), X, None).labels_
    np.testing.assert_array_equal(learn(case.make(), X * factor, None).labels_, expected)


@cases("planted clusters")
def test_planted_clusters_are_found(case: Case) -> None:
    assert adjusted_rand_score(planted_labels(0), case.fitted().labels_) > 0.8
