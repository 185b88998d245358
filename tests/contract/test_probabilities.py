"""Laws 3 and 6: a probability is one, and nothing of size rows x clusters is made unless asked for."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contract.cases import Case, cases, is_excused


@cases("probabilities")
def test_probabilities_are_probabilities(case: Case) -> None:
    model = case.fitted()
    X = case.rows(1)
    if is_excused("empty rows", case) is None:
        X = sp.vstack([X, sp.csr_matrix((1, X.shape[1]))]).tocsr()
    probabilities = model.predict_proba(X)
    assert np.isfinite(probabilities).all()
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-9)


@cases("probabilities")
def test_memberships_are_the_largest_probabilities(case: Case) -> None:
    model, X = case.fitted(), case.rows(1)
    n = len(model.cluster_ids_)
    full, top = model.predict_proba(X)[:, :n], model.memberships(X, top=2)
    assert sp.issparse(top)
    assert top.shape == (X.shape[0], n)
    assert np.diff(top.indptr).max() <= 2
    np.testing.assert_allclose(top.toarray()[top.toarray() > 0], full[top.toarray() > 0], rtol=1e-6)
    np.testing.assert_allclose(top.max(axis=1).toarray().ravel(), full.max(axis=1), rtol=1e-6)


@cases("probabilities")
def test_assign_gives_the_likeliest_cluster_and_its_probability(case: Case) -> None:
    model, X = case.fitted(), case.rows(1)
    labels, scores = model.assign(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    assert ((scores >= 0) & (scores <= 1)).all()
