"""Law 5: predict agrees with fit on the fitted rows, to a stated share. Sizes count the rows."""

from __future__ import annotations

import numpy as np

from contract.cases import Case, cases, learn

SHARE = 0.95  # planted clusters are far apart; samplers may keep a row elsewhere, and streams judge it at another time


@cases("predict agrees with fit")
def test_predict_agrees_with_fit(case: Case) -> None:
    model, X = case.fitted(), case.rows()
    options = {"times": np.arange(X.shape[0], dtype=float)} if case.streams else {}
    assert np.mean(model.predict(X, **options) == model.labels_) >= SHARE


@cases("labels name clusters")
def test_labels_are_cluster_ids(case: Case) -> None:
    model = case.fitted()
    assert set(model.labels_.tolist()) <= {-1, *model.reported_cluster_ids().tolist()}
    assert model.labels_.shape == (case.rows().shape[0],)


@cases("sizes")
def test_sizes_add_up_over_all_rows_learned(case: Case) -> None:
    model = case.fitted()
    assert model.cluster_sizes_.shape == model.cluster_ids_.shape
    counted = [np.count_nonzero(model.labels_ == id_) for id_ in model.cluster_ids_]
    np.testing.assert_allclose(model.cluster_sizes_, counted, atol=0.05 * case.rows().shape[0])
    if hasattr(model, "partial_fit"):
        before = float(np.sum(model.cluster_sizes_))
        learn(model, case.rows(1), 1000.0 if case.streams else None, more=True)
        assert float(np.sum(model.cluster_sizes_)) > 1.5 * before
