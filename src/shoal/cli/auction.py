"""``shoal auction``: from an auction log to back-tested reserve prices, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.auction_flags import Clusters, Coordinates, Currency, GoalFlags, Log, LogFlags, Seed, TableOut
from shoal.cli.options import Json, Quiet, progress_bars, takes_flags

app = typer.Typer(
    help="From an auction log to back-tested reserve prices.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def simulate(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the log.")],
    keywords: Annotated[int, typer.Option("--keywords", min=1, help="Number of keywords.")] = 3000,
    days: Annotated[int, typer.Option("--days", min=1, help="Number of days.")] = 14,
    views: Annotated[float, typer.Option("--page-views", min=1, help="Page views per day.")] = 60_000,
    reacting: Annotated[float, typer.Option("--reacting", help="Share of bidders who react to reserves.")] = 0.6,
    tuning: Annotated[str, typer.Option("--tuning", help="Policy in force: 'coarse' or 'well tuned'.")] = "coarse",
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Draw a synthetic market and write its auction log.

    Example: shoal auction simulate --keywords 3000 --days 14 --out log/
    """
    from shoal.auction import Market, baseline_policy, write_log
    from shoal.cli.output_files import make_folder

    make_folder(out)
    with progress_bars(quiet):
        market = Market(keywords, n_days=days, page_views_per_day=views, reacting=reacting, random_state=seed)
        log = market.log(baseline_policy(market, tuning=tuning).policy)
        write_log(log, out)
    print(f"{log.n_auctions:,} auctions and {log.n_bids:,} bids of {log.n_keywords:,} keywords on {days} days: {out}")


@app.command()
@takes_flags
def landscape(
    log: Log,
    written: LogFlags,
    out: TableOut = None,
    coordinates: Coordinates = "logbid+logctr",
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="Number of keywords to print.")] = 10,
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

    _check_table(out, log)
    with progress_bars(quiet):
        land = landscapes(written.read(log), coordinates=coordinates)
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
@takes_flags
def cluster(
    log: Log,
    written: LogFlags,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV, JSON or Parquet file for keyword and cluster.")
    ] = None,
    clusters: Clusters = 64,
    method: Annotated[str, typer.Option("--method", help="k-GMM, k-Gauss, k-means, k-bins or random.")] = "k-GMM",
    coordinates: Coordinates = "logbid+logctr",
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Group keywords whose bids look alike.

    Example: shoal auction cluster log/ -k 64 --out clusters.csv
    """
    import numpy as np

    from shoal.auction import cluster_keywords, landscapes
    from shoal.auction.export import write_table

    _check_table(out, log)
    with progress_bars(quiet):
        land = landscapes(written.read(log), coordinates=coordinates)
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
@takes_flags
def replay(
    log: Log,
    written: LogFlags,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV, JSON or Parquet file: keyword by setting.")
    ] = None,
    absolute: Annotated[
        bool, typer.Option("--absolute", help="Common reserves instead of multiples of the current ones.")
    ] = False,
    reserves: Annotated[int, typer.Option("--reserves", min=1, help="Number of reserves to try.")] = 41,
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

    _check_table(out, log)
    with progress_bars(quiet):
        logged = written.read(log)
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
@takes_flags
def optimize(
    log: Log,
    written: LogFlags,
    asked: GoalFlags,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the reserve table, keyword map and plan.")
    ] = Path("plan"),
    level: Annotated[str, typer.Option("--level", help="auto, cluster, keyword or shrunken.")] = "auto",
    margins: Annotated[
        bool, typer.Option("--margins/--no-margins", help="Tighten limits by the violations on held-out days.")
    ] = True,
    clusters: Clusters = 64,
    seed: Seed = 0,
    probability: Annotated[
        float, typer.Option("--probability", help="Probability with which all limits hold on new days.")
    ] = 0.9,
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
    from shoal.cli.output_files import make_folder

    make_folder(out)
    with progress_bars(quiet):
        logged = written.read(log)
        table = run(logged, by_day=True, clicks_from=best_clicks(logged))
        plan = recommend(
            logged,
            table=table,
            level=level,
            margins="auto" if margins else {},
            probability=probability,
            n_clusters=clusters,
            random_state=seed,
            **asked.goals(),
        )
        files = export_plan(plan, logged, table, out, cents_per_unit=written.cents_per_unit)
    if as_json:
        _print_json(_plan_facts(plan, currency) | {"files": [str(file) for file in files]})
        return
    _print_plan(plan, currency)
    print("\n".join(str(file) for file in files))


@app.command()
@takes_flags
def report(
    log: Log,
    written: LogFlags,
    asked: GoalFlags,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML page to write.")] = Path("auction-report.html"),
    keyword: Annotated[
        list[str] | None, typer.Option("--keyword", help="Plot the bids of this keyword (may be repeated).")
    ] = None,
    clusters: Clusters = 64,
    seed: Seed = 0,
    currency: Currency = "",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit on the first half of the days, try on the second, and write a page about it.

    Example: shoal auction report log/ --out report.html
    """
    from shoal.auction.demo import propose_and_report
    from shoal.cli.output_files import check_outputs

    check_outputs({"--report": out}, inputs=[log])
    with progress_bars(quiet):
        found = propose_and_report(
            written.read(log),
            out,
            n_clusters=clusters,
            random_state=seed,
            keywords=keyword or (),
            cents_per_unit=written.cents_per_unit,
            currency=currency,
            **asked.goals(),
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


def _check_table(out: Path | None, log: Path) -> None:
    """Refuse, before the work, a table that could not be written when it is done."""
    from shoal.auction.export import FORMATS
    from shoal.cli.output_files import check_outputs
    from shoal.errors import BadInput

    check_outputs({"--out": out}, inputs=[log], overwrite=True)
    if out is not None and out.suffix.lstrip(".") not in FORMATS:
        raise BadInput(f"--out {out}: its format is not clear from {out.suffix!r}. Use .csv, .json or .parquet.")


def _plan_facts(plan: Any, currency: str) -> dict[str, Any]:
    """What a script wants to know about a plan."""
    return {
        "level": plan.facts["level"],
        "gap": plan.gap,
        "expected": plan.lift(),
        "held_out_before_margins": plan.facts["held out"][plan.facts["level"]],
        "limits": plan.constraints,
        "keyword_limits": plan.keyword_limits,
        "margins": plan.margins,
        "probability": plan.facts["probability"],
        "given_up": {plan.objective: plan.facts[f"{plan.objective} given up"]},
        "revenue": {
            "before": plan.before.revenue / 100,
            "expected": plan.predicted.revenue / 100,
            "currency": currency or None,
        },
    }


def _print_plan(plan: Any, currency: str) -> None:
    """The same for a person."""
    level, probability = plan.facts["level"], plan.facts["probability"]
    print(f"settings per {level}; no other choice is better by more than {100 * plan.gap:.4f} %")
    print(f"expected on the log's own days: {_words(plan.lift())}")
    before, expected = (_money(totals.revenue, currency) for totals in (plan.before, plan.predicted))
    print(f"revenue: {before} before, {expected} expected")
    print(f"on days left out, before margins: {_words(plan.facts['held out'][level])}")
    print("margins built in: " + ", ".join(f"{name} {100 * margin:+.2f} %" for name, margin in plan.margins.items()))
    if probability is not None:
        print(
            f"with them every limit holds on new days with probability {probability:.0%}; they cost "
            f"{100 * plan.facts[f'{plan.objective} given up']:.2f} % of {plan.objective}"
        )
    print("bids are held fixed: try the reserves on a part of the traffic first")


def _money(cents: float, currency: str) -> str:
    return f"{cents / 100:,.2f} {currency}".strip()


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
