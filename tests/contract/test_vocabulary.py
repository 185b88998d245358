"""Columns are known by name: in another order, with columns missing or new, and as tables of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from contract.cases import N_FEATURES, Case, asked, cases, learn, named, same_answers
from shoal.data import Dataset, Vocabulary
from shoal.errors import BadInput


def fitted_on_names(case: Case) -> Any:
    return learn(case.make(), named(case.rows()), 0.0 if case.streams else None)


@cases("columns by name")
def test_columns_in_another_order_are_aligned(case: Case) -> None:
    model, X = fitted_on_names(case), case.rows(1)
    order = np.random.default_rng(3).permutation(X.shape[1])
    same_answers(asked(model, named(X, order)), asked(model, X))


@cases("unknown columns")
def test_unknown_columns_are_left_out_when_asking(case: Case) -> None:
    model, X = fitted_on_names(case), case.rows(1)
    wider = sp.hstack([sp.csr_matrix(np.ones((X.shape[0], 2))), X]).tocsr()
    names = Vocabulary(["new 1", "new 2", *named(X).vocabulary])
    same_answers(asked(model, Dataset(wider, names)), asked(model, X))


@cases("tables by name")
@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_tables_are_aligned_too(case: Case, table: Any) -> None:
    X = case.rows().toarray()
    names = [f"w{column}" for column in range(X.shape[1])]
    model = learn(case.make(), table(dict(zip(names, X.T, strict=True))), 0.0 if case.streams else None)
    new = case.rows(1).toarray()
    backwards = table({name: new[:, at] for at, name in reversed(list(enumerate(names)))})
    same_answers(asked(model, backwards), asked(model, new))


@cases("another width")
def test_a_bare_matrix_of_another_width_is_refused(case: Case) -> None:
    model, X = fitted_on_names(case), case.rows(1)
    for other in (X[:, :-1], sp.hstack([X, X[:, :1]]).tocsr()):
        with pytest.raises(BadInput, match="features"):
            asked(model, other)


@cases("unknown columns")
def test_new_columns_become_features_when_learning(case: Case) -> None:
    model = case.make()
    if not hasattr(model, "partial_fit") or case.kind not in ("counts", "sets"):
        return
    learn(model, named(case.rows()), 0.0 if case.streams else None)
    n_names = len(model.vocabulary_)
    vocabulary = model.vocabulary_
    learn(model, named(case.rows(1), prefix="v"), 1000.0 if case.streams else None, more=True)
    assert model.n_features_in_ == len(model.vocabulary_) == 2 * N_FEATURES
    assert len(vocabulary) == n_names, "a vocabulary that others may hold has grown"
    for answer in asked(model, named(case.rows(2))).values():
        assert answer.shape[0] == case.rows().shape[0]
