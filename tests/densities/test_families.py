"""Every formula against quadrature, a numerical optimizer, or the formula written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize

from oracles import densities as oracle
from shoal.densities import FAMILIES
from shoal.densities.gaussian import GaussianMixture
from shoal.densities.options import SIMPLE_FAMILIES


def family_named(name):
    return GaussianMixture(2) if name == "gaussian_mixture" else SIMPLE_FAMILIES[name]()


@pytest.mark.parametrize(
    ("name", "p", "q", "P", "Q", "span"),
    [
        ("gaussian", [0.3, 0.04], [0.5, 0.09], stats.norm(0.3, 0.2), stats.norm(0.5, 0.3), (-3, 3)),
        ("beta", [2.5, 4.0], [1.2, 3.0], stats.beta(2.5, 4), stats.beta(1.2, 3), (0, 1)),
        ("gamma", [2.5, 4.0], [1.2, 3.0], stats.gamma(2.5, scale=1 / 4), stats.gamma(1.2, scale=1 / 3), (0, 20)),
    ],
)
def test_divergence_is_the_integral(name, p, q, P, Q, span):
    integral = quad(lambda x: P.pdf(x) * (P.logpdf(x) - Q.logpdf(x)), *span, points=[0.3, 0.5], epsabs=1e-12)[0]
    found = family_named(name).kl(np.array([p]), np.array([q]))[0, 0]
    assert found == pytest.approx(integral, abs=1e-9)


def test_divergence_of_labelled_mixtures_bounds_that_of_the_unlabelled():
    """(16): the joint divergence is never below the divergence of the mixtures themselves."""
    p, q = oracle.rows_of("gaussian_mixture", 2, np.random.default_rng(0))
    density = lambda row, x: sum(row[z] * stats.norm(row[2 + z], row[4 + z] ** 0.5).pdf(x) for z in range(2))  # noqa: E731
    x = np.linspace(-2, 3, 50_001)
    inside = density(p, x) * np.log(np.maximum(density(p, x), 1e-300) / np.maximum(density(q, x), 1e-300))
    unlabelled = np.trapezoid(inside, x)
    assert GaussianMixture(2).kl(p[None], q[None])[0, 0] >= unlabelled - 1e-9


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_matrix_identity_equals_the_formula(name, seed):
    rng = np.random.default_rng(seed)
    P, Q = oracle.rows_of(name, 4, rng), oracle.rows_of(name, 5, rng)
    np.testing.assert_allclose(family_named(name).kl(P, Q), oracle.table(name, P, Q), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_survive_the_way_there_and_back(name):
    family = family_named(name)
    X = oracle.rows_of(name, 20, np.random.default_rng(1))
    np.testing.assert_allclose(family.from_natural(family.natural(X)), X, rtol=1e-9)
    np.testing.assert_allclose(family.from_expectation(family.expectation(X)), X, rtol=1e-6)


def free(name, X):
    """Parameters as unconstrained numbers, so that an optimizer may move them at will."""
    if name == "gaussian":
        return np.r_[X[:2], np.log(X[2:])]
    if name == "gaussian_mixture":
        return np.r_[np.log(X[0] / X[1]), X[2:4], np.log(X[4:])]
    if name == "categorical":
        return np.log(X[:-1] / X[-1])
    return np.log(X)


def bound(name, t):
    if name == "gaussian":
        return np.r_[t[:2], np.exp(t[2:])]
    if name == "gaussian_mixture":
        share = 1 / (1 + np.exp(-t[0]))
        return np.r_[share, 1 - share, t[1:3], np.exp(t[3:])]
    if name == "categorical":
        shares = np.exp(np.r_[t, 0.0])
        return shares / shares.sum()
    return np.exp(t)


@pytest.mark.parametrize("direction", ["center", "pooled"])
@pytest.mark.parametrize("name", FAMILIES)
def test_no_optimizer_finds_a_better_center(name, direction):
    """(12), (13), (23)-(25), 1.4 and the table of 1.5, with weights."""
    rng = np.random.default_rng(2)
    family, X, weights = family_named(name), oracle.rows_of(name, 12, rng), rng.gamma(1, 1, 12)
    weights /= weights.sum()

    def objective(row):
        pairs = [oracle.KL[name](row, x) if direction == "center" else oracle.KL[name](x, row) for x in X]
        return float(weights @ pairs)

    if direction == "center":
        center = family.from_natural((weights @ family.natural(X))[None])[0]
    else:
        center = family.from_expectation((weights @ family.expectation(X))[None])[0]
    start = free(name, X[0])
    found = minimize(lambda t: objective(bound(name, t)), start, method="BFGS", options={"gtol": 1e-8})
    assert objective(center) <= found.fun + 1e-9
    np.testing.assert_allclose(bound(name, found.x), center, rtol=2e-3)


def test_cost_of_a_mixture_cluster_has_the_closed_form():
    """(B): the least cost is -log sum_z exp( mean_q( log omega_qz - D(p_z || q_z) ) )."""
    rng = np.random.default_rng(3)
    X, family = oracle.rows_of("gaussian_mixture", 9, rng), GaussianMixture(2)
    center = family.from_natural(family.natural(X).mean(0)[None])[0]
    cost = family.kl(center[None], X).mean()
    logs = [
        np.mean([np.log(x[z]) - oracle.kl_gaussian([center[2 + z], center[4 + z]], [x[2 + z], x[4 + z]]) for x in X])
        for z in range(2)
    ]
    assert cost == pytest.approx(-np.log(np.exp(logs).sum()), rel=1e-12)
