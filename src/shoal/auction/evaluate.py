"""Plans on days they have not seen, with frozen bids and, in a simulated market, with bidders who react."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.auction.auction_log import AuctionLog
from shoal.auction.cluster import cluster_keywords
from shoal.auction.landscape import landscapes
from shoal.auction.market import Market
from shoal.auction.optimize import Infeasible, Plan, lift, optimize
from shoal.auction.recommend import best_clicks, recommend
from shoal.auction.replay import ReplayTable, Settings, Totals, replay, replay_policy
from shoal.progress import message, task

FROZEN_BIDS = (
    "Held-out figures keep every logged bid as it was. Where bidders react to reserves, the gain in clicks "
    "shrinks (by a "
    "fifth to a half in simulated markets, more where data is thin), revenue tends to drop further and the "
    "mainline fills "
    "up more than planned. Introduce new reserves on a part of the traffic first."
)
OURS, UNGUARDED = "shoal", "shoal, no margins"
PAPER = ("k-GMM", "k-means", "k-Gauss", "k-bins")


@dataclass
class Result:
    """One method."""

    method: str
    plan: Plan | None  # None when its constraints could not be kept
    in_sample: dict[str, float] = field(default_factory=dict)
    held_out: dict[str, float] = field(default_factory=dict)
    interval: dict[str, tuple[float, float]] = field(default_factory=dict)  # over held-out days
    reacting: dict[str, float] | None = None
    adjusted: float = float("nan")  # held-out gain at equal constraints, by the shadow prices of the keyword level
    own_terms: float = float(
        "nan"
    )  # the same by the method's own shadow prices: what keeping its limits would have cost
    why_not: str = ""

    @property
    def optimism(self) -> float:
        """How much better the plan looked on its own days."""
        return self.in_sample["clicks"] - self.held_out["clicks"]


@dataclass
class Evaluation:
    """Methods side by side."""

    results: list[Result]
    fitted: np.ndarray  # numbers of the days the plans were made from
    train_days: list[str]
    test_days: list[str]
    prices: dict[str, float]  # per cent of clicks for one per cent of a constraint
    warning: str = FROZEN_BIDS

    def __getitem__(self, method: str) -> Result:
        return next(result for result in self.results if result.method == method)

    def table(self) -> str:
        """A table to print: per cent changes against the logged policy on the same days."""
        lines = [f"{'method':<22}{'in-sample':>22}{'held-out days':>24}{'95 % of clicks':>18}{'adjusted':>10}"]
        lines.append(f"{'':<22}{'clicks   rev  MLIY':>22}{'clicks   rev  MLIY':>24}")
        for result in self.results:
            if result.plan is None:
                lines.append(f"{result.method:<22}  {result.why_not[:90]}")
                continue
            low, high = result.interval["clicks"]
            lines.append(
                f"{result.method:<22}{_three(result.in_sample):>22}{_three(result.held_out):>24}"
                f"{f'{100 * low:.1f} .. {100 * high:.1f}':>18}{100 * result.adjusted:>10.2f}"
            )
        return "\n".join(lines)


def evaluate(
    log: AuctionLog,
    *,
    test_days: Any = None,
    methods: Any = (*PAPER, OURS),
    n_clusters: int = 64,
    settings: Settings | None = None,
    paper_coordinates: str = "logbid_ctr",
    market: Market | None = None,
    random_state: int = 0,
    seconds: float = 2.0,
    **goals: Any,
) -> Evaluation:
    """Back-test several methods: fit on the first days, evaluate on the last.

    Parameters
    ----------
    log : AuctionLog
        The log.
    test_days : numbers of the days to hold out; the second half of the days with traffic if not given.
    methods : of ``METHODS``, "keyword", "shoal" (the recommended plan), after it "shoal, no margins", or pairs of a
        name and ready cluster numbers.
    n_clusters : number of clusters of every method.
    paper_coordinates : coordinates of the methods of the paper; see :func:`landscapes`.
    random_state : random seed.
    settings : candidates for every method except "shoal", which uses relative ones; relative if not given.
    market : the simulated market the log came from; then clicks on held-out days are the true ones, and bidders are
        also let react to the new reserves.
    seconds : time limit for the choice of one method.
    goals : as in :func:`optimize`.

    Examples
    --------
    >>> from shoal.auction import Market, baseline_policy
    >>> market = Market(20, n_days=2, page_views_per_day=100, random_state=0)
    >>> log = market.log(baseline_policy(market, tuning="coarse").policy)
    >>> found = evaluate(log, methods=("k-means",), n_clusters=4, seconds=0.5)
    >>> [result.method for result in found.results]
    ['k-means']
    """
    busy = np.flatnonzero(np.bincount(log.day, log.weight, log.days.size) > 0)
    tested = busy[(busy.size + 1) // 2 :] if test_days is None else np.asarray(test_days)
    fitted = np.setdiff1d(busy, tested)
    train, test = log.on_days(fitted), log.on_days(tested)
    truth = "true" if log.true_ctr is not None else "estimated"
    settings = settings or Settings.relative()
    learn, check = replay(train, settings), replay(test, settings, by_day=True, clicks_from=truth)
    relative = settings if settings.is_relative else Settings.relative()
    check_relative = check if settings.is_relative else replay(test, relative, by_day=True, clicks_from=truth)
    reference = optimize(learn, **goals, seconds=seconds)
    prices = _prices(reference)
    land = landscapes(train, coordinates=paper_coordinates)
    results = []
    with task("methods", total=len(methods)) as bar:
        for method in methods:
            name = method if isinstance(method, str) else method[0]
            try:
                if name == OURS:
                    days = replay(train, relative, by_day=True, clicks_from=best_clicks(train))
                    plan = ours = recommend(
                        train, table=days, n_clusters=n_clusters, random_state=random_state, seconds=seconds, **goals
                    )
                    bare = optimize(days, clusters=ours.clusters, shrinkage=ours.shrinkage, seconds=seconds, **goals)
                elif name == UNGUARDED:
                    plan = bare
                else:
                    plan = optimize(
                        learn,
                        clusters=_labels(method, land, n_clusters, random_state),
                        tol=2e-4,
                        seconds=seconds,
                        **goals,
                    )
            except Infeasible as error:
                message(f"{name}: {error}")
                results.append(Result(name, None, why_not=str(error)))
            else:
                found = _validate(name, plan, check_relative if name in (OURS, UNGUARDED) else check, tested, prices)
                if market is not None:
                    found.reacting = _with_reactions(market, log, test, tested, plan)
                results.append(found)
            bar.advance()
    names = lambda numbers: [str(log.days[day]) for day in numbers]  # noqa: E731
    return Evaluation(results, fitted, names(fitted), names(tested), prices)


def _labels(method: Any, land: Any, n_clusters: int, random_state: int) -> np.ndarray | None:
    if not isinstance(method, str):
        return np.asarray(method[1])
    if method == "keyword":
        return None
    return cluster_keywords(land, n_clusters, method=method, random_state=random_state)


def _validate(name: str, plan: Plan, check: ReplayTable, days: np.ndarray, prices: dict[str, float]) -> Result:
    per_day = [check.over_days([day]) for day in days]
    after = np.array([table.under(plan.choice) for table in per_day])
    before = np.array([table.baseline() for table in per_day])
    held_out = lift(Totals(*after.sum(0)), Totals(*before.sum(0)))
    return Result(
        name,
        plan,
        plan.lift(),
        held_out,
        day_intervals(after, before),
        adjusted=adjusted(held_out, plan.constraints, prices, plan.objective),
        own_terms=adjusted(held_out, plan.constraints, _prices(plan), plan.objective),
    )


def _prices(plan: Plan) -> dict[str, float]:
    """Shadow prices as a share of the objective before, not after."""
    after, before = (getattr(totals, plan.objective) for totals in (plan.predicted, plan.before))
    return {name: price * after / before for name, price in plan.shadow_prices.items()}


def adjusted(change: dict[str, float], limits: dict[str, float], prices: dict[str, float], objective: str) -> float:
    """The gain corrected to equal constraints: missed revenue is paid for, unused mainline places are credited."""
    gain = change[objective]
    for name, limit in limits.items():
        over = 1 + change[name] - limit
        gain += prices.get(name, 0.0) * (min(over, 0.0) if name in ("revenue", "clicks") else -over)
    return float(gain)


def day_intervals(after: np.ndarray, before: np.ndarray, *, n_draws: int = 2000) -> dict[str, tuple[float, float]]:
    """95 % intervals of the lifts when whole days are drawn again, with replacement."""
    random = np.random.default_rng(0)
    draws = random.integers(0, len(after), (n_draws, len(after)))
    ratio = after[draws].sum(1) / np.maximum(before[draws].sum(1), 1e-300) - 1
    low, high = np.quantile(ratio, [0.025, 0.975], axis=0)
    return {
        name: (float(a), float(b))
        for name, a, b in zip(("clicks", "revenue", "mainline_yield", "ad_yield"), low, high, strict=True)
    }


def _with_reactions(
    market: Market, log: AuctionLog, test: AuctionLog, days: np.ndarray, plan: Plan
) -> dict[str, float]:
    """The held-out days again, with bids that answer the new reserves."""
    new = plan.policy(log.policy)
    before = replay_policy(test, log.policy, clicks_from="true")
    after = replay_policy(market.log(new, days=days), new, clicks_from="true")
    return lift(Totals(*(part.sum() for part in after)), Totals(*(part.sum() for part in before)))


def _three(change: dict[str, float]) -> str:
    return " ".join(f"{100 * change[name]:6.1f}" for name in ("clicks", "revenue", "mainline_yield"))
