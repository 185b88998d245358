"""Options that the steps of ``shoal auction`` share: how the log is written, and what a plan may and may not do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

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
Clusters = Annotated[int, typer.Option("--clusters", "-k", min=1, help="Number of clusters of keywords.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
Currency = Annotated[str, typer.Option("--currency", help="Currency, such as USD.")]
Coordinates = Annotated[
    str, typer.Option("--coordinates", help="logbid+logctr, log_score, or logbid_ctr (the paper's).")
]
TableOut = Annotated[Path | None, typer.Option("--out", "-o", help="CSV, JSON or Parquet file for the table.")]


@dataclass
class LogFlags:
    """How a log is written: its names, its unit of money, and the policy that was in force."""

    names: Annotated[
        list[str] | None,
        typer.Option("--names", help="Name of a column in the log: bid_cents=max_cpc (may be repeated)."),
    ] = None
    reserve: Annotated[
        float | None,
        typer.Option("--reserve", min=0, help="The mainline reserve in force, when the log has no policy."),
    ] = None
    sidebar_reserve: Annotated[
        float, typer.Option("--sidebar-reserve", min=0, help="With --reserve: that of the sidebar.")
    ] = 0.0
    alpha: Annotated[float, typer.Option("--alpha", min=0, help="With --reserve: the exponent of the click rate.")] = (
        1.0
    )
    units: Annotated[
        str, typer.Option("--units", help="Unit of money in the log: cents, or whole (dollars, euros).")
    ] = "cents"

    def read(self, log: Path) -> Any:
        """The log under the user's names, units and policy."""
        from shoal.auction import read_log
        from shoal.errors import BadInput

        names = self.names or []
        wrong = [word for word in names if word.count("=") != 1 or not all(word.split("="))]
        if wrong:
            raise BadInput(f"--names {wrong[0]} is not of the form column=your_name, such as bid_cents=max_cpc.")
        if self.units not in ("cents", "whole"):
            raise BadInput(f"--units is {self.units!r}; choose cents or whole.")
        policy = {"alpha": self.alpha, "reserve": self.reserve, "sidebar_reserve": self.sidebar_reserve}
        pairs = dict(word.split("=") for word in names)
        stated = policy if self.reserve is not None else None
        return read_log(log, policy=stated, names=pairs, cents_per_unit=self.cents_per_unit)

    @property
    def cents_per_unit(self) -> float:
        return 100.0 if self.units == "whole" else 1.0


@dataclass
class GoalFlags:
    """What a plan is to bring, and what it must keep."""

    maximize: Annotated[str, typer.Option("--max", help="What to maximize: clicks or revenue.")] = "clicks"
    clicks: Annotated[float | None, typer.Option("--clicks", help="At least this multiple of the log's clicks.")] = None
    revenue: Annotated[float | None, typer.Option("--revenue", help="At least this multiple of the log's revenue.")] = (
        1.0
    )
    mainline_yield: Annotated[
        float | None,
        typer.Option("--mainline-yield", help="At most this multiple of the log's mainline ads per page view."),
    ] = 1.05
    ad_yield: Annotated[
        float | None, typer.Option("--ad-yield", help="At most this multiple of the log's ads per page view.")
    ] = None
    keyword_clicks: Annotated[
        float | None,
        typer.Option("--keyword-clicks", help="No keyword below this multiple of its clicks, such as 0.8."),
    ] = None
    keyword_revenue: Annotated[
        float | None,
        typer.Option("--keyword-revenue", help="No keyword below this multiple of its revenue, such as 0.8."),
    ] = None

    def goals(self) -> dict[str, Any]:
        """As :func:`shoal.auction.optimize` takes them."""
        names = ("maximize", "clicks", "revenue", "mainline_yield", "ad_yield")
        limits = {"clicks": self.keyword_clicks, "revenue": self.keyword_revenue}
        each = {name: limit for name, limit in limits.items() if limit is not None}
        return {name: getattr(self, name) for name in names} | {"keyword_limits": each}
