"""Weights, means and covariances with their intervals, and chains that agree or do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal.families import ChainsDisagree, ExponentialFamilyMixture
from shoal.families.posterior import effective_sample_size, r_hat, relabeled


def blobs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.3).astype(int)
    return np.array([[0.0, 1.0], [9.0, -4.0]])[truth] + np.array([[1.0, 2.0], [2.0, 0.5]])[truth] * rng.normal(
        size=(n, 2)
    ), truth


@pytest.mark.parametrize("covariance", ["diagonal", "spherical", "full", "tied"])
def test_parameters_are_near_the_truth(covariance: str) -> None:
    X, truth = blobs(2000, 0)
    model = ExponentialFamilyMixture(
        2, family="gaussian", covariance=covariance, init=truth, n_sweeps=6, random_state=0
    ).fit(X)
    assert model.n_clusters_ == 2
    np.testing.assert_allclose(model.weights_, [0.7, 0.3], atol=0.04)
    np.testing.assert_allclose(model.means_, [[0, 1], [9, -4]], atol=0.25)
    found = model.covariances_
    if covariance == "diagonal":
        np.testing.assert_allclose(found, [[1, 4], [4, 0.25]], rtol=0.15)
    elif covariance == "full":
        np.testing.assert_allclose(found, [np.diag([1.0, 4]), np.diag([4.0, 0.25])], atol=0.35)
    elif covariance == "tied":
        np.testing.assert_allclose(found, np.diag([1.9, 2.875]), atol=0.35)
    else:
        assert found.shape == (2,)
    assert model.bic(X) > model.aic(X) > 0
    one = ExponentialFamilyMixture(1, family="gaussian", covariance=covariance, n_sweeps=2, random_state=0).fit(X)
    assert model.bic(X) < one.bic(X)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """90 % intervals over 60 simulated sets of 2 weights, 4 means and 4 variances: 600 truths, so +- 5 %."""
    held: list[np.ndarray] = []
    for seed in range(60):
        X, truth = blobs(120, seed)
        model = ExponentialFamilyMixture(
            2, family="gaussian", smoothing=0.05, init=truth, n_sweeps=8, n_samples=4, random_state=seed
        ).fit(X)
        found = model.credible_intervals(0.9)
        truths = {"weights": [0.7, 0.3], "means": [[0, 1], [9, -4]], "covariances": [[1, 4], [4, 0.25]]}
        for name, value in truths.items():
            held.append(((found[name].low <= value) & (value <= found[name].high)).ravel())
    assert 0.84 < np.concatenate(held).mean() < 0.95


def test_r_hat_and_effective_sample_size() -> None:
    rng = np.random.default_rng(0)
    chains = rng.normal(size=(4, 500))
    assert r_hat(chains) == pytest.approx(1.0, abs=0.02)
    assert effective_sample_size(chains) == pytest.approx(2000, rel=0.25)
    assert r_hat(chains + np.array([[0], [0], [0], [3.0]])) > 1.3
    walk = np.zeros((4, 500))
    for at in range(1, 500):
        walk[:, at] = 0.95 * walk[:, at - 1] + rng.normal(size=4)
    assert effective_sample_size(walk) < 300


def test_draws_are_relabeled_to_the_reference() -> None:
    reference = np.array([0, 0, 0, 1, 1, 2])
    samples = np.array([[2, 2, 2, 0, 0, 1], [5, 5, 1, 1, 1, 1], [0, 1, 2, 3, 3, 4]])
    found = relabeled(samples, reference)
    np.testing.assert_array_equal(found[0], reference)
    np.testing.assert_array_equal(found[1], [0, 0, 1, 1, 1, 1])
    assert found[2][3] == found[2][4] == 1
    assert found[2][5] == 2
    assert len(np.unique(found[2])) == 5


@pytest.mark.filterwarnings("ignore::shoal.families.StuckSampler")
def test_chains_that_were_made_to_disagree_are_told() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)) + np.array([[0.0, 0], [12, 0], [0, 12]])[rng.integers(0, 3, 150)]
    options: dict[str, Any] = {"family": "gaussian", "random_state": 0, "n_sweeps": 16}
    agreed = ExponentialFamilyMixture(4, n_chains=3, **options).fit(X)
    assert agreed.samples_.shape[0] == 3 * 8
    assert set(agreed.diagnostics_.r_hat) == {"log_joint", "n_clusters"}
    words = np.kron(np.eye(12), np.full((6, 4), 3.0)) + (rng.random((72, 48)) < 0.05)
    with pytest.warns(ChainsDisagree, match="disagree"):
        ExponentialFamilyMixture(
            12, n_chains=4, n_sweeps=12, init="random", sampler="fastex", n_bits=16, hashes="published", random_state=0
        ).fit(words)
