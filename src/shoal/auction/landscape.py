"""Bid landscapes: for each keyword, the distribution of its bids in the mainline and in the sidebar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from shoal.auction.auction_log import MAINLINE, NOT_SHOWN, AuctionLog
from shoal.auction.landscape_kernels import moments, upper_scores
from shoal.auction.result_pages import result_pages
from shoal.densities import smoothed_components
from shoal.errors import BadInput

COORDINATES = {
    "logbid+logctr": ("log bid", "log CTR"),
    "log_score": ("log rank score",),
    "logbid_ctr": ("log bid x CTR",),
}
TYPICAL_COUNT = 5.0  # thin keywords are drawn towards all keywords as if they held this many typical bids more


@dataclass
class Landscapes:
    """One labelled two-component Gaussian mixture per keyword, and what the baselines need."""

    mixtures: np.ndarray  # (n_keywords, 2 + 4 d) for DensityKMeans(family="gaussian_mixture")
    gaussians: np.ndarray  # (n_keywords, 2 d) for DensityKMeans(family="gaussian"): the same bids, sections ignored
    keywords: np.ndarray  # names
    n_bids: np.ndarray  # (n_keywords,) shown bids
    page_views: np.ndarray  # (n_keywords,)
    features: np.ndarray  # (n_keywords, 5) the raw features of the paper's k-means baseline, equation (27)
    upper_score: np.ndarray  # (n_keywords,) 95th percentile of the rank score, for k-bins
    coordinates: str
    agrees: float | None  # share of bids whose logged section the replayed policy reproduces, when the log has sections

    def percentiles(self) -> np.ndarray:
        """Each feature as its percentile rank, between 0 and 1."""
        return np.asarray((rankdata(self.features, axis=0, method="ordinal") - 0.5) / self.features.shape[0])


def landscapes(
    log: AuctionLog,
    *,
    coordinates: str = "logbid+logctr",
    sections: str = "logged",
    pseudo_count: float = TYPICAL_COUNT,
) -> Landscapes:
    """Describe every keyword by its bids, in closed form and one pass over the log.

    Parameters
    ----------
    log : AuctionLog
        The log.
    coordinates : "logbid+logctr" keeps bid level and click rate apart (the default: it holds up in every market tried);
        "log_score" is the logarithm of the rank score; "logbid_ctr" is log(bid) x CTR, the coordinate of the paper.
    sections : "logged" uses the log's own sections where it has them; "replayed" computes them from the logged policy.
    pseudo_count : weight of the moments of all keywords in those of a keyword, in observations.

    Examples
    --------
    >>> from shoal.auction import Market, baseline_policy
    >>> market = Market(20, n_days=2, page_views_per_day=100, random_state=0)
    >>> log = market.log(baseline_policy(market, tuning="coarse").policy)
    >>> landscapes(log).mixtures.shape[0]
    20
    """
    if coordinates not in COORDINATES:
        raise BadInput(f"coordinates is {coordinates!r}; choose one of {', '.join(COORDINATES)}.")
    if sections not in ("logged", "replayed"):
        raise BadInput(f"sections is {sections!r}; choose 'logged' or 'replayed'.")
    replayed = result_pages(log).section
    agrees = None if log.section is None else float((log.section == replayed).mean()) if log.n_bids else 1.0
    section = log.section if sections == "logged" and log.section is not None else replayed
    values, log_bid = _values(log, coordinates)
    auction = log.auction_of_bids()
    weight = log.weight[auction]
    auctions = np.searchsorted(log.keyword, np.arange(log.n_keywords + 1))
    bid_starts = log.starts[auctions]
    shown = np.where(section == NOT_SHOWN, -1, np.where(section == MAINLINE, 0, 1)).astype(np.int8)
    mixtures = _fit(bid_starts, values, weight, shown, 2, pseudo_count, with_weights=True)
    gaussians = _fit(bid_starts, values, weight, np.minimum(shown, 0), 1, pseudo_count, with_weights=False)
    upper = np.empty(log.n_keywords)
    upper_scores(bid_starts, log.bid * log.ctr / log.reference_ctr, 0.95, upper)
    return Landscapes(
        mixtures,
        gaussians,
        log.keywords,
        np.add.reduceat(np.append(shown >= 0, False), bid_starts[:-1]) * (np.diff(bid_starts) > 0),
        log.page_views(),
        _features(log, bid_starts, log_bid, weight, shown),
        upper,
        coordinates,
        agrees,
    )


def _values(log: AuctionLog, coordinates: str) -> tuple[np.ndarray, np.ndarray]:
    """(n_bids, d) the coordinates of every bid, and log bid."""
    log_bid = np.log(np.maximum(log.bid, 1.0))  # whole cents: nothing below one
    ctr = np.clip(log.ctr, 1e-6, 1.0)
    scores = log.bid * log.qualities()
    columns = {
        "logbid+logctr": (log_bid, np.log(ctr)),
        "log_score": (np.log(np.maximum(scores, 1e-300)),),
        "logbid_ctr": (log_bid * ctr,),
    }[coordinates]
    return np.column_stack(columns), log_bid


def _fit(
    bid_starts: np.ndarray,
    values: np.ndarray,
    weight: np.ndarray,
    component: np.ndarray,
    n_components: int,
    pseudo_count: float,
    *,
    with_weights: bool,
) -> np.ndarray:
    n, d = bid_starts.size - 1, values.shape[1]
    count, mass = np.zeros((n, n_components)), np.zeros((n, n_components))
    mean, variance = np.zeros((n, n_components, d)), np.zeros((n, n_components, d))
    moments(bid_starts, values, weight, component, count, mass, mean, variance)
    if not count.any():
        raise BadInput("no bid of the log was shown under its policy, so there is no landscape to describe.")
    # Shares by page views, strength by the number of bids seen.
    total = mass.sum(1, keepdims=True)
    seen = count.sum(1, keepdims=True) * np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)
    shares, mean, variance = smoothed_components(seen, mean, variance, pseudo_count)
    return np.concatenate([*([shares] if with_weights else []), mean.reshape(n, -1), variance.reshape(n, -1)], axis=1)


def _features(
    log: AuctionLog, bid_starts: np.ndarray, log_bid: np.ndarray, weight: np.ndarray, shown: np.ndarray
) -> np.ndarray:
    """Bidders per auction, mean log bid, its relative spread, and mean log(bid) x CTR in mainline and sidebar."""
    n = log.n_keywords
    keyword = np.repeat(np.arange(n), np.diff(bid_starts))
    views = np.maximum(log.page_views(), 1e-12)
    bidders = np.bincount(log.keyword, log.weight * np.diff(log.starts), n) / views
    total = np.maximum(np.bincount(keyword, weight, n), 1e-12)
    mean = np.bincount(keyword, weight * log_bid, n) / total
    spread = np.sqrt(np.maximum(np.bincount(keyword, weight * log_bid**2, n) / total - mean**2, 0))
    columns = [bidders, mean, spread / np.maximum(mean, 1e-9)]
    product = log_bid * log.ctr
    for section in (0, 1):
        inside = shown == section
        mass = np.bincount(keyword[inside], weight[inside], n)
        sums = np.bincount(keyword[inside], (weight * product)[inside], n)
        columns.append(np.where(mass > 0, sums / np.maximum(mass, 1e-12), 0.0))
    return np.column_stack(columns)
