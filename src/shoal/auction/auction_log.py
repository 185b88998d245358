"""What an auction log is made of: the page, the policy that priced it, and the auctions themselves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.errors import BadInput

NOT_SHOWN, MAINLINE, SIDEBAR = 0, 1, 2


@dataclass(frozen=True)
class PageLayout:
    """Probability that each position of the page is examined, relative to the first mainline position.

    Parameters
    ----------
    mainline, sidebar : array-like
        One factor per position, or, if factors depend on the number of mainline ads, tables with one row for each
        number of mainline ads, starting with 0.

    Examples
    --------
    >>> PageLayout().n_mainline, PageLayout().n_sidebar
    (4, 5)
    """

    mainline: Any = (1.0, 0.62, 0.45, 0.35)
    sidebar: Any = (0.12, 0.09, 0.07, 0.06, 0.05)

    def __post_init__(self) -> None:
        for name in ("mainline", "sidebar"):
            factors = np.asarray(getattr(self, name), dtype=float)
            if factors.size and not ((factors >= 0) & (factors <= 1)).all():
                raise BadInput(f"the {name} factors must lie between 0 and 1; got {factors.tolist()}.")
        for table in (np.asarray(self.mainline), np.asarray(self.sidebar)):
            if table.ndim == 2 and table.shape[0] != self.n_mainline + 1:
                raise BadInput(
                    f"a table of factors needs one row for each number of mainline ads, 0 to {self.n_mainline}; "
                    f"got {table.shape[0]} rows."
                )

    @property
    def n_mainline(self) -> int:
        return int(np.asarray(self.mainline).shape[-1])

    @property
    def n_sidebar(self) -> int:
        return int(np.asarray(self.sidebar).shape[-1])

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors by number of mainline ads (rows) and place (columns)."""
        rows = self.n_mainline + 1
        both = [np.atleast_2d(np.asarray(factors, dtype=float)) for factors in (self.mainline, self.sidebar)]
        mainline, sidebar = (np.ascontiguousarray(np.broadcast_to(table, (rows, table.shape[1]))) for table in both)
        return mainline, sidebar


@dataclass
class Policy:
    """Exponents and reserves of all keywords.

    A bid ``b`` with estimated click rate ``c`` has the score ``b * (c / reference_ctr) ** alpha``. Reserves are scores,
    that is, cents per click at the reference click rate.

    Parameters
    ----------
    alpha : array of shape (n_keywords,)
        Exponent of the click rate in the rank score.
    reserve, sidebar_reserve : array of shape (n_keywords,)
        Reserves of mainline and sidebar.

    Examples
    --------
    >>> Policy.of(2, alpha=1.0, reserve=[20, 30], sidebar_reserve=5).reserve
    array([20., 30.])
    """

    alpha: np.ndarray  # (n_keywords,)
    reserve: np.ndarray  # (n_keywords,) score an ad needs for the mainline
    sidebar_reserve: np.ndarray  # (n_keywords,) score an ad needs to be shown at all

    @classmethod
    def of(cls, n_keywords: int, *, alpha: Any = 1.0, reserve: Any, sidebar_reserve: Any) -> Policy:
        """Numbers or arrays, spread over all keywords.

        >>> Policy.of(2, reserve=[50, 80], sidebar_reserve=5).sidebar_reserve
        array([5., 5.])
        """
        parts = []
        for name, value in (("alpha", alpha), ("reserve", reserve), ("sidebar_reserve", sidebar_reserve)):
            values = np.array(np.broadcast_to(np.asarray(value, dtype=float), (n_keywords,)))
            if not (np.isfinite(values) & (values >= 0)).all():
                at = int(np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[0])
                raise BadInput(f"{name} of keyword {at} is {values[at]:g}; it must be a number, 0 or more.")
            parts.append(values)
        return cls(*parts)


@dataclass
class AuctionLog:
    """Auctions in the order of keyword and day, each with its bids in the order of ad id; see ``read_log``."""

    starts: np.ndarray  # (n_auctions + 1,) where the bids of each auction begin
    keyword: np.ndarray  # (n_auctions,) number of the keyword
    day: np.ndarray  # (n_auctions,) number of the day
    weight: np.ndarray  # (n_auctions,) page views the auction represents
    bid: np.ndarray  # (n_bids,) cents
    ctr: np.ndarray  # (n_bids,) estimated click rate at the first place
    ad: np.ndarray  # (n_bids,) number of the ad
    keywords: np.ndarray  # names by number
    days: np.ndarray  # names by number
    policy: Policy  # the policy under which the log was written
    layout: PageLayout = field(default_factory=PageLayout)
    reference_ctr: float = 0.04
    true_ctr: np.ndarray | None = None  # (n_bids,) known in simulations only
    section: np.ndarray | None = None  # (n_bids,) 0 not shown, 1 mainline, 2 sidebar, as logged
    price: np.ndarray | None = None  # (n_bids,) cents per click, as logged
    clicked: np.ndarray | None = None  # (n_bids,) clicks, as logged
    dropped: dict[str, int] = field(default_factory=dict)  # rows left out while reading, by reason

    @property
    def n_auctions(self) -> int:
        return self.keyword.size

    @property
    def n_bids(self) -> int:
        return self.bid.size

    @property
    def n_keywords(self) -> int:
        return self.keywords.size

    def auction_of_bids(self) -> np.ndarray:
        """(n_bids,) the auction of each bid."""
        return np.repeat(np.arange(self.n_auctions), np.diff(self.starts))

    def page_views(self) -> np.ndarray:
        """(n_keywords,) page views of each keyword."""
        return np.bincount(self.keyword, self.weight, self.n_keywords)

    def qualities(self, alpha: np.ndarray | None = None) -> np.ndarray:
        """(n_bids,) ``(ctr / reference_ctr) ** alpha`` under these exponents per keyword, or the logged ones."""
        exponents = (self.policy.alpha if alpha is None else alpha)[self.keyword[self.auction_of_bids()]]
        return np.exp(exponents * np.log(self.ctr / self.reference_ctr))

    def on_days(self, days: Any) -> AuctionLog:
        """The auctions of these days (numbers); keywords and days keep their numbers."""
        return self._only(np.isin(self.day, np.asarray(days)))

    def _only(self, keep: np.ndarray) -> AuctionLog:
        bids = np.repeat(keep, np.diff(self.starts))
        sizes = np.diff(self.starts)[keep]
        per_bid: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[bids]
            for name in ("bid", "ctr", "ad", "true_ctr", "section", "price", "clicked")
        }
        per_auction = {name: getattr(self, name)[keep] for name in ("keyword", "day", "weight")}
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return replace(self, starts=starts, **per_bid, **per_auction)


def in_order(log: AuctionLog) -> AuctionLog:
    """The same auctions sorted by keyword and day, which every pass over the log relies on."""
    order = np.lexsort((log.day, log.keyword))
    if (order[:-1] < order[1:]).all():
        return log
    sizes = np.diff(log.starts)[order]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    bids = np.repeat(log.starts[:-1][order] - starts[:-1], sizes) + np.arange(starts[-1])
    per_bid: dict[str, Any] = {
        name: None if getattr(log, name) is None else getattr(log, name)[bids]
        for name in ("bid", "ctr", "ad", "true_ctr", "section", "price", "clicked")
    }
    per_auction = {name: getattr(log, name)[order] for name in ("keyword", "day", "weight")}
    return replace(log, starts=starts, **per_bid, **per_auction)
