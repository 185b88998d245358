"""Reading a log of tens of millions of bids, one keyword of which holds a million, with every check on.

python benchmarks/auction_reading.py [auctions]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import duckdb

from common import Timer, peak_mb, record
from shoal.auction import landscapes, read_log


def write(folder: Path, n_auctions: int) -> None:
    """Ten bids an auction; the first 100,000 auctions are one keyword's; some rows are bad on purpose."""
    connection = duckdb.connect()
    connection.execute("SELECT setseed(0.5)")
    connection.execute(
        "COPY (SELECT i AS auction_id, CASE WHEN i < 100000 THEN 'giant' ELSE 'keyword ' || (i % 50000) END AS "
        f"keyword_id, 1 + i % 7 AS day, 1 AS weight FROM range({n_auctions}) t(i)) TO '{folder}/auctions.parquet'"
    )
    connection.execute(
        f"COPY (SELECT i // 10 AS auction_id, i % 10 + 10 * ((i // 10) % 50000) AS ad_id, "
        "(i * 7919) % 500 - (CASE WHEN i % 1000 = 0 THEN 600 ELSE 0 END) AS bid_cents, "
        "CASE WHEN i % 5000 = 1 THEN NULL ELSE 0.002 + 0.1 * random() END AS ctr, "
        f"FROM range({10 * n_auctions}) t(i)) TO '{folder}/bids.parquet'"
    )


def main() -> None:
    n_auctions = int(float(sys.argv[1])) if len(sys.argv) > 1 else 3_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, n_auctions)
        with Timer() as timer:
            log = read_log(folder, policy={"reserve": 150, "sidebar_reserve": 10})
        assert log.n_auctions == n_auctions
        assert log.n_bids + sum(log.dropped.values()) == 10 * n_auctions
        landscapes(log.on_days([0]))
        with Timer() as describe:
            land = landscapes(log)
    giant = int((log.keywords == "giant").argmax())
    record(
        "auction",
        workload=f"read {10 * n_auctions:,} bids",
        model="read_log",
        seconds=timer.seconds,
        landscapes_seconds=describe.seconds,
        largest_keyword_bids=int(land.n_bids[giant]),
        dropped=log.dropped,
        keywords=log.n_keywords,
        quality=log.n_bids / (10 * n_auctions),
        peak_mb=peak_mb(),
    )


if __name__ == "__main__":
    main()
