import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from oracles import auction as oracle
from shoal.auction.solver.dual import minimize
from shoal.auction.solver.problem import Problem, Row, is_feasible
from shoal.auction.solver.solve import solve


def curves(seed, n_classes, n_items, n_rows=2):
    """Clicks, revenue and shown ads that trade off against one another, with a heavy head."""
    rng = np.random.default_rng(seed)
    size = 1 / np.arange(1, n_classes + 1)[:, None] * rng.gamma(2, 1, (n_classes, 1))
    x = np.linspace(0, 1, n_items)
    clicks = size * (1.2 - 0.5 * x + 0.05 * rng.normal(size=(n_classes, n_items)))
    revenue = size * (0.6 + x - rng.uniform(0.4, 1.2, (n_classes, 1)) * x**2 + 0.05 * rng.normal(size=clicks.shape))
    shown = size * (1.3 - rng.uniform(0.3, 0.9, (n_classes, 1)) * x + 0.02 * rng.normal(size=clicks.shape))
    everything = size * (2 - x + 0.1 * rng.normal(size=clicks.shape))
    middle = n_items // 2
    rows = [
        Row("revenue", revenue, float(revenue[:, middle].sum()), True),
        Row("mainline_yield", shown, 1.05 * float(shown[:, middle].sum()), False),
        Row("ad_yield", everything, 1.1 * float(everything[:, middle].sum()), False),
    ]
    return clicks, rows[:n_rows]


def highs(value, rows):
    n_classes, n_items = value.shape
    each = sp.kron(sp.eye(n_classes), np.ones((1, n_items)), format="csr")
    constraints = [LinearConstraint(each, 1, 1)]
    for row in rows:
        scale = 1e4 / abs(row.bound)
        low, high = (1e4, np.inf) if row.at_least else (-np.inf, 1e4)
        constraints.append(LinearConstraint(sp.csr_matrix(row.amounts.ravel()[None] * scale), low, high))
    found = milp(
        -value.ravel(),
        integrality=np.ones(value.size),
        bounds=Bounds(0, 1),
        constraints=constraints,
        options={"mip_rel_gap": 1e-9, "time_limit": 20},
    )
    return None if found.x is None else -found.fun


@given(seed=st.integers(0, 100_000), n_classes=st.integers(1, 5), n_items=st.integers(1, 5), n_rows=st.integers(0, 3))
@settings(max_examples=60)
def test_equals_trying_everything(seed, n_classes, n_items, n_rows):
    value, rows = curves(seed, n_classes, n_items, n_rows)
    signed = [row.sign * row.amounts for row in rows]
    wanted = oracle.best_choice(value, signed, [row.sign * row.bound - 1e-9 * abs(row.bound) for row in rows])
    found = solve(Problem(value, rows), tol=1e-9)
    if wanted is None:
        assert found.choice is None
        return
    assert found.choice is not None
    assert found.value == pytest.approx(wanted[0], rel=1e-8)
    assert found.bound >= wanted[0] * (1 - 1e-9)
    assert is_feasible(Problem(value, rows).slack(found.choice))


@pytest.mark.parametrize("seed", range(4))
def test_equals_highs(seed):
    value, rows = curves(seed, 30, 12)
    found = solve(Problem(value, rows), tol=1e-7)
    assert found.gap <= 1e-7
    assert found.value == pytest.approx(highs(value, rows), rel=2e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_classes_end_with_a_small_certified_gap(dtype):
    value, rows = curves(1, 3000, 40)
    rows = [Row(row.name, row.amounts.astype(dtype), row.bound, row.at_least) for row in rows]
    problem = Problem(value.astype(dtype), rows)
    found = solve(problem)
    assert found.gap <= 1e-5
    assert is_feasible(problem.slack(found.choice))
    assert found.value == pytest.approx(problem.value_of(found.choice), rel=1e-12)
    assert (found.prices > 0).any()


def test_prices_are_shadow_prices():
    """A little more capacity in a row is worth its price."""
    value, rows = curves(2, 3000, 40)
    base = minimize(Problem(value, rows))
    step = 1e-4
    looser = [Row(r.name, r.amounts, r.bound * (1 - step if r.at_least else 1 + step), r.at_least) for r in rows]
    for at in range(2):
        moved = [*rows[:at], looser[at], *rows[at + 1 :]]
        gained = minimize(Problem(value, moved)).bound - base.bound
        assert gained == pytest.approx(base.prices[at] * step, rel=0.05, abs=1e-7)


def test_infeasible_is_proven():
    value, rows = curves(0, 20, 6)
    rows[0].bound *= 10
    found = solve(Problem(value, rows))
    assert found.choice is None
    assert found.infeasible


def test_bound_never_below_value_on_step_like_tables():
    rng = np.random.default_rng(0)
    for seed in range(4):
        value, rows = curves(seed, 40, 10)
        value = np.round(value, 1)
        rows = [Row(r.name, np.round(r.amounts, 1), r.bound * rng.uniform(0.95, 1), r.at_least) for r in rows]
        found = solve(Problem(value, rows), tol=1e-4, seconds=0.5)
        if found.choice is not None:
            assert found.bound >= found.value - 1e-12
