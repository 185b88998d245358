"""A synthetic sponsored-search market, so that everything can be tried without a log of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from shoal.auction.auction_log import AuctionLog, PageLayout, Policy, in_order
from shoal.auction.calibrate import expected_examinations
from shoal.auction.result_pages import result_pages
from shoal.errors import BadInput

MOST_BIDDERS = 60  # of one keyword


class Market(BaseEstimator):
    """Keywords of hidden types, advertisers with values and budgets of attention, and bidders who react to reserves.

    The same ``random_state`` gives the same traffic, participants and click-rate shocks whatever the reserves are
    (common random numbers), so that two policies can be compared without noise.

    Parameters
    ----------
    n_keywords, n_days, page_views_per_day : the size. Page views follow a Zipf law with exponent ``zipf``.
    reacting : share of bidders who aim just above a reserve; the others bid a shaded value whatever the reserve.
    n_types, spread_within : hidden types of keywords, and how far keywords of a type differ (in units of the types'
        spread).
    value_cents, value_spread : the typical value of a click, and the standard deviation of its logarithm over types.
    ctr_logit, ctr_spread : the typical click rate as a logit, and its standard deviation over types.
    value_ctr_correlation : between the value level and the click-rate level of keywords.
    bidders, bidders_spread : the typical number of advertisers of a keyword, and the spread of its logarithm.
    n_categories, advertisers_per_category : advertisers bid in their category, and by broad match a fifth of the time.
    brand_share : how many types are partly navigational: one ad with a very high click rate and a low value.
    shading : non-reacting bidders bid this range of their value.
    mainline_markup, sidebar_markup : how far above the reserve reacting bidders stay, on average.
    ctr_error : noise of the estimated click rates (logit scale, per ad); ``auction_shock`` is that of single page
        views.
    value_drift, category_drift, churn : daily random walk of values, and the share of advertisers who leave per day.
    sampled_per_day : at most this many auctions of a keyword and day are written down; each then counts for several.
    reference_ctr, layout : the unit of reserves, and the page.

    Examples
    --------
    >>> market = Market(n_keywords=50, n_days=2, page_views_per_day=500, random_state=0)
    >>> log = market.log(Policy.of(50, reserve=60, sidebar_reserve=5))
    >>> log.n_keywords, log.days.tolist()
    (50, [0, 1])
    """

    def __init__(
        self,
        n_keywords: int = 3000,
        *,
        n_days: int = 14,
        page_views_per_day: float = 60_000,
        zipf: float = 0.8,
        reacting: float = 0.6,
        n_types: int = 24,
        spread_within: float = 0.35,
        value_cents: float = 80.0,
        value_spread: float = 0.8,
        ctr_logit: float = -3.2,
        ctr_spread: float = 0.75,
        value_ctr_correlation: float = -0.5,
        bidders: float = 9.0,
        bidders_spread: float = 0.5,
        n_categories: int = 12,
        advertisers_per_category: int = 150,
        brand_share: float = 0.15,
        shading: tuple[float, float] = (0.6, 0.95),
        mainline_markup: float = 0.35,
        sidebar_markup: float = 0.5,
        ctr_error: float = 0.25,
        auction_shock: float = 0.15,
        value_drift: float = 0.04,
        category_drift: float = 0.03,
        churn: float = 0.02,
        sampled_per_day: int = 16,
        reference_ctr: float = 0.04,
        layout: PageLayout | None = None,
        random_state: int = 0,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        for name, value in arguments.items():
            setattr(self, name, value)
        for name in ("n_keywords", "n_days", "n_types", "n_categories", "advertisers_per_category", "sampled_per_day"):
            if arguments[name] < 1:
                raise BadInput(f"{name} is {arguments[name]!r}; it must be 1 or more.")
        if not 0 <= reacting <= 1:
            raise BadInput(f"reacting is {reacting!r}; it is a share between 0 and 1.")
        self._draw()

    # --- the world ----------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        random = np.random.default_rng(self.random_state)
        traits = self._draw_keywords(random)
        ranks = np.arange(1, self.n_keywords + 1, dtype=float) ** -self.zipf
        random.shuffle(ranks)
        self.traffic = ranks / ranks.sum() * self.page_views_per_day
        self._draw_pairs(random, traits)

    def _draw_keywords(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Each keyword is its hidden type plus noise."""
        n_types, n, within = self.n_types, self.n_keywords, self.spread_within
        correlation = self.value_ctr_correlation

        def levels(size: int) -> tuple[np.ndarray, np.ndarray]:
            first, second = random.normal(size=size), random.normal(size=size)
            return first, correlation * first + np.sqrt(1 - correlation**2) * second

        value, ctr = levels(n_types)
        kinds = {
            "log_value": np.log(self.value_cents) + self.value_spread * value,
            "value_spread": random.uniform(0.35, 1.0, n_types),
            "ctr": self.ctr_logit + self.ctr_spread * ctr,
            "ctr_spread": random.uniform(0.25, 0.8, n_types),
            "correlation": random.uniform(-0.4, 0.6, n_types),
            "log_bidders": random.normal(np.log(self.bidders), self.bidders_spread, n_types),
            "seekers": random.uniform(0.25, 0.75, n_types),
            "brand": (random.random(n_types) < 2 * self.brand_share) * 0.5,
        }
        self.types = random.choice(n_types, n, p=random.dirichlet(np.full(n_types, 3.0)))
        own = {name: kind[self.types] for name, kind in kinds.items()}
        value, ctr = levels(n)
        self.category = (self.types + random.integers(0, 2, n)) % self.n_categories
        noise = lambda sd: random.normal(0, within * sd, n)  # noqa: E731
        return {
            "log_value": own["log_value"] + within * self.value_spread * value,
            "value_spread": np.clip(own["value_spread"] * np.exp(noise(0.35)), 0.1, 1.5),
            "ctr": own["ctr"] + within * self.ctr_spread * ctr,
            "ctr_spread": np.clip(own["ctr_spread"] * np.exp(noise(0.35)), 0.1, 1.2),
            "correlation": np.clip(own["correlation"] + noise(0.3), -0.9, 0.9),
            "bidders": np.exp(own["log_bidders"] + noise(self.bidders_spread)),
            "seekers": np.clip(own["seekers"] + noise(0.15), 0.05, 0.95),
            "brand": random.random(n) < own["brand"],
        }

    def _draw_pairs(self, random: np.random.Generator, traits: dict[str, np.ndarray]) -> None:
        """Which advertisers bid on which keyword, what a click is worth to them, and how often they are clicked."""
        n_advertisers = self.n_categories * self.advertisers_per_category
        quality, eagerness = random.normal(0, 0.3, n_advertisers), random.normal(0, 0.25, n_advertisers)
        presence = random.beta(4, 3, n_advertisers)
        self.n_pairs = np.minimum(1 + random.poisson(traits["bidders"]), MOST_BIDDERS)
        self.first_pair = np.concatenate([[0], np.cumsum(self.n_pairs)[:-1]])
        keyword = self.pair_keyword = np.repeat(np.arange(self.n_keywords), self.n_pairs)
        n = keyword.size
        broad = random.random(n) < 0.2
        at_home = random.integers(0, self.advertisers_per_category, n) * self.n_categories + self.category[keyword]
        self.advertiser = np.where(broad, random.integers(0, n_advertisers, n), at_home)
        common, other = random.normal(size=n), random.normal(size=n)
        tied = traits["correlation"][keyword]
        mixed = tied * common + np.sqrt(1 - tied**2) * other
        self.log_value = traits["log_value"][keyword] + traits["value_spread"][keyword] * mixed
        self.log_value += eagerness[self.advertiser]
        logit = traits["ctr"][keyword] + traits["ctr_spread"][keyword] * common + quality[self.advertiser] - 0.4 * broad
        brand = self.first_pair[traits["brand"]]
        logit[brand] += 2.0
        self.log_value[brand] -= 0.8
        self.ctr = np.clip(_sigmoid(logit), 1e-4, 0.6)
        seen = np.log(self.ctr / (1 - self.ctr)) + random.normal(0, self.ctr_error, n)
        self.estimated_ctr = np.clip(_sigmoid(seen), 1e-4, 0.7)
        self.presence = np.clip(presence[self.advertiser] * random.uniform(0.7, 1.2, n), 0.05, 0.98)
        self.seeks_mainline = random.random(n) < traits["seekers"][keyword]
        self.seeks_mainline[brand] = True
        self.reacts = random.random(n) < self.reacting
        self.shade = random.uniform(self.shading[0], self.shading[1], n)
        self.above_mainline, self.above_sidebar = np.abs(random.normal(size=n)), np.abs(random.normal(size=n))
        own = np.cumsum(random.normal(0, self.value_drift, (self.n_days, n)), axis=0)
        shared = np.cumsum(random.normal(0, self.category_drift, (self.n_days, self.n_categories)), axis=0)
        self.drift = own + shared[:, self.category[keyword]]
        late = random.random(n) >= 0.8
        self.enters = np.where(late, random.integers(0, self.n_days, n), 0)
        leaves = np.where(
            random.random(n) < self.churn * self.n_days / 2, random.integers(1, self.n_days + 1, n), self.n_days
        )
        self.leaves = np.maximum(leaves, self.enters + 1)

    # --- bids and auctions --------------------------------------------------------------------------------------------

    def bids(self, day: int, policy: Policy | None) -> np.ndarray:
        """What every advertiser bids on every keyword (whole cents); without a policy nobody reacts."""
        value = np.exp(self.log_value + self.drift[day])
        bid = value * self.shade
        if policy is not None:
            keyword = self.pair_keyword
            quality = (self.estimated_ctr / self.reference_ctr) ** policy.alpha[keyword]
            mainline, sidebar = policy.reserve[keyword] / quality, policy.sidebar_reserve[keyword] / quality
            for_mainline = mainline * np.exp(0.03 + self.mainline_markup * self.above_mainline)
            for_sidebar = sidebar * np.exp(0.05 + self.sidebar_markup * self.above_sidebar)
            modest = np.where(value >= sidebar, np.minimum(value, for_sidebar), value)
            aimed = np.where(self.seeks_mainline & (value >= mainline), np.minimum(value, for_mainline), modest)
            bid = np.where(self.reacts, aimed, bid)
        return np.maximum(np.round(bid), 1.0)

    def log(self, policy: Policy, *, days: Any = None, reacting_to: Any = "policy", salt: int = 0) -> AuctionLog:
        """The auctions of these days (all if not given) under a policy, as :func:`read_log` would give them.

        ``reacting_to`` is the policy that bidders know: the one in force unless another (or None: nobody reacts) is
        given. ``salt`` draws other page views of the same market.
        """
        known = policy if isinstance(reacting_to, str) else reacting_to
        chosen = range(self.n_days) if days is None else days
        parts = [self._day(day, known, salt) for day in chosen]
        joined: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        log = AuctionLog(
            starts=np.concatenate([[0], np.cumsum(joined.pop("size"))]).astype(np.int64),
            keywords=np.array([f"keyword {q}" for q in range(self.n_keywords)]),
            days=np.arange(self.n_days),
            policy=policy,
            layout=self.layout or PageLayout(),
            reference_ctr=self.reference_ctr,
            **joined,
        )
        log = in_order(log)
        log.section, position, log.price = result_pages(log)
        log.clicked = self._clicks(log, position, salt)
        return log

    def _clicks(self, log: AuctionLog, position: np.ndarray, salt: int) -> np.ndarray:
        """Clicks on every bid over the page views its auction represents."""
        expected = expected_examinations(log, log.section, position) * log.true_ctr
        random = np.random.default_rng([self.random_state, 78, salt])
        return random.poisson(expected).astype(float)

    def _day(self, day: int, known: Policy | None, salt: int) -> dict[str, np.ndarray]:
        random = np.random.default_rng([self.random_state, 77, day, salt])
        season = 1 + 0.15 * np.sin(2 * np.pi * day / 7)
        views = random.poisson(self.traffic * season * np.exp(random.normal(0, 0.1, self.n_keywords)))
        written = np.minimum(views, self.sampled_per_day)
        keyword = np.repeat(np.arange(self.n_keywords), written)
        weight = (views / np.maximum(written, 1))[keyword]
        candidates = self.n_pairs[keyword]
        starts = np.concatenate([[0], np.cumsum(candidates)])
        auction = np.repeat(np.arange(keyword.size), candidates)
        pair = np.arange(starts[-1]) - starts[auction] + self.first_pair[keyword][auction]
        there = (self.enters <= day) & (day < self.leaves)
        present = (random.random(pair.size) < self.presence[pair]) & there[pair]
        shock = random.normal(0, self.auction_shock, keyword.size)[auction] + random.normal(
            0, self.auction_shock, pair.size
        )
        auction, pair, shock = auction[present], pair[present], np.exp(shock[present])
        return {
            "size": np.bincount(auction, minlength=keyword.size),
            "keyword": keyword,
            "weight": weight,
            "day": np.full(keyword.size, day),
            "bid": self.bids(day, known)[pair],
            "ctr": np.minimum(self.estimated_ctr[pair] * shock, 0.9),
            "true_ctr": np.minimum(self.ctr[pair] * shock, 0.9),
            "ad": pair,
        }


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))
