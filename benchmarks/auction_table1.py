"""The paper's Table 1 in simulated markets: held-out gain in clicks at equal revenue and +5 % mainline ads.

    python benchmarks/auction_table1.py S2,S3,S5,S7,S8,S12 0,1,2,3,4,5     one line for each scenario and seed
    python benchmarks/auction_table1.py S2,S3,S5,S7,S8,S12 0,1,2 shoal     shoal's default only
    python benchmarks/auction_table1.py summary                            the table, over all lines recorded

Settings of the paper's methods are absolute in S2, S7 and S8 and relative in S3, S5 and S12; "shoal" is the product's
default everywhere. Each market is drawn anew for every seed; the log's second week is held out; its clicks follow the
true click rates; then bidders react.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from common import PLOTS, RESULTS, Timer, peak_mb, record
from shoal.auction import Market, Settings, evaluate
from shoal.auction.baseline_policy import COARSE, WELL_TUNED, baseline_policy
from shoal.auction.cluster import cluster_keywords
from shoal.auction.landscape import landscapes

REACTING, SILENT = {"reacting": 0.6}, {"reacting": 0.0}
# name -> (market, production policy, relative settings for the paper's methods)
SCENARIOS = {
    "S2": (REACTING, WELL_TUNED, False),
    "S3": (REACTING, WELL_TUNED, True),
    "S5": (REACTING, COARSE, True),
    "S7": (SILENT, COARSE, False),
    "S8": ({**REACTING, "value_spread": 0.3, "ctr_spread": 1.1}, COARSE, False),
    "S12": ({**REACTING, "zipf": 0.3, "page_views_per_day": 1200}, COARSE, True),
}
NAMES = {
    "S2": "well tuned,\nabsolute",
    "S3": "well tuned,\nrelative",
    "S5": "coarse,\nrelative",
    "S7": "nobody reacts,\nabsolute",
    "S8": "CTR differs,\nabsolute",
    "S12": "3 views a keyword,\nrelative",
}
PAPER = ("k-GMM", "k-means", "k-Gauss", "k-bins prod")
K = 64


def one(scenario: str, seed: int, only_ours: bool = False) -> None:
    knobs, tuning, relative = SCENARIOS[scenario]
    with Timer() as timer:
        market = Market(random_state=seed, **knobs)
        before = baseline_policy(market, tuning=tuning)
        log = market.log(before.policy)
        in_two = cluster_keywords(landscapes(log.on_days(range(7))), K, random_state=seed)
        methods = ["k-GMM", "k-means", "k-Gauss", ("k-bins prod", before.bins), "k-bins", "random"]
        methods += [("k-GMM 2-D", in_two), "keyword"]
        ours = ["shoal", "shoal, no margins"]
        found = evaluate(
            log,
            methods=ours if only_ours else methods + ours,
            n_clusters=K,
            settings=Settings.relative() if relative else before.settings,
            market=market,
            random_state=seed,
            seconds=10.0,
        )
    per_cent = lambda change: {name: round(100 * change[name], 3) for name in ("clicks", "revenue", "mainline_yield")}  # noqa: E731
    quality = {}
    for result in found.results:
        if result.plan is None:
            quality[result.method] = {"infeasible": True}
            continue
        quality[result.method] = {
            "adjusted": round(100 * result.adjusted, 3),
            "own terms": round(100 * result.own_terms, 3),
            "in": per_cent(result.in_sample),
            "out": per_cent(result.held_out),
            "reacting": per_cent(result.reacting),
            "gap": float(f"{result.plan.gap:.1e}"),
        }
    plan = found["shoal"].plan
    record(
        "auction_table1",
        workload=scenario,
        seed=seed,
        model="Table 1, shoal only" if only_ours else "Table 1",
        seconds=timer.seconds,
        peak_mb=peak_mb(),
        auctions=log.n_auctions,
        bids=log.n_bids,
        level=plan.facts["level"],
        margins={name: round(100 * margin, 3) for name, margin in plan.margins.items()},
        quality=quality,
    )


def lines() -> dict[tuple[str, int], dict]:
    with open(RESULTS / "auction_table1.jsonl") as file:
        rows = [json.loads(line) for line in file]
    latest: dict[tuple[str, int], dict] = {}
    for row in rows:  # the latest of each method
        before = latest.get((row["workload"], row["seed"]), {"quality": {}})
        latest[row["workload"], row["seed"]] = row | {"quality": before["quality"] | row["quality"]}
    return latest


def mean_and_error(values: list[float]) -> str:
    return f"{np.mean(values):6.2f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2f}" if len(values) > 1 else "-"


def summary() -> None:
    recorded = lines()
    methods = list(next(iter(recorded.values()))["quality"])
    for scenario in SCENARIOS:
        rows = [row["quality"] for (name, _), row in sorted(recorded.items()) if name == scenario]
        if not rows:
            continue
        print(
            f"\n{scenario}, {len(rows)} seeds: adjusted | on own terms | held out: clicks, revenue, mainline_yield | "
            f"with reacting bidders"
        )
        for method in methods:
            good = [row[method] for row in rows if "adjusted" in row[method]]
            if not good:
                print(f"  {method:<12} infeasible in every seed")
                continue
            parts = [mean_and_error([row[kind] for row in good]) for kind in ("adjusted", "own terms")]
            names = ("clicks", "revenue", "mainline_yield")
            for kind in ("out", "reacting"):
                means = [np.mean([row[kind][name] for row in good]) for name in names]
                parts.append(" ".join(f"{mean:6.2f}" for mean in means))
            failed = f"  ({len(rows) - len(good)} infeasible)" if len(good) < len(rows) else ""
            print(f"  {method:<12} {' | '.join(parts)}{failed}")
        print("  paired differences of adjusted lifts:")
        for other in ("k-Gauss", "k-means", "k-bins prod"):
            _paired(rows, "k-GMM", other)
        for ours in ("shoal", "shoal, no margins"):
            for other in (*PAPER, "k-bins", "keyword"):
                _paired(rows, ours, other)
        held = [row["shoal"]["out"] for row in rows]
        print(
            f"  shoal held out: revenue {mean_and_error([h['revenue'] for h in held])} (>= 0 asked), "
            f"mainline_yield {mean_and_error([h['mainline_yield'] for h in held])} (<= 5 asked)"
        )


def plot() -> None:
    """Held-out clicks at equal limits, every scenario, every method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    recorded = lines()
    shown = [name for name in SCENARIOS if any(scenario == name for scenario, _ in recorded)]
    methods = ("k-bins prod", "k-Gauss", "k-means", "k-GMM", "k-GMM 2-D", "keyword", "shoal")
    colors = ("#b9c0c7", "#8fa3b8", "#6b8fb5", "#3f77b0", "#1f5d9c", "#e3b778", "#e07b28")
    figure, axis = plt.subplots(figsize=(10, 4.2), layout="constrained")
    for at, (method, color) in enumerate(zip(methods, colors, strict=True)):
        means, errors = [], []
        for scenario in shown:
            rows = [row["quality"][method] for (name, _), row in recorded.items() if name == scenario]
            values = [row["own terms"] for row in rows if "own terms" in row]
            means.append(np.mean(values))
            errors.append(np.std(values, ddof=1) / np.sqrt(len(values)))
        places = np.arange(len(shown)) + (at - 3) * 0.12
        axis.bar(places, means, 0.12, yerr=errors, color=color, label=method, error_kw={"lw": 0.8})
    axis.axhline(0, color="#444", lw=0.8)
    axis.set_xticks(range(len(shown)), [f"{name}\n{NAMES[name]}" for name in shown])
    axis.set_ylabel("clicks gained on held-out days, %\n(missed limits charged)")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(ncols=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.12), columnspacing=1.2)
    PLOTS.mkdir(exist_ok=True)
    figure.savefig(PLOTS / "auction_table1.png", dpi=130)


def _paired(rows: list[dict], one_method: str, other: str) -> None:
    both = [r for r in rows if "adjusted" in r[one_method] and "adjusted" in r[other]]
    words = []
    for kind in ("adjusted", "own terms"):
        gaps = [row[one_method][kind] - row[other][kind] for row in both]
        words.append(f"{mean_and_error(gaps)} ({sum(gap > 0 for gap in gaps)}/{len(gaps)})")
    print(f"    {one_method} - {other}: {words[0]}; on own terms {words[1]}")


if __name__ == "__main__":
    if sys.argv[1:] == ["summary"]:
        summary()
        plot()
    else:
        names = sys.argv[1].split(",") if len(sys.argv) > 1 else list(SCENARIOS)
        seeds = [int(seed) for seed in sys.argv[2].split(",")] if len(sys.argv) > 2 else list(range(6))
        for name in names:
            for seed in seeds:
                one(name, seed, only_ours=sys.argv[3:] == ["shoal"])
