"""The page of results in the documentation, its pictures, and README's table: all from recorded lines.

python benchmarks/results_page.py
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import measured

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE, PICTURES = ROOT / "benchmarks" / "results", ROOT / "docs" / "results.md", ROOT / "docs" / "_static"
SHORT = {
    "SphericalKMeans": "k-means", "BernoulliMixture": "Bernoulli", "ExponentialFamilyMixture": "mixture, k",
    "ExponentialFamilyMixture auto": "mixture, auto", "TimeSensitiveMixture stream": "stream",
    "TimeSensitiveMixture fit": "stream, fit", "scikit-learn KMeans": "sklearn KMeans", "SVD + KMeans": "SVD, KMeans",
    "tomotopy LDA": "LDA", "GSDMM": "GSDMM", "SVD + HDBSCAN": "SVD, HDBSCAN",
    "SVD + UMAP + HDBSCAN": "UMAP, HDBSCAN", "river TextClust": "TextClust", "drain3": "drain3",
}  # fmt: skip
OURS = list(SHORT)[:6]
MEASURES = {"nmi": "NMI", "ami": "AMI", "ari": "ARI", "b_cubed": "B-cubed"}
BLUE, GREY = "#2563a8", "#b8c0c8"


def lines(file: str) -> list[dict[str, Any]]:
    path = RESULTS / f"{file}.jsonl"
    if not path.exists():
        return []
    with open(path, encoding="utf-8") as text:
        return [json.loads(line) for line in text]


def latest() -> dict[str, dict[str, dict[str, Any]]]:
    """Set -> model -> the latest line that saw as many rows as any."""
    found: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for line in lines("all_labelled"):
        before = found[line["workload"]].get(line["model"])
        if before is None or line["rows"] >= before["rows"]:
            found[line["workload"]][line["model"]] = line
    return dict(found)


def ranks(models: dict[str, dict[str, Any]], measure: str) -> dict[str, float]:
    """1 for the best; those that are equal share a rank."""
    values = {model: line[measure] for model, line in models.items()}
    return {model: 1 + sum(other > value + 5e-4 for other in values.values()) for model, value in values.items()}


# --- the table over every labelled set --------------------------------------------------------------------------------


def labelled(sets: dict[str, dict[str, dict[str, Any]]]) -> str:
    if not sets:
        return "No lines yet: `python benchmarks/all_labelled.py`.\n"
    present = [model for model in SHORT if any(model in models for models in sets.values())]
    parts = [summaries(sets, present), "", f"![NMI of every model on every set](_static/{heatmap(sets, present)})", ""]
    parts += [f"![Quality against time](_static/{quality_against_time(sets, present)})", ""]
    for measure, name in MEASURES.items():
        parts += [f"### {name}", "", grid(sets, present, measure), ""]
    parts += ["### Processor seconds", "", grid(sets, present, "seconds", best=min, shown="{:.2g}"), ""]
    return "\n".join(parts)


def summaries(sets: dict[str, dict[str, dict[str, Any]]], present: list[str]) -> str:
    """Means only over sets that every model of the part has a line for."""
    parts = []
    for title, kinds in (("Texts and sets", ("text", "sets")), ("Streams and logs", ("stream", "log"))):
        part = {name: models for name, models in sets.items() if next(iter(models.values()))["kind"] in kinds}
        fit = {model for models in part.values() for model in models} - {"drain3"}
        complete = {name: models for name, models in part.items() if fit <= set(models)}
        if complete and fit - set(OURS):
            shown = [model for model in present if model in fit]
            parts += [
                f"{title}, means over {len(complete)} sets ({', '.join(complete)}):",
                "",
                summary(complete, shown),
                "",
            ]
    return "\n".join(parts)


def summary(sets: dict[str, dict[str, dict[str, Any]]], present: list[str]) -> str:
    rows = ["| model | sets | true k | first or equal (NMI) | mean rank | NMI | AMI | ARI | B-cubed | median CPU s |",
            "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for model in present:
        has = {name: models for name, models in sets.items() if model in models}
        placed = [ranks(models, "nmi")[model] for models in has.values()]
        means = [np.mean([models[model][m] for models in has.values()]) for m in MEASURES]
        seconds = float(np.median([models[model]["seconds"] for models in has.values()]))
        given = "yes" if next(iter(has.values()))[model]["knows_k"] else "no"
        name = f"**{model}**" if model in OURS else model
        scores = " | ".join(f"{value:.3f}" for value in means)
        rows.append(
            f"| {name} | {len(has)} | {given} | {sum(p == 1 for p in placed)} | {np.mean(placed):.1f} | {scores} | "
            f"{seconds:.2g} |"
        )
    return "\n".join(rows)


def grid(sets: dict[str, Any], present: list[str], measure: str, best: Any = max, shown: str = "{:.3f}") -> str:
    """Sets down, models across; the best of a row is bold."""
    rows = ["| set | rows | " + " | ".join(SHORT[model] for model in present) + " |", "|---" * (len(present) + 2) + "|"]
    for name, models in sets.items():
        top = best(line[measure] for line in models.values())
        first = next(iter(models.values()))
        of = f"{first['rows']:,}" + (f" of {first['of_rows']:,}" if first["of_rows"] > 1.1 * first["rows"] else "")
        cells = []
        for model in present:
            if model not in models:
                cells.append("")
                continue
            value = models[model][measure]
            text = shown.format(value)
            cells.append(f"**{text}**" if value == top else text)
        rows.append(f"| {name} | {of} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def heatmap(sets: dict[str, Any], present: list[str]) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "shoal"
    values = np.array([[sets[name].get(m, {}).get("nmi", np.nan) for m in present] for name in sets])
    figure = Figure(figsize=(11, 1.6 + 0.34 * len(sets)), layout="constrained")
    axes = figure.subplots()
    share = values / np.nanmax(values, axis=1, keepdims=True)
    axes.imshow(share, cmap="Blues", vmin=0.3, vmax=1.1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            top = share[row, column] > 0.999
            color = "white" if share[row, column] > 0.85 else "#1c2530"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=color,
                      weight="bold" if top else "normal")  # fmt: skip
    axes.set_xticks(range(len(present)), [SHORT[m] for m in present], rotation=35, ha="right", fontsize=9)
    axes.set_yticks(range(len(sets)), list(sets), fontsize=9)
    axes.axvline(sum(m in OURS for m in present) - 0.5, color="white", linewidth=4)
    axes.set_title(
        "NMI with known labels; darker is nearer to the best of the set. Left of the gap: shoal", fontsize=10
    )
    return save(figure, "results_nmi.png")


def quality_against_time(sets: dict[str, Any], present: list[str]) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for model in present:
        ours = model in OURS
        both = [
            (models[model]["seconds"], models[model]["nmi"] / max(line["nmi"] for line in models.values()))
            for models in sets.values()
            if model in models
        ]
        seconds, share = np.median(both, axis=0)
        axes.plot(seconds, share, "o", color=BLUE if ours else GREY, markersize=9)
        axes.annotate(SHORT[model], (seconds, share), xytext=(6, 4), textcoords="offset points", fontsize=9)
    axes.set_xscale("log")
    axes.set(xlabel="median processor seconds of a fit", ylabel="median NMI, as a share of the set's best")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.15)
    return save(figure, "results_time.png")


# --- README's figures, and where each line is -------------------------------------------------------------------------


def speed_picture() -> str:
    """README's picture: running times of shoal and of other libraries, on one logarithmic axis."""
    from matplotlib.figure import Figure

    pairs = [
        ("k-means step, 721,181 titles, k = 1000", 3, "small", "scikit-learn KMeans"),
        ("k-means step, 50,000 x 100,000, k = 1000", 1, "ours", "scikit-learn KMeans"),
        ("tf-idf of 721,181 titles", 0, "ours", "TfidfVectorizer"),
        ("300 settings for 2,000 keywords", 11, "ours", "HiGHS (stopped)"),
        ("1,000,000 bid landscapes, 2,000 centers", 13, "ours", "numpy"),
    ]
    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    axes = figure.subplots()
    for place, (name, row, field, rival) in enumerate(reversed(pairs)):
        figures = measured.ROWS[row].figures
        ours, theirs = (float(f.lines()[-1][f.field]) for f in (figures[field], figures["theirs"]))
        axes.barh(place + 0.19, ours, 0.36, color=BLUE)
        axes.barh(place - 0.19, theirs, 0.36, color=GREY)
        axes.annotate(f" shoal {ours:.2g} s", (ours, place + 0.19), va="center", fontsize=8)
        axes.annotate(f" {rival} {theirs:.3g} s", (theirs, place - 0.19), va="center", fontsize=8)
        axes.annotate(name + "  ", (0.0105, place), ha="right", va="center", fontsize=9, annotation_clip=False)
    axes.set_xscale("log")
    axes.set_xlim(0.0105, 1500)
    axes.set_yticks([])
    axes.set_xlabel("seconds, two cores (logarithmic)")
    axes.spines[["top", "right"]].set_visible(False)
    return save(figure, "measured.png")


def sources() -> str:
    """The commit behind each figure of README's table."""
    rows = ["| what | figure | commit | date | line in `benchmarks/results` |", "|---|---|---|---|---|"]
    for row in measured.ROWS:
        for name, figure in row.figures.items():
            line = figure.lines()[-1]
            where = f"{figure.file}.jsonl: {line.get('model', '')}"
            rows.append(f"| {row.what} | {name}: {figure.texts()[-1]} | {line['commit']} | {line['date']} | {where} |")
    return "\n".join(rows)


def suggestion() -> str:
    """Recall at ten and calibration, rivals tuned on a validation part."""
    found: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for line in lines("suggestion"):
        if line["workload"].startswith("hide-a-third-") and line["workload"].endswith("-seed-0"):
            found[line["workload"][len("hide-a-third-") : -len("-seed-0")]][line["model"]] = line
    models = ["Suggester", "EASE", "iALS", "SLIM", "user-kNN", "item-kNN", "popularity"]
    rows = ["| set | " + " | ".join(models) + " |", "|---" * (len(models) + 1) + "|"]
    for name, lines_of in sorted(found.items()):
        if "Suggester" in lines_of:
            top = max(line["quality"] for line in lines_of.values())
            values = [lines_of.get(model, {}).get("quality") for model in models]
            cells = ["" if v is None else f"**{v:.3f}**" if v == top else f"{v:.3f}" for v in values]
            rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def limits() -> str:
    """Multiples of reading, with what bounds each pass."""
    found = {(line["model"], line["workload"]): line for line in lines("limits")}
    if not found:
        return "Not measured yet."
    rows = [
        "| pass | rows | seconds | reading, s | multiple | ns per entry | what bounds it |",
        "|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {model} | {workload.split()[-2]} | {line['seconds']:.3g} | {line['reading_seconds']:.2g} | "
        f"{line['ratio']:.0f} | {line['nanoseconds_per_entry']:.0f} | {line['bound']} |"
        for (model, workload), line in found.items()
    ]
    return "![Nanoseconds per stored entry, with reading as the lower bound](_static/limits.png)\n\n" + "\n".join(rows)


def save(figure: Any, name: str) -> str:
    PICTURES.mkdir(exist_ok=True)
    figure.savefig(PICTURES / name, dpi=130, metadata={"Software": None})
    return name


def why_not_first(sets: dict[str, dict[str, dict[str, Any]]]) -> str:
    rows = ["| set | first | NMI | our best | NMI |", "|---|---|---|---|---|"]
    for name, models in sets.items():
        first = max(models, key=lambda m: models[m]["nmi"])
        ours = max((m for m in models if m in OURS), key=lambda m: models[m]["nmi"], default=None)
        if ours is not None and first not in OURS and models[first]["nmi"] > models[ours]["nmi"] + 5e-4:
            rows.append(f"| {name} | {first} | {models[first]['nmi']:.3f} | {ours} | {models[ours]['nmi']:.3f} |")
    return "\n".join(rows) if len(rows) > 2 else "None of these data sets."


def page() -> str:
    sets = latest()
    return f"""# Results

Generated by `python benchmarks/results_page.py` from the JSON lines in `benchmarks/results`, each of which names
its commit. `make bench` runs the benchmarks and writes this page. Comparisons in which shoal is not best are
included.

## Speed

![Running times of shoal and of other libraries](_static/{speed_picture()})

{measured.HEAD}{"".join(row.latest() + chr(10) for row in measured.ROWS)}
## Labelled data sets

All models that apply to the data, and other libraries, with default options and three seeds. Methods that need the
number of clusters get the true number of classes ("true k"); the mixture with `"auto"`, the streams and HDBSCAN
infer it. Large data sets are sampled (streams: the first rows); the second column gives the number of rows used.
Unassigned rows count as one more cluster. Times are processor seconds. `python benchmarks/all_labelled.py` measures
these.

{labelled(sets)}
### Data sets where another library is best

{why_not_first(sets)}

Probable reasons, not verified: UMAP relates words through the words they occur with, which helps with very short
texts and broad classes. GSDMM has the likelihood of the mixture, with twice the true number of classes as its
maximum. With two to eight classes, these measures depend more on the number of clusters than on their quality, so
models that infer the number score lower than those that are given it.

## Suggestions

Recall at 10 for the hidden third of each row. The other methods are tuned on a validation part of the training rows
(`python benchmarks/suggestion_rivals.py`).

{suggestion()}

## Speed compared with reading the data

The time of one pass over the rows, as a multiple of reading their indices and values once (a compiled sum, same
threads, same run): `python benchmarks/limits.py`.

{limits()}

## Source of each figure in the first table

{sources()}

A + after a commit means that there were uncommitted changes.
"""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    measured.write()
    print(f"{PAGE.relative_to(ROOT)} and README.md")


if __name__ == "__main__":
    main()
