"""Small logs with everything awkward in them: ties, empty auctions, single bidders, crowds."""

import numpy as np

from shoal.auction.auction_log import AuctionLog, PageLayout, Policy, in_order


def random_log(seed, *, n_auctions=60, n_keywords=5, n_days=3, ties=True, layout=None):
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0, 1, 2, 5, 9, 25], n_auctions, p=[0.1, 0.15, 0.15, 0.2, 0.3, 0.1])
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n_bids = starts[-1]
    bid = np.round(np.exp(rng.normal(4, 1, n_bids))).clip(1)
    ctr = np.exp(rng.normal(-3.3, 0.7, n_bids)).clip(1e-4, 0.9)
    if ties:
        tied = rng.random(n_bids) < 0.4
        bid[tied], ctr[tied] = rng.choice([20.0, 40.0, 60.0], tied.sum()), 0.04
    log = AuctionLog(
        starts=starts,
        keyword=rng.integers(0, n_keywords, n_auctions),
        day=rng.integers(0, n_days, n_auctions),
        weight=rng.gamma(1, 1, n_auctions),
        bid=bid,
        ctr=ctr,
        ad=np.arange(n_bids),
        keywords=np.array([f"kw{q}" for q in range(n_keywords)]),
        days=np.arange(n_days),
        policy=Policy.of(
            n_keywords,
            alpha=rng.choice([0.5, 1.0, 1.4], n_keywords),
            reserve=rng.choice([20.0, 40.0, 77.0], n_keywords),
            sidebar_reserve=rng.choice([0.0, 5.0, 40.0]),
        ),
        layout=layout or PageLayout(),
        true_ctr=np.clip(ctr * rng.gamma(5, 0.2, n_bids), 1e-4, 0.95),
    )
    return in_order(log)
