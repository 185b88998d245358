"""Logs and reserve tables as files other programs can use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import shoal
from shoal.atomic import atomic_write
from shoal.auction.auction_log import AuctionLog
from shoal.auction.optimize import Plan
from shoal.auction.replay import ReplayTable
from shoal.errors import BadInput

FORMATS = ("csv", "json", "parquet")
PRICES = ("reserve", "reserve_paper", "sidebar_reserve", "logged_reserve")


def write_log(log: AuctionLog, folder: str | Path) -> Path:
    """Write a log as bids.parquet, auctions.parquet, policy.parquet and log.json, as read by :func:`read_log`.

    Parameters
    ----------
    log : AuctionLog
        The log.
    folder : path
        Output folder.

    Examples
    --------
    >>> import tempfile
    >>> from shoal.auction import Market, baseline_policy, read_log
    >>> market = Market(20, n_days=2, page_views_per_day=100, random_state=0)
    >>> log = market.log(baseline_policy(market, tuning="coarse").policy)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_log(write_log(log, folder)).n_keywords
    20
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    bids = {
        "auction_id": log.auction_of_bids(),
        "ad_id": log.ad,
        "bid_cents": log.bid,
        "ctr": log.ctr,
        "price": log.price,
        "clicked": log.clicked,
        "true_ctr": log.true_ctr,
    }
    if log.section is not None:
        bids["section"] = np.array(["none", "ml", "sb"])[log.section]
    write_table(folder / "bids.parquet", {name: column for name, column in bids.items() if column is not None})
    auctions = {
        "auction_id": np.arange(log.n_auctions),
        "keyword_id": log.keywords[log.keyword],
        "day": log.days[log.day],
    }
    write_table(folder / "auctions.parquet", {**auctions, "weight": log.weight})
    policy = {"keyword_id": log.keywords, **vars(log.policy)}
    write_table(folder / "policy.parquet", policy)
    facts = {
        "reference_ctr": log.reference_ctr,
        "mainline": np.asarray(log.layout.mainline).tolist(),
        "sidebar": np.asarray(log.layout.sidebar).tolist(),
        "shoal": shoal.__version__,
    }
    _write_text(folder / "log.json", json.dumps(facts, indent=1) + "\n")
    return folder


def reserve_table(plan: Plan, log: AuctionLog, table: ReplayTable) -> dict[str, np.ndarray]:
    """One row per group of keywords with the same setting: what to set, and what it is expected to change.

    ``reserve`` is in cents at the reference click rate; ``reserve_paper`` is the same for scores without a reference.
    """
    table = table.over_days() if table.n_days else table
    groups = group_numbers(plan)
    n_groups = int(groups.max()) + 1
    first = np.unique(groups, return_index=True)[1]
    choice, policy = plan.choice[first], plan.policy(log.policy)
    settings = plan.settings
    which_alpha, which_reserve = choice // settings.reserves.size, choice % settings.reserves.size
    columns: dict[str, np.ndarray] = {
        "group": np.arange(n_groups),
        "keywords": np.bincount(groups, minlength=n_groups),
        "page_views": np.bincount(groups, table.page_views, n_groups),
    }
    if settings.is_relative:
        columns["alpha_change"] = settings.alphas[which_alpha]
        columns["reserve_multiplier"] = settings.reserves[which_reserve]
    else:
        columns["alpha"] = settings.alphas[which_alpha]
        columns["reserve"] = settings.reserves[which_reserve]
        columns["reserve_paper"] = columns["reserve"] * log.reference_ctr ** columns["alpha"]
        columns["sidebar_reserve"] = policy.sidebar_reserve[first]
    rows = np.arange(plan.choice.size)
    for name, part, before in zip(("clicks", "revenue", "mainline"), table.totals, table.status_quo, strict=False):
        change = np.bincount(groups, part[rows, plan.choice] - before, n_groups)
        columns[f"{name}_change"] = change / np.maximum(np.bincount(groups, before, n_groups), 1e-300)
    return columns


def group_numbers(plan: Plan) -> np.ndarray:
    """(n_keywords,) the cluster at cluster level, else keywords with the same setting together."""
    labels = plan.choice if plan.level != "cluster" or plan.clusters is None else plan.clusters
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def keyword_map(plan: Plan, log: AuctionLog) -> dict[str, np.ndarray]:
    """One row per keyword: its group and its new policy and the logged one."""
    policy = plan.policy(log.policy)
    return {
        "keyword_id": log.keywords,
        "group": group_numbers(plan),
        "alpha": policy.alpha,
        "reserve": policy.reserve,
        "reserve_paper": policy.reserve * log.reference_ctr**policy.alpha,
        "sidebar_reserve": policy.sidebar_reserve,
        "logged_alpha": log.policy.alpha,
        "logged_reserve": log.policy.reserve,
    }


def metadata(plan: Plan, log: AuctionLog) -> dict[str, Any]:
    """Where a reserve table comes from and what it promises."""
    busy = np.flatnonzero(np.bincount(log.day, minlength=log.days.size))
    return {
        "shoal": shoal.__version__,
        "days": [str(log.days[day]) for day in busy],
        "auctions": log.n_auctions,
        "bids": log.n_bids,
        "rows left out": log.dropped,
        "reference_ctr": log.reference_ctr,
        "mainline factors": np.asarray(log.layout.mainline).tolist(),
        "sidebar factors": np.asarray(log.layout.sidebar).tolist(),
        "settings": {
            "relative": plan.settings.is_relative,
            "alphas": plan.settings.alphas.tolist(),
            "reserves": plan.settings.reserves.tolist(),
        },
        "level": plan.level,
        "objective": plan.objective,
        "constraints": plan.constraints,
        "margins": plan.margins,
        "predicted change": plan.lift(),
        "shadow prices": plan.shadow_prices,
        "certified gap": plan.gap,
        **plan.facts,
    }


def export_plan(
    plan: Plan,
    log: AuctionLog,
    table: ReplayTable,
    folder: str | Path,
    *,
    formats: Any = FORMATS,
    cents_per_unit: float = 1.0,
) -> list[Path]:
    """Write the reserve table, the keyword map and the metadata of a plan; returns the files.

    Parameters
    ----------
    plan : Plan
        Result of :func:`recommend`.
    log : AuctionLog
        The log of the plan.
    table : ReplayTable
        The replay of the log.
    folder : path
        Output folder.
    formats : sequence of {"csv", "json", "parquet"}
        Formats of the tables.
    cents_per_unit : float
        Unit of the reserves, in cents: 100 for dollars and euros.

    Examples
    --------
    >>> import tempfile
    >>> from shoal.auction import Market, baseline_policy, optimize, replay
    >>> market = Market(20, n_days=2, page_views_per_day=100, random_state=0)
    >>> log = market.log(baseline_policy(market, tuning="coarse").policy)
    >>> table = replay(log)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = export_plan(optimize(table, seconds=0.5), log, table, folder, formats=["csv"])
    >>> sorted({path.suffix for path in files})
    ['.csv', '.json']
    """
    unknown = set(formats) - set(FORMATS)
    if unknown:
        raise BadInput(f"formats holds {', '.join(sorted(unknown))}; choose among {', '.join(FORMATS)}.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    tables = {"reserves": reserve_table(plan, log, table), "keywords": keyword_map(plan, log)}
    for kind in formats:
        for name, columns in tables.items():
            written.append(write_table(folder / f"{name}.{kind}", _in_units(columns, cents_per_unit)))
    written.append(folder / "plan.json")
    facts = metadata(plan, log) | {"cents_per_unit": cents_per_unit}
    _write_text(written[-1], json.dumps(facts, indent=1, default=float) + "\n")
    return written


def write_table(path: str | Path, columns: dict[str, np.ndarray]) -> Path:
    """Write columns as CSV, JSON or Parquet, by the name's ending."""
    path = Path(path)
    if path.suffix.lstrip(".") not in FORMATS:
        raise BadInput(
            f"cannot recognize the format of {path}: end its name with {', '.join('.' + kind for kind in FORMATS)}."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    arrow = pa.table(
        {name: pa.array(column.tolist() if column.dtype == object else column) for name, column in columns.items()}
    )
    if path.suffix == ".json":
        _write_text(path, json.dumps(arrow.to_pylist(), indent=0) + "\n")
        return path
    with atomic_write(path) as out:
        if path.suffix == ".parquet":
            pa.parquet.write_table(arrow, out)
        else:
            pa.csv.write_csv(arrow, out)
    return path


def _write_text(path: Path, text: str) -> None:
    with atomic_write(path, "w") as out:
        out.write(text)


def _in_units(columns: dict[str, np.ndarray], cents_per_unit: float) -> dict[str, np.ndarray]:
    """Reserves in the unit of money of the log they came from."""
    return {name: values / cents_per_unit if name in PRICES else values for name, values in columns.items()}
