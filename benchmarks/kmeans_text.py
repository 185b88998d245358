"""Labelled texts: NMI and ARI of our k-means and scikit-learn's on the same tf-idf, mean of 10 seeds each."""

from __future__ import annotations

import json
import lzma
import re
import sys
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from common import Timer, data_dir, peak_mb, record
from kmeans_common import compile_kernels, labelled_texts
from shoal.kmeans import SphericalKMeans

SETS = {
    "20newsgroups": None,
    "searchsnippets": "short_text/searchsnippets.tsv.gz",
    "googlenews": "short_text/googlenews.tsv.gz",
    "tweet": "short_text/tweet.tsv.gz",
    "pascal_flickr": "short_text/pascal_flickr.tsv.gz",
    "stackoverflow": "short_text/stackoverflow.tsv.gz",
}
SEEDS = 10


def newsgroups():
    """Bodies only: headers, quoted lines and signatures would give the answer away."""
    texts, labels = [], []
    with lzma.open(data_dir() / "20newsgroups" / "docs.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            post = json.loads(line)
            body = post["text"].partition("\n\n")[2]
            texts.append(
                "\n".join(part for part in body.split("\n") if not re.match(r"\s*[>|:]|.*writes:|.*wrote:", part))
            )
            labels.append(post["label"])
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=3, max_df=0.5, stop_words="english")
    return vectorizer.fit_transform(texts), np.unique(labels, return_inverse=True)[1]


def measure(name: str) -> None:
    X, truth = newsgroups() if name == "20newsgroups" else labelled_texts(SETS[name])
    k = int(truth.max()) + 1
    for model, make in {
        "SphericalKMeans": lambda seed: SphericalKMeans(k, random_state=seed),
        "scikit-learn KMeans": lambda seed: KMeans(k, random_state=seed),
    }.items():
        nmi, ari = [], []
        with Timer() as timer, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for seed in range(SEEDS):
                labels = make(seed).fit(X).labels_
                nmi.append(normalized_mutual_info_score(truth, labels))
                ari.append(adjusted_rand_score(truth, labels))
        record(
            "kmeans", workload=f"{name} tf-idf n={X.shape[0]} d={X.shape[1]} k={k}", model=model,
            seconds=timer.seconds / SEEDS, peak_mb=peak_mb(), quality=float(np.mean(nmi)),
            measure="NMI, mean of 10 seeds",
            nmi_std=float(np.std(nmi)), ari=float(np.mean(ari)), ari_std=float(np.std(ari)),
        )  # fmt: skip


if __name__ == "__main__":
    compile_kernels()
    for each in sys.argv[1:] or SETS:
        measure(each)
