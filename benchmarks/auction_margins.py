"""Do plans keep their limits on days they have not seen? Simulated markets of six scenarios; half of the days held out.

For every market a plan is recommended on the first half of the days, with margins for a stated probability and without,
and replayed on the second half with the true click rates and frozen bids. Recorded: whether every limit held, by how
much it was missed, and the clicks that the margins gave up.

    python benchmarks/auction_margins.py [markets] [keywords] [probability] [first seed]
"""

from __future__ import annotations

import sys

import numpy as np

from common import Timer, peak_mb, record
from shoal.auction import Market, baseline_policy, optimize, recommend, replay
from shoal.auction.baseline_policy import COARSE, WELL_TUNED
from shoal.auction.optimize import lift
from shoal.auction.recommend import best_clicks

# name -> (options of the market, tuning of its policy)
SCENARIOS = {
    "few react": ({"reacting": 0.0}, COARSE),
    "most react": ({"reacting": 0.6}, COARSE),
    "nearly all react": ({"reacting": 0.9}, COARSE),
    "well tuned": ({"reacting": 0.6}, WELL_TUNED),
    "thin": ({"reacting": 0.6, "page_views_per_day": 4_000}, COARSE),
    "very thin": ({"reacting": 0.6, "page_views_per_day": 1_500}, COARSE),
}
FIRST_SEED = 200  # margins were chosen looking at markets 100 to 115
LIMITS = {"revenue": 1.0, "mainline_yield": 1.05}


def one_market(scenario: str, seed: int, n_keywords: int, probability: float) -> dict[str, dict[str, float]]:
    options, tuning = SCENARIOS[scenario]
    market = Market(n_keywords, n_days=14, random_state=seed, **{"page_views_per_day": 20 * n_keywords} | options)
    log = market.log(baseline_policy(market, tuning=tuning).policy)
    train, test = log.on_days(range(7)), log.on_days(range(7, 14))
    days = replay(train, by_day=True, clicks_from=best_clicks(train))
    unseen = replay(test, clicks_from="true")
    plan = recommend(train, table=days, n_clusters=48, probability=probability)
    bare = optimize(days, clusters=plan.clusters, shrinkage=plan.shrinkage)
    return {
        name: lift(unseen.under(made.choice), unseen.baseline())
        for name, made in (("with margins", plan), ("without", bare))
    } | {"margins": plan.margins, "facts": {"given up": plan.facts["clicks given up"]}}


def kept(change: dict[str, float]) -> bool:
    return 1 + change["revenue"] >= LIMITS["revenue"] and 1 + change["mainline_yield"] <= LIMITS["mainline_yield"]


def main(n_markets: int = 20, n_keywords: int = 600, probability: float = 0.9, first_seed: int = FIRST_SEED) -> None:
    found = []
    for at in range(n_markets):
        scenario = list(SCENARIOS)[at % len(SCENARIOS)]
        with Timer() as timer:
            result = one_market(scenario, first_seed + at, n_keywords, probability)
        found.append(result)
        record(
            "auction", workload=f"limits on unseen days: {scenario}, {n_keywords} keywords", model="recommend",
            seed=first_seed + at, seconds=timer.seconds, peak_mb=peak_mb(), quality=float(kept(result["with margins"])),
            measure="every limit held", **{
                f"{name}, {what}": round(100 * result[name][what], 2)
                for name in ("with margins", "without") for what in ("clicks", "revenue", "mainline_yield")
            }, margins={name: round(100 * margin, 2) for name, margin in result["margins"].items()},
        )  # fmt: skip
    for name in ("with margins", "without"):
        share = np.mean([kept(result[name]) for result in found])
        revenue = np.mean([result[name]["revenue"] >= 0 for result in found])
        mainline = np.mean([result[name]["mainline_yield"] <= 0.05 for result in found])
        clicks = np.mean([result[name]["clicks"] for result in found])
        print(
            f"{name}: every limit held in {share:.0%} of {n_markets} markets (revenue {revenue:.0%}, mainline ads "
            f"{mainline:.0%}); clicks {100 * clicks:+.2f} %"
        )


if __name__ == "__main__":
    given = sys.argv[1:]
    kinds = (int, int, float, int)
    main(*(kind(word) for kind, word in zip(kinds, given, strict=False)))
