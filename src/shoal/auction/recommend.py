"""Clusters, keywords, or something between: let held-out days decide, and add margins for what they miss.

A plan fitted to some days looks better on those days than on others. Leaving out one day at a time, and half of the
days at once, shows by how much; the limits are then moved so that the days left out would have kept them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from shoal.auction.auction_log import AuctionLog
from shoal.auction.cluster import cluster_keywords
from shoal.auction.landscape import landscapes
from shoal.auction.optimize import LIMITS, Infeasible, Plan, lift, optimize
from shoal.auction.replay import ReplayTable, Settings, Totals, replay
from shoal.errors import BadInput
from shoal.progress import message, task
from shoal.threads import ordered_map
from shoal.validation import check_real

STRENGTHS = (3.0, 10.0, 30.0, 100.0, 300.0)  # page views of the cluster's average added to each keyword
QUICK: dict[str, Any] = {"tol": 1e-3, "seconds": 0.5}  # enough to compare levels: differences are larger than that


@dataclass(frozen=True)
class Level:
    """One way to share settings among keywords."""

    name: str
    clusters: np.ndarray | None = None
    shrinkage: float | None = None

    def plan(self, table: ReplayTable, goals: dict[str, Any], **options: Any) -> Plan:
        return optimize(table, clusters=self.clusters, shrinkage=self.shrinkage, **goals, **options)


@dataclass
class HeldOut:
    """What a level brings on days it has not seen."""

    level: Level
    lift: dict[str, float]  # over all left-out days together
    later: dict[str, float]  # fitted to the first half of the days, tried on the second
    earlier: dict[str, float]  # the other way round: markets drift both ways
    by_day: list[dict[str, float]]

    def error(self, name: str) -> float:
        """Standard error of the mean over days."""
        values = np.array([day[name] for day in self.by_day])
        return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def levels_for(clusters: np.ndarray, strengths: Any = STRENGTHS) -> list[Level]:
    """Per cluster, per keyword, and per keyword drawn towards its cluster by various strengths."""
    between = [Level(f"keyword, shrunken by {strength:g} page views", clusters, strength) for strength in strengths]
    return [Level("cluster", clusters), *between, Level("keyword")]


def hold_out(table: ReplayTable, level: Level, goals: dict[str, Any]) -> HeldOut:
    """Leave out each day, then each half of the days. Days without traffic are skipped."""
    days = active_days(table)
    if days.size < 2:
        raise BadInput(
            f"choosing a level needs at least 2 days with traffic, the table has {days.size}; use optimize directly."
        )
    whole = table.over_days(days)
    after, before, by_day = np.zeros(4), np.zeros(4), []
    for day in days:
        held = table.over_days([day])
        new, old = _try(whole.minus(held), held, level, goals)
        after, before = after + new, before + old
        by_day.append(lift(Totals(*new), Totals(*old)))
    half = (days.size + 1) // 2
    halves = []
    for tried in (days[half:], days[: days.size - half]):
        held = table.over_days(tried)
        new, old = _try(whole.minus(held), held, level, goals)
        halves.append(lift(Totals(*new), Totals(*old)))
    later, earlier = halves
    return HeldOut(level, lift(Totals(*after), Totals(*before)), later, earlier, by_day)


def active_days(table: ReplayTable) -> np.ndarray:
    """Numbers of the days that have traffic."""
    return np.flatnonzero(table.page_views.reshape(-1, table.n_days).sum(0) > 0)


def _try(fitted: ReplayTable, held: ReplayTable, level: Level, goals: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    plan = level.plan(fitted, goals, **QUICK)
    return np.array(held.under(plan.choice)), np.array(held.baseline())


def margins_from(
    held: HeldOut, limits: dict[str, float], *, probability: float = 0.9, days_ahead: int | None = None
) -> dict[str, float]:
    """By how much to move each limit so that all hold together on unseen days with this probability.

    Three things make a plan miss a limit on days it has not seen, and each is estimated from back-tests inside the
    training days. Optimism: what days left out one at a time missed. Drift: how much more was missed when half of the
    days were predicted from the other half; the days ahead lie further away, and drift is taken to be a random walk,
    which grows with the root of the distance. Noise: the spread of single days around their mean, by a t quantile for
    ``days_ahead`` new days; the probability is shared among the limits (Bonferroni). A margin may be negative: figures
    drawn towards a cluster promise less than they bring, and the limit may then be loosened.
    """
    n_days = len(held.by_day)
    ahead = days_ahead or n_days
    quantile = float(student_t.ppf(1 - (1 - probability) / max(len(limits), 1), max(n_days - 1, 1)))
    margins = {}
    for name, limit in limits.items():
        missed = partial(_missed, name, limit)
        near, later, earlier = missed(held.lift), missed(held.later), missed(held.earlier)
        drift = max(later - near, earlier - near, 0.0) * float(np.sqrt((n_days + ahead) / n_days))
        by_day = np.array([missed(day) for day in held.by_day])
        spread = float(by_day.std(ddof=1)) if n_days > 1 else 0.0
        noise = quantile * spread * float(np.sqrt(1 / n_days + 1 / ahead))
        margins[name] = float(np.clip(near + drift + noise, -0.05, 0.3))
    return margins


def _guarded_margins(
    table: ReplayTable, held: HeldOut, limits: dict[str, float], goals: dict[str, Any], probability: float
) -> dict[str, float]:
    """Margins from back-tests of plans that have margins themselves.

    A plan that must earn more picks the settings whose revenue looks high on its days; it misses its promise by more
    than a plan without margins does.
    """
    first = margins_from(held, limits, probability=probability)
    try:
        again = hold_out(table, held.level, goals | {"margins": first})
    except Infeasible:
        return first
    moved = {name: limit * (1 + (first[name] if LIMITS[name][1] else -first[name])) for name, limit in limits.items()}
    return margins_from(again, moved, probability=probability)


def _missed(name: str, limit: float, change: dict[str, float]) -> float:
    """By what fraction of a limit these totals miss it; negative when they keep it."""
    over = 1 + change[name] - limit
    return (-over if LIMITS[name][1] else over) / limit


def worth(held: HeldOut, limits: dict[str, float], prices: dict[str, float], objective: str) -> float:
    """Held-out gain in the objective, with what was missed or left over of the limits counted at the shadow prices."""
    gain = held.lift[objective]
    for name, limit in limits.items():
        over = 1 + held.lift[name] - limit
        gain += prices[name] * (over if LIMITS[name][1] else -over)
    return gain


def recommend(
    log: AuctionLog,
    *,
    settings: Settings | None = None,
    clusters: np.ndarray | None = None,
    n_clusters: int | Sequence[int] = 64,
    level: str = "auto",
    margins: str | dict[str, float] = "auto",
    probability: float = 0.9,
    clicks_from: str = "auto",
    random_state: int = 0,
    table: ReplayTable | None = None,
    seconds: float = 2.0,
    **goals: Any,
) -> Plan:
    """Recommend settings for a log: landscapes in two coordinates, relative settings, the level chosen on held-out
    days.

    Parameters
    ----------
    log : AuctionLog
        The log.
    settings : Settings, optional
        Candidates; ``Settings.relative()`` if not given.
    clusters, n_clusters : cluster numbers of the keywords, or how many clusters of landscapes to make; of several
        numbers, held-out days choose (keywords are drawn towards clusters of the first).
    level : "auto" lets held-out days choose; "cluster", "keyword" or "shrunken" (its strength is then chosen).
    margins : "auto" moves the limits by what back-tests inside these days missed, so that on as many new days all of
        them hold with the given ``probability``; ``{}`` keeps them as they are. What the margins cost is in
        ``facts["clicks given up"]`` (or revenue, if that is maximized), as a fraction.
    clicks_from : "auto" calibrates click rates if the log counts clicks, else takes its estimates.
    probability : see ``margins``.
    random_state : random seed.
    table : a replay of this log made with ``by_day=True``, if there is one already.
    seconds : how long to work on the final choice, at most.
    goals : ``maximize``, ``clicks``, ``revenue``, ``mainline_yield``, ``ad_yield``, as in :func:`optimize`.

    Examples
    --------
    >>> from shoal.auction import Market, baseline_policy
    >>> market = Market(20, n_days=2, page_views_per_day=100, random_state=0)
    >>> log = market.log(baseline_policy(market, tuning="coarse").policy)
    >>> plan = recommend(log, n_clusters=4, level="cluster", margins={}, seconds=0.5)
    >>> plan.level
    'cluster'
    """
    clicks_from = best_clicks(log) if clicks_from == "auto" else clicks_from
    if table is None:
        table = replay(log, settings, by_day=True, clicks_from=clicks_from)
    if clusters is None:
        land = landscapes(log)
        sizes = [n_clusters] if isinstance(n_clusters, int) else list(n_clusters)
        clusterings = [cluster_keywords(land, size, random_state=random_state) for size in sizes]
    else:
        clusterings = [np.asarray(clusters)]
    candidates = levels_for(clusterings[0])
    others = [Level(f"cluster (one of {labels.max() + 1})", labels) for labels in clusterings[1:]]
    reference = optimize(table.over_days(), **goals, **QUICK)
    wanted = _wanted(candidates, level) + (others if level in ("auto", "cluster") else [])
    tried = _hold_out_all(table, wanted, goals)
    limits, prices = reference.constraints, reference.shadow_prices
    best = max(tried, key=lambda held: worth(held, limits, prices, reference.objective))
    if margins == "auto":
        check_real("probability", probability, minimum=0.5, maximum=0.999)
        moved = _guarded_margins(table, best, limits, goals, probability)
    else:
        moved = dict(margins)  # type: ignore[arg-type]
    plan = _plan_with_margins(table.over_days(), best.level, goals, moved, seconds)
    unguarded = best.level.plan(table.over_days(), goals, seconds=seconds)
    objective = reference.objective
    plan.facts |= {
        "probability": probability if margins == "auto" else None,
        f"{objective} given up": float(unguarded.lift()[objective] - plan.lift()[objective]),
        "level": best.level.name,
        "held out": {
            held.level.name: {**held.lift, "worth": worth(held, limits, prices, reference.objective)} for held in tried
        },
        "clicks from": clicks_from,
        "days": [str(log.days[day]) for day in active_days(table)],
    }
    message(f"level chosen on held-out days: {best.level.name}; margins {moved}")
    return plan


def best_clicks(log: AuctionLog) -> str:
    """Calibrated click rates where the log counts clicks."""
    return "estimated" if log.clicked is None or not log.clicked.any() else "calibrated"


def _wanted(levels: list[Level], name: str) -> list[Level]:
    chosen = {
        "auto": levels,
        "cluster": levels[:1],
        "shrunken": levels[1:-1],
        "keyword": levels[-1:],
    }
    if name not in chosen:
        raise BadInput(f"level is {name!r}; choose one of {', '.join(chosen)}.")
    return chosen[name]


def _hold_out_all(table: ReplayTable, levels: list[Level], goals: dict[str, Any]) -> list[HeldOut]:
    def attempt(level: Level) -> HeldOut | Infeasible:
        try:
            return hold_out(table, level, goals)
        except Infeasible as error:  # clusters under absolute settings may have no feasible choice on some days
            return error

    tried = []
    with task("levels", total=len(levels)) as bar:
        for level, result in zip(levels, ordered_map(attempt, levels), strict=True):
            bar.advance()
            if isinstance(result, Infeasible):
                message(f"level {level.name} is left out: {result}")
            else:
                tried.append(result)
    if not tried:
        raise Infeasible(
            "no level keeps the constraints on every set of days; loosen one, or use relative settings.", {}
        )
    return tried


def _plan_with_margins(
    table: ReplayTable, level: Level, goals: dict[str, Any], margins: dict[str, float], seconds: float
) -> Plan:
    """Solve with the margins; halve those that ask for too much."""
    for attempt in range(6):
        try:
            plan = level.plan(table, goals, margins=margins, seconds=seconds)
            return replace(plan, facts={"margins halved": attempt})
        except Infeasible:
            margins = {name: margin / 2 for name, margin in margins.items()}
    return level.plan(table, goals, seconds=seconds)
