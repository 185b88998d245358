"""Auction logs from files and tables, checked; what cannot be used is left out, counted and named."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from shoal.auction.auction_log import AuctionLog, PageLayout, Policy
from shoal.data.named_tables import NamedTables, require_columns
from shoal.data.sql import quoted
from shoal.errors import BadInput, BadSource, MissingColumn
from shoal.progress import message
from shoal.validation import check_real

SECTIONS = {"ml": 1, "mainline": 1, "sb": 2, "sidebar": 2, "none": 0, "": 0, "0": 0, "1": 1, "2": 2}
BID_COLUMNS = ("auction_id", "ad_id", "bid_cents", "ctr")
OPTIONAL_BID_COLUMNS = ("advertiser_id", "section", "price", "clicked", "true_ctr")
AUCTION_COLUMNS = ("auction_id", "keyword_id", "day")
POLICY_COLUMNS = ("keyword_id", "reserve")
SUFFIXES = (".parquet", ".csv", ".csv.gz", ".jsonl", ".json")


def read_log(
    bids: Any,
    auctions: Any = None,
    policy: Any = None,
    *,
    names: dict[str, str] | None = None,
    layout: PageLayout | None = None,
    reference_ctr: float | None = None,
    cents_per_unit: float = 1.0,
) -> AuctionLog:
    """Read an auction log, tens of millions of bids if need be, through DuckDB.

    Parameters
    ----------
    bids : a table (file, SELECT, data frame) with columns auction_id, ad_id, bid_cents, ctr, and where there are any:
        advertiser_id, section (ml, sb, none), price, clicked. Or a folder that holds bids, auctions and policy tables.
    auctions : a table with auction_id, keyword_id, day, and weight (page views the auction represents; 1 if absent).
        May be left out when ``bids`` carries keyword_id and day itself; auctions without bids are then not seen.
    policy : the logged policy: a table with keyword_id, reserve, and where they differ alpha and sidebar_reserve; or a
        mapping such as ``{"alpha": 1, "reserve": 60, "sidebar_reserve": 5}`` for all keywords.
    names : your names for the columns, for example ``{"bid_cents": "max_cpc"}``.
    cents_per_unit : what one unit of the log's bids, prices and reserves is worth in cents: 1, or 100 for a log in
        dollars or euros.
    layout, reference_ctr : the page, and the click rate at which a reserve is a price; the traffic's mean if not given.

    Returns
    -------
    AuctionLog with ``dropped``: how many rows were left out for which reason.

    Examples
    --------
    >>> bids = {"auction_id": [1, 1, 2], "ad_id": [7, 8, 7], "bid_cents": [90, 40, -5], "ctr": [0.05, 0.03, 0.05],
    ...         "keyword_id": ["shoes"] * 3, "day": [1, 1, 1]}
    >>> log = read_log(bids, policy={"reserve": 50, "sidebar_reserve": 5})
    >>> log.n_auctions, log.n_bids, log.dropped
    (2, 2, {'bid of 0 or less': 1})
    """
    names = names or {}
    if isinstance(bids, (str, Path)) and Path(bids).is_dir() and auctions is None:
        bids, auctions, policy, layout, reference_ctr = _from_folder(Path(bids), policy, layout, reference_ctr)
    dropped: dict[str, int] = {}
    with NamedTables() as tables:
        has, connection = _views(tables, bids, auctions, names), tables.connection
        keywords, days = _number_auctions(connection, names, has, auctions is not None, dropped)
        logged = _policy(tables, policy, keywords, names)
        reference = reference_ctr or _mean_ctr(connection, names)
        _number_bids(connection, names, has, logged, reference, dropped)
        log = _assemble(connection, has, keywords, days, logged, layout or PageLayout(), float(reference), dropped)
    log = in_cents(log, check_real("cents_per_unit", cents_per_unit, minimum=0, strict=True))
    for reason, count in dropped.items():
        message(f"left out {count:,} rows: {reason}")
    return log


def in_cents(log: AuctionLog, cents_per_unit: float) -> AuctionLog:
    """The log with its money in cents."""
    if cents_per_unit == 1:
        return log
    policy = replace(
        log.policy,
        reserve=log.policy.reserve * cents_per_unit,
        sidebar_reserve=log.policy.sidebar_reserve * cents_per_unit,
    )
    price = None if log.price is None else log.price * cents_per_unit
    return replace(log, bid=log.bid * cents_per_unit, price=price, policy=policy)


def _name(names: dict[str, str], column: str) -> str:
    return quoted(names.get(column, column))


def _from_folder(folder: Path, policy: Any, layout: Any, reference_ctr: Any) -> tuple[Any, Any, Any, Any, Any]:
    def table(name: str, *, needed: bool) -> Path | None:
        for suffix in SUFFIXES:
            if (folder / (name + suffix)).exists():
                return folder / (name + suffix)
        if needed:
            raise BadSource(f"the folder {folder} holds no {name} table ({', '.join(name + s for s in SUFFIXES)}).")
        return None

    facts = json.loads((folder / "log.json").read_text()) if (folder / "log.json").exists() else {}
    if layout is None and "mainline" in facts:
        layout = PageLayout(facts["mainline"], facts["sidebar"])
    policy = policy if policy is not None else table("policy", needed=False)
    bids, auctions = table("bids", needed=True), table("auctions", needed=False)
    return bids, auctions, policy, layout, reference_ctr or facts.get("reference_ctr")


def _views(tables: NamedTables, bids: Any, auctions: Any, names: dict[str, str]) -> set[str]:
    """Register the tables and check their columns; which optional columns there are."""
    own = lambda columns: [names.get(column, column) for column in columns]  # noqa: E731
    present = tables.add("bids", bids)
    needed = BID_COLUMNS if auctions is not None else (*BID_COLUMNS, "keyword_id", "day")
    require_columns(present, own(needed), "the bids table")
    has = {column for column in OPTIONAL_BID_COLUMNS if names.get(column, column) in present}
    if auctions is None:
        own_columns = ", ".join(_name(names, column) for column in AUCTION_COLUMNS)
        columns = tables.add("auctions", f"SELECT DISTINCT {own_columns} FROM bids")
    else:
        columns = tables.add("auctions", auctions)
    require_columns(columns, own(AUCTION_COLUMNS), "the auctions table")
    if names.get("weight", "weight") in columns:
        has.add("weight")
    return has


def _number_auctions(
    connection: Any, names: dict[str, str], has: set[str], separate: bool, dropped: dict[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Build ``numbered`` (auction_id, keyword, day, weight, no) in the order of keyword and day; names of both."""
    weight = f"try_cast({_name(names, 'weight')} AS DOUBLE)" if "weight" in has else "1.0"
    fields = (
        f"{_name(names, 'auction_id')} AS id, {_name(names, 'keyword_id')} AS keyword, {_name(names, 'day')} AS day"
    )
    connection.execute(f"CREATE TEMP TABLE seen AS SELECT {fields}, {weight} AS weight FROM auctions")
    faults = {
        "auction without id, keyword or day": "id IS NULL OR keyword IS NULL OR day IS NULL",
        "auction with a weight that is missing, negative or 0": "weight IS NULL OR NOT (weight > 0 AND "
        "isfinite(weight))",
    }
    good = _count_faults(connection, "seen", faults, dropped)
    double = connection.execute(
        f"SELECT id, count(*) AS n FROM seen WHERE {good} GROUP BY id HAVING n > 1 LIMIT 1"
    ).fetchone()
    if double:
        place = "the auctions table" if separate else "the bids table (one keyword and day per auction)"
        raise BadInput(f"auction_id {double[0]!r} appears {double[1]} times in {place}; ids must be unique.")
    for what in ("keyword", "day"):
        connection.execute(
            f"CREATE TEMP TABLE {what}s AS SELECT {what}, row_number() OVER (ORDER BY {what}) - 1 AS number "
            f"FROM (SELECT DISTINCT {what} FROM seen WHERE {good})"
        )
    keywords = connection.execute("SELECT keyword FROM keywords ORDER BY number").fetchnumpy()["keyword"]
    days = _all_days(connection)
    if not len(keywords):
        raise BadInput("the log holds no usable auction" + _reasons(dropped))
    connection.execute(
        "CREATE TEMP TABLE numbered AS SELECT id, k.number AS keyword, d.number AS day, weight, "
        "row_number() OVER (ORDER BY k.number, d.number, id) - 1 AS no FROM seen "
        f"JOIN keywords k USING (keyword) JOIN days d USING (day) WHERE {good}"
    )
    return np.asarray(keywords), days


def _all_days(connection: Any) -> np.ndarray:
    """The days in order. Whole numbers and dates without traffic in between are days, too, and are reported."""
    days = [row[0] for row in connection.execute("SELECT day FROM days ORDER BY number").fetchall()]
    full: list[Any] = days
    if days and all(isinstance(day, int) for day in days) and days[-1] - days[0] < 10_000:
        full = list(range(days[0], days[-1] + 1))
    elif days and all(isinstance(day, datetime.date) and not isinstance(day, datetime.datetime) for day in days):
        full = [days[0] + datetime.timedelta(at) for at in range((days[-1] - days[0]).days + 1)]
    missing = [str(day) for day in full if day not in set(days)]
    if missing:
        message(f"{len(missing)} days without traffic: {', '.join(missing[:5])}{' ...' if len(missing) > 5 else ''}")
        place = {day: at for at, day in enumerate(full)}
        connection.execute("DELETE FROM days")
        connection.executemany("INSERT INTO days VALUES (?, ?)", [(day, place[day]) for day in days])
    return np.array([day if isinstance(day, int) else str(day) for day in full])


def _policy(tables: NamedTables, policy: Any, keywords: np.ndarray, names: dict[str, str]) -> Policy:
    n = len(keywords)
    if policy is None:
        raise BadInput(
            "the logged policy is needed to replay the log: give policy=, a table with keyword_id, alpha, reserve and "
            "sidebar_reserve, or numbers for all keywords such as {'alpha': 1, 'reserve': 60, 'sidebar_reserve': 5}."
        )
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, dict) and all(np.ndim(value) == 0 for value in policy.values()):
        unknown = set(policy) - {"alpha", "reserve", "sidebar_reserve"}
        if unknown or "reserve" not in policy:
            raise MissingColumn(
                f"policy has {', '.join(policy)}; it needs reserve, and may have alpha, sidebar_reserve."
            )
        return Policy.of(n, **{"sidebar_reserve": 0.0, **policy})
    columns = tables.add("policy", policy)
    require_columns(columns, [names.get(column, column) for column in POLICY_COLUMNS], "the policy table")
    fields = {"alpha": "1.0", "reserve": "NULL", "sidebar_reserve": "0.0"}
    chosen = [
        f"try_cast({_name(names, c)} AS DOUBLE) AS {c}" if names.get(c, c) in columns else f"{default} AS {c}"
        for c, default in fields.items()
    ]
    rows = tables.connection.execute(
        f"SELECT k.number, {', '.join(chosen)} FROM keywords k LEFT JOIN policy p "
        f"ON CAST(k.keyword AS VARCHAR) = CAST(p.{_name(names, 'keyword_id')} AS VARCHAR) ORDER BY k.number"
    ).fetchnumpy()
    if len(rows["number"]) != n:
        raise BadInput(
            f"the policy table names some keyword more than once ({len(rows['number'])} rows for {n} keywords)."
        )
    reserve: np.ndarray = np.ma.filled(np.ma.asarray(rows["reserve"], dtype=float), np.nan)
    missing = np.flatnonzero(~np.isfinite(reserve))
    if missing.size:
        raise BadInput(
            f"{missing.size} of {n} keywords have no reserve in the policy table, the first is "
            f"{keywords[missing[0]]!r}. "
            "Add them, or leave their auctions out."
        )
    filled: dict[str, np.ndarray] = {
        name: np.ma.filled(np.ma.asarray(rows[name], dtype=float), fill)
        for name, fill in (("alpha", 1.0), ("sidebar_reserve", 0.0))
    }
    return Policy.of(n, reserve=reserve, **filled)


def _mean_ctr(connection: Any, names: dict[str, str]) -> float:
    ctr = f"try_cast({_name(names, 'ctr')} AS DOUBLE)"
    mean = connection.execute(f"SELECT avg({ctr}) FROM bids WHERE {ctr} > 0 AND {ctr} <= 1").fetchone()[0]
    if mean is None:
        raise BadInput("no bid has a click rate between 0 and 1, so nothing can be ranked.")
    return float(mean)


def _number_bids(
    connection: Any, names: dict[str, str], has: set[str], policy: Policy, reference: float, dropped: dict[str, int]
) -> None:
    """Build ``usable``: one row per bid that can be used, with the number of its auction."""
    number = lambda column: f"try_cast({_name(names, column)} AS DOUBLE) AS {column}"  # noqa: E731
    fields = [
        f"{_name(names, 'auction_id')} AS id",
        f"{_name(names, 'ad_id')} AS ad",
        number("bid_cents"),
        number("ctr"),
    ]
    fields += [number(column) for column in ("price", "clicked", "true_ctr") if column in has]
    fields += (
        [f"lower(coalesce(CAST({_name(names, 'section')} AS VARCHAR), '')) AS section"] if "section" in has else []
    )
    fields += [f"{_name(names, 'advertiser_id')} AS advertiser"] if "advertiser_id" in has else ["NULL AS advertiser"]
    connection.execute(f"CREATE TEMP VIEW read AS SELECT {', '.join(fields)} FROM bids")
    connection.execute(
        "CREATE TEMP TABLE joined AS SELECT read.*, n.no, n.keyword AS kw FROM read LEFT JOIN numbered n ON "
        "read.id = n.id"
    )
    faults = {
        "bid of an auction that is not there": "no IS NULL",
        "bid missing or not a number": "bid_cents IS NULL OR NOT isfinite(bid_cents)",
        "bid of 0 or less": "NOT (bid_cents > 0)",
        "click rate missing or not a number": "ctr IS NULL OR NOT isfinite(ctr)",
        "click rate of 0 or less": "NOT (ctr > 0)",
        "click rate above 1": "ctr > 1",
        "no ad id": "ad IS NULL",
    }
    good = _count_faults(connection, "joined", faults, dropped)
    connection.register("alphas", _alphas(policy))
    # At most one ad of an advertiser, and one bid of an ad, is in an auction: the one that ranks best.
    who = "coalesce(CAST(advertiser AS VARCHAR), 'ad ' || CAST(ad AS VARCHAR))"
    before = connection.execute(f"SELECT count(*) FROM joined WHERE {good}").fetchone()[0]
    connection.execute(
        f"CREATE TEMP TABLE usable AS SELECT joined.* FROM joined JOIN alphas ON kw = alphas.number WHERE "
        f"{good} QUALIFY "
        f"row_number() OVER (PARTITION BY no, {who} ORDER BY bid_cents * power(ctr / {reference!r}, "
        f"alphas.alpha) DESC, "
        "bid_cents DESC, ad) = 1"
    )
    after = connection.execute("SELECT count(*) FROM usable").fetchone()[0]
    if before > after:
        dropped["second bid of an advertiser in the same auction (the best is kept)"] = int(before - after)
    if not after:
        raise BadInput("the log holds no usable bid" + _reasons(dropped))


def _alphas(policy: Policy) -> Any:
    import pyarrow as pa

    return pa.table({"number": np.arange(policy.alpha.size), "alpha": policy.alpha})


def _assemble(
    connection: Any,
    has: set[str],
    keywords: np.ndarray,
    days: np.ndarray,
    policy: Policy,
    layout: PageLayout,
    reference: float,
    dropped: dict[str, int],
) -> AuctionLog:
    auctions = connection.execute("SELECT keyword, day, weight FROM numbered ORDER BY no").fetchnumpy()
    extra = [column for column in ("section", "price", "clicked", "true_ctr") if column in has]
    connection.execute(
        "CREATE TEMP TABLE ads AS SELECT ad, row_number() OVER (ORDER BY ad) - 1 AS ad_no FROM (SELECT "
        "DISTINCT ad FROM usable)"
    )
    fields = ", ".join(["no", "ad_no", "bid_cents", "ctr", *(c for c in extra if c != "section")])
    if "section" in extra:
        codes = " ".join(f"WHEN '{word}' THEN {code}" for word, code in SECTIONS.items())
        fields += f", CASE section {codes} ELSE -1 END AS section"
    rows = connection.execute(f"SELECT {fields} FROM usable JOIN ads USING (ad) ORDER BY no, ad_no").fetchnumpy()
    column = lambda name, kind: np.ascontiguousarray(np.ma.filled(np.ma.asarray(rows[name]), 0), kind)  # noqa: E731
    sizes = np.bincount(column("no", np.int64), minlength=len(auctions["keyword"]))
    section = column("section", np.int8) if "section" in extra else None
    if section is not None and (section < 0).any():
        words = connection.execute("SELECT DISTINCT section FROM usable LIMIT 20").fetchall()
        unknown = [word for (word,) in words if word not in SECTIONS]
        raise BadInput(f"the section column holds {', '.join(map(repr, unknown))}; shoal knows ml, sb and none.")
    return AuctionLog(
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        keyword=np.asarray(auctions["keyword"], np.int64),
        day=np.asarray(auctions["day"], np.int64),
        weight=np.asarray(auctions["weight"], float),
        bid=column("bid_cents", float),
        ctr=column("ctr", float),
        ad=column("ad_no", np.int64),
        keywords=keywords,
        days=days,
        policy=policy,
        layout=layout,
        reference_ctr=reference,
        section=section,
        price=column("price", float) if "price" in extra else None,
        clicked=column("clicked", float) if "clicked" in extra else None,
        true_ctr=column("true_ctr", float) if "true_ctr" in extra else None,
        dropped=dropped,
    )


def _count_faults(connection: Any, table: str, faults: dict[str, str], dropped: dict[str, int]) -> str:
    """Count each row under its first fault; the condition that keeps the others."""
    case = " ".join(f"WHEN {test} THEN {at}" for at, test in enumerate(faults.values()))
    try:
        counted = connection.execute(
            f"SELECT CASE {case} ELSE -1 END AS fault, count(*) FROM {table} GROUP BY 1"
        ).fetchall()
    except duckdb.Error as error:
        raise BadSource(f"the {table} rows cannot be read: {error}") from None
    reasons = list(faults)
    dropped.update({reasons[fault]: int(count) for fault, count in sorted(counted) if fault >= 0})
    return " AND ".join(f"NOT coalesce({test}, true)" for test in faults.values())


def _reasons(dropped: dict[str, int]) -> str:
    return ": " + "; ".join(f"{count:,} rows: {reason}" for reason, count in dropped.items()) if dropped else "."
