"""The policy a market is run by before anyone optimizes landscapes: bins of keywords, tuned on earlier logs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.auction.auction_log import Policy
from shoal.auction.cluster import bins
from shoal.auction.landscape import landscapes
from shoal.auction.market import Market
from shoal.auction.optimize import Infeasible, optimize
from shoal.auction.replay import Settings, replay

WELL_TUNED, COARSE = "well tuned", "coarse"


class BaselinePolicy(NamedTuple):
    """A market's policy in force, and what it was made from."""

    policy: Policy
    bins: np.ndarray  # (n_keywords,) the groups it was tuned on
    settings: Settings  # absolute candidates


def baseline_policy(market: Market, *, tuning: str = WELL_TUNED, mainline_yield: float = 1.3) -> BaselinePolicy:
    """The policy of a simulated market after tuning of keyword bins and reactions of bidders.

    It starts from a single reserve that shows ``mainline_yield`` mainline ads per page view. Then keywords are binned
    by their 95th percentile of the rank score, the best settings of the bins are chosen, bidders react, and this is
    repeated.

    Parameters
    ----------
    market : Market
        The market.
    tuning : {"well tuned", "coarse"}
        "well tuned": 64 bins, exponent and reserve, three rounds. "coarse": 20 bins, reserves only, two rounds.
    mainline_yield : float
        Mainline ads per page view at the start.

    Examples
    --------
    >>> from shoal.auction import Market
    >>> market = Market(20, n_days=2, page_views_per_day=100, random_state=0)
    >>> baseline_policy(market, tuning="coarse").policy.reserve.shape
    (20,)
    """
    n_bins, rounds, alphas = (64, 3, (0.6, 0.8, 1.0, 1.2, 1.5)) if tuning == WELL_TUNED else (20, 2, (1.0,))
    n = market.n_keywords
    first_days = range(min(2, market.n_days))
    start = market.log(Policy.of(n, reserve=1.0, sidebar_reserve=0.0), days=first_days, reacting_to=None)
    scores = start.bid * start.ctr / start.reference_ctr
    sidebar = float(np.quantile(scores, 0.10))
    start.policy = Policy.of(n, reserve=sidebar, sidebar_reserve=sidebar)
    one_alpha = Settings.absolute(start, alphas=(1.0,))
    settings = Settings(np.array(alphas), one_alpha.reserves, is_relative=False)
    table = replay(start, one_alpha)
    shown = table.mainline.sum(0) / start.weight.sum()
    reserve = one_alpha.reserves[int(np.argmin(np.abs(shown - mainline_yield)))]
    policy, groups, log = Policy.of(n, reserve=reserve, sidebar_reserve=sidebar), np.zeros(n, int), start
    log.policy = policy
    for turn in range(rounds):
        if turn:
            log = market.log(policy, days=range(min(3, market.n_days)), salt=turn)
        groups = bins(landscapes(log, sections="replayed").upper_score, min(n_bins, n))
        try:
            plan = optimize(replay(log, settings), clusters=groups, mainline_yield=1.0, tol=2e-4, seconds=2)
        except Infeasible:
            break
        policy = plan.policy(policy)
    return BaselinePolicy(policy, groups, settings)
