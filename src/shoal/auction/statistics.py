"""The seam of the replay: outcome tables of parts of a log, added up."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shoal.auction.auction_log import AuctionLog
from shoal.auction.replay import ReplayTable, Settings, Totals, replay
from shoal.engine import fold
from shoal.errors import CannotMerge


class Outcomes(NamedTuple):
    """What every keyword would have brought under every setting, in some part of the log."""

    table: ReplayTable
    keywords: np.ndarray  # names, in the order of the rows
    days: np.ndarray


def accumulate(
    block: AuctionLog, settings: Settings, memory: None = None, *, by_day: bool = False, clicks_from: str = "estimated"
) -> tuple[Outcomes, None]:
    """Replay a part of the log, for example some of its days."""
    return Outcomes(replay(block, settings, by_day=by_day, clicks_from=clicks_from), block.keywords, block.days), None


def merge(a: Outcomes, b: Outcomes) -> Outcomes:
    """The outcomes of both parts: tables of the same keywords, days and settings add up."""
    same = np.array_equal(a.keywords, b.keywords) and np.array_equal(a.days, b.days)
    if not same or a.table.totals.clicks.shape != b.table.totals.clicks.shape or a.table.n_days != b.table.n_days:
        raise CannotMerge(
            "outcome tables of other keywords, days or settings do not add up; replay parts of one log (on_days keeps "
            "their numbers) under the same settings."
        )
    for one, other in ((a.table.settings.alphas, b.table.settings.alphas),
                       (a.table.settings.reserves, b.table.settings.reserves)):  # fmt: skip
        if not np.array_equal(one, other):
            raise CannotMerge("outcome tables under different settings do not add up; replay both under the same.")
    return a._replace(table=_sum(a.table, b.table))


def update(table: ReplayTable | None, stats: Outcomes) -> ReplayTable:
    """The table with the outcomes of more of the log."""
    return stats.table if table is None else _sum(table, stats.table)


def _sum(a: ReplayTable, b: ReplayTable) -> ReplayTable:
    together: Any = (one + other for one, other in zip(a.totals, b.totals, strict=True))
    status = Totals(*(one + other for one, other in zip(a.status_quo, b.status_quo, strict=True)))
    return ReplayTable.of(
        together, status_quo=status, page_views=a.page_views + b.page_views, settings=a.settings, n_days=a.n_days
    )


def replay_blocks(blocks: Any, settings: Settings | None = None, **options: Any) -> ReplayTable:
    """:func:`replay` over parts of a log, a list or an iterator: one fold.

    Examples
    --------

    Parameters
    ----------
    blocks : list or iterator of AuctionLog
        Parts of a log.
    settings : Settings, optional
        Candidates; ``Settings.relative()`` if not given.
    **options
        Options of :func:`replay`.

    Examples
    --------
    >>> from shoal.auction import Market, baseline_policy
    >>> market = Market(20, n_days=2, page_views_per_day=100, random_state=0)
    >>> log = market.log(baseline_policy(market, tuning="coarse").policy)
    >>> parts = replay_blocks([log.on_days([0]), log.on_days([1])])
    >>> bool(np.allclose(parts.clicks, replay(log).clicks))
    True
    """
    step = partial(accumulate, **options)
    return update(None, fold(blocks, step, merge, settings or Settings.relative(), n_threads=1).stats)
