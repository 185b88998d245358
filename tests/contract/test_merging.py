"""Law 4: halves make the whole, in either order; models that cannot be merged say so and stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from contract.cases import Case, cases, fingerprint
from shoal.errors import CannotMerge


def halves(case: Case) -> tuple[Any, Any, Any]:
    """Fits to two halves and to the whole, from one start where clusters are merged by their number."""
    X, make = case.rows(), case.make
    if case.package in ("kmeans", "densities"):
        start = make().fit(X).cluster_centers_

        def make() -> Any:
            return case.make().set_params(init=start, n_init=1)

    return make().fit(X[::2]), make().fit(X[1::2]), make().fit(X)


@cases("merging")
def test_halves_make_the_whole(case: Case) -> None:
    one, other, whole = halves(case)
    X = case.rows()
    merged = one.merge(other)
    assert merged is one
    assert float(np.sum(merged.cluster_sizes_)) == pytest.approx(X.shape[0], rel=0.02)
    assert adjusted_rand_score(merged.predict(X), whole.predict(X)) > 0.9


@cases("merging")
def test_the_order_of_merging_does_not_matter(case: Case) -> None:
    (one, other, _), (again, other_again, _) = halves(case), halves(case)
    X = case.rows(1)
    assert adjusted_rand_score(one.merge(other).predict(X), other_again.merge(again).predict(X)) > 0.98


@cases("merging")
def test_merging_leaves_the_other_as_it_was(case: Case) -> None:
    one, other, _ = halves(case)
    before = fingerprint(other)
    one.merge(other)
    assert fingerprint(other) == before


@cases("what cannot be merged")
def test_what_cannot_be_merged_is_refused_and_changes_nothing(case: Case) -> None:
    model = case.fitted()
    narrow = case.make().fit(case.narrow_rows())
    before = fingerprint(model)
    for other in (narrow, object()):
        with pytest.raises(CannotMerge):
            model.merge(other)
        assert fingerprint(model) == before
