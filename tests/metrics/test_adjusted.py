"""Mutual information corrected for chance, against scikit-learn and against the mean over permutations."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score

from shoal.metrics import adjusted_mutual_information


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 6, 80), rng.integers(0, 1 + seed, 80)
    b = np.where(rng.random(80) < 0.3, a, b)
    expected = adjusted_mutual_info_score(a, b)
    assert adjusted_mutual_information(a, b) == pytest.approx(expected, abs=1e-10)
    assert adjusted_mutual_information(b, a) == pytest.approx(expected, abs=1e-10)


def test_chance_scores_zero_on_average():
    rng = np.random.default_rng(0)
    a = np.repeat(np.arange(5), 12)
    scores = [adjusted_mutual_information(a, rng.permutation(np.repeat(np.arange(20), 3))) for _ in range(200)]
    assert abs(np.mean(scores)) < 4 * np.std(scores) / np.sqrt(len(scores))


def test_one_cluster_on_both_sides_agrees_and_unassigned_rows_can_be_left_out():
    assert adjusted_mutual_information([1, 1, 1], ["x", "x", "x"]) == 1.0
    assert adjusted_mutual_information([1, 1, 2, 2, 2], [0, 0, 1, 1, -1], outliers="drop") == 1.0
