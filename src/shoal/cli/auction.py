"""``shoal auction``: from an auction log to back-tested reserve prices, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.options import Json, Quiet, progress_bars

app = typer.Typer(
    help="From an auction log to back-tested reserve prices.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Log = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="Folder with bids, auctions and policy tables (Parquet, CSV or JSON lines), as 'simulate' writes, or one "
        "table of bids that has keyword_id and day, too. Columns: bids auction_id, ad_id, bid_cents, ctr, and where "
        "there are any advertiser_id, section (ml, sb, none), price, clicked; auctions auction_id, keyword_id, day, "
        "weight; policy keyword_id, reserve, alpha, sidebar_reserve. See --names for other names.",
    ),
]
Clusters = Annotated[int, typer.Option("--clusters", "-k", min=1, help="How many clusters of keywords.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides everything that is drawn at random.")]
Maximize = Annotated[str, typer.Option("--max", help="What to maximize: clicks or revenue.")]
ClicksLimit = Annotated[float | None, typer.Option("--clicks", help="At least this multiple of the log's clicks.")]
RevenueLimit = Annotated[float | None, typer.Option("--revenue", help="At least this multiple of the log's revenue.")]
MainlineLimit = Annotated[
    float | None,
    typer.Option("--mainline-yield", help="At most this multiple of the log's mainline ads per page view."),
]
AdsLimit = Annotated[
    float | None, typer.Option("--ad-yield", help="At most this multiple of the log's ads per page view.")
]
KeywordClicks = Annotated[
    float | None, typer.Option("--keyword-clicks", help="No keyword below this multiple of its clicks, such as 0.8.")
]
KeywordRevenue = Annotated[
    float | None, typer.Option("--keyword-revenue", help="No keyword below this multiple of its revenue, such as 0.8.")
]
Probability = Annotated[
    float, typer.Option("--probability", help="Margins so wide that all limits hold on new days this often.")
]
Names = Annotated[
    list[str] | None, typer.Option("--names", help="Your name of a column: bid_cents=max_cpc (may be repeated).")
]
Reserve = Annotated[
    float | None, typer.Option("--reserve", min=0, help="The mainline reserve in force, when the log has no policy.")
]
SidebarReserve = Annotated[float, typer.Option("--sidebar-reserve", min=0, help="With --reserve: that of the sidebar.")]
Alpha = Annotated[float, typer.Option("--alpha", min=0, help="With --reserve: the exponent of the click rate.")]
Units = Annotated[str, typer.Option("--units", help="What the log's money is in: cents, or whole (dollars, euros).")]
Currency = Annotated[str, typer.Option("--currency", help="How to write money, such as USD.")]
Coordinates = Annotated[
    str, typer.Option("--coordinates", help="logbid+logctr, log_score, or logbid_ctr (the paper's).")
]


@app.command()
def simulate(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the log.")],
    keywords: Annotated[int, typer.Option("--keywords", min=1, help="How many keywords.")] = 3000,
    days: Annotated[int, typer.Option("--days", min=1, help="How many days.")] = 14,
    views: Annotated[float, typer.Option("--page-views", min=1, help="Page views a day.")] = 60_000,
    reacting: Annotated[float, typer.Option("--reacting", help="Share of bidders who react to reserves.")] = 0.6,
    tuning: Annotated[str, typer.Option("--tuning", help="Today's policy: 'coarse' or 'well tuned'.")] = "coarse",
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Draw a synthetic market and write its auction log.

    Example: shoal auction simulate --keywords 3000 --days 14 --out log/
    """
    from shoal.auction import Market, baseline_policy, write_log

    with progress_bars(quiet):
        market = Market(keywords, n_days=days, page_views_per_day=views, reacting=reacting, random_state=seed)
        log = market.log(baseline_policy(market, tuning=tuning).policy)
        write_log(log, out)
    print(f"{log.n_auctions:,} auctions and {log.n_bids:,} bids of {log.n_keywords:,} keywords on {days} days: {out}")


@app.command()
def landscape(
    log: Log,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV, JSON or Parquet file for the table.")] = None,
    coordinates: Coordinates = "logbid+logctr",
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="How many keywords to print.")] = 10,
    names: Names = None,
    reserve: Reserve = None,
    sidebar_reserve: SidebarReserve = 0.0,
    alpha: Alpha = 1.0,
    units: Units = "cents",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Describe every keyword by the distribution of its mainline and sidebar bids.

    Example: shoal auction landscape log/ --out landscapes.csv
    """
    import numpy as np

    from shoal.auction import landscapes
    from shoal.auction.export import write_table
    from shoal.auction.landscape import COORDINATES

    with progress_bars(quiet):
        land = landscapes(_read(log, names, reserve, sidebar_reserve, alpha, units), coordinates=coordinates)
    axes = COORDINATES[coordinates]
    columns: dict[str, Any] = {"keyword_id": land.keywords, "page_views": land.page_views, "shown_bids": land.n_bids}
    columns |= {"mainline share": land.mixtures[:, 0]}
    labels = [
        f"{kind} {name}, {section}"
        for kind in ("mean", "variance")
        for section in ("mainline", "sidebar")
        for name in axes
    ]
    columns |= {label: land.mixtures[:, 2 + at] for at, label in enumerate(labels)}
    if out is not None:
        write_table(out, columns)
    shown = np.argsort(-land.page_views, kind="stable")[:rows]
    _print_columns(
        {name: column[shown] for name, column in columns.items() if not name.startswith("variance")}, as_json
    )
    if land.agrees is not None and not as_json:
        print(f"\n{100 * land.agrees:.2f} % of the logged sections are what the logged policy would have shown.")


@app.command()
def cluster(
    log: Log,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV, JSON or Parquet file for keyword and cluster.")
    ] = None,
    clusters: Clusters = 64,
    method: Annotated[str, typer.Option("--method", help="k-GMM, k-Gauss, k-means, k-bins or random.")] = "k-GMM",
    coordinates: Coordinates = "logbid+logctr",
    seed: Seed = 0,
    names: Names = None,
    reserve: Reserve = None,
    sidebar_reserve: SidebarReserve = 0.0,
    alpha: Alpha = 1.0,
    units: Units = "cents",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Group keywords whose bids look alike.

    Example: shoal auction cluster log/ -k 64 --out clusters.csv
    """
    import numpy as np

    from shoal.auction import cluster_keywords, landscapes
    from shoal.auction.export import write_table

    with progress_bars(quiet):
        land = landscapes(_read(log, names, reserve, sidebar_reserve, alpha, units), coordinates=coordinates)
        labels = cluster_keywords(land, clusters, method=method, random_state=seed)
    if out is not None:
        write_table(out, {"keyword_id": land.keywords, "cluster": labels})
    views = np.bincount(labels, land.page_views)
    order = np.argsort(-views, kind="stable")[:12]
    busiest = [land.keywords[labels == group][np.argmax(land.page_views[labels == group])] for group in order]
    _print_columns(
        {
            "cluster": order,
            "keywords": np.bincount(labels)[order],
            "page views": views[order],
            "busiest": np.array(busiest),
        },
        as_json,
    )


@app.command()
def replay(
    log: Log,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV, JSON or Parquet file: keyword by setting.")
    ] = None,
    absolute: Annotated[
        bool, typer.Option("--absolute", help="Common reserves instead of multiples of today's.")
    ] = False,
    reserves: Annotated[int, typer.Option("--reserves", min=1, help="How many reserves to try.")] = 41,
    names: Names = None,
    reserve: Reserve = None,
    sidebar_reserve: SidebarReserve = 0.0,
    alpha: Alpha = 1.0,
    units: Units = "cents",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What clicks, revenue and mainline ads would have been under every reserve, bids held fixed.

    Example: shoal auction replay log/ --out curves.parquet
    """
    import numpy as np

    from shoal.auction import Settings
    from shoal.auction import replay as run
    from shoal.auction.export import write_table
    from shoal.auction.recommend import best_clicks

    with progress_bars(quiet):
        logged = _read(log, names, reserve, sidebar_reserve, alpha, units)
        settings = (
            Settings.absolute(logged, n_reserves=reserves) if absolute else Settings.relative(n_reserves=reserves)
        )
        table = run(logged, settings, clicks_from=best_clicks(logged))
    which = np.arange(settings.n)
    columns = {
        "alpha": settings.alphas[which // settings.reserves.size],
        "reserve": settings.reserves[which % settings.reserves.size],
    }
    if out is not None:
        each = np.repeat(logged.keywords, settings.n)
        wide = {name: np.tile(column, logged.n_keywords) for name, column in columns.items()}
        totals = {name: part.ravel() for name, part in table.totals._asdict().items()}
        write_table(out, {"keyword_id": each, **wide, **totals})
    before = table.baseline()
    middle = columns["alpha"] == settings.alphas[settings.alphas.size // 2]
    step = max(1, settings.reserves.size // 12)
    changes = {
        f"{name} %": 100 * (part.sum(0)[middle] / old - 1)
        for name, part, old in zip(("clicks", "revenue", "mainline", "all ads"), table.totals, before, strict=True)
    }
    _print_columns(
        {name: column[::step] for name, column in {"reserve": settings.reserves, **changes}.items()}, as_json
    )


@app.command()
def optimize(
    log: Log,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the reserve table, keyword map and plan.")
    ] = Path("plan"),
    maximize: Maximize = "clicks",
    clicks: ClicksLimit = None,
    revenue: RevenueLimit = 1.0,
    mainline_yield: MainlineLimit = 1.05,
    ad_yield: AdsLimit = None,
    level: Annotated[str, typer.Option("--level", help="auto, cluster, keyword or shrunken.")] = "auto",
    margins: Annotated[
        bool, typer.Option("--margins/--no-margins", help="Tighten limits by what held-out days missed.")
    ] = True,
    clusters: Clusters = 64,
    seed: Seed = 0,
    keyword_clicks: KeywordClicks = None,
    keyword_revenue: KeywordRevenue = None,
    probability: Probability = 0.9,
    names: Names = None,
    reserve: Reserve = None,
    sidebar_reserve: SidebarReserve = 0.0,
    alpha: Alpha = 1.0,
    units: Units = "cents",
    currency: Currency = "",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Propose reserve prices: the most clicks or revenue within the limits, at the level held-out days prefer.

    Example: shoal auction optimize log/ --max clicks --revenue 1.0 --mainline-yield 1.05 --out plan/
    """
    from shoal.auction import export_plan, recommend
    from shoal.auction import replay as run
    from shoal.auction.recommend import best_clicks

    goals = _goals(maximize, clicks, revenue, mainline_yield, ad_yield)
    keyword_limits = {"clicks": keyword_clicks, "revenue": keyword_revenue}
    goals["keyword_limits"] = {name: limit for name, limit in keyword_limits.items() if limit is not None}
    with progress_bars(quiet):
        logged = _read(log, names, reserve, sidebar_reserve, alpha, units)
        table = run(logged, by_day=True, clicks_from=best_clicks(logged))
        plan = recommend(
            logged,
            table=table,
            level=level,
            margins="auto" if margins else {},
            probability=probability,
            n_clusters=clusters,
            random_state=seed,
            **goals,
        )
        files = export_plan(plan, logged, table, out)
    change, held = plan.lift(), plan.facts["held out"][plan.facts["level"]]
    given_up = plan.facts[f"{plan.objective} given up"]
    if as_json:
        _print_json(
            {
                "level": plan.facts["level"], "gap": plan.gap, "expected": change, "held_out_before_margins": held,
                "limits": plan.constraints, "keyword_limits": plan.keyword_limits, "margins": plan.margins,
                "probability": plan.facts["probability"], "given_up": {plan.objective: given_up},
                "revenue": {"before": plan.before.revenue / 100, "expected": plan.predicted.revenue / 100,
                            "currency": currency or None},
                "files": [str(file) for file in files],
            }
        )  # fmt: skip
        return
    print(f"settings per {plan.facts['level']}; no other choice is better by more than {100 * plan.gap:.4f} %")
    print(f"expected on the log's own days: {_words(change)}")
    print(
        f"revenue: {_money(plan.before.revenue, currency)} before, {_money(plan.predicted.revenue, currency)} expected"
    )
    print(f"on days left out, before margins: {_words(held)}")
    print("margins built in: " + ", ".join(f"{name} {100 * margin:+.2f} %" for name, margin in plan.margins.items()))
    if plan.facts["probability"] is not None:
        print(
            f"with them every limit holds on new days with probability {plan.facts['probability']:.0%}; they cost "
            f"{100 * given_up:.2f} % of {plan.objective}"
        )
    print("bids are held fixed: try the reserves on a part of the traffic first")
    print("\n".join(str(file) for file in files))


@app.command()
def report(
    log: Log,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML page to write.")] = Path("auction-report.html"),
    maximize: Maximize = "clicks",
    clicks: ClicksLimit = None,
    revenue: RevenueLimit = 1.0,
    mainline_yield: MainlineLimit = 1.05,
    ad_yield: AdsLimit = None,
    keyword: Annotated[
        list[str] | None, typer.Option("--keyword", help="Draw the bids of this keyword (may be repeated).")
    ] = None,
    clusters: Clusters = 64,
    seed: Seed = 0,
    names: Names = None,
    reserve: Reserve = None,
    sidebar_reserve: SidebarReserve = 0.0,
    alpha: Alpha = 1.0,
    units: Units = "cents",
    currency: Currency = "",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit on the first half of the days, try on the second, and write a page about it.

    Example: shoal auction report log/ --out report.html
    """
    from shoal.auction.demo import propose_and_report

    goals = _goals(maximize, clicks, revenue, mainline_yield, ad_yield)
    with progress_bars(quiet):
        found = propose_and_report(
            _read(log, names, reserve, sidebar_reserve, alpha, units),
            out,
            n_clusters=clusters,
            random_state=seed,
            keywords=keyword or (),
            **goals,
        )
    if as_json:
        results = found.evaluation.results
        _print_json(
            {"report": str(found.report.resolve()), "currency": currency or None,
             "methods": {result.method: {"in_sample": result.in_sample, "held_out": result.held_out,
                                         "why_not": result.why_not} for result in results}}
        )  # fmt: skip
        return
    print(found.evaluation.table())
    print(
        f"\n{found.evaluation.warning}\n\nreport:  {found.report.resolve()}    (opens in any browser, no "
        f"network needed)"
    )


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the report and the reserve table.")] = Path(
        "shoal-auction-demo"
    ),
    quiet: Quiet = False,
) -> None:
    """Simulate a market, propose reserves for it, back-test them and write a report.

    Example: shoal demo auction --out shoal-auction-demo
    """
    from shoal.auction.demo import demo as run

    with progress_bars(quiet):
        found = run(out)
    print(found.evaluation.table())
    print(f"\n{found.evaluation.warning}\n")
    print("\n".join(f"written: {file}" for file in found.files))
    print(f"report:  {found.report.resolve()}    (opens in any browser, no network needed)")


def _read(
    log: Path, names: list[str] | None, reserve: float | None, sidebar_reserve: float, alpha: float, units: str
) -> Any:
    """The log under the user's names, units and policy."""
    from shoal.auction import read_log
    from shoal.errors import BadInput

    wrong = [word for word in names or () if word.count("=") != 1 or not all(word.split("="))]
    if wrong:
        raise BadInput(f"--names {wrong[0]} is not of the form column=your_name, such as bid_cents=max_cpc.")
    if units not in ("cents", "whole"):
        raise BadInput(f"--units is {units!r}; choose cents or whole.")
    policy = None if reserve is None else {"alpha": alpha, "reserve": reserve, "sidebar_reserve": sidebar_reserve}
    pairs = dict(word.split("=") for word in names or ())
    return read_log(log, policy=policy, names=pairs, cents_per_unit=100.0 if units == "whole" else 1.0)


def _money(cents: float, currency: str) -> str:
    return f"{cents / 100:,.2f} {currency}".strip()


def _goals(
    maximize: str, clicks: float | None, revenue: float | None, mainline_yield: float | None, ad_yield: float | None
) -> dict[str, Any]:
    limits = {"clicks": clicks, "revenue": revenue, "mainline_yield": mainline_yield, "ad_yield": ad_yield}
    return {"maximize": maximize, **limits}


def _words(change: dict[str, float]) -> str:
    names = {"clicks": "clicks", "revenue": "revenue", "mainline_yield": "mainline ads"}
    return ", ".join(f"{word} {100 * change[name]:+.2f} %" for name, word in names.items())


def _print_json(value: Any) -> None:
    import json

    print(json.dumps(value, indent=1, default=lambda number: number.item()))


def _print_columns(columns: dict[str, Any], as_json: bool = False) -> None:
    """A plain table on standard output, or a list of its rows."""
    if as_json:
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        _print_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    cells = {name: [name, *(_cell(value) for value in column)] for name, column in columns.items()}
    widths = {name: max(map(len, column)) for name, column in cells.items()}
    for line in zip(*cells.values(), strict=True):
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths.values(), strict=True)))


def _cell(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
