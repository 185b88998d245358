"""The report's pictures: matplotlib drawings as SVG inside the page, and one scene a person can turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from shoal.auction.auction_log import MAINLINE, SIDEBAR, AuctionLog
from shoal.auction.evaluate import Evaluation
from shoal.auction.landscape import Landscapes
from shoal.auction.optimize import Plan
from shoal.auction.replay import ReplayTable
from shoal.errors import MissingExtra
from shoal.report.plots import as_svg

BLUE, ORANGE, GREEN, GREY = "#1f6fb2", "#e07b28", "#3a9a5b", "#9aa3ad"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#8a94a0",
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "axes.titleweight": "bold",
    "axes.titlesize": 11,
}


@contextmanager
def drawing(
    n_columns: int = 1, n_rows: int = 1, size: tuple[float, float] = (8, 3.4)
) -> Iterator[tuple[Any, Any, Any]]:
    """A figure, its axes, and a function that turns it into SVG in the page's colors; user settings stay."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("the report needs matplotlib and plotly: pip install 'shoal[report]'") from None
    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False)

        yield figure, axes.ravel(), lambda: as_svg(figure, "")


def methods_chart(evaluation: Evaluation) -> str:
    """Gain in clicks of every method: promised, held out, and with reacting bidders."""
    results = [result for result in evaluation.results if result.plan is not None]
    with drawing(size=(8.6, 0.62 * len(results) + 1.3)) as (_, axes, picture):
        axis, places = axes[0], np.arange(len(results))[::-1]
        kinds: list[tuple[str, str, Callable[[Any], float | None]]] = [
            ("promised on its own days", GREY, lambda r: r.in_sample["clicks"]),
            ("on days it had not seen", BLUE, lambda r: r.held_out["clicks"]),
        ]
        if any(result.reacting for result in results):
            kinds.append(("... when bidders react", ORANGE, lambda r: r.reacting["clicks"] if r.reacting else None))
        height = 0.8 / len(kinds)
        for at, (label, color, pick) in enumerate(kinds):
            values = [100 * (pick(result) or 0.0) for result in results]
            where = places + 0.4 - height * (at + 0.5)
            axis.barh(where, values, height, color=color, label=label)
            if color == BLUE:
                low, high = np.array([result.interval["clicks"] for result in results]).T * 100
                axis.errorbar(
                    values,
                    where,
                    xerr=np.maximum([values - low, high - values], 0),
                    fmt="none",
                    color="black",
                    lw=1,
                    capsize=2,
                )
        axis.set_yticks(places, [result.method for result in results])
        axis.grid(axis="y", visible=False)
        axis.axvline(0, color="black", lw=0.8)
        axis.set_xlabel("change in clicks against the logged policy, per cent")
        axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.45, 1.02 + 0.55 / len(results)), ncols=3)
        return str(picture())


def reserve_changes(plan: Plan, page_views: np.ndarray) -> str:
    """How much of the traffic sees lower, unchanged and higher reserves."""
    with drawing(size=(8, 2.8)) as (_, axes, picture):
        axis = axes[0]
        reserves = plan.settings.reserves
        chosen = plan.choice % reserves.size
        share = 100 * np.bincount(chosen, page_views, reserves.size) / page_views.sum()
        if plan.settings.is_relative:
            colors = np.where(reserves < 0.999, GREEN, np.where(reserves > 1.001, ORANGE, GREY))
            labels = [(GREEN, "lower reserve"), (GREY, "unchanged"), (ORANGE, "higher reserve")]
            axis.set_xlabel("new mainline reserve as a multiple of today's")
        else:
            colors, labels = np.full(reserves.size, BLUE), []
            axis.set_xlabel("mainline reserve, cents at the reference click rate")
        step = reserves[1] / reserves[0] if reserves.size > 1 else 1.1
        axis.bar(reserves, share, width=reserves * (np.sqrt(step) - 1 / np.sqrt(step)) * 0.9, color=colors)
        axis.set_xscale("log")
        ticks = [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4]
        if plan.settings.is_relative:
            axis.set_xticks(ticks, [f"x{tick:g}" for tick in ticks])
            axis.minorticks_off()
        for color, label in labels:
            axis.bar([1], [0], color=color, label=label)
        if labels:
            axis.legend(frameon=False)
        axis.set_ylabel("% of page views")
        return str(picture())


def response_curves(table: ReplayTable, groups: np.ndarray, chosen: np.ndarray, titles: list[str]) -> str:
    """Clicks, revenue and mainline ads of some groups as their reserve moves, at the exponent each was given."""
    settings = table.settings
    n_reserves = settings.reserves.size
    columns = 3
    n_rows = -(-len(groups) // columns)
    with drawing(columns, n_rows, size=(10, 2.7 * n_rows + 0.3)) as (figure, axes, picture):
        for axis, group, choice, title in zip(axes, groups, chosen, titles, strict=False):
            at = slice(choice // n_reserves * n_reserves, choice // n_reserves * n_reserves + n_reserves)
            for part, before, color, label in zip(
                table.totals,
                table.status_quo,
                (BLUE, GREEN, ORANGE),
                ("clicks", "revenue", "mainline ads"),
                strict=False,
            ):
                axis.plot(settings.reserves, 100 * (part[group, at] / before[group] - 1), color=color, label=label)
            axis.axvline(settings.reserves[choice % n_reserves], color="black", lw=1, ls="--", label="chosen")
            axis.axhline(0, color="black", lw=0.8)
            axis.set_xscale("log")
            if settings.is_relative:
                axis.set_xticks([0.25, 0.5, 1, 2, 4], ["x¼", "x½", "x1", "x2", "x4"])
                axis.minorticks_off()
            axis.set_ylim(-60, 60)
            axis.set_title(title, parse_math=False)
        for axis in axes[len(groups) :]:
            axis.set_visible(False)
        axes[0].set_ylabel("change, %")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
        return str(picture())


def bid_densities(log: AuctionLog, land: Landscapes, keywords: np.ndarray) -> str:
    """What some keywords' bids look like, and the fitted landscape over it; needs landscapes of the log score."""
    scores = log.bid * log.qualities()
    keyword_of_bid = log.keyword[log.auction_of_bids()]
    columns = 2
    n_rows = -(-len(keywords) // columns)
    with drawing(columns, n_rows, size=(10, 2.6 * n_rows)) as (_, axes, picture):
        for axis, keyword in zip(axes, keywords, strict=False):
            mine = keyword_of_bid == keyword
            shares, means, variances = np.split(land.mixtures[keyword], 3)
            edges = np.linspace(means.min() - 4 * variances.max() ** 0.5, means.max() + 4 * variances.max() ** 0.5, 60)
            shown = mine & (log.section > 0) if log.section is not None else mine
            for z, (code, color, name) in enumerate(((MAINLINE, BLUE, "mainline"), (SIDEBAR, ORANGE, "sidebar"))):
                inside = mine & (log.section == code) if log.section is not None else mine
                values = np.log(np.maximum(scores[inside], 1e-9))
                weights = np.full(values.size, 1 / max(shown.sum(), 1) / (edges[1] - edges[0]))
                axis.hist(values, edges, weights=weights, color=color, alpha=0.35, label=f"{name} bids")
                bell = np.exp(-((edges - means[z]) ** 2) / (2 * variances[z])) / np.sqrt(2 * np.pi * variances[z])
                axis.plot(edges, shares[z] * bell, color=color, lw=1.6, label="fitted")
            axis.axvline(np.log(log.policy.reserve[keyword]), color="black", ls="--", lw=1, label="today's reserve")
            ticks = [t for t in (1, 3, 10, 30, 100, 300, 1000, 3000) if edges[0] <= np.log(t) <= edges[-1]]
            axis.set_xticks(np.log(ticks), [str(t) for t in ticks])
            axis.set_yticks([])
            axis.set_title(f"{land.keywords[keyword]}", parse_math=False)
        for axis in axes[: len(keywords)]:
            axis.set_xlabel("rank score, cents at the reference click rate")
        axes[0].legend(frameon=False, fontsize=8)
        return str(picture())


def trade_off(limits: list[float], gains: list[float], asked: float | None) -> str:
    """What more or fewer mainline ads are worth."""
    with drawing(size=(6, 2.8)) as (_, axes, picture):
        axis = axes[0]
        axis.plot([100 * (limit - 1) for limit in limits], [100 * gain for gain in gains], "o-", color=BLUE)
        if asked is not None:
            axis.axvline(100 * (asked - 1), color="black", ls="--", lw=1)
            axis.annotate(" asked for", (100 * (asked - 1), axis.get_ylim()[0]), va="bottom")
        axis.set_xlabel("mainline ads allowed per page view, change in %")
        axis.set_ylabel("clicks gained, %")
        return str(picture())


def cluster_scene(land: Landscapes, clusters: np.ndarray, *, most: int = 3000, n_named: int = 8) -> str:
    """Keywords by mainline mean, sidebar mean and mainline share; the busiest clusters in color. Needs no network."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise MissingExtra("the report needs matplotlib and plotly: pip install 'shoal[report]'") from None
    busiest = np.argsort(-land.page_views, kind="stable")[:most]
    named = np.argsort(-np.bincount(clusters, land.page_views), kind="stable")[:n_named]
    figure = go.Figure()
    for cluster in [*named, -1]:
        rows = busiest[~np.isin(clusters[busiest], named)] if cluster < 0 else busiest[clusters[busiest] == cluster]
        hover = [
            f"{name}<br>cluster {own}<br>{views:,.0f} page views"
            for name, own, views in zip(land.keywords[rows], clusters[rows], land.page_views[rows], strict=True)
        ]
        size = 3 + 12 * np.sqrt(land.page_views[rows] / land.page_views.max())
        marker = {"size": size, "opacity": 0.85 if cluster >= 0 else 0.25, "line": {"width": 0}}
        if cluster < 0:
            marker["color"] = GREY
        share, mainline, sidebar = (land.mixtures[rows, column] for column in (0, 2, 3))
        name = f"cluster {cluster}" if cluster >= 0 else "all others"
        figure.add_trace(
            go.Scatter3d(
                x=np.exp(mainline),
                y=np.exp(sidebar),
                z=100 * share,
                mode="markers",
                name=name,
                text=hover,
                hoverinfo="text",
                marker=marker,
            )
        )
    cents = {"type": "log", "tickvals": [1, 3, 10, 30, 100, 300, 1000, 3000]}
    figure.update_layout(
        height=600,
        legend={"y": 0.92},
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
        scene={
            "xaxis": {"title": {"text": "typical mainline score (cents)"}, **cents},
            "yaxis": {"title": {"text": "typical sidebar score (cents)"}, **cents},
            "zaxis": {"title": {"text": "mainline share of shown bids (%)"}},
            "camera": {"eye": {"x": 1.7, "y": 1.5, "z": 0.8}},
        },
    )
    return str(figure.to_html(full_html=False, include_plotlyjs=True, config={"displaylogo": False}))
