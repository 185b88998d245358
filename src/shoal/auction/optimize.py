"""Reserve prices: one setting for each cluster or keyword, for the most clicks or revenue within given limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.auction.auction_log import Policy
from shoal.auction.replay import ReplayTable, Settings, Totals
from shoal.auction.solver.problem import Problem, Row
from shoal.auction.solver.solve import Solution, solve
from shoal.errors import BadInput

# constraint -> which total it limits, and from which side
LIMITS = {
    "clicks": ("clicks", True),
    "revenue": ("revenue", True),
    "mainline_yield": ("mainline", False),
    "ad_yield": ("impressions", False),
}


class Infeasible(BadInput):
    """No choice of settings keeps all constraints; ``achievable`` holds the best that each alone could reach."""

    def __init__(self, message: str, achievable: dict[str, float]) -> None:
        super().__init__(message)
        self.achievable = achievable


@dataclass
class Plan:
    """The chosen settings and what they promise."""

    choice: np.ndarray  # (n_keywords,) number of the setting
    clusters: np.ndarray | None  # (n_keywords,) cluster of each keyword, where settings are per cluster
    settings: Settings
    level: str  # "cluster", "keyword" or "shrunken"
    shrinkage: float | None  # page views by which keywords are drawn towards their clusters
    objective: str
    constraints: dict[str, float]  # limits relative to the log, as asked for
    margins: dict[str, float]  # by how much they were tightened
    predicted: Totals  # in the sample the plan was made on
    before: Totals  # the logged policy on the same sample
    shadow_prices: dict[str, float]  # per cent of the objective gained by one per cent of slack in a constraint
    gap: float  # certified: no choice is better by more than this fraction
    seconds: float
    keyword_limits: dict[str, float] = field(default_factory=dict)  # for every keyword by itself, relative to the log
    facts: dict[str, Any] = field(default_factory=dict)  # what the choice of level saw, calibration and the like

    def policy(self, logged: Policy) -> Policy:
        """The reserve table as a policy."""
        return self.settings.policy(logged, self.choice)

    def lift(self) -> dict[str, float]:
        """Change of each total against the log, as a fraction."""
        return lift(self.predicted, self.before)


def lift(after: Totals, before: Totals) -> dict[str, float]:
    """Changes as fractions: clicks, revenue, mainline and ad yield (page views are the same), cost per click."""
    changes = {
        name: float(new / old - 1) if old else 0.0
        for name, new, old in zip(("clicks", "revenue", "mainline_yield", "ad_yield"), after, before, strict=True)
    }
    changes["cpc"] = (1 + changes["revenue"]) / (1 + changes["clicks"]) - 1 if changes["clicks"] > -1 else 0.0
    return changes


def optimize(
    table: ReplayTable,
    *,
    maximize: str = "clicks",
    clicks: float | None = None,
    revenue: float | None = 1.0,
    mainline_yield: float | None = 1.05,
    ad_yield: float | None = None,
    keyword_limits: dict[str, float] | None = None,
    clusters: np.ndarray | None = None,
    shrinkage: float | None = None,
    margins: dict[str, float] | None = None,
    tol: float = 1e-4,
    seconds: float = 2.0,
) -> Plan:
    """Choose a setting for every cluster, or for every keyword when no clusters are given.

    Parameters
    ----------
    table : ReplayTable
        Result of :func:`replay`.
    maximize : "clicks" or "revenue".
    clicks, revenue : at least this multiple of the log's.
    mainline_yield, ad_yield : at most this multiple of the log's mainline ads (all ads) per page view. None lifts a
        limit; three at most can be set.
    keyword_limits : for every keyword by itself at least this multiple of its clicks or revenue in the log, for example
        ``{"clicks": 0.8, "revenue": 0.8}``: no keyword then loses more than 20 % of either on the log's own days. A
        cluster gets no setting that one of its keywords cannot have.
    clusters : (n_keywords,) cluster numbers.
    shrinkage : with ``clusters``, settings are chosen per keyword, from figures that are averaged with those of its
        cluster, which have the weight of this many page views. This reduces the noise of rare keywords.
    margins : by what fraction to tighten each limit, for example ``{"revenue": 0.01}``; see ``recommend``.
    tol, seconds : stop at this certified gap, or after about this long.

    Raises
    ------
    Infeasible : if a limit cannot be kept; the message names it and the closest feasible value.

    Examples
    --------
    >>> from shoal.auction import Market, baseline_policy, replay
    >>> market = Market(20, n_days=2, page_views_per_day=100, random_state=0)
    >>> log = market.log(baseline_policy(market, tuning="coarse").policy)
    >>> plan = optimize(replay(log), seconds=0.5)
    >>> plan.gap < 0.1
    True
    """
    limits = {"clicks": clicks, "revenue": revenue, "mainline_yield": mainline_yield, "ad_yield": ad_yield}
    asked = {name: float(limit) for name, limit in limits.items() if limit is not None and name != maximize}
    if maximize not in ("clicks", "revenue"):
        raise BadInput(f"maximize is {maximize!r}; choose 'clicks' or 'revenue'.")
    if table.n_days:
        table = table.over_days()
    level = "keyword" if clusters is None else "cluster" if shrinkage is None else "shrunken"
    if shrinkage is not None and clusters is None:
        raise BadInput("shrinkage draws keywords towards their clusters: give clusters= as well.")
    used = table
    if clusters is not None:
        clusters = np.asarray(clusters)
        used = table.grouped(clusters) if shrinkage is None else shrunken(table, clusters, shrinkage)
    margins = {name: float((margins or {}).get(name, 0.0)) for name in asked}
    fallback = None
    if keyword_limits:
        allowed = allowed_settings(table, keyword_limits, clusters if level == "cluster" else None)
        used, fallback = without_forbidden(used, allowed, maximize)
    problem = _problem(used, table.baseline(), maximize, asked, margins)
    solution = solve(problem, tol=tol, seconds=seconds)
    if solution.choice is None:
        raise _why_infeasible(problem, asked, margins, solution)
    choice = solution.choice.astype(np.int64)
    if fallback is not None:
        choice = fallback[np.arange(choice.size), choice]
    choice = choice[clusters] if level == "cluster" else choice
    return Plan(
        choice=choice,
        clusters=clusters,
        settings=table.settings,
        level=level,
        shrinkage=shrinkage,
        objective=maximize,
        constraints=asked,
        keyword_limits=dict(keyword_limits or {}),
        margins=margins,
        predicted=table.under(choice),
        before=table.baseline(),
        shadow_prices=_shadow_prices(problem, solution),
        gap=solution.gap,
        seconds=solution.seconds,
    )


def shrunken(table: ReplayTable, clusters: np.ndarray, strength: float) -> ReplayTable:
    """Keyword figures drawn towards their cluster's, as if it had ``strength`` average page views more."""
    together = table.grouped(clusters)
    views = table.page_views[:, None]
    own = views / (views + strength) if strength > 0 else np.ones_like(views)
    per_view = 1.0 / np.maximum(together.page_views, 1e-12)[:, None]
    parts = (
        own * part + (1 - own) * views * (whole * per_view)[clusters]
        for part, whole in zip(table.totals, together.totals, strict=True)
    )
    return ReplayTable.of(parts, status_quo=table.status_quo, page_views=table.page_views, settings=table.settings)


def allowed_settings(table: ReplayTable, limits: dict[str, float], clusters: np.ndarray | None) -> np.ndarray:
    """(n_keywords or n_clusters, n_settings): may each keyword, or every keyword of the cluster, have this setting?"""
    unknown = set(limits) - {"clicks", "revenue"}
    if unknown:
        raise BadInput(f"keyword_limits names {', '.join(sorted(unknown))}; it may limit clicks and revenue.")
    allowed: np.ndarray = np.full(table.clicks.shape, True)
    for name, limit in limits.items():
        if not 0 <= limit <= 1:
            raise BadInput(f"the limit on {name} of every keyword is {limit!r}; it must lie between 0 and 1.")
        before = np.asarray(getattr(table.status_quo, name), dtype=float)[:, None]
        allowed &= getattr(table, name) >= limit * before * (1 - 1e-9)
    if clusters is not None:
        together = np.full((int(clusters.max()) + 1, table.settings.n), True)
        np.logical_and.at(together, clusters, allowed)
        allowed = together
    stuck = np.flatnonzero(~allowed.any(1))
    if stuck.size:
        raise Infeasible(
            f"{stuck.size} of {len(allowed)} keywords or clusters have no setting within the limits for every keyword; "
            "loosen them, or use relative settings, which always include the logged policy.",
            {},
        )
    return allowed


def without_forbidden(table: ReplayTable, allowed: np.ndarray, maximize: str) -> tuple[ReplayTable, np.ndarray]:
    """The table with the figures of the best allowed setting in place of forbidden ones, and which setting that is."""
    value = np.where(allowed, getattr(table, maximize), -np.inf)
    best = value.argmax(1)
    instead = np.where(allowed, np.arange(allowed.shape[1])[None, :], best[:, None])
    parts = (np.take_along_axis(part, instead, axis=1) for part in table.totals)
    replaced = ReplayTable.of(parts, status_quo=table.status_quo, page_views=table.page_views, settings=table.settings)
    return replaced, instead


def _problem(
    table: ReplayTable, before: Totals, maximize: str, asked: dict[str, float], margins: dict[str, float]
) -> Problem:
    rows = []
    for name, limit in asked.items():
        total, at_least = LIMITS[name]
        tightened = limit * (1 + margins[name]) if at_least else limit * (1 - margins[name])
        rows.append(Row(name, getattr(table, total), tightened * getattr(before, total), at_least))
    return Problem(getattr(table, maximize), rows)


def _shadow_prices(problem: Problem, solution: Solution) -> dict[str, float]:
    value = max(abs(solution.value), 1e-300)
    return {row.name: float(price / value) for row, price in zip(problem.rows, solution.prices, strict=True)}


def _why_infeasible(
    problem: Problem, asked: dict[str, float], margins: dict[str, float], solution: Solution
) -> Infeasible:
    """Find the limit that cannot be kept, alone or together with the others."""
    if not solution.infeasible:
        return Infeasible(
            "no choice that keeps all constraints was found in time, though none was ruled out; allow more seconds or "
            "loosen a constraint a little.",
            {},
        )
    achievable = {}
    for row in problem.rows:
        extreme = row.amounts.max(1).sum(dtype=float) if row.at_least else row.amounts.min(1).sum(dtype=float)
        tightened = asked[row.name] * (1 + margins[row.name] * row.sign)
        achievable[row.name] = float(extreme / row.bound * tightened)
        if row.sign * (extreme - row.bound) < 0:
            side = "at most" if row.at_least else "at least"
            return Infeasible(
                f"{row.name} of {tightened:.4g} times the log's cannot be reached: it is {side} "
                f"{achievable[row.name]:.4g} times whatever the settings. Ask for that or less, or widen the settings.",
                achievable,
            )
    # Each can be kept alone: how far does each get while the others hold?
    for at, row in enumerate(problem.rows):
        others = [other for place, other in enumerate(problem.rows) if place != at]
        alone = solve(Problem(row.sign * row.amounts, others), tol=1e-3, seconds=5)
        tightened = asked[row.name] * (1 + margins[row.name] * row.sign)
        achievable[row.name] = float(row.sign * alone.value / row.bound * tightened)
    words = ", ".join(f"{name} {value:.4g}" for name, value in achievable.items())
    return Infeasible(
        f"the constraints {', '.join(achievable)} cannot all be kept together. With the others kept, "
        f"each reaches: {words} times the log's. Loosen one to that, or use relative settings, which always include "
        "the logged policy.",
        achievable,
    )
