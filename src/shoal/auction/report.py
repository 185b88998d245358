"""One page for the people who run the marketplace: what is proposed, what it brings, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from shoal.auction import plots
from shoal.auction.auction_log import AuctionLog
from shoal.auction.evaluate import FROZEN_BIDS, OURS, UNGUARDED, Evaluation, Result
from shoal.auction.export import group_numbers
from shoal.auction.landscape import landscapes
from shoal.auction.optimize import Infeasible, Plan, optimize
from shoal.auction.replay import ReplayTable
from shoal.errors import BadInput
from shoal.progress import task
from shoal.report.document import numbers_table, section, write_document

WORDS = {
    "clicks": "clicks",
    "revenue": "revenue",
    "mainline_yield": "mainline ads per page",
    "ad_yield": "ads per page",
    "cpc": "cost per click",
}


def write_report(
    path: str | Path,
    log: AuctionLog,
    plan: Plan,
    table: ReplayTable,
    *,
    evaluation: Evaluation | None = None,
    clusters: np.ndarray | None = None,
    keywords: Sequence[Any] = (),
    title: str = "Reserve prices: proposal and back-test",
    cents_per_unit: float = 1.0,
    currency: str = "",
) -> Path:
    """Write a self-contained page that opens without a network.

    ``table`` is the replay the plan was made from. With an ``evaluation`` that holds the method "shoal", the headline
    is its held-out result; without, the figures are in-sample and the page says so. ``keywords`` are those whose bids
    are drawn; the busiest if none are named. Reserves in the table are in the unit of money of which ``cents_per_unit``
    make one, called ``currency``.
    """
    table = table.over_days() if table.n_days else table
    scored = landscapes(log, coordinates="log_score")
    grouped = clusters if clusters is not None else plan.clusters if plan.clusters is not None else group_numbers(plan)
    with task("report", total=7) as bar:
        parts = []
        for part in (
            lambda: _headline(plan, evaluation),
            lambda: _proposal(log, plan, table, cents_per_unit, currency),
            lambda: _methods(evaluation),
            lambda: _limits(plan, table),
            lambda: _curves(log, plan, table, grouped),
            lambda: _landscapes(log, scored, grouped, _numbers_of(log, keywords)),
            lambda: _data(log, plan),
        ):
            parts.append(part())
            bar.advance()
    busy = np.flatnonzero(np.bincount(log.day, minlength=log.days.size))
    subtitle = (
        f"{log.n_keywords:,} keywords, {log.n_auctions:,} auctions, {log.n_bids:,} bids, "
        f"days {log.days[busy[0]]} to {log.days[busy[-1]]}."
    )
    body = f'<h1>{escape(title)}</h1><p class="lead">{escape(subtitle)}</p>' + "\n".join(parts)
    return write_document(path, title, body)


def _image(picture: str, alt: str) -> str:
    """A picture at the size it was drawn for: its text is as large as the page's, and a phone scrolls it sideways."""
    points = float(picture.split('viewBox="0 0 ', 1)[1].split()[0])
    named = picture.replace('aria-label=""', f'aria-label="{escape(alt)}"', 1)
    return f'<div class=scroll style="--natural:{points * 96 / 72:.0f}px">{named}</div>'


def _per_cent(value: float, digits: int = 1) -> str:
    return f"{100 * value:+.{digits}f}\u00a0%".replace("-", "\u2212")


def _tile(name: str, value: float, note: str, *, good: bool | None) -> str:
    kind = "" if good is None else "good" if good else "bad"
    return f'<div class="tile {kind}">{escape(WORDS[name])}<b>{_per_cent(value)}</b><small>{escape(note)}</small></div>'


def _headline(plan: Plan, evaluation: Evaluation | None) -> str:
    result = next((r for r in evaluation.results if r.method == OURS and r.plan), None) if evaluation else None
    change = result.held_out if result else plan.lift()
    where = (
        f"on {len(evaluation.test_days)} days the proposal had not seen ({evaluation.test_days[0]} to "
        f"{evaluation.test_days[-1]})"
        if result and evaluation
        else "on the days it was made from (in-sample: expect less)"
    )
    notes = {name: _between(result, name) for name in ("clicks", "revenue", "mainline_yield")}
    limits = plan.constraints
    tiles = [
        _tile("clicks", change["clicks"], notes["clicks"], good=change["clicks"] > 0),
        _tile(
            "revenue",
            change["revenue"],
            _limit_note(limits, "revenue") or notes["revenue"],
            good=_kept(change, limits, "revenue"),
        ),
        _tile(
            "mainline_yield",
            change["mainline_yield"],
            _limit_note(limits, "mainline_yield") or notes["mainline_yield"],
            good=_kept(change, limits, "mainline_yield"),
        ),
        _tile("cpc", change["cpc"], "what advertisers pay for a click", good=None),
    ]
    text = f"<p>Had the proposed reserves been in force {escape(where)}, with every bid as it was logged:</p>"
    warning = f"<p><b>Bids are held fixed.</b> {escape(FROZEN_BIDS)}</p>"
    if result and result.reacting:
        react = result.reacting
        warning += (
            "<p>In this simulated market bidders were then let react. Clicks then change by "
            f"<b>{_per_cent(react['clicks'])}</b>, revenue by <b>{_per_cent(react['revenue'])}</b>, mainline ads by "
            f"<b>{_per_cent(react['mainline_yield'])}</b>.</p>"
        )
    missed = [WORDS[name] for name in limits if name in change and _kept(change, limits, name) is False]
    miss = (
        f"<p><b>Not kept on these days: {escape(', '.join(missed))}.</b> Ask for a stricter limit.</p>"
        if missed
        else ""
    )
    return section("What the proposal brings", text, f'<div class="tiles">{"".join(tiles)}</div>', miss) + section(
        "Read this before acting", warning, kind="warn"
    )


def _between(result: Result | None, name: str) -> str:
    if result is None or name not in result.interval:
        return ""
    low, high = result.interval[name]
    return f"{_per_cent(low)} to {_per_cent(high)} (95 %, over days)"


def _limit_note(limits: dict[str, float], name: str) -> str:
    if name not in limits:
        return ""
    if limits[name] == 1:
        return f"asked for: not {'below' if name in ('revenue', 'clicks') else 'above'} today's"
    return f"asked for: {'at least' if name in ('revenue', 'clicks') else 'at most'} {_per_cent(limits[name] - 1)}"


def _kept(change: dict[str, float], limits: dict[str, float], name: str) -> bool | None:
    if name not in limits:
        return None
    slack = 1 + change[name] - limits[name]
    return slack >= -0.002 if name in ("revenue", "clicks") else slack <= 0.002


def _proposal(log: AuctionLog, plan: Plan, table: ReplayTable, cents_per_unit: float, currency: str) -> str:
    policy, views = plan.policy(log.policy), table.page_views
    ratio = policy.reserve / np.maximum(log.policy.reserve, 1e-12)
    share = lambda mask: f"{100 * views[mask].sum() / views.sum():.0f} %"  # noqa: E731
    text = (
        f"<p>Settings are chosen per <b>{escape(plan.facts.get('level', plan.level))}</b>. The mainline "
        f"reserve is lowered on "
        f"<b>{share(ratio < 0.999)}</b> of page views, left alone on "
        f"<b>{share(np.abs(ratio - 1) <= 0.001)}</b> and raised on "
        f"<b>{share(ratio > 1.001)}</b>. The table shows the busiest keywords; the full list is in the "
        f"exported files.</p>"
    )
    rows = np.arange(plan.choice.size)
    lines, digits = [], 0 if cents_per_unit == 1 else 2
    for keyword in np.argsort(-views, kind="stable")[:12]:
        new = [part[keyword, plan.choice[keyword]] for part in table.totals]
        old = [part[keyword] for part in table.status_quo]
        changes = [_per_cent(a / b - 1) if b > 0 else "\u2013" for a, b in zip(new[:3], old[:3], strict=True)]
        cells = [
            escape(str(log.keywords[keyword])),
            f"{views[keyword]:,.0f}",
            *(f"{prices.reserve[keyword] / cents_per_unit:,.{digits}f}" for prices in (log.policy, policy)),
            f"{log.policy.alpha[keyword]:.2f} → {policy.alpha[keyword]:.2f}",
            *changes,
        ]
        lines.append(cells)
    heads = ["keyword", "page views", "reserve today", "proposed", "CTR exponent", "clicks", "revenue", "mainline ads"]
    image = _image(plots.reserve_changes(plan, table.page_views[rows]), "share of page views by change of reserve")
    unit = escape(currency or "the log's unit") if cents_per_unit != 1 else "cents"
    note = f'<p class="soft">Reserves are in {unit} per click for an ad with the reference click rate.</p>'
    return section("What is proposed", text, image, numbers_table(heads, lines), note)


def _methods(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return ""
    lines = []
    for result in evaluation.results:
        if result.plan is None:
            lines.append([escape(result.method), escape(result.why_not)])
            continue
        cells = [escape(result.method), _per_cent(result.in_sample["clicks"])]
        cells += [_per_cent(result.held_out[name]) for name in ("clicks", "revenue", "mainline_yield", "cpc")]
        cells += [_per_cent(result.optimism), _per_cent(result.own_terms)]
        react = result.reacting
        cells += [
            "\u2013"
            if react is None
            else " / ".join(_per_cent(react[n]) for n in ("clicks", "revenue", "mainline_yield"))
        ]
        lines.append(cells)
    heads = [
        "method",
        "promised clicks",
        "clicks",
        "revenue",
        "mainline ads",
        "cost per click",
        "optimism",
        "clicks at equal limits",
        "bidders react: clicks / revenue / mainline",
    ]
    text = (
        "<p>Every method was fitted on the earlier days and tried on the later ones. “Promised” is what a "
        "method expected from "
        "its own days; the difference is its optimism. “Clicks at equal limits” charges a method for the "
        "revenue it missed and "
        "credits it for mainline places it left unused. "
        f"“{OURS}” is the proposal; “{UNGUARDED}” is the same without its safety margins.</p>"
    )
    return section(
        "Against other ways to set reserves",
        text,
        _image(plots.methods_chart(evaluation), "gain in clicks by method"),
        numbers_table(heads, lines, ours=escape(OURS)),
    )


def _limits(plan: Plan, table: ReplayTable) -> str:
    items = []
    for name, price in plan.shadow_prices.items():
        direction = "less" if name in ("revenue", "clicks") else "more"
        items.append(
            f"<li>One per cent {direction} {escape(WORDS[name])} would be worth {price:.2f} per cent of "
            f"{escape(plan.objective)}. {_limit_note(plan.constraints, name).capitalize()}; safety margin built in: "
            f"{_per_cent(plan.margins.get(name, 0.0))}.</li>"
        )
    certificate = (
        f"<p>The plan is certified: no other choice among the {plan.settings.n} settings per group is better "
        f"by more than "
        f"{100 * plan.gap:.4f} % under the same limits.</p>"
    )
    image = ""
    if "mainline_yield" in plan.constraints:
        asked = plan.constraints["mainline_yield"]
        limits, gains = [], []
        for limit in sorted({0.95, 1.0, 1.02, 1.05, 1.1, 1.15, asked}):
            try:
                other = optimize(
                    table,
                    maximize=plan.objective,
                    revenue=plan.constraints.get("revenue"),
                    mainline_yield=limit,
                    clusters=plan.clusters,
                    shrinkage=plan.shrinkage,
                    tol=1e-3,
                    seconds=3,
                )
            except Infeasible:
                continue
            limits.append(limit)
            gains.append(other.lift()[plan.objective])
        image = _image(plots.trade_off(limits, gains, asked), "gain by mainline limit") if limits else ""
        image += '<p class="soft">In-sample and without margins: for the shape of the trade-off, not for its level.</p>'
    return section("What the limits cost", f"<ul>{''.join(items)}</ul>", certificate, image)


def _curves(log: AuctionLog, plan: Plan, table: ReplayTable, groups: np.ndarray) -> str:
    together = table.grouped(groups)
    largest = np.argsort(-together.page_views, kind="stable")[:6]
    members = np.bincount(groups, minlength=together.page_views.size)
    chosen, titles = [], []
    for group in largest:
        inside = np.flatnonzero(groups == group)
        counts = np.bincount(plan.choice[inside], table.page_views[inside], plan.settings.n)
        chosen.append(int(counts.argmax()))
        titles.append(f"cluster {group}: {members[group]} keywords")
    text = (
        "<p>The largest clusters of keywords with alike bid landscapes. Each curve shows how the cluster as a "
        "whole answers a "
        "common change of its reserve, bids held fixed; the dashed line is the setting most of its traffic is "
        "given.</p>"
    )
    image = _image(plots.response_curves(together, largest, np.array(chosen), titles), "response curves")
    return section("How clusters answer to reserves", text, image)


def _numbers_of(log: AuctionLog, keywords: Sequence[Any]) -> np.ndarray:
    """The numbers of these keywords, or of the four busiest."""
    if not len(keywords):
        return np.argsort(-log.page_views(), kind="stable")[:4]
    places = {str(name): number for number, name in enumerate(log.keywords)}
    unknown = [str(name) for name in keywords if str(name) not in places]
    if unknown:
        raise BadInput(
            f"the log has no keyword {', '.join(map(repr, unknown))}; its first is {str(log.keywords[0])!r}."
        )
    return np.array([places[str(name)] for name in keywords])


def _landscapes(log: AuctionLog, scored: Any, clusters: np.ndarray, drawn: np.ndarray) -> str:
    text = (
        "<p>Bids of some keywords as they stood in the log (bars) and the landscape shoal fits to them "
        "(lines). Bids "
        "that pile up just above today's reserve are a sign of bidders who aim at it: expect those to move with it.</p>"
    )
    turn = (
        "<p>Every point is a keyword; drag to turn, scroll to zoom, point at one to see its name. The "
        "busiest clusters are in color; click their names to hide or show them.</p>"
    )
    return section("Bid landscapes", text, _image(plots.bid_densities(log, scored, drawn), "bid densities")) + section(
        "All keywords", turn, plots.cluster_scene(scored, clusters)
    )


def _data(log: AuctionLog, plan: Plan) -> str:
    dropped = "".join(f"<li>{count:,} rows: {escape(reason)}</li>" for reason, count in log.dropped.items())
    held = plan.facts.get("held out", {})
    lines = [
        [escape(name), *(_per_cent(change[n]) for n in ("clicks", "revenue", "mainline_yield", "worth"))]
        for name, change in held.items()
    ]
    levels = (
        "<p>Levels compared by leaving out one day at a time (clicks, revenue, mainline ads, and clicks at "
        "equal limits):</p>"
        + numbers_table(["settings per", "clicks", "revenue", "mainline ads", "at equal limits"], lines)
        if held
        else ""
    )
    glossary = (
        "<dl><dt>Mainline reserve</dt><dd>The rank score an ad needs to stand above the results. Higher: "
        "fewer, dearer ads.</dd>"
        "<dt>Rank score</dt><dd>Bid times (click rate / reference click rate) to the power of the CTR exponent.</dd>"
        "<dt>Mainline ads per page (MLIY)</dt><dd>Ads above the results, averaged over page views: what users see.</dd>"
        "<dt>optimism</dt><dd>How much better a plan looked on the days it was made from than on others.</dd></dl>"
    )
    clicks = plan.facts.get("clicks from", "estimated")
    return section(
        "Data and method",
        f"<p>Rows left out while reading: {'none.' if not dropped else ''}</p><ul>{dropped}</ul>",
        f"<p>Expected clicks come from {escape(clicks)} click rates. Reference click rate {log.reference_ctr:.4g}.</p>",
        levels,
        glossary,
    )
