"""The pages one policy would have shown, bid by bid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.auction.auction_log import AuctionLog, Policy
from shoal.auction.replay_kernels import show
from shoal.threads import ordered_map

AUCTIONS_PER_BLOCK = 4_096


class ResultPages(NamedTuple):
    """The pages a policy would have shown, bid by bid."""

    section: np.ndarray  # 0 not shown, 1 mainline, 2 sidebar
    position: np.ndarray  # place in its section from 0, or -1
    price: np.ndarray  # cents per click, or NaN


def result_pages(log: AuctionLog, policy: Policy | None = None) -> ResultPages:
    """Section, place and price of every bid under a policy, or under the logged one."""
    policy = policy or log.policy
    shown = ResultPages(np.empty(log.n_bids, np.int8), np.empty(log.n_bids, np.int32), np.empty(log.n_bids))
    log_ratio = np.log(log.ctr / log.reference_ctr)

    def one_block(first: int) -> None:
        show(
            first,
            min(first + AUCTIONS_PER_BLOCK, log.n_auctions),
            log.keyword,
            log.starts,
            log.bid,
            log_ratio,
            policy.alpha,
            policy.reserve,
            policy.sidebar_reserve,
            log.layout.n_mainline,
            log.layout.n_sidebar,
            *shown,
        )

    for _ in ordered_map(one_block, range(0, log.n_auctions, AUCTIONS_PER_BLOCK)):
        pass
    return shown
