"""Expected clicks checked, and corrected, against the clicks the log has counted.

Estimated click rates carry errors, and a search over settings prefers the settings whose errors look like clicks. The
log
knows better: on the pages it really showed, clicks were counted. Two numbers repair most of it: how far all estimates
are off, and how much of the difference between the ads of a keyword is real,

    log rate = log estimate + level + (slope - 1) * (log estimate - its mean in the keyword).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.auction.auction_log import MAINLINE, SIDEBAR, AuctionLog
from shoal.auction.result_pages import result_pages
from shoal.errors import BadInput


class Calibration(NamedTuple):
    """How the log's click rates have to be corrected."""

    level: float  # 0: right on average
    slope: float  # 1: differences between ads are as large as estimated; below 1: the estimates exaggerate
    counted: float  # clicks in the log
    expected: float  # clicks its estimates led one to expect on the same pages

    def rates(self, log: AuctionLog) -> np.ndarray:
        """Corrected click rates of every bid."""
        deviation = _deviation(log, np.ones(log.n_bids))
        return np.minimum(log.ctr * np.exp(self.level + (self.slope - 1) * deviation), 1.0)


def calibrate(log: AuctionLog, *, n_steps: int = 25) -> Calibration:
    """Fit level and slope to the clicks counted in the log, by Poisson regression with two unknowns."""
    if log.clicked is None:
        raise BadInput(
            "the log has no clicks to calibrate with; use clicks_from='estimated', or read a clicked column."
        )
    shown = result_pages(log)
    section = shown.section if log.section is None else log.section
    looks = expected_examinations(log, section, shown.position)
    seen = looks > 0
    expected = (looks * log.ctr)[seen]
    deviation = _deviation(log, np.ones(log.n_bids))[seen]
    counted = log.clicked[seen]
    if counted.sum() <= 0:
        raise BadInput("the log's clicked column holds no click at all; use clicks_from='estimated'.")
    level, tilt = 0.0, 0.0
    for _ in range(n_steps):
        rate = expected * np.exp(level + tilt * deviation)
        gradient = np.array([(counted - rate).sum(), ((counted - rate) * deviation).sum()])
        curvature = np.array(
            [[rate.sum(), (rate * deviation).sum()], [(rate * deviation).sum(), (rate * deviation**2).sum()]]
        )
        curvature += 1e-9 * np.trace(curvature) * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        step = np.clip(step, -1.0, 1.0)
        level, tilt = level + step[0], tilt + step[1]
        if np.abs(step).max() < 1e-10:
            break
    return Calibration(float(level), float(1 + tilt), float(counted.sum()), float(expected.sum()))


def expected_examinations(log: AuctionLog, section: np.ndarray | None, position: np.ndarray) -> np.ndarray:
    """(n_bids,) page views on which each ad was looked at: auction weight times the factor of its place."""
    assert section is not None
    on_mainline, on_sidebar = log.layout.tables()
    auction = log.auction_of_bids()
    n_mainline = np.bincount(auction[section == MAINLINE], minlength=log.n_auctions)[auction]
    looks = np.zeros(log.n_bids)
    for code, table in ((MAINLINE, on_mainline), (SIDEBAR, on_sidebar)):
        inside = (section == code) & (position >= 0)
        place = np.minimum(position[inside], table.shape[1] - 1)
        looks[inside] = table[np.minimum(n_mainline[inside], table.shape[0] - 1), place]
    return looks * log.weight[auction]


def _deviation(log: AuctionLog, weight: np.ndarray) -> np.ndarray:
    """Log estimate minus its mean in the keyword."""
    keyword = log.keyword[log.auction_of_bids()]
    logs = np.log(log.ctr)
    mean = np.bincount(keyword, weight * logs, log.n_keywords) / np.maximum(
        np.bincount(keyword, weight, log.n_keywords), 1e-300
    )
    return np.asarray(logs - mean[keyword])
