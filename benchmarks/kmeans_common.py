"""What the k-means benchmarks share: data, seeds, and a measure of quality that uses none of shoal's own code."""

from __future__ import annotations

import gzip
import lzma
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from common import data_dir
from shoal.datasets import make_zipf_topics
from shoal.kmeans import SphericalKMeans

STEPS = 13  # as in the paper
CACHE = Path(tempfile.gettempdir()) / "shoal-benchmarks"


def zipf_documents(n_items: int, n_features: int, n_topics: int, length: float, weighting: str) -> sp.csr_matrix:
    """Zipf documents as float32, kept on disk between runs: raw counts or tf-idf (sublinear) at unit length."""
    files = [CACHE / f"zipf-{n_items}-{n_features}-{n_topics}-{length:g}-{part}.npy" for part in ("x", "i", "p")]
    if not files[0].exists():
        CACHE.mkdir(exist_ok=True)
        X = make_zipf_topics(n_items, n_features=n_features, n_clusters=n_topics, length=length, random_state=0).X
        for file, array in zip(files, (X.data.astype(np.float32), X.indices, X.indptr), strict=True):
            np.save(file, array)
    data, indices, indptr = (np.load(file) for file in files)
    X = sp.csr_matrix((data, indices, indptr), shape=(n_items, n_features))
    if weighting == "tf-idf":
        X = TfidfTransformer(sublinear_tf=True).fit_transform(X).astype(np.float32)
    return X


def arxiv_titles(limit: int | None = None) -> tuple[sp.csr_matrix, np.ndarray]:
    """Titles as tf-idf (float32) and their primary categories."""
    with lzma.open(data_dir() / "arxiv" / "titles.tsv.xz", "rt", encoding="utf-8") as lines:
        header = next(lines).rstrip("\n").split("\t")
        title, category = header.index("title"), header.index("primary_cat")
        rows = [line.rstrip("\n").split("\t") for line, _ in zip(lines, range(limit or 10**9), strict=False)]
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32, stop_words="english")
    X = vectorizer.fit_transform([row[title] for row in rows])
    return X, np.unique([row[category] for row in rows], return_inverse=True)[1]


def labelled_texts(path: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """A gzipped table with columns label and text, as tf-idf."""
    with gzip.open(data_dir() / path, "rt", encoding="utf-8") as lines:
        header = next(lines).rstrip("\n").split("\t")
        rows = [line.rstrip("\n").split("\t") for line in lines]
    label, text = header.index("label"), header.index("text")
    X = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform([row[text] for row in rows])
    labels = np.unique([row[label] for row in rows], return_inverse=True)[1]
    return X, labels


def psi_of(X: sp.csr_matrix, labels: np.ndarray) -> float:
    """The mean cosine to the full centers of these labels: the length of the sum of a cluster's unit rows, added up."""
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    won = np.flatnonzero((labels >= 0) & (lengths > 0))
    k = int(labels.max()) + 1
    member = sp.csr_matrix((1.0 / lengths[won], (labels[won], won)), shape=(k, X.shape[0]), dtype=np.float64)
    total = 0.0
    for start in range(0, k, 256):  # in parts: the sums are the largest thing here
        sums = member[start : start + 256] @ X
        total += np.sqrt(np.asarray(sums.multiply(sums).sum(axis=1))).sum()
    return float(total / X.shape[0])


def compile_kernels() -> None:
    """Everything once on a few rows, so that no measurement contains the compiler."""
    rng = np.random.default_rng(0)
    X = sp.random(300, 50, 0.2, format="csr", random_state=rng, dtype=np.float32)
    for init in ("k-means++", "k-means||", "random"):
        for options in ({"algorithm": "exact"}, {"algorithm": "sparse"}, {"algorithm": "wand", "features_kept": 5}):
            SphericalKMeans(4, init=init, max_iter=3, random_state=0, **options).fit(X).predict(X)


def seed_rows(X: sp.csr_matrix, k: int, init: str = "k-means++", seed: int = 0) -> sp.csr_matrix:
    """The same first centers for everybody."""
    from shoal.kmeans.blocks import Block
    from shoal.kmeans.rows import unit_rows
    from shoal.kmeans.seeding import first_centers

    rows = unit_rows(X)
    blocks = [Block(rows, np.ones(rows.n_rows))]
    return first_centers(blocks, k, init, np.random.default_rng(seed)).csr(rows)
