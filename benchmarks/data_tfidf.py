"""Reading and weighing 721,181 arXiv titles, beside scikit-learn's TfidfVectorizer on the same text.

    python benchmarks/data_tfidf.py            both, in one process, and a check that the matrices are equal
    python benchmarks/data_tfidf.py --memory   shoal alone, for its peak memory

Ours begins at a file on disk; the rival is given the titles as a list already in memory, and its fit_transform alone is
timed. Compiling is apart (a few rows are read first).
"""

from __future__ import annotations

import argparse
import csv
import lzma
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import shoal
from common import Timer, data_dir, peak_mb, record

OPTIONS = {
    "words": ({}, {}),
    "sublinear, stop words, bigrams": (
        {"sublinear": True, "stop_words": "english", "bigrams": True},
        {"sublinear_tf": True, "stop_words": "english", "ngram_range": (1, 2)},
    ),
}


def own_peak_mb() -> float:
    """The peak of this process alone: what getrusage says is handed down from the parent that started it."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    kilobytes = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), None)
    return peak_mb() if kilobytes is None else kilobytes * 1024 / 1e6


def convert(folder: Path) -> list[str]:
    """The titles as .csv and .parquet; returns them as a list too."""
    with lzma.open(data_dir() / "arxiv" / "titles.tsv.xz", "rt", encoding="utf-8", newline="\n") as lines:
        header, *rows = (line.rstrip("\n").split("\t") for line in lines)
    with open(folder / "titles.csv", "w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([header, *rows])
    columns = {name: [row[at] for row in rows] for at, name in enumerate(header)}
    pq.write_table(pa.table(columns), folder / "titles.parquet")
    return columns["title"]


def warm_up() -> None:
    for ours, _ in OPTIONS.values():
        shoal.read(pa.table({"title": ["Shadows of convex bodies", "Convex \u00c9tudes"]}), text="title", **ours)


def equal(ours: shoal.Dataset, theirs, names) -> bool:
    """The same cells up to the order of columns, and values to 12 digits."""
    X = ours.X[:, ours.vocabulary.find(list(names))]
    X.sort_indices()
    theirs.sort_indices()
    same = (
        X.shape == theirs.shape
        and np.array_equal(X.indptr, theirs.indptr)
        and np.array_equal(X.indices, theirs.indices)
    )
    return same and np.allclose(X.data, theirs.data, rtol=1e-12, atol=0)


def measure(folder: Path) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    titles = convert(folder)
    warm_up()
    for what, (ours, theirs) in OPTIONS.items():
        model = TfidfVectorizer(**theirs)
        with Timer() as rival:
            X = model.fit_transform(titles)
        for kind in ("csv", "parquet"):
            seconds = []
            for _ in range(3):
                with Timer() as timer:
                    dataset = shoal.read(folder / f"titles.{kind}", text="title", item="arxiv_id", **ours)
                seconds.append(timer.seconds)
            same = equal(dataset, X, model.get_feature_names_out())
            if not same:
                sys.exit("the matrices differ")
            memory = subprocess.run(
                [sys.executable, __file__, "--memory", str(folder / f"titles.{kind}"), "--options", what],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            middle = statistics.median(seconds)
            record(
                "data",
                workload=f"arxiv titles, tf-idf of {what}, from {kind}",
                model="shoal.read",
                rows=len(dataset),
                features=dataset.X.shape[1],
                non_zeros=int(dataset.X.nnz),
                seconds=middle,
                seconds_all=[round(value, 3) for value in seconds],
                rival="TfidfVectorizer.fit_transform",
                rival_seconds=rival.seconds,
                ratio=rival.seconds / middle,
                equal=same,
                peak_mb=float(memory.stdout),
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", metavar="FILE")
    parser.add_argument("--options", default="words", choices=list(OPTIONS))
    arguments = parser.parse_args()
    if arguments.memory:
        shoal.read(arguments.memory, text="title", item="arxiv_id", **OPTIONS[arguments.options][0])
        print(own_peak_mb())
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder))


if __name__ == "__main__":
    main()
