"""20 Newsgroups and arXiv abstracts: NMI beside SphericalKMeans, and held-out likelihood with and without learning.

python benchmarks/families_text.py [20newsgroups,arxiv] [n_rows] [model,model]
"""

from __future__ import annotations

import json
import lzma
import re
import sys
import time

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from common import data_dir, peak_mb, record
from shoal.families import ExponentialFamilyMixture
from shoal.kmeans import SphericalKMeans

SETS = {"20newsgroups": ("20newsgroups/docs.jsonl.xz", 20), "arxiv": ("arxiv/abstracts_sample.jsonl.xz", 40)}


def read(name: str, n_rows: int):
    with lzma.open(data_dir() / SETS[name][0], "rt") as lines:
        documents = [json.loads(line) for line in lines]
    texts = [document["text"] for document in documents]
    if name == "20newsgroups":  # headers name the group
        texts = [re.split(r"\n\s*\n", text, maxsplit=1)[-1] for text in texts]
    X = CountVectorizer(min_df=3, max_df=0.3, stop_words="english").fit_transform(texts)
    labels = np.unique([document["label"] for document in documents], return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(np.flatnonzero(np.diff(X.indptr) > 0))[:n_rows]
    return X[order].astype(np.float64), labels[order]


def main() -> None:
    names = sys.argv[1].split(",") if len(sys.argv) > 1 else list(SETS)
    n_rows = int(sys.argv[2]) if len(sys.argv) > 2 else 30_000
    wanted = sys.argv[3].split(",") if len(sys.argv) > 3 else None
    for name in names:
        X, truth = read(name, n_rows)
        k = SETS[name][1]
        train = slice(0, int(0.9 * X.shape[0]))
        held_out = X[train.stop :]
        for model, fit in {
            "spherical-kmeans": lambda X, k: SphericalKMeans(k, random_state=0).fit(
                TfidfTransformer().fit_transform(X)
            ),
            "shoal": lambda X, k: ExponentialFamilyMixture(k, random_state=0).fit(X),
            "shoal-2k": lambda X, k: ExponentialFamilyMixture(2 * k, random_state=0).fit(X),
            "shoal-learned-smoothing": lambda X, k: ExponentialFamilyMixture(
                k, smoothing="learn", background=0.0, random_state=0
            ).fit(X),
            "shoal-learned-both": lambda X, k: ExponentialFamilyMixture(
                k, smoothing="learn", background="learn", random_state=0
            ).fit(X),
            "shoal-fixed-smoothing": lambda X, k: ExponentialFamilyMixture(
                k, smoothing=0.1, background=0.0, init="one-pass", random_state=0
            ).fit(X),
            "shoal-fixed-background": lambda X, k: ExponentialFamilyMixture(
                k, smoothing=0.0, background=500.0, init="one-pass", random_state=0
            ).fit(X),
        }.items():
            if wanted is not None and model not in wanted:
                continue
            began = time.process_time()
            fitted = fit(X[train], k)
            seconds = time.process_time() - began
            labels = fitted.labels_
            likelihood = None if model == "spherical-kmeans" else fitted.score(held_out)
            record(
                "families", workload=f"{name}-{X.shape[0]}", model=model, seconds=seconds, clock="cpu",
                peak_mb=peak_mb(),
                quality=normalized_mutual_info_score(truth[train], labels),
                ari=adjusted_rand_score(truth[train], labels),
                found=len(np.unique(labels)), held_out=likelihood, hyper=getattr(fitted, "hyperparameters_", None),
            )  # fmt: skip


if __name__ == "__main__":
    main()
