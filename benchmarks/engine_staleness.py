"""Families in parts: rows are sampled against what the other parts held a round ago. What does that cost?

python benchmarks/engine_staleness.py synthetic [rows] [clusters] [sweeps]
python benchmarks/engine_staleness.py 20newsgroups [clusters] [sweeps]

The serial chain, and 1, 4 and 16 parts, each with as many visits to every row: variation of information to the truth,
and the mean log likelihood of rows that were held out. A fit of parts begins with a sample of rows; SHOAL_SAMPLE is its
share of all rows here (default 1 where they are few, as in a fit), since data that need parts are larger than it.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

import shoal
from common import data_dir, peak_mb, record
from shoal.datasets import make_zipf_topics
from shoal.engine import Partitions, read_partitions
from shoal.families import partitions
from shoal.metrics import variation_of_information

PARTS, HELD_OUT = (1, 4, 16), 0.1


def newsgroups() -> tuple[sp.csr_matrix, np.ndarray]:
    """Bodies of posts and their groups."""
    texts, labels = [], []
    with lzma.open(data_dir() / "20newsgroups" / "docs.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            texts.append(row["text"].partition("\n\n")[2] or row["text"])
            labels.append(row["label"])
    X = CountVectorizer(min_df=5, max_df=0.3, stop_words="english").fit_transform(texts).tocsr()
    return X.astype(np.float64), np.unique(labels, return_inverse=True)[1]


def in_parts(X: sp.csr_matrix, n_parts: int, folder: Path) -> Partitions:
    """The rows as files, in order."""
    for part, rows in enumerate(np.array_split(np.arange(X.shape[0]), n_parts)):
        sp.save_npz(folder / f"{n_parts}-{part:02d}.npz", X[rows])
    return read_partitions(str(folder / f"{n_parts}-*.npz"))


def main() -> None:
    name, numbers = sys.argv[1], [int(each) for each in sys.argv[2:]]
    if name == "synthetic":
        n, k, n_sweeps = (*numbers, *(50_000, 1000, 20)[len(numbers) :])
        data = make_zipf_topics(n, n_features=50_000, n_clusters=k, random_state=0)
        X, truth = sp.csr_matrix(data.X, dtype=np.float64), np.asarray(data.labels)
    else:
        k, n_sweeps = (*numbers, *(60, 30)[len(numbers) :])
        X, truth = newsgroups()
    order = np.random.default_rng(0).permutation(X.shape[0])
    test, train = order[: int(HELD_OUT * len(order))], order[int(HELD_OUT * len(order)) :]
    X_test, X, truth = X[test], X[train], truth[train]
    share = float(os.environ.get("SHOAL_SAMPLE", 1))
    if share < 1:
        partitions.SAMPLE_ROWS, partitions.SAMPLE_PER_CLUSTER = int(share * X.shape[0]), 1
    with tempfile.TemporaryDirectory() as folder:
        for parts in (0, *PARTS):
            source: Any = in_parts(X, parts, Path(folder)) if parts else X
            began = time.process_time()
            model = shoal.ExponentialFamilyMixture(k, n_sweeps=n_sweeps, random_state=0).fit(source)
            seconds = time.process_time() - began
            record(
                "engine", workload=f"staleness-{name}-{X.shape[0]}-{k}", model=f"{parts} parts" if parts else "serial",
                sweeps=n_sweeps, sample=share, measure="vi_nats",
                quality=variation_of_information(truth, model.labels_),
                held_out=float(model.score_samples(X_test).mean()), found=model.n_clusters_,
                log_joint=float(model.log_joint_), seconds=seconds, clock="cpu", peak_mb=peak_mb(),
            )  # fmt: skip


if __name__ == "__main__":
    main()
