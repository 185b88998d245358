"""Do the names of clusters say what the clusters are? Labelled texts, clusters of k-means and of a mixture.

A name of three words is good if one of them is among the ten most distinctive words of the class that most of the
cluster's rows have (the largest terms of the Kullback-Leibler divergence from all classes to it). Rivals on the same
clusters: the three heaviest features, and class-based TF-IDF as BERTopic has it. Also recorded: the share of words
that no other cluster's name has.

    python benchmarks/report_names.py [set,set|all|aside] [n_rows]
"""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import re
import sys

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from common import data_dir, record
from families_number import ASIDE, SETS
from shoal import ExponentialFamilyMixture, SphericalKMeans
from shoal.report.naming import N_CANDIDATES, distinctive_features

N_WORDS = 3


def read(name: str, n_rows: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Counts of words, stop words included, and the class of each row."""
    path, label, text, _ = (SETS | ASIDE)[name]
    opener = lzma.open if path.endswith("xz") else gzip.open
    with opener(data_dir() / path, "rt", encoding="utf-8", newline="") as lines:
        if ".jsonl" in path:
            rows = [json.loads(line) for line in lines]
        else:
            rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    order = np.random.default_rng(0).permutation(len(rows))[:n_rows]
    texts = [rows[at][text] for at in order]
    if name == "20newsgroups":  # headers name the group
        texts = [re.split(r"\n\s*\n", one, maxsplit=1)[-1] for one in texts]
    X = CountVectorizer(min_df=3).fit_transform(texts).astype(np.float64)
    labels = np.unique([rows[at][label] for at in order], return_inverse=True)[1]
    kept = np.flatnonzero(np.diff(X.indptr) > 0)
    return X[kept], labels[kept]


def sums_by(labels: np.ndarray, X: sp.csr_matrix) -> np.ndarray:
    groups = sp.csr_matrix((np.ones(labels.size), (labels, np.arange(labels.size))))
    return np.asarray((groups @ X).todense())


def distinctive_words(X: sp.csr_matrix, classes: np.ndarray, n: int = 10) -> list[set[int]]:
    shares = sums_by(classes, X) + 0.01
    shares /= shares.sum(axis=1, keepdims=True)
    overall = np.asarray(X.sum(axis=0)).ravel() / X.sum()
    contrast = shares * np.log(shares / np.maximum(overall, 1e-300))
    return [set(np.argsort(-row)[:n].tolist()) for row in contrast]


def class_tfidf(X: sp.csr_matrix, clusters: np.ndarray) -> list[list[int]]:
    """BERTopic's: frequency in the cluster times log(1 + mean words of a cluster / frequency of the word)."""
    counts = sums_by(clusters, X)
    weights = counts * np.log1p(counts.sum() / counts.shape[0] / np.maximum(counts.sum(axis=0), 1e-300))
    return [np.argsort(-row, kind="stable")[:N_WORDS].tolist() for row in weights]


def heaviest(tops) -> list[list[int]]:  # type: ignore[no-untyped-def]
    return [
        np.asarray(top.features)[np.argsort(-np.asarray(top.values), kind="stable")[:N_WORDS]].tolist() for top in tops
    ]


def main() -> None:
    chosen = sys.argv[1] if len(sys.argv) > 1 else "all"
    n_rows = int(sys.argv[2]) if len(sys.argv) > 2 else 4_000
    names = {"all": list(SETS), "aside": list(ASIDE)}.get(chosen, chosen.split(","))
    means: dict[str, list[float]] = {}
    for name in names:
        X, classes = read(name, n_rows)
        wanted = distinctive_words(X, classes)
        k = 2 * len(wanted)
        weighted = TfidfTransformer().fit_transform(X)
        for model, rows in (
            (SphericalKMeans(k, random_state=0), weighted),
            (ExponentialFamilyMixture(k, n_sweeps=15, random_state=0), X),
        ):
            labels = model.fit(rows).labels_
            ids = [int(id_) for id_ in model.cluster_ids_ if (labels == id_).sum() >= 5]
            inside = np.isin(labels, ids)
            clusters = np.searchsorted(ids, labels[inside])
            tops = [model.top_features(id_, N_CANDIDATES) for id_ in ids]
            sizes = np.bincount(clusters, minlength=len(ids))
            main_class = [int(np.bincount(classes[inside][clusters == at]).argmax()) for at in range(len(ids))]
            found = {
                "shoal": [features[:N_WORDS].tolist() for features in distinctive_features(tops, sizes)],
                "heaviest features": heaviest(tops),
                "c-TF-IDF": class_tfidf(X[inside], clusters),
            }
            for method, words in found.items():
                hit = np.mean([bool(set(mine) & wanted[c]) for mine, c in zip(words, main_class, strict=True)])
                used = np.bincount(np.concatenate([np.array(mine, dtype=int) for mine in words]))
                own = np.mean([used[word] == 1 for mine in words for word in mine])
                means.setdefault(f"{method}, {type(model).__name__}", []).append(float(hit))
                means.setdefault(f"{method}, {type(model).__name__}, words of its own", []).append(float(own))
                record(
                    "report", workload=f"names of clusters: {name}, {len(labels)} rows", model=type(model).__name__,
                    method=method, clusters=len(ids), quality=round(float(hit), 4),
                    measure="share of names with a distinctive word of the class", own_words=round(float(own), 4),
                )  # fmt: skip
    for method, values in means.items():
        print(f"{method}: {np.mean(values):.3f} over {len(values)} sets")


if __name__ == "__main__":
    main()
