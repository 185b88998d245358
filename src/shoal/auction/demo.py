"""The whole chain on a simulated market: log, landscapes, clusters, replay, plan, back-test, report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shoal.auction.auction_log import AuctionLog
from shoal.auction.baseline_policy import COARSE, baseline_policy
from shoal.auction.cluster import cluster_keywords
from shoal.auction.evaluate import OURS, PAPER, UNGUARDED, Evaluation, evaluate
from shoal.auction.export import export_plan
from shoal.auction.landscape import landscapes
from shoal.auction.market import Market
from shoal.auction.optimize import Infeasible
from shoal.auction.recommend import best_clicks
from shoal.auction.replay import replay
from shoal.auction.report import write_report
from shoal.progress import message


class Demo(NamedTuple):
    """What the demonstration leaves behind."""

    evaluation: Evaluation
    report: Path
    files: list[Path]


def demo(
    out: str | Path, *, n_keywords: int = 1000, n_days: int = 14, n_clusters: int = 48, random_state: int = 0
) -> Demo:
    """Simulate a market, propose reserves, back-test them, and write report and reserve table to ``out``."""
    out = Path(out)
    message("simulating a market whose reserves were tuned by bins of keywords, and whose bidders react")
    market = Market(n_keywords, n_days=n_days, page_views_per_day=20 * n_keywords, random_state=random_state)
    log = market.log(baseline_policy(market, tuning=COARSE).policy)
    message(f"{log.n_auctions:,} auctions, {log.n_bids:,} bids; fitting on the first half of the days")
    return propose_and_report(
        log,
        out / "report.html",
        market=market,
        n_clusters=n_clusters,
        random_state=random_state,
        title="Reserve prices for a simulated market: proposal and back-test",
    )


def propose_and_report(
    log: AuctionLog,
    page: str | Path,
    *,
    market: Market | None = None,
    n_clusters: int = 64,
    random_state: int = 0,
    title: str = "Reserve prices: proposal and back-test",
    keywords: Sequence[Any] = (),
    cents_per_unit: float = 1.0,
    currency: str = "",
    **goals: Any,
) -> Demo:
    """Fit on the first half of the days, try on the second, write the page, and the reserve table next to it."""
    page = Path(page)
    methods = (*PAPER, "keyword", OURS, UNGUARDED)
    evaluation = evaluate(
        log, methods=methods, n_clusters=n_clusters, market=market, random_state=random_state, **goals
    )
    plan = evaluation[OURS].plan
    if plan is None:
        raise Infeasible(evaluation[OURS].why_not, {})
    train = log.on_days(evaluation.fitted)
    table = replay(train, clicks_from=best_clicks(train))
    clusters = cluster_keywords(landscapes(train), n_clusters, random_state=random_state)
    files = export_plan(plan, train, table, page.parent, cents_per_unit=cents_per_unit)
    money: dict[str, Any] = {"cents_per_unit": cents_per_unit, "currency": currency}
    report = write_report(
        page, train, plan, table, evaluation=evaluation, clusters=clusters, keywords=keywords, title=title, **money
    )
    return Demo(evaluation, report, files)
