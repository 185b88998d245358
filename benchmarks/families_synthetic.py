"""Synthetic topics at k = 100, 1000 and 10,000: time per document by part, and variation of information against time.

Every sampler has the same rows, prior (background 500, concentration 1) and start (one pass, or random), and one
thread; times are CPU time of that thread. `auto` is the estimator's own schedule: the sampler it would choose, with
merges and splits in the first half and fixed lists in the second. `gibbs` is the plain collapsed chain over all k,
`gibbs-split-merge` the same with auto's merges and splits, and `uncollapsed` the paper's baseline: topics drawn from
their Dirichlet posteriors, then every label over all k.
    python benchmarks/families_synthetic.py 1000 [one-pass|random] [model,model] [n_rows] [rows gibbs is measured on]
Each run is repeated SHOAL_REPEATS times (1 if not set), which is worth it where two times are nearly the same; the
topics are those of SHOAL_SEED (0 if not set).
    python benchmarks/families_synthetic.py plot
Where two times differ by less than the machine's moods, `side-by-side` in place of the models has auto and gibbs take
turns sweep by sweep, now the one first and now the other:
    SHOAL_REPEATS=8 python benchmarks/families_synthetic.py 100 random side-by-side
`late` in place of k has auto's chains of 1000 and of 10,000 clusters take turns in the second half of their sweeps:
    python benchmarks/families_synthetic.py late [one-pass|random] [n_rows]
"""

from __future__ import annotations

import json
import math
import os
import sys
import time

import numpy as np
from numba import njit

from common import PLOTS, RESULTS, peak_mb, record
from shoal.datasets import make_zipf_topics
from shoal.families.consensus import variation
from shoal.families.options import Settings
from shoal.families.samplers.count_chain import CountChain
from shoal.families.samplers.count_problem import CountProblem
from shoal.families.samplers.indexed import IndexedChain
from shoal.families.samplers.schedule import Schedule, prepare

N_ROWS, N_FEATURES, N_SWEEPS = 50_000, 50_000, 12
HASHES = ((32, "published"), (32, "ranked"), (64, "ranked"), (128, "ranked"), (512, "ranked"))
SHARED = bool(os.environ.get("SHOAL_SHARED"))  # set where other work has the machine too: times are then upper bounds
REPEATS = int(os.environ.get("SHOAL_REPEATS", 1))
SEED = int(os.environ.get("SHOAL_SEED", 0))
MODELS = ["auto", "gibbs", "gibbs-split-merge", "uncollapsed", "fastex"]


@njit(cache=True)
def label_rows(ptr, features, counts, log_shares, log_weights, draws, labels):
    """The slides' baseline: for every row, every cluster's dense log shares, cluster by cluster."""
    k = len(log_weights)
    scores = np.zeros(k)
    for row in range(len(draws)):
        for cluster in range(k):
            score = log_weights[cluster]
            for at in range(ptr[row], ptr[row + 1]):
                score += counts[at] * log_shares[cluster, features[at]]
            scores[cluster] = score
        best = scores.max()
        mass = 0.0
        for cluster in range(k):
            mass += math.exp(scores[cluster] - best)
        draw = draws[row] * mass
        for cluster in range(k):
            draw -= math.exp(scores[cluster] - best)
            if draw <= 0:
                labels[row] = cluster
                break


def uncollapsed(problem: CountProblem, truth, start: str, labels, n_sweeps: int) -> None:
    """Draw the topics, then the labels."""
    k, n, items = problem.settings.n_clusters, len(truth), problem.items
    rng = np.random.default_rng(0)
    labels, draw_us, label_us, apart = labels.copy(), [], [], []
    log_shares = np.zeros((k, problem.X.shape[1]), np.float32)
    label_rows(items.ptr, items.features, items.counts, log_shares, np.zeros(k), rng.random(1), labels.copy())
    for _ in range(n_sweeps):
        stats = problem.statistics(labels, k)
        began = time.process_time()
        for cluster in range(k):
            drawn = rng.standard_gamma(problem.family.shape + stats.sums[cluster].toarray().ravel())
            log_shares[cluster] = np.log(np.maximum(drawn / drawn.sum(), 1e-300))
        log_weights = np.log(np.maximum(rng.standard_gamma(stats.size + 1.0), 1e-300))
        draw_us.append((time.process_time() - began) / n * 1e6)
        draws = rng.random(n)
        began = time.process_time()
        label_rows(items.ptr, items.features, items.counts, log_shares, log_weights, draws, labels)
        label_us.append((time.process_time() - began) / n * 1e6)
        apart.append(round(variation(truth, labels), 4))
    record(
        "families", workload=f"topics-{k}", model="uncollapsed", start=start, rows=n, seed=SEED,
        seconds=float(np.sum(draw_us) + np.sum(label_us)) * n / 1e6, peak_mb=peak_mb(), quality=apart[-1], vi=apart,
        us_per_item=[round(a + b, 1) for a, b in zip(draw_us, label_us, strict=True)],
        draw_us=round(float(np.mean(draw_us)), 1), label_us=round(float(np.mean(label_us)), 1), clock="cpu",
        shared=SHARED,
    )  # fmt: skip


class Parts:
    """CPU time spent in named methods."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def watch(self, thing: object, method: str, name: str) -> None:
        inner = getattr(thing, method)
        self.seconds[name] = 0.0

        def timed(*args):
            began = time.process_time()
            out = inner(*args)
            self.seconds[name] += time.process_time() - began
            return out

        setattr(thing, method, timed)


def warm_up(problem: CountProblem, sampler: str, labels: np.ndarray, *, split_merge: bool) -> None:
    """Compile, or load what was compiled."""
    few = CountProblem(problem.X[:400], problem.settings._replace(n_clusters=20))
    few.first_labels(0)
    chain = few.chain(sampler, 0)
    chain.set_labels(labels[:400] % 20)
    for _ in range(2):
        chain.sweep()
    if split_merge:
        few.split_merge(chain)
    chain.freeze_adaptation()
    chain.sweep()
    whole = problem.chain(sampler, 0)
    whole.set_labels(labels)
    whole.visit(0, 2)


def begin(problem: CountProblem, sampler: str, labels, lists) -> CountChain:
    chain = problem.chain(sampler, 0)
    chain.set_labels(labels)
    if isinstance(chain, IndexedChain) and lists is not None:
        chain.adopt(lists)
    return chain


def chain_run(problem, truth, sampler, labels, lists, *, split_merge, n_sweeps, n_measured=None):
    """Sweep; the time by part and the variation of information after each sweep."""
    n, schedule = len(truth), Schedule(n_sweeps, n_sweeps // 2, 1, split_merge)
    parts = Parts()
    chain = begin(problem, sampler, labels, lists)
    chain.visit(0, 1)  # a dense table is filled, hashes are made
    if isinstance(chain, IndexedChain):
        parts.watch(chain, "_list_group", "list")
    parts.watch(chain, "rebuild", "rebuild")
    split_merge_us, times, apart, facts = [], [], [], None
    for _ in range(n_sweeps):
        began = time.process_time()
        if split_merge:
            prepare(problem, chain, schedule)
        split_merge_us.append((time.process_time() - began) / n * 1e6)
        began = time.process_time()
        if n_measured is None:
            facts = chain.sweep()
        else:
            chain.visit(0, n_measured)
        times.append((time.process_time() - began) / (n_measured or n) * 1e6)
        if n_measured is None:
            apart.append(round(variation(truth, chain.labels), 4))
    more = {} if facts is None else {
        "live": len(np.unique(chain.labels)), "skipped": facts.skipped,
        "acceptance": round(facts.moved / max(facts.proposed, 1), 5),
    }  # fmt: skip
    more["parts_us"] = {name: round(spent / n * 1e6, 2) for name, spent in parts.seconds.items()}
    return np.array(times), np.array(split_merge_us), apart, more


def measure(problem, truth, start, labels, lists, start_us, runs, repeats) -> None:
    """Run each of the models `repeats` times, in turn and the other way round, and record the least time of each sweep:
    the work is the same, so what is more is somebody else's."""
    n, k, base, done = len(truth), problem.settings.n_clusters, problem.settings, {}
    for repeat in range(repeats):
        for number, (model, sampler, options, more) in list(enumerate(runs))[:: 1 if repeat % 2 == 0 else -1]:
            problem.settings = base._replace(**more)
            if repeat == 0:
                warm_up(problem, sampler, labels, split_merge=options["split_merge"])
            times, split_merge_us, apart, facts = chain_run(problem, truth, sampler, labels, lists, **options)
            if repeat > 0:
                assert apart == done[number][2], "the same seed must give the same chain"
                times, split_merge_us = np.minimum(times, done[number][0]), np.minimum(split_merge_us, done[number][1])
            done[number] = times, split_merge_us, apart, facts
            print(
                f"{repeat + 1}/{repeats} {model} {more}: {times.sum() + split_merge_us.sum():.1f} us a document",
                flush=True,
            )
    problem.settings = base
    for number, (model, sampler, options, more) in enumerate(runs):
        times, split_merge_us, apart, facts = done[number]
        record(
            "families", workload=f"topics-{k}", model=model, sampler=sampler, start=start, rows=n, seed=SEED,
            repeats=repeats, measured_rows=options.get("n_measured") or n, peak_mb=peak_mb(),
            seconds=float(times.sum() + split_merge_us.sum()) * n / 1e6, quality=apart[-1] if apart else None, vi=apart,
            us_per_item=times.round(2).tolist(), split_merge_us=split_merge_us.round(2).tolist(),
            start_us=round(start_us, 1),
            late_us=round(float(np.median(times[len(times) // 2 :])), 2), clock="cpu", shared=SHARED, **facts, **more,
        )  # fmt: skip
    curves = {
        model: (start_us + np.cumsum(done[at][0] + done[at][1]), done[at][2]) for at, (model, *_) in enumerate(runs)
    }
    if curves.get("auto", ([], []))[1] and curves.get("gibbs", ([], []))[1]:
        compare(*curves["auto"], *curves["gibbs"])


def compare(auto_us, auto_vi, gibbs_us, gibbs_vi) -> dict[float, float]:
    """For each quality that gibbs reaches: when, and when auto does; auto's time as a share of gibbs'."""
    best, shares = np.inf, {}
    for spent, apart in zip(gibbs_us, gibbs_vi, strict=True):
        if apart < best:
            best = apart
            when = auto_us[np.argmax(np.array(auto_vi) <= best)] if min(auto_vi) <= best else np.inf
            print(f"VI {best:.4f}: gibbs {spent:.1f} us, auto {when:.1f} us, auto / gibbs {when / spent:.3f}")
            shares[best] = float(when / spent)
    return shares


def side_by_side(problem, truth, start, labels, lists, start_us, sampler, repeats) -> None:
    """Both chains sweep by sweep in turn; the median time of each sweep."""
    models = {"auto": (sampler, True), "gibbs": ("gibbs", False)}
    n, n_sweeps, schedule = len(truth), 8, Schedule(16, 8, 1, True)
    times = {model: np.zeros((repeats, n_sweeps)) for model in models}
    for name, split_merge in models.values():
        warm_up(problem, name, labels, split_merge=split_merge)
    for repeat in range(repeats):
        # Which tables come first in memory can show in the times, so that alternates, too.
        order = list(models)[:: 1 if repeat % 2 == 0 else -1]
        chains = {model: begin(problem, models[model][0], labels, lists) for model in order}
        apart: dict[str, list[float]] = {model: [] for model in models}
        for chain in chains.values():
            chain.visit(0, 1)
        for sweep in range(n_sweeps):
            for model in list(models)[:: 1 if (repeat + sweep) % 2 == 0 else -1]:
                began = time.process_time()
                if models[model][1]:
                    prepare(problem, chains[model], schedule)
                chains[model].sweep()
                times[model][repeat, sweep] = (time.process_time() - began) / n * 1e6
                apart[model].append(round(variation(truth, chains[model].labels), 4))
    spent = {model: np.median(times[model], axis=0) for model in models}
    ends = {model: start_us + np.cumsum(spent[model]) for model in models}
    shares = compare(ends["auto"], apart["auto"], ends["gibbs"], apart["gibbs"])
    record(
        "families", workload=f"topics-{problem.settings.n_clusters}", model="side-by-side", sampler=sampler,
        start=start, rows=n, seed=SEED, repeats=repeats, seconds=float(sum(t.sum() for t in times.values())) * n / 1e6,
        peak_mb=peak_mb(), quality=max(shares.values()), shares=shares, auto_vi=apart["auto"], vi=apart["gibbs"],
        auto_us=spent["auto"].round(2).tolist(), us_per_item=spent["gibbs"].round(2).tolist(),
        start_us=round(start_us, 1), clock="cpu", shared=SHARED,
    )  # fmt: skip


def late_sweeps(start: str, n_rows: int, n_turns: int = 24) -> None:
    """Chains of 1000 and of 10,000 clusters sweep by sweep in turn, once their states are samples."""
    chains, apart = {}, {}
    for k in (1000, 10_000):
        problem, truth, chosen, labels, lists, _ = set_up(k, start, n_rows)
        warm_up(problem, chosen, labels, split_merge=True)
        chain, schedule = begin(problem, chosen, labels, lists), Schedule(16, 8, 1, True)
        for _ in range(9):  # the first sweep after it has settled is left out
            prepare(problem, chain, schedule)
            chain.sweep()
        chains[k], apart[k] = chain, round(variation(truth, chain.labels), 4)
    times: dict[int, list[float]] = {k: [] for k in chains}
    for turn in range(n_turns):
        for k in list(chains)[:: 1 if turn % 2 == 0 else -1]:
            began = time.process_time()
            chains[k].sweep()
            times[k].append((time.process_time() - began) / n_rows * 1e6)
    few, many = (np.array(times[k]) for k in chains)
    shares = many / few
    middle, spread = float(np.median(shares)), np.quantile(shares, [0.1, 0.9])
    print(
        f"{start}, {n_rows} documents, late sweep: k=10,000 {np.median(many):.2f} us, k=1000 {np.median(few):.2f} us; "
        f"ratio {middle:.2f} (8 of 10 turns {spread[0]:.2f} to {spread[1]:.2f})"
    )
    record(
        "families", workload="topics-late", model="auto", start=start, rows=n_rows, seed=SEED, repeats=n_turns,
        seconds=float(few.sum() + many.sum()) * n_rows / 1e6, peak_mb=peak_mb(), quality=middle,
        shares=shares.round(3).tolist(), us_per_item=few.round(3).tolist(), many_us=many.round(3).tolist(),
        vi=list(apart.values()), clock="cpu", shared=SHARED,
    )  # fmt: skip


def set_up(k: int, start: str, n_rows: int):
    """(problem, truth, auto's choice of sampler, first labels, lists made on the way to them, what that took)"""
    data = make_zipf_topics(n_rows, n_features=N_FEATURES, n_clusters=k, random_state=SEED)
    truth = np.asarray(data.labels)
    settings = Settings(k, "multinomial", "dirichlet", 1.0, 0.0, 500.0, 64, "ranked", "diagonal", 10)
    CountProblem(data.X[:400], settings).first_labels(0)
    problem = CountProblem(data.X, settings)
    chosen, why = problem.choose_sampler()
    if start == "random":
        labels, lists, start_us = np.random.default_rng(0).integers(0, k, n_rows).astype(np.int32), None, 0.0
    else:
        began = time.process_time()
        labels = problem.first_labels(0)
        start_us = (time.process_time() - began) / n_rows * 1e6
        lists = problem.start_lists[1]
    print(f"k={k} {start}: VI {variation(truth, labels):.4f}, {start_us:.1f} us; auto: {chosen} ({why})", flush=True)
    return problem, truth, chosen, labels, lists, start_us


def main() -> None:
    start = sys.argv[2] if len(sys.argv) > 2 else "one-pass"
    if sys.argv[1] == "late":
        return late_sweeps(start, int(sys.argv[3]) if len(sys.argv) > 3 else N_ROWS)
    k = int(sys.argv[1])
    models = sys.argv[3].split(",") if len(sys.argv) > 3 else MODELS
    n_rows = int(sys.argv[4]) if len(sys.argv) > 4 else N_ROWS
    problem, truth, chosen, labels, lists, start_us = set_up(k, start, n_rows)
    if "side-by-side" in models:
        return side_by_side(problem, truth, start, labels, lists, start_us, chosen, REPEATS)
    runs = []
    if "auto" in models:
        runs.append(("auto", chosen, {"split_merge": True, "n_sweeps": 16}, {}))
    if "indexed" in models:
        runs.append(("indexed", "indexed", {"split_merge": False, "n_sweeps": N_SWEEPS}, {}))
    if "gibbs" in models:
        part = {"n_sweeps": 1, "n_measured": int(sys.argv[5])} if len(sys.argv) > 5 else {"n_sweeps": N_SWEEPS}
        runs.append(("gibbs", "gibbs", {"split_merge": False, **part}, {}))
    if "gibbs-split-merge" in models:
        runs.append(("gibbs-split-merge", "gibbs", {"split_merge": True, "n_sweeps": 6}, {}))
    if "fastex" in models:
        options = {"split_merge": False, "n_sweeps": 1 if k == 10_000 else 3}
        runs += [("fastex", "fastex", options, {"n_bits": b, "hashes": h}) for b, h in HASHES]
    measure(problem, truth, start, labels, lists, start_us, runs, REPEATS)
    if "uncollapsed" in models:
        uncollapsed(problem, truth, start, labels, {100: 3, 1000: 2}.get(k, 1))


def plot() -> None:
    """VI against time, from the last line of each model."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    with open(RESULTS / "families.jsonl") as lines:
        facts = [json.loads(line) for line in lines if '"topics-' in line]
    last = {
        (f["workload"], f["start"], f["model"], f.get("n_bits"), f.get("hashes")): f
        for f in facts
        if f["rows"] == N_ROWS
        and f.get("seed", 0) == 0
        and f["model"] != "side-by-side"
        and f["workload"] != "topics-late"
        and f["vi"]
        and f["vi"][-1] is not None
    }
    # The machine's speed varies from day to day: only what was measured when `auto` was is comparable.
    today = {(f["workload"], f["start"]): f["date"] for f in last.values() if f["model"] == "auto"}
    last = {key: f for key, f in last.items() if f["date"] == today.get(key[:2])}
    names = ["auto", "gibbs", "gibbs-split-merge", "uncollapsed", "indexed"]
    names += [f"fastex {bits} bits, {hashes}" for bits, hashes in HASHES]
    colours = {name: f"C{at}" for at, name in enumerate(names)}
    for start in ("one-pass", "random"):
        shown = [k for k in (100, 1000, 10_000) if any(key[:2] == (f"topics-{k}", start) for key in last)]
        figure, axes = plt.subplots(1, len(shown), figsize=(5 * len(shown) + 2.6, 4.6), squeeze=False)
        lines = {}
        for axis, k in zip(axes[0], shown, strict=True):
            for (workload, began, model, bits, hashes), f in last.items():
                if workload != f"topics-{k}" or began != start:
                    continue
                spent = np.array(f["us_per_item"]) + np.array(f.get("split_merge_us", 0.0))
                at = f.get("start_us", 0.0) + np.cumsum(spent)
                name = model if bits is None else f"{model} {bits} bits, {hashes}"
                (lines[name],) = axis.plot(
                    at,
                    np.maximum(f["vi"], 1e-4),
                    marker="o",
                    ms=3,
                    lw=2.5 if model == "auto" else 1.2,
                    color=colours[name],
                )
            axis.set(xscale="log", yscale="log", title=f"k = {k:,}", xlabel="CPU microseconds a document, in all")
            axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.grid(alpha=0.3, which="both")
        axes[0, 0].set_ylabel("variation of information to the truth (nats)")
        figure.legend(lines.values(), lines.keys(), loc="center right", fontsize=9)
        figure.suptitle(f"{N_ROWS:,} documents, start: {start}")
        figure.tight_layout(rect=(0, 0, 1 - 2.4 / (5 * len(shown) + 2.6), 1))
        figure.savefig(PLOTS / f"families_topics_{start}.png", dpi=110)


if __name__ == "__main__":
    plot() if sys.argv[1] == "plot" else main()
