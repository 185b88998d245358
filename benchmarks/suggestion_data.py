"""The binary sets of the suggestion benchmarks, and what is hidden from their rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from bernoulli_data import as_matrix, records


def sets_of(rows, least_rows: int, least_length: int, most_rows: int | None = None) -> sp.csr_matrix:
    """A matrix of sets; with ``most_rows``, of a fixed random part of the rows that are long enough."""
    sets = [sorted(set(row)) for row in rows]
    if most_rows is not None and len(sets) > most_rows:
        long = [one for one in sets if len(one) >= least_length]
        sets = [long[at] for at in np.sort(np.random.default_rng(0).permutation(len(long))[:most_rows])]
    return as_matrix((("", one) for one in sets), least_rows=least_rows, least_length=least_length).X


def lastfm(by: str, what: str):
    """Sets of one column of the last.fm tag assignments for each value of another."""
    found: dict[str, set[str]] = {}
    for record in records("lastfm_tags/assignments.tsv.gz"):
        found.setdefault(record[by], set()).add(record[what])
    return found.values()


def ratings_like(n_rows: int = 2000, n_features: int = 3000, seed: int = 5):
    """Synthetic: 12 hidden tastes, popularity by Zipf, log-normal row lengths of median 50."""
    rng = np.random.default_rng(seed)
    popularity = -0.9 * np.log(np.arange(1, n_features + 1))
    loadings = rng.normal(size=(n_features, 12)) * 0.55
    for _ in range(n_rows):
        taste = rng.normal(size=12) + 1.2 * rng.standard_t(4, size=12) * (rng.random(12) < 0.3)
        length = int(np.clip(np.exp(rng.normal(np.log(50), 0.8)), 8, 600))
        key = popularity + loadings @ taste + rng.gumbel(size=n_features)
        yield [f"{at:05d}" for at in np.argpartition(-key, length)[:length]]


def tags_of(path: str, column: str):
    return (record[column].split() for record in records(path))


DEVELOPMENT: dict[str, Callable[[], sp.csr_matrix]] = {
    "debian": lambda: sets_of((p["tags"] for p in records("debian_packages/packages.jsonl.xz") if p.get("tags")), 5, 4),
    "cdnjs": lambda: sets_of(
        ([w.lower() for w in p["keywords"]] for p in records("cdnjs_keywords/packages.jsonl.gz") if p.get("keywords")),
        3,
        2,
    ),
    "recipes": lambda: sets_of(tags_of("recipes/recipes.tsv.gz", "ingredients"), 3, 3, 30000),
    "askubuntu": lambda: sets_of(tags_of("askubuntu_tags/questions.tsv.xz", "tags"), 5, 3, 30000),
    "plants": lambda: sets_of(tags_of("plants/plants.tsv.gz", "states"), 3, 3, 20000),
    "ira": lambda: sets_of((a["targets"] for a in records("ira_facebook_ads/ads.jsonl.gz") if a.get("targets")), 3, 2),
    "snapchat": lambda: sets_of(
        (
            [k for k in a["keywords"] if not k.startswith("zip:")]
            for a in records("snapchat_political_ads/ads.jsonl.gz")
            if a.get("keywords")
        ),
        3,
        2,
    ),
    "lastfm_artist_tags": lambda: sets_of(lastfm("artist_id", "tag_id"), 3, 3),
    "lastfm_user_tags": lambda: sets_of(lastfm("user_id", "tag_id"), 3, 5),
    "ratings_like": lambda: sets_of(ratings_like(), 3, 5),
}
# Looked at only when the design was finished.
ASIDE: dict[str, Callable[[], sp.csr_matrix]] = {
    "mathsx": lambda: sets_of(tags_of("mathsx_tags/questions.tsv.xz", "tags"), 5, 3, 30000),
    "lastfm_user_artists": lambda: sets_of(lastfm("user_id", "artist_id"), 3, 5),
}
SETS = DEVELOPMENT | ASIDE


def split(X: sp.csr_matrix, seed: int, most_test: int = 3000) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Training rows, and a fifth of the rows (at most 3,000) for testing."""
    order = np.random.default_rng(100 + seed).permutation(X.shape[0])
    n_test = X.shape[0] // 5
    return X[order[n_test:]], X[order[:n_test][:most_test]]


def hide(X: sp.csr_matrix, how: str | float, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """What is seen of each row, and what is hidden: "third", "one", or each entry seen with a probability."""
    rng = np.random.default_rng(seed)
    rows = X.tocsr().copy()
    rows.sort_indices()
    seen = np.zeros(rows.nnz, bool)
    for row in range(rows.shape[0]):
        start, end = rows.indptr[row], rows.indptr[row + 1]
        length = end - start
        if isinstance(how, str):
            n_hidden = 1 if how == "one" else max(1, length // 3)
            seen[start + rng.permutation(length)[n_hidden:]] = True
        else:
            seen[start:end] = rng.random(length) < how
    return tuple(_part(rows, kept) for kept in (seen, ~seen))


def _part(rows: sp.csr_matrix, kept: np.ndarray) -> sp.csr_matrix:
    matrix = sp.csr_matrix((kept.astype(float), rows.indices.copy(), rows.indptr.copy()), shape=rows.shape)
    matrix.eliminate_zeros()
    return matrix


def expected_calibration_error(probability: np.ndarray, hit: np.ndarray, bins: int = 10) -> float:
    """Mean distance of stated probability and share of hits over bins of equal mass."""
    order = np.argsort(probability, kind="stable")
    parts = [part for part in np.array_split(order, bins) if part.size]
    gaps = [abs(probability[part].mean() - hit[part].mean()) * part.size for part in parts]
    return float(sum(gaps) / probability.size)


def calibration_floor(probability: np.ndarray, draws: int = 20) -> float:
    """The mean error of a perfect model with these probabilities: hits drawn from them."""
    rng = np.random.default_rng(0)
    return float(
        np.mean(
            [expected_calibration_error(probability, rng.random(probability.size) < probability) for _ in range(draws)]
        )
    )
