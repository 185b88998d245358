"""The choice of settings: ours with its certificate against HiGHS on the same instance, and a million keywords.

python benchmarks/auction_optimize.py highs [seconds]    2,000 classes x 300 items, HiGHS given so many seconds (480)
python benchmarks/auction_optimize.py seeds              2,000 x 300, eight seeds, ours alone
python benchmarks/auction_optimize.py million            1,000,000 x 60
"""

from __future__ import annotations

import multiprocessing
import sys

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from common import Timer, peak_mb, record
from shoal.auction.solver.problem import Problem, Row, is_feasible
from shoal.auction.solver.solve import solve

ROW_SIZE = 1e4  # HiGHS is at its best with rows of this size


def instance(n_classes: int, n_alphas: int, n_reserves: int, seed: int) -> tuple[Problem, float]:
    """Smooth response curves with noise and Zipf traffic; revenue at least as now, mainline ads up to 5 % more."""
    rng = np.random.default_rng(seed)
    size = np.arange(1, n_classes + 1) ** -0.8
    size *= 100 / size.mean()
    tables = [np.empty((n_classes, n_alphas * n_reserves), np.float32) for _ in range(3)]
    u = np.linspace(-1.5, 1.5, n_reserves)
    for first in range(0, n_classes, 50_000):
        rows = slice(first, min(first + 50_000, n_classes))
        n, views = rows.stop - first, size[rows, None]
        ctr, bid = np.exp(rng.normal(-3, 0.6, (n, 1))), np.exp(rng.normal(4, 0.8, (n, 1)))
        middle, width, ads = rng.normal(0, 0.7, (n, 1)), rng.uniform(0.3, 1, (n, 1)), rng.uniform(0.5, 4, (n, 1))
        for a in range(n_alphas):
            at = slice(a * n_reserves, (a + 1) * n_reserves)
            mainline = ads / (1 + np.exp((u - middle - rng.normal(0, 0.15, (n, 1))) / width))
            noise = lambda: 1 + 0.03 * rng.normal(size=(n, 1))  # noqa: B023, E731
            tables[0][rows, at] = views * ctr * (0.3 + 0.6 * mainline**0.7) * noise()
            tables[1][rows, at] = views * ctr * bid * (0.25 + 0.5 * mainline**0.7 * np.exp(0.35 * u)) * noise()
            tables[2][rows, at] = views * mainline
    now = n_alphas // 2 * n_reserves + n_reserves // 2
    before = [float(table[:, now].sum(dtype=float)) for table in tables]
    rows_ = [Row("revenue", tables[1], before[1], True), Row("mainline_yield", tables[2], 1.05 * before[2], False)]
    return Problem(tables[0], rows_), before[0]


def ours(problem: Problem, tol: float, **options: float) -> tuple[object, float]:
    with Timer() as timer:
        found = solve(problem, tol=tol, **options)
    assert found.choice is not None
    assert is_feasible(problem.slack(found.choice))
    assert abs(found.value - problem.value_of(found.choice)) <= 1e-9 * found.value
    return found, timer.seconds


def highs(problem: Problem, seconds: float) -> tuple[float | None, float]:
    """Value and time of HiGHS with its default options; None if it was still at work after so many seconds.

    In a process of its own: it looks at its time limit between steps only, and its first linear programme is one step.
    """
    answers: multiprocessing.Queue[float | None] = multiprocessing.Queue()
    worker = multiprocessing.Process(target=_highs, args=(problem, answers))
    with Timer() as timer:
        worker.start()
        worker.join(seconds)
    value = None if worker.is_alive() else answers.get(timeout=10)
    worker.kill()
    return value, timer.seconds


def _highs(problem: Problem, answers: multiprocessing.Queue[float | None]) -> None:
    n_classes, n_items = problem.value.shape
    each = sp.kron(sp.eye(n_classes), np.ones((1, n_items)), format="csr")
    limits = [LinearConstraint(each, 1, 1)]
    for row in problem.rows:
        amounts = sp.csr_matrix(row.amounts.astype(float).ravel()[None] / row.bound * ROW_SIZE)
        limits.append(LinearConstraint(amounts, *((ROW_SIZE, np.inf) if row.at_least else (-np.inf, ROW_SIZE))))
    value = problem.value.astype(float).ravel()
    found = milp(
        -value,
        integrality=np.ones(value.size),
        bounds=Bounds(0, 1),
        constraints=limits,
        options={"mip_rel_gap": 1e-4},
    )
    answers.put(None if found.x is None else -float(found.fun))


def warm_up() -> None:
    ours(instance(60, 5, 12, 9)[0], 1e-5)
    ours(instance(60, 5, 12, 10)[0], 1e-12, seconds=2.0)


def against_highs(seconds: float) -> None:
    """An instance that HiGHS finishes, for equal answers; then the large one, for time."""
    warm_up()
    for n_classes, n_reserves in ((60, 12), (2000, 60)):
        problem, before = instance(n_classes, 5, n_reserves, 0)
        found, best = min((ours(problem, 1e-5) for _ in range(3)), key=lambda pair: pair[1])
        value, rival = highs(problem, seconds)
        record(
            "auction",
            workload=f"choose {n_classes:,} x {5 * n_reserves}",
            model="Lagrangian dual and rounding against HiGHS MIP (gap 1e-4)",
            seconds=best,
            quality=found.gap,
            lift=found.value / before - 1,
            rival_seconds=rival,
            rival_finished=value is not None,
            rival_value_to_ours=None if value is None else value / found.value - 1,
            ratio=rival / best,
            peak_mb=peak_mb(),
        )


def seeds() -> None:
    warm_up()
    for seed in range(8):
        problem, before = instance(2000, 5, 60, seed)
        found, took = ours(problem, 1e-5)
        record(
            "auction",
            workload="choose 2,000 x 300",
            model="Lagrangian dual and rounding",
            seed=seed,
            seconds=took,
            quality=found.gap,
            lift=found.value / before - 1,
            peak_mb=peak_mb(),
        )


def million() -> None:
    warm_up()
    problem, before = instance(1_000_000, 3, 20, 0)
    found, took = ours(problem, 1e-5, seconds=20.0)
    record(
        "auction",
        workload="choose 1,000,000 x 60",
        model="Lagrangian dual and rounding",
        seconds=took,
        quality=found.gap,
        lift=found.value / before - 1,
        passes=found.passes,
        table_mb=3 * problem.value.nbytes / 1e6,
        peak_mb=peak_mb(),
        steps={name: float(f"{gap:.1e}") for name, gap in found.steps.items()},
    )


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "all"
    if what in ("highs", "all"):
        against_highs(float(sys.argv[2]) if len(sys.argv) > 2 else 480.0)
    if what in ("seeds", "all"):
        seeds()
    if what in ("million", "all"):
        million()
