"""What every keyword would have earned under every setting, had bids stayed as they were."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shoal.auction.auction_log import AuctionLog, Policy
from shoal.auction.calibrate import calibrate
from shoal.auction.replay_kernels import sweep
from shoal.errors import BadInput
from shoal.progress import task
from shoal.threads import ordered_map

LEAST_ALPHA = 0.1  # an exponent of 0 would ignore click rates altogether
AUCTIONS_PER_BLOCK = 4_096


@dataclass(frozen=True)
class Settings:
    """The candidate settings of a replay: every exponent with every reserve.

    Parameters
    ----------
    alphas, reserves : array
        With ``is_relative``, added to the logged exponent and multiplied with the logged reserve of each keyword;
        otherwise absolute values.
    is_relative : bool
        Whether settings are relative to the logged policy.

    Examples
    --------
    >>> settings = Settings.relative(n_reserves=3, span=0.5)
    >>> settings.n, settings.describe(settings.status_quo)
    (15, 'alpha +0, reserve x1')
    """

    alphas: np.ndarray
    reserves: np.ndarray
    is_relative: bool = True

    def __post_init__(self) -> None:
        alphas, reserves = (np.asarray(part, dtype=float) for part in (self.alphas, self.reserves))
        if not reserves.size or not alphas.size:
            raise BadInput("settings need at least one exponent and one reserve.")
        if not (np.isfinite(reserves) & (reserves >= 0)).all() or (np.diff(reserves) <= 0).any():
            raise BadInput("reserves must be 0 or more and strictly ascending.")
        object.__setattr__(self, "alphas", alphas)
        object.__setattr__(self, "reserves", reserves)

    @classmethod
    def relative(
        cls, *, alphas: Any = (-0.3, -0.15, 0.0, 0.15, 0.3), n_reserves: int = 41, span: float = 1.5
    ) -> Settings:
        """Multiples of the logged reserve between exp(-span) and exp(span), evenly spaced in the logarithm."""
        return cls(np.asarray(alphas, float), np.exp(np.linspace(-span, span, n_reserves)), True)

    @classmethod
    def absolute(cls, log: AuctionLog, *, alphas: Any = (0.6, 0.8, 1.0, 1.2, 1.5), n_reserves: int = 40) -> Settings:
        """Reserves between the lowest sidebar reserve and the 99.7th percentile of the scores in this log."""
        scores = log.bid * log.ctr / log.reference_ctr
        low = max(float(np.quantile(scores, 0.02)), float(log.policy.sidebar_reserve.min()))
        high = max(float(np.quantile(scores, 0.997)), low * 1.01)
        return cls(np.asarray(alphas, float), np.exp(np.linspace(np.log(low), np.log(high), n_reserves)), False)

    @property
    def n(self) -> int:
        return self.alphas.size * self.reserves.size

    @property
    def status_quo(self) -> int:
        """The number of the setting that changes nothing, or -1."""
        if not self.is_relative or 0.0 not in self.alphas:
            return -1
        near = np.flatnonzero(np.abs(self.reserves - 1) < 1e-12)
        return int(np.flatnonzero(self.alphas == 0)[0] * self.reserves.size + near[0]) if near.size else -1

    def policy(self, logged: Policy, choice: np.ndarray) -> Policy:
        """The policy in which each keyword has the setting of this number."""
        alpha, reserve = self.alphas[choice // self.reserves.size], self.reserves[choice % self.reserves.size]
        if self.is_relative:
            alpha, reserve = np.maximum(logged.alpha + alpha, LEAST_ALPHA), logged.reserve * reserve
        return Policy(np.asarray(alpha), np.asarray(reserve), logged.sidebar_reserve)

    def describe(self, choice: int) -> str:
        """A setting in words."""
        alpha, reserve = self.alphas[choice // self.reserves.size], self.reserves[choice % self.reserves.size]
        return (
            f"alpha {alpha:+.3g}, reserve x{reserve:.3g}"
            if self.is_relative
            else f"alpha {alpha:.3g}, reserve {reserve:.4g}"
        )


class Totals(NamedTuple):
    """What a policy brings: sums over page views."""

    clicks: Any
    revenue: Any  # cents
    mainline: Any  # mainline ads shown
    impressions: Any  # all ads shown


@dataclass
class ReplayTable:
    """Clicks, revenue (cents), mainline ads and all ads of every keyword under every setting.

    Rows are keywords or, when made ``by_day``, keyword after keyword with one row for each day.
    """

    clicks: np.ndarray  # (n_rows, n_settings)
    revenue: np.ndarray
    mainline: np.ndarray
    impressions: np.ndarray
    status_quo: Totals  # (n_rows,) each, under the logged policy
    page_views: np.ndarray  # (n_rows,)
    settings: Settings
    n_days: int = 0  # 0 when days are added up

    @classmethod
    def of(cls, totals: Iterable[np.ndarray], **rest: Any) -> ReplayTable:
        """A table of clicks, revenue, mainline ads and all ads, in this order."""
        clicks, revenue, mainline, impressions = totals
        return cls(clicks, revenue, mainline, impressions, **rest)

    @property
    def totals(self) -> Totals:
        return Totals(self.clicks, self.revenue, self.mainline, self.impressions)

    def over_days(self, days: Any = None) -> ReplayTable:
        """The table per keyword over these days (numbers), or over all."""
        if not self.n_days:
            if days is not None:
                raise BadInput("this table adds up all days; make it with replay(..., by_day=True) to choose days.")
            return self
        chosen = np.arange(self.n_days) if days is None else np.asarray(days)

        def add_up(values: np.ndarray) -> np.ndarray:
            shaped = values.reshape(-1, self.n_days, *values.shape[1:])
            return np.asarray(shaped[:, chosen].sum(1))

        return ReplayTable.of(
            (add_up(part) for part in self.totals),
            status_quo=Totals(*(add_up(part) for part in self.status_quo)),
            page_views=add_up(self.page_views),
            settings=self.settings,
        )

    def minus(self, other: ReplayTable) -> ReplayTable:
        """This table without what another (of some of its days) holds."""
        return ReplayTable.of(
            (part - gone for part, gone in zip(self.totals, other.totals, strict=True)),
            status_quo=Totals(*(part - gone for part, gone in zip(self.status_quo, other.status_quo, strict=True))),
            page_views=self.page_views - other.page_views,
            settings=self.settings,
        )

    def grouped(self, labels: np.ndarray, n_groups: int | None = None) -> ReplayTable:
        """The table of clusters: rows with the same label are added up. No replay is needed."""
        n_groups = int(labels.max()) + 1 if n_groups is None else n_groups
        order = np.argsort(labels, kind="stable")
        present, first = np.unique(labels[order], return_index=True)

        def add_up(values: np.ndarray) -> np.ndarray:
            out = np.zeros((n_groups, *values.shape[1:]), values.dtype)
            out[present] = np.add.reduceat(values[order], first, axis=0)
            return out

        return ReplayTable.of(
            (add_up(part) for part in self.totals),
            status_quo=Totals(*(add_up(part) for part in self.status_quo)),
            page_views=add_up(self.page_views),
            settings=self.settings,
        )

    def under(self, choice: np.ndarray) -> Totals:
        """Totals over all rows when row q has the setting choice[q]."""
        rows = np.arange(self.clicks.shape[0])
        return Totals(*(float(part[rows, choice].sum(dtype=float)) for part in self.totals))

    def baseline(self) -> Totals:
        """Totals over all rows under the logged policy."""
        return Totals(*(float(np.sum(part, dtype=float)) for part in self.status_quo))


def replay(
    log: AuctionLog,
    settings: Settings | None = None,
    *,
    by_day: bool = False,
    clicks_from: str = "estimated",
    dtype: Any = np.float64,
) -> ReplayTable:
    """Run every auction of the log again under every setting.

    For one exponent all reserves are done in a single pass over an auction, because a falling reserve can only change
    how many ads the mainline holds. Bids are held fixed: bidders who would react are not in the figures.

    Parameters
    ----------
    log : AuctionLog
        The log.
    settings : candidates; ``Settings.relative()`` if not given.
    by_day : keep days apart (rows are keyword x day), so that days can be left out later without another replay.
    clicks_from : where expected clicks come from. "estimated": the log's click rates. "calibrated": those, corrected
        by the clicks the log itself counted (see ``calibrate``). "true": the real rates, which only a simulation knows.
        Ranking and prices use the log's estimates always, as the auction does.
    dtype : float32 halves the memory of large tables.

    Examples
    --------
    >>> from shoal.auction import Market, baseline_policy
    >>> market = Market(20, n_days=2, page_views_per_day=100, random_state=0)
    >>> log = market.log(baseline_policy(market, tuning="coarse").policy)
    >>> table = replay(log, Settings.relative(n_reserves=3))
    >>> table.clicks.shape == (20, table.settings.n)
    True
    """
    settings = settings or Settings.relative()
    n_rows = log.n_keywords * (log.days.size if by_day else 1)
    outputs = [np.empty((n_rows, settings.n), dtype) for _ in range(4)]
    click_ctr = _click_rates(log, clicks_from)
    base = (log.policy.alpha, log.policy.reserve) if settings.is_relative else _nothing(log)
    _sweep_into(log, by_day, click_ctr, base, settings, outputs, "replay")
    if settings.status_quo >= 0:
        status = [part[:, settings.status_quo, None].astype(float) for part in outputs]
    else:
        status = [np.empty((n_rows, 1)) for _ in range(4)]
        unchanged, logged = Settings(np.zeros(1), np.ones(1)), (log.policy.alpha, log.policy.reserve)
        _sweep_into(log, by_day, click_ctr, logged, unchanged, status, "status quo")
    return ReplayTable.of(
        outputs,
        status_quo=Totals(*(part[:, 0] for part in status)),
        page_views=_page_views(log, by_day),
        settings=settings,
        n_days=log.days.size if by_day else 0,
    )


def replay_policy(log: AuctionLog, policy: Policy, *, by_day: bool = False, clicks_from: str = "estimated") -> Totals:
    """What each keyword (by day: keyword x day) would have brought under one policy."""
    n_rows = log.n_keywords * (log.days.size if by_day else 1)
    outputs = [np.empty((n_rows, 1)) for _ in range(4)]
    as_given = Settings(np.zeros(1), np.ones(1))
    under = AuctionLog(**{**vars(log), "policy": policy})
    _sweep_into(
        under, by_day, _click_rates(log, clicks_from), (policy.alpha, policy.reserve), as_given, outputs, "policy"
    )
    return Totals(*(part[:, 0] for part in outputs))


def _sweep_into(
    log: AuctionLog,
    by_day: bool,
    click_ctr: np.ndarray,
    base: tuple[np.ndarray, np.ndarray],
    settings: Settings,
    outputs: list[np.ndarray],
    what: str,
) -> None:
    """Run the kernel over blocks of whole groups, on threads; groups are disjoint, so nothing is merged."""
    n_days = log.days.size if by_day else 1
    n_groups = log.n_keywords * n_days
    group = log.keyword.astype(np.int64) * n_days + (log.day if by_day else 0)
    group_starts = np.searchsorted(group, np.arange(n_groups + 1))
    group_keyword = np.arange(n_groups) // n_days
    log_ratio = np.log(log.ctr / log.reference_ctr)
    auctions = (log.starts, log.weight, log.bid, log_ratio, click_ctr)
    alphas = (base[0], settings.alphas, LEAST_ALPHA if settings.is_relative else 0.0)
    reserves = (base[1], settings.reserves, log.policy.sidebar_reserve)
    positions = log.layout.tables()
    cuts = np.unique(
        np.searchsorted(group_starts, np.arange(0, log.n_auctions + AUCTIONS_PER_BLOCK, AUCTIONS_PER_BLOCK))
    )
    cuts = np.unique(np.concatenate([[0], cuts.clip(max=n_groups), [n_groups]]))
    blocks = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))

    def one_block(block: tuple[int, int]) -> int:
        sweep(*block, (group_starts, group_keyword), auctions, alphas, reserves, positions, tuple(outputs))
        return int(group_starts[block[1]] - group_starts[block[0]])

    with task(what, total=log.n_auctions) as bar:
        for n_done in ordered_map(one_block, blocks):
            bar.advance(n_done)


def _click_rates(log: AuctionLog, clicks_from: str) -> np.ndarray:
    if clicks_from == "estimated":
        return log.ctr
    if clicks_from == "calibrated":
        return calibrate(log).rates(log)
    if clicks_from != "true":
        raise BadInput(f"clicks_from is {clicks_from!r}; choose 'estimated', 'calibrated' or 'true'.")
    if log.true_ctr is None:
        raise BadInput("this log has no true click rates (only simulated logs do); use clicks_from='estimated'.")
    return log.true_ctr


def _nothing(log: AuctionLog) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(log.n_keywords), np.ones(log.n_keywords)


def _page_views(log: AuctionLog, by_day: bool) -> np.ndarray:
    if not by_day:
        return log.page_views()
    n_days = log.days.size
    return np.bincount(log.keyword.astype(np.int64) * n_days + log.day, log.weight, log.n_keywords * n_days)
