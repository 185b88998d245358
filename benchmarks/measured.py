"""The table of measured figures in README: each figure is a field of a recorded line, and so has its commit.

python benchmarks/measured.py        # write README's table anew, from the latest line of each
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- measured: written by benchmarks/measured.py -->\n", "<!-- measured: end -->\n"
HEAD = "| workload | shoal | compared with | command |\n|---|---|---|---|\n"


class Figure(NamedTuple):
    """A field of the lines of a results file that match."""

    file: str
    match: dict[str, Any]
    field: str = "seconds"
    shown: str = "{:.2g}"

    def lines(self) -> list[dict[str, Any]]:
        """Matching lines that have the field, the latest last."""
        with open(RESULTS / f"{self.file}.jsonl", encoding="utf-8") as text:
            rows = [json.loads(line) for line in text]
        return [r for r in rows if r.get(self.field) is not None and all(r.get(k) == v for k, v in self.match.items())]

    def texts(self) -> list[str]:
        """What each of them reads as."""
        return [self.shown.format(float(line[self.field])) for line in self.lines()]


class Row(NamedTuple):
    """A line of the table; ``{name}`` stands for a figure."""

    what: str
    ours: str
    rival: str
    command: str
    figures: dict[str, Figure]

    def template(self) -> str:
        return f"| {self.what} | {self.ours} | {self.rival} | {self.command} |"

    def latest(self) -> str:
        """The line with the latest figures."""
        return self.template().format(**{name: figure.texts()[-1] for name, figure in self.figures.items()})

    def pattern(self) -> re.Pattern[str]:
        """The line with any figures that were recorded."""
        parts = re.split(r"\{(\w+)\}", self.template())
        made = [
            re.escape(part) if at % 2 == 0 else "(?:" + "|".join(map(re.escape, self.figures[part].texts())) + ")"
            for at, part in enumerate(parts)
        ]
        return re.compile("".join(made))


def of(file: str, workload: str, model: str | None = None, /, field: str = "seconds", shown: str = "{:.2f}",
       **more: Any) -> Figure:  # fmt: skip
    match = {"workload": workload} | ({} if model is None else {"model": model}) | more
    return Figure(file, match, field, shown)


ZIPF = "zipf n=50,000 d=100,000 k=1000 tf-idf, 82 a row, 13 iterations"
ARXIV = "arXiv titles n=721181 d=61540 k={}, {} iterations"
LARGE = "paper tables: zipf n=1,000,000 d=7,000,000 tf-idf k={}"
TITLES = "arxiv titles, tf-idf of words, from parquet"
RECIPES = "hide-a-third-recipes-seed-0"
MIXTURE = "large-710000-5.6M-1000"
RIVER = "river TextClust, radius 0.5"
BY_HIGHS = "Lagrangian dual and rounding against HiGHS MIP (gap 1e-4)"

ROWS = [
    Row(
        "tf-idf of 721,181 titles, read from Parquet", "{ours} s",
        "scikit-learn `TfidfVectorizer` on text in memory {theirs} s, the same matrix",
        "`python benchmarks/data_tfidf.py`",
        {"ours": of("data", TITLES), "theirs": of("data", TITLES, field="rival_seconds")},
    ),
    Row(
        "k-means step, 50,000 x 100,000, k = 1000, exact", "{ours} s", "scikit-learn `KMeans` {theirs} s",
        "`python benchmarks/kmeans_zipf.py`",
        {"ours": of("kmeans", ZIPF, "SphericalKMeans exact"),
         "theirs": of("kmeans", ZIPF, "scikit-learn KMeans", shown="{:.1f}")},
    ),
    Row(
        "same step, sparse centers", "{ours} s, mean cosine {psi} (exact {exact})",
        "faiss on 100 SVD dimensions {theirs} s, mean cosine {faiss}", "same command",
        {"ours": of("kmeans", ZIPF, "SphericalKMeans sparse p=200"),
         "psi": of("kmeans", ZIPF, "SphericalKMeans sparse p=200", "quality", "{:.3f}"),
         "exact": of("kmeans", ZIPF, "SphericalKMeans exact", "quality", "{:.3f}"),
         "theirs": of("kmeans", ZIPF, "faiss Kmeans on SVD to 100"),
         "faiss": of("kmeans", ZIPF, "faiss Kmeans on SVD to 100", "quality", "{:.3f}")},
    ),
    Row(
        "k-means step, 721,181 arXiv titles, exact", "k = 1000: {small} s; k = 10,000: {large} s",
        "scikit-learn `KMeans` at k = 1000: {theirs} s", "`python benchmarks/kmeans_arxiv.py`",
        {"small": of("kmeans", ARXIV.format(1000, 13), "SphericalKMeans exact"),
         "large": of("kmeans", ARXIV.format(10000, 13), "SphericalKMeans exact", shown="{:.1f}"),
         "theirs": of("kmeans", ARXIV.format(1000, 2), "scikit-learn KMeans", shown="{:.1f}")},
    ),
    Row(
        "1,000,000 x 7,000,000, whole fit with seeding", "k = 1000: {small} s; k = 6000: {large} s", "",
        "`python benchmarks/kmeans_paper.py auto`",
        {"small": of("kmeans", LARGE.format(1000), "auto, whole fit with seeding", "fit_seconds", "{:.0f}"),
         "large": of("kmeans", LARGE.format(6000), "auto, whole fit with seeding", "fit_seconds", "{:.0f}")},
    ),
    Row(
        "710,000 documents x 5.6 million words, mixture of 1000, 20 sweeps",
        "{ours} s, variation of information to the truth {vi}", "", "`python benchmarks/families_large.py`",
        {"ours": of("families", MIXTURE, shown="{:.0f}"),
         "vi": of("families", MIXTURE, field="quality", shown="{:.4f}")},
    ),
    Row(
        "Gaussian mixture of 500, 200,000 x 50",
        "better held-out likelihood than scikit-learn's best, {times}x faster",
        "`BayesianGaussianMixture` {theirs} s", "`python benchmarks/families_gaussian.py large`",
        {"times": of("families", "gaussian-200000-50-500", "sklearn-bgm", "times_sooner", "{:.0f}"),
         "theirs": of("families", "gaussian-200000-50-500", "sklearn-bgm", shown="{:.0f}")},
    ),
    Row(
        "1,300,000 ads x 73,000 keywords, 100 profiles", "{ours} s", "EM of shoal {em} s",
        "`python benchmarks/bernoulli_scale.py large adf`",
        {"ours": of("bernoulli", "scale-large-1300000x73000", "adf", shown="{:.0f}"),
         "em": of("bernoulli", "scale-large-1300000x73000", "em", shown="{:.0f}")},
    ),
    Row(
        "suggesting the hidden third of a recipe's ingredients, recall at 10", "{ours}",
        "tuned: user-kNN {user}, EASE {ease}, iALS {ials}, item-kNN {item}", "`python benchmarks/suggestion_rivals.py`",
        {"ours": of("suggestion", RECIPES, "Suggester", "quality", "{:.3f}"),
         "user": of("suggestion", RECIPES, "user-kNN", "quality", "{:.3f}"),
         "ease": of("suggestion", RECIPES, "EASE", "quality", "{:.3f}"),
         "ials": of("suggestion", RECIPES, "iALS", "quality", "{:.3f}"),
         "item": of("suggestion", RECIPES, "item-kNN", "quality", "{:.3f}")},
    ),
    Row(
        "replay of 10 million auctions, 5 exponents x 60 reserves", "{ours} s", "",
        "`python benchmarks/auction_replay.py`",
        {"ours": of("auction", "replay 10M auctions x 5 exponents x 60 reserves, 100k keywords", shown="{:.0f}")},
    ),
    Row(
        "choosing among 60 settings for 1,000,000 keywords", "{ours} s, certified gap {gap}", "",
        "`python benchmarks/auction_optimize.py`",
        {"ours": of("auction", "choose 1,000,000 x 60", shown="{:.1f}"),
         "gap": of("auction", "choose 1,000,000 x 60", field="quality", shown="{:.0e}")},
    ),
    Row(
        "choosing among 300 settings for 2,000 keywords", "{ours} s, certified gap {gap}",
        "HiGHS: no answer after {theirs} s", "same command",
        {"ours": of("auction", "choose 2,000 x 300", BY_HIGHS),
         "gap": of("auction", "choose 2,000 x 300", BY_HIGHS, "quality", "{:.0e}"),
         "theirs": of("auction", "choose 2,000 x 300", BY_HIGHS, "rival_seconds", "{:.0f}")},
    ),
    Row(
        "1,000,000 messages of 50 words, 6,000 live threads, one core", "{ours}/s, NMI {nmi}",
        "river `TextClust` {theirs}/s on the first 5,500, NMI {their_nmi}",
        "`python benchmarks/streams_million.py`",
        {"ours": of("streams", "1,000,000 messages", None, "items_per_second", "{:,.0f}"),
         "nmi": of("streams", "1,000,000 messages", None, "quality", "{:.3f}"),
         "theirs": of("streams", "first 5,500 of the messages", RIVER, "items_per_second", "{:.0f}"),
         "their_nmi": of("streams", "first 5,500 of the messages", RIVER, "quality", "{:.3f}")},
    ),
    Row(
        "assigning 1,000,000 bid landscapes to 2,000 centers", "{ours} s", "numpy broadcasting {theirs} s",
        "`python benchmarks/densities_assign.py`",
        {"ours": of("densities", "assign 1,000,000 mixtures to 2,000 centres", shown="{:.1f}"),
         "theirs": of("densities", "assign 1,000,000 mixtures to 2,000 centres", None, "rival_seconds", "{:.0f}")},
    ),
]  # fmt: skip


def table() -> str:
    return HEAD + "".join(row.latest() + "\n" for row in ROWS)


def write(readme: Path = ROOT / "README.md") -> None:
    """Put the table between README's marks."""
    text = readme.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(before + BEGIN + table() + END + after, encoding="utf-8")


if __name__ == "__main__":
    write()
    print(table())
