"""scikit-learn's own checks."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from shoal.families import ExponentialFamilyMixture

A_CLASSIFIER = "the check takes every model with predict_proba and sparse input for a classifier, and reads its classes"
FOR_ALL = {"check_estimator_sparse_matrix": A_CLASSIFIER, "check_estimator_sparse_array": A_CLASSIFIER}
NOT_COUNTS = {
    "check_clustering": "the data are two measurements, standardised; counts say nothing of where a blob is",
}


def failing(estimator: ExponentialFamilyMixture) -> dict[str, str]:
    return FOR_ALL if estimator.family == "gaussian" else FOR_ALL | NOT_COUNTS


@parametrize_with_checks(
    [ExponentialFamilyMixture(4, n_sweeps=6), ExponentialFamilyMixture(4, n_sweeps=6, family="bernoulli")],
    expected_failed_checks=failing,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)
