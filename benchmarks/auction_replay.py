"""Replay speed: all reserves in one pass against one reserve at a time, and ten million auctions.

python benchmarks/auction_replay.py              both
python benchmarks/auction_replay.py naive        the sweep against the plain replay, 60 reserves
python benchmarks/auction_replay.py large        10M auctions x 5 exponents x 60 reserves, all cores
"""

from __future__ import annotations

import os
import sys

import numba
import numpy as np

from common import Timer, peak_mb, record
from shoal.auction import AuctionLog, Policy, Settings, replay
from shoal.auction.auction_log import in_order
from shoal.threads import n_threads_available

ALPHAS = (0.6, 0.8, 1.0, 1.2, 1.5)


def random_log(n_auctions: int, n_keywords: int, seed: int = 1) -> AuctionLog:
    """About nine bidders an auction, as in the published measurements."""
    rng = np.random.default_rng(seed)
    sizes = rng.poisson(9, n_auctions)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n_bids = int(starts[-1])
    bid = np.maximum(np.round(np.exp(rng.normal(4, 1, n_bids))), 1.0)
    ctr = np.exp(rng.normal(-3.3, 0.7, n_bids)).clip(1e-4, 0.9)
    return in_order(
        AuctionLog(
            starts=starts,
            keyword=np.sort(rng.integers(0, n_keywords, n_auctions)),
            day=np.zeros(n_auctions, np.int64),
            weight=np.ones(n_auctions),
            bid=bid,
            ctr=ctr,
            ad=np.arange(n_bids),
            keywords=np.arange(n_keywords),
            days=np.arange(1),
            policy=Policy.of(n_keywords, reserve=60, sidebar_reserve=3),
        )
    )


@numba.njit
def plain_replay(starts, keyword, weight, bid, log_ratio, ctr, alpha, reserves, floor, on_mainline, on_sidebar, out):
    """The auction by the book, compiled, one setting at a time: score, sort, allocate, price, add up."""
    most, side = on_mainline.size, on_sidebar.size
    order, quality, score = np.empty(4096, np.int64), np.empty(bid.size), np.empty(bid.size)
    for j in range(reserves.size):
        for auction in range(keyword.size):
            first, last = starts[auction], starts[auction + 1]
            n = last - first
            for i in range(n):
                order[i] = first + i
                quality[first + i] = np.exp(alpha * log_ratio[first + i])
                score[first + i] = bid[first + i] * quality[first + i]
            for i in range(1, n):
                o, k = order[i], i - 1
                while k >= 0 and (
                    score[order[k]] < score[o] or (score[order[k]] == score[o] and bid[order[k]] < bid[o])
                ):
                    order[k + 1] = order[k]
                    k -= 1
                order[k + 1] = o
            bar, shown_main = max(reserves[j], floor), 0
            while shown_main < min(n, most) and score[order[shown_main]] >= bar:
                shown_main += 1
            shown = shown_main
            while shown < n and shown - shown_main < side and score[order[shown]] >= floor:
                shown += 1
            for i in range(shown):
                o = order[i]
                following = score[order[i + 1]] if i + 1 < n else 0.0
                factor = on_mainline[i] if i < shown_main else on_sidebar[i - shown_main]
                price = max(following, bar if i < shown_main else floor) / quality[o]
                out[keyword[auction], j, 0] += weight[auction] * factor * ctr[o]
                out[keyword[auction], j, 1] += weight[auction] * factor * ctr[o] * price
            out[keyword[auction], j, 2] += weight[auction] * shown_main
            out[keyword[auction], j, 3] += weight[auction] * shown


def against_the_plain_replay() -> None:
    log = random_log(20_000, 200)
    # Multiples of the logged reserve, the logged one among them: both sides then do the very same 60 settings.
    multiples = np.append(np.exp(np.linspace(-3.4, 3.4, 59)), np.exp(3.6))
    settings, reserves = Settings(np.zeros(1), multiples), 60 * multiples
    arguments = (log.starts, log.keyword, log.weight, log.bid, np.log(log.ctr / log.reference_ctr), log.ctr, 1.0)
    page = (np.asarray(log.layout.mainline), np.asarray(log.layout.sidebar))

    def plain(reserves: np.ndarray) -> np.ndarray:
        out = np.zeros((log.n_keywords, reserves.size, 4))
        plain_replay(*arguments, reserves, 3.0, *page, out)
        return out

    plain(reserves[:2])
    replay(log, settings)
    with Timer() as slow:
        wanted = plain(reserves)
    seconds: dict[str, float] = {}
    for threads in ("1", str(n_threads_available())):
        os.environ["SHOAL_NUM_THREADS"] = threads
        for _ in range(7):
            with Timer() as fast:
                table = replay(log, settings)
            seconds[threads] = min(seconds.get(threads, np.inf), fast.seconds)
    error = max(np.abs(part - wanted[:, :, at]).max() / wanted[:, :, at].max() for at, part in enumerate(table.totals))
    assert error < 1e-12, error
    best, alone = min(seconds.values()), seconds["1"]
    record(
        "auction",
        workload="replay 20k auctions x 60 reserves",
        model="one sweep against one reserve at a time (compiled, one thread)",
        seconds=best,
        rival_seconds=slow.seconds,
        ratio=slow.seconds / best,
        seconds_on_one_thread=alone,
        ratio_on_one_thread=slow.seconds / alone,
        microseconds_per_auction=1e6 * best / log.n_auctions,
        quality=float(error),
        bids=log.n_bids,
        peak_mb=peak_mb(),
    )


def large() -> None:
    log = random_log(10_000_000, 100_000)
    settings = Settings(np.array(ALPHAS), np.exp(np.linspace(np.log(2), np.log(2000), 60)), is_relative=False)
    replay(random_log(100, 5), settings, dtype=np.float32)
    with Timer() as timer:
        table = replay(log, settings, dtype=np.float32)
    assert np.isfinite(table.revenue).all()
    assert (np.diff(table.mainline.reshape(100_000, 5, 60).sum(0, dtype=float), axis=1) <= 1e-3).all()
    record(
        "auction",
        workload="replay 10M auctions x 5 exponents x 60 reserves, 100k keywords",
        model="replay",
        seconds=timer.seconds,
        bids=log.n_bids,
        peak_mb=peak_mb(),
        quality=float(table.clicks.sum(dtype=float)),
        microseconds_per_auction_and_alpha=1e6 * timer.seconds / log.n_auctions / 5,
    )


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "all"
    if what in ("naive", "all"):
        against_the_plain_replay()
    if what in ("large", "all"):
        large()
