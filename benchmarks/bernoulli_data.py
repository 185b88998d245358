"""The real data sets of the Bernoulli benchmarks: binary rows, and owners where there are any."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from common import data_dir


class Rows(NamedTuple):
    """Binary rows with the names of their columns."""

    X: sp.csr_matrix
    names: list[str]
    owners: np.ndarray


def records(path: str) -> Iterator[dict[str, Any]]:
    """The records of a JSON-lines or tab-separated file."""
    file = data_dir() / path
    opened = lzma.open if path.endswith(".xz") else gzip.open
    with opened(file, "rt", encoding="utf-8") as lines:
        if ".jsonl" in path:
            yield from map(json.loads, lines)
        else:
            header = next(lines).rstrip("\n").split("\t")
            for line in lines:
                yield dict(zip(header, line.rstrip("\n").split("\t"), strict=False))


def as_matrix(sets: Iterable[tuple[str, Iterable[str]]], *, least_rows: int, least_length: int) -> Rows:
    """Owners and keyword sets as a matrix: keywords in at least so many rows, rows with at least so many of them."""
    owners, keywords = zip(*((owner, sorted(set(words))) for owner, words in sets), strict=True)
    counts: dict[str, int] = {}
    for words in keywords:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    names = sorted(word for word, count in counts.items() if count >= least_rows)
    column = {word: at for at, word in enumerate(names)}
    indices = [[column[word] for word in words if word in column] for words in keywords]
    kept = [at for at, words in enumerate(indices) if len(words) >= least_length]
    indptr = np.cumsum([0, *(len(indices[at]) for at in kept)])
    flat = np.array([feature for at in kept for feature in indices[at]], dtype=np.int64)
    X = sp.csr_matrix((np.ones(flat.size), flat, indptr), shape=(len(kept), len(names)))
    return Rows(X, names, np.array([owners[at] for at in kept]))


def debian(least_length: int = 4) -> Rows:
    packages = records("debian_packages/packages.jsonl.xz")
    sets = ((p["owner"] or "", p["tags"]) for p in packages if p.get("tags"))
    return as_matrix(sets, least_rows=5, least_length=least_length)


def cdnjs(least_length: int = 2) -> Rows:
    packages = records("cdnjs_keywords/packages.jsonl.gz")
    sets = ((p["owner"] or "", [word.lower() for word in p["keywords"]]) for p in packages if p.get("keywords"))
    return as_matrix(sets, least_rows=3, least_length=least_length)


def snapchat() -> Rows:
    ads = records("snapchat_political_ads/ads.jsonl.gz")
    sets = (
        (a["owner"] or "", [k for k in a["keywords"] if not k.startswith("zip:")]) for a in ads if a.get("keywords")
    )
    return as_matrix(sets, least_rows=3, least_length=2)


def ira() -> Rows:
    ads = records("ira_facebook_ads/ads.jsonl.gz")
    sets = ((a["owner"] or "", a["targets"]) for a in ads if a.get("targets"))
    return as_matrix(sets, least_rows=3, least_length=2)


def recipes() -> Rows:
    rows = records("recipes/recipes.tsv.gz")
    return as_matrix(((r["cuisine"], r["ingredients"].split()) for r in rows), least_rows=3, least_length=3)


def askubuntu() -> Rows:
    rows = records("askubuntu_tags/questions.tsv.xz")
    return as_matrix((("", r["tags"].split()) for r in rows), least_rows=5, least_length=3)


def split(n_rows: int, seed: int, share: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to train on and to test on."""
    order = np.random.default_rng(seed).permutation(n_rows)
    n_test = round(share * n_rows)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def hide_third(X: sp.csr_matrix, seed: int) -> tuple[sp.csr_matrix, list[np.ndarray]]:
    """Hide a third of each row's features, at least one; what stays, and what was hidden."""
    rng = np.random.default_rng(seed)
    stays, hidden = [], []
    for row in range(X.shape[0]):
        features = rng.permutation(X.indices[X.indptr[row] : X.indptr[row + 1]])
        n_hidden = max(1, features.size // 3)
        hidden.append(np.sort(features[:n_hidden]))
        stays.append(np.sort(features[n_hidden:]))
    indptr = np.cumsum([0, *(s.size for s in stays)])
    flat = np.concatenate(stays)
    return sp.csr_matrix((np.ones(flat.size), flat, indptr), shape=X.shape), hidden
