"""Each family's numbers against their definitions: ratios of marginals, Monte Carlo, numerical derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.families import gaussian_log_marginal, log_marginal
from shoal.families import Bernoulli, Gaussian, Multinomial, Poisson
from shoal.families.hierarchy import build
from shoal.families.statistics import add

COUNTS = np.array([[2, 0, 1, 0], [1, 0, 0, 0], [0, 3, 0, 0], [0, 1, 1, 0], [1, 1, 0, 20]], dtype=float)
LABELS = np.array([0, 0, 1, 1, 1])
FAMILIES: dict[str, Any] = {
    "multinomial": Multinomial(mean=np.array([0.4, 0.3, 0.2, 0.1]), strength=2.0, smoothing=0.1),
    "poisson": Poisson(mean=np.array([0.9, 0.8, 0.5, 0.3]), strength=0.7),
    "bernoulli": Bernoulli(mean=np.array([0.4, 0.5, 0.6, 0.2]), strength=1.5),
}


def rows_for(name: str) -> np.ndarray:
    return (COUNTS > 0).astype(float) if name == "bernoulli" else COUNTS


@pytest.mark.parametrize("name", FAMILIES)
def test_marginal_and_predictive_are_the_oracles(name: str) -> None:
    family, X = FAMILIES[name], rows_for(name)
    stats = family.statistics(sp.csr_matrix(X), LABELS, 3)
    expected = [log_marginal(name, X[cluster == LABELS], family.shape, family.rate) for cluster in range(2)]
    np.testing.assert_allclose(family.log_marginal(stats), [*expected, 0.0], rtol=1e-11, atol=1e-11)
    new = np.array([[1.0, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1]])
    found = family.log_predictive(stats, sp.csr_matrix(new))
    for row in range(3):
        for cluster in range(3):
            rows = X[cluster == LABELS]
            grown = log_marginal(name, np.vstack([rows, new[row]]), family.shape, family.rate)
            before = log_marginal(name, rows, family.shape, family.rate) if len(rows) else 0.0
            assert found[row, cluster] == pytest.approx(grown - before, rel=1e-10, abs=1e-10)
        at = family.log_predictive_at(stats, sp.csr_matrix(new), np.array([1, 0, -1]))
    np.testing.assert_allclose(at, [found[0, 1], found[1, 0], found[2, 2]], rtol=1e-12)


@pytest.mark.parametrize("spherical", [False, True])
def test_gaussian_marginal_and_predictive_are_the_oracles(spherical: bool) -> None:
    X = np.random.default_rng(0).normal(size=(7, 3))
    family = Gaussian(np.zeros(3), np.ones(3), kappa=0.3, a=1.5, b=0.6, spherical=spherical)
    labels = np.array([0, 0, 0, 1, 1, 0, 1])
    stats = family.statistics(X, labels, 2)

    def of(rows: np.ndarray) -> float:
        return gaussian_log_marginal(rows, 0.3, 1.5, 0.6, spherical=spherical)

    np.testing.assert_allclose(family.log_marginal(stats), [of(X[labels == 0]), of(X[labels == 1])], rtol=1e-12)
    new = np.array([[0.5, -1, 2]])
    expected = [of(np.vstack([X[labels == cluster], new])) - of(X[labels == cluster]) for cluster in range(2)]
    np.testing.assert_allclose(family.log_predictive(stats, new)[0], expected, rtol=1e-10)


def test_gaussian_likelihood_is_in_the_datas_own_units() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2)) * [3.0, 0.1] + [5, -2]
    family = Gaussian.for_rows(X)
    stats = family.statistics(X, np.zeros(50, np.int64), 1)
    grid = np.stack(np.meshgrid(np.linspace(-30, 40, 400), np.linspace(-3.5, -0.5, 400)), axis=-1).reshape(-1, 2)
    mass = np.exp(family.log_predictive(stats, grid)).sum() * (70 / 399) * (3 / 399)
    assert mass == pytest.approx(1, abs=0.01)


def test_theta_and_gamma_by_monte_carlo() -> None:
    rng, n = np.random.default_rng(0), 200_000
    for name, family in FAMILIES.items():
        stats = family.statistics(sp.csr_matrix(rows_for(name)), LABELS, 2)
        a = (family.shape + stats.sums.toarray())[0]
        if name == "multinomial":
            theta = np.log(rng.dirichlet(a, n))
            g = np.zeros(n)
        elif name == "poisson":
            theta = np.log(rng.gamma(a, 1 / (family.rate + 2), (n, 4)))
            g = np.exp(theta)
        else:
            p = rng.beta(a, family.rate + 2 - a, (n, 4))
            theta, g = np.log(p) - np.log1p(-p), -np.log1p(-p)
        error = 6 * theta.std(axis=0) / np.sqrt(n) + 1e-9
        assert (np.abs(family.theta(stats)[0] - theta.mean(axis=0)) < error).all()
        assert (np.abs(family.gamma(stats)[0] - g.mean(axis=0)) < 6 * g.std(axis=0) / np.sqrt(n) + 1e-9).all()


def test_mean_parameter_is_the_derivative_of_g() -> None:
    theta = np.array([0.3, -0.2])
    step = 1e-6
    for family, mean in ((FAMILIES["poisson"], np.exp(theta)), (FAMILIES["bernoulli"], 1 / (1 + np.exp(-theta)))):
        slope = (family.log_partition(theta + step) - family.log_partition(theta - step)) / (2 * step)
        np.testing.assert_allclose(slope, mean, rtol=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.floats(0.05, 30), st.integers(1, 60))
def test_table_of_absences_is_the_sum(seed: int, strength: float, n_features: int) -> None:
    family = Bernoulli(np.random.default_rng(seed).uniform(0.01, 0.97, n_features), strength)
    a, m = family.shape, np.arange(12)[:, None]
    expected = np.log((strength - a + m) / (strength + m)).sum(axis=1)
    np.testing.assert_allclose(family.absent_table(10), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_merging_everything_gives_the_whole(name: str) -> None:
    family, X = FAMILIES[name], sp.csr_matrix(rows_for(name))
    stats = family.statistics(X, np.arange(5), 5)
    tree = build(family, stats)
    whole = family.log_marginal(family.statistics(X, np.zeros(5, np.int64), 1))[0]
    assert family.log_marginal(stats).sum() - tree.losses.sum() == pytest.approx(whole, rel=1e-10)
    halves = [type(stats)(*(part[[at]] for part in stats)) for at in (0, 1)]
    first = family.log_marginal(stats)[:2].sum() - family.log_marginal(add(*halves))[0]
    assert tree.losses.min() <= first + 1e-9
