"""The sets on which one pass is compared with EM: real ones cut to 40,000 rows, and three synthetic ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from bernoulli_data import Rows, as_matrix, records

MOST_ROWS = 40_000


class Workload(NamedTuple):
    """Binary rows, their labels (all alike where there are none), and how many clusters to ask for."""

    rows: Callable[[], Rows]
    k: int
    aside: bool = False  # looked at only at the end


def cut(sets: Iterable[tuple[str, Iterable[str]]], *, least_rows: int = 5, least_length: int = 2) -> Rows:
    """In random order, at most 40,000 of them; then features that are still in enough rows."""
    kept = list(sets)
    kept = [kept[at] for at in np.random.default_rng(0).permutation(len(kept))]
    rows = as_matrix(kept, least_rows=least_rows, least_length=least_length)
    X, owners = rows.X[:MOST_ROWS], rows.owners[:MOST_ROWS]
    often = np.flatnonzero(np.asarray(X.sum(axis=0)).ravel() >= least_rows)
    return Rows(X[:, often].tocsr(), [rows.names[at] for at in often], owners)


def plants() -> Rows:
    sets = ((r["genus"], r["states"].split()) for r in records("plants/plants.tsv.gz"))
    return cut(sets, least_length=1)


def recipes() -> Rows:
    found = records("recipes/recipes.tsv.gz")
    return cut((r["region"], r["ingredients"].split()) for r in found if r["region"])


def tags(path: str) -> Rows:
    return cut((("", r["tags"].split()) for r in records(path)), least_rows=50)


def cdnjs() -> Rows:
    found = records("cdnjs_keywords/packages.jsonl.gz")
    return cut((r["owner"] or "", [word.lower() for word in r["keywords"] or []]) for r in found)


def ira() -> Rows:
    return cut((r["owner"] or "", r["targets"]) for r in records("ira_facebook_ads/ads.jsonl.gz"))


def snapchat() -> Rows:
    found = records("snapchat_political_ads/ads.jsonl.gz")
    sets = ((r["owner"] or "", [word for word in r["keywords"] if not word.startswith("zip:")]) for r in found)
    return cut(sets, least_length=1)


def titles() -> Rows:
    found = records("stackoverflow_titles/titles.tsv.gz")
    words = re.compile(r"[a-z][a-z0-9+#-]+")
    return cut(((r["label"], words.findall(r["text"].lower())) for r in found), least_rows=10)


def debian() -> Rows:
    return cut((r["section"], r["tags"]) for r in records("debian_packages/packages.jsonl.xz") if r["tags"])


def lastfm() -> Rows:
    of_artist: dict[str, set[str]] = {}
    for r in records("lastfm_tags/assignments.tsv.gz"):
        of_artist.setdefault(r["artist_id"], set()).add(r["tag_id"])
    return cut((("", tags) for tags in of_artist.values()), least_rows=10)


def synthetic(present: np.ndarray, labels: np.ndarray) -> Rows:
    """Rows and columns with anything in them."""
    rows, columns = np.flatnonzero(present.any(axis=1)), np.flatnonzero(present.any(axis=0))
    X = sp.csr_matrix(present[np.ix_(rows, columns)].astype(np.float64))
    return Rows(X, [str(at) for at in columns], labels[rows])


def paper(n: int = 10_000, k: int = 10) -> Rows:
    """The paper's recipe: weights from a uniform draw, every mean uniform in (0, 1)."""
    rng = np.random.default_rng(0)
    weights = rng.random(k)
    means = rng.random((k, 100))
    labels = rng.choice(k, n, p=weights / weights.sum())
    return synthetic(rng.random((n, 100)) < means[labels], labels)


def baskets(n: int = 20_000, d: int = 170, k: int = 12) -> Rows:
    """Weak structure: about five of 170 items by Zipf's law, from a profile common to all and the cluster's own."""
    rng = np.random.default_rng(0)
    common = 1 / (np.arange(d) + 8.0)
    common *= 4 / common.sum()
    means = common * np.exp(rng.normal(0, 1.0, (k, d)) * (rng.random((k, d)) < 0.35))
    means = np.clip(means * (4 / means.sum(axis=1, keepdims=True)) * rng.uniform(0.5, 1.6, (k, 1)), 0, 0.6)
    labels = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
    return synthetic(rng.random((n, d)) < means[labels], labels)


def onehot(n: int = 8_000, k: int = 6, n_columns: int = 22) -> Rows:
    """A table of categorical columns, one feature for each value; a third of the columns split clusters further."""
    rng = np.random.default_rng(0)
    levels = rng.integers(2, 10, n_columns)
    common = [rng.dirichlet(np.full(size, 0.4)) for size in levels]
    labels = rng.choice(k, n, p=rng.dirichlet(np.full(k, 4.0)))
    part, blocks = rng.integers(0, 3, n), []
    for column, size in enumerate(levels):
        means = [rng.dirichlet(np.full(size, 0.25)) if rng.random() < 0.5 else common[column] for _ in range(3 * k)]
        of = labels * 3 + (part if rng.random() < 0.35 else 0)
        value = (rng.random(n)[:, None] > np.array(means)[of].cumsum(axis=1)).sum(axis=1).clip(0, size - 1)
        blocks.append(np.eye(size)[value])
    return synthetic(np.hstack(blocks) > 0, labels)


SETS = {
    "paper": Workload(paper, 10),
    "baskets": Workload(baskets, 12),
    "onehot": Workload(onehot, 6),
    "plants": Workload(plants, 30),
    "recipes": Workload(recipes, 40),
    "askubuntu": Workload(lambda: tags("askubuntu_tags/questions.tsv.xz"), 50),
    "mathsx": Workload(lambda: tags("mathsx_tags/questions.tsv.xz"), 50),
    "cdnjs": Workload(cdnjs, 40),
    "ira": Workload(ira, 30),
    "snapchat": Workload(snapchat, 30),
    "titles": Workload(titles, 20),
    "debian": Workload(debian, 60, aside=True),
    "lastfm": Workload(lastfm, 50, aside=True),
}
