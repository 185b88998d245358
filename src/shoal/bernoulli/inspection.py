"""What a fitted model knows of its clusters, and rows drawn from it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.stats import beta as beta_distribution

from shoal.base import TopFeatures
from shoal.bernoulli.profiles import Profiles


def top_features(profiles: Profiles, row: int, n: int, by: str, level: float) -> TopFeatures:
    """The entries of a cluster, by the effective number of rows that have the feature, or by its mean."""
    slots = np.flatnonzero(profiles.cluster[: profiles.n_entries] == row)
    alpha, beta = profiles.alphas(slots), profiles.betas(slots)
    values = alpha if by == "alpha" else alpha / (alpha + beta)
    best = np.argsort(-values, kind="stable")[:n]
    a, b = np.maximum(alpha[best], 1e-9), np.maximum(beta[best], 1e-9)
    return TopFeatures(
        features=profiles.feature[slots[best]].astype(np.int64),
        values=values[best],
        meaning="effective rows" if by == "alpha" else "share of rows",
        low=beta_distribution.ppf((1 - level) / 2, a, b),
        high=beta_distribution.ppf((1 + level) / 2, a, b),
        bounded="share of rows" if by == "alpha" else "",
    )


def sampled(profiles: Profiles, n: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows drawn from the model, and the row of the model each was drawn from."""
    rows = rng.choice(profiles.n_rows, size=n, p=profiles.weights())
    parts = [_drawn(profiles, int(row), np.flatnonzero(rows == row), rng) for row in np.unique(rows)]
    at = np.concatenate([spot for spot, _ in parts]) if parts else np.zeros(0, dtype=np.int64)
    features = np.concatenate([feature for _, feature in parts]) if parts else np.zeros(0, dtype=np.int64)
    X = sp.csr_matrix((np.ones(at.size), (at, features)), shape=(n, profiles.n_features))
    X.sum_duplicates()
    X.data[:] = 1.0
    return X, rows


def _drawn(profiles: Profiles, row: int, spots: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw the rows at ``spots`` from one cluster: (row, feature) pairs."""
    slots = np.flatnonzero(profiles.cluster[: profiles.n_entries] == row)
    own, means = profiles.feature[slots].astype(np.int64), profiles.means(slots)
    rest = profiles.default_means(np.array(row), np.arange(profiles.n_features))
    rest[own] = 0.0
    common = np.flatnonzero(rest > 0.01)
    own, means = np.concatenate([own, common]), np.concatenate([means, rest[common]])
    rest[common] = 0.0
    at, feature = [], []
    for spot in spots:  # one row at a time: memory stays that of one profile
        hit = own[rng.random(means.size) < means]
        at.append(np.full(hit.size, spot))
        feature.append(hit)
    total = rest.sum()
    if total > 0:  # the others are many and rare: their number is Poisson, and each is drawn by its mean
        n_each = rng.poisson(total, size=spots.size)
        ends = np.cumsum(rest) / total
        at.append(np.repeat(spots, n_each))
        feature.append(np.minimum(np.searchsorted(ends, rng.random(n_each.sum())), rest.size - 1))
    return np.concatenate(at), np.concatenate(feature)
