"""Keyword suggestion: probabilities, and the reason for each."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.profiles import Profiles
from shoal.bernoulli.suggestion_kernels import score_observed, suggest_rows


def slot_means(profiles: Profiles) -> np.ndarray:
    """Means of the entries, in slot order, kept off 0 and 1."""
    return np.asarray(np.clip(profiles.alphas() / profiles.totals(), 1e-12, 1 - 1e-9))


def means_of(profiles: Profiles, features: np.ndarray) -> np.ndarray:
    """mu of every cluster for a few keywords, dense (n_rows, n)."""
    used = profiles.n_entries
    means = profiles.ratio[:, None] * profiles.background[features][None, :]
    means[:, profiles.shared[features]] = profiles.background[features][profiles.shared[features]]
    order = np.argsort(features, kind="stable")
    place = np.searchsorted(features, profiles.feature[:used], sorter=order)
    place = order[np.minimum(place, features.size - 1)] if features.size else place
    hit = features[place] == profiles.feature[:used] if features.size else np.zeros(used, dtype=bool)
    means[profiles.cluster[:used][hit], place[hit]] = slot_means(profiles)[hit]
    return np.asarray(np.clip(means, 1e-12, 1 - 1e-9))


def memberships(profiles: Profiles, observed: np.ndarray, rejected: np.ndarray) -> np.ndarray:
    """r~: how likely each cluster is, given keywords that are there, keywords that are not, and nothing of the rest."""
    scores = np.zeros(profiles.n_rows)
    score_observed(observed, rejected, profiles, slot_means(profiles), np.log(profiles.weights()), scores)
    shares = np.exp(scores - scores.max())
    return np.asarray(shares / shares.sum())


def suggest_many(
    profiles: Profiles, observed: sp.csr_matrix, rejected: sp.csr_matrix | None, n: int, *, negligible: float = 1e-4
) -> tuple[np.ndarray, np.ndarray]:
    """The ``n`` likeliest other keywords of each row, -1 where there are fewer, and their probabilities."""
    if rejected is None:
        rejected = sp.csr_matrix(observed.shape)
    features = np.zeros((observed.shape[0], min(n, profiles.n_features)), dtype=np.int64)
    probabilities = np.zeros(features.shape)
    suggest_rows(
        observed.indptr, observed.indices, rejected.indptr, rejected.indices, profiles, slot_means(profiles),
        np.log(profiles.weights()), np.argsort(-profiles.background, kind="stable"), negligible,
        features, probabilities,
    )  # fmt: skip
    return features, probabilities


def reasons_for(
    profiles: Profiles,
    feature: int,
    observed: np.ndarray,
    shares: np.ndarray,
    *,
    n_clusters: int = 3,
    n_keywords: int = 3,
) -> list[tuple[int, float, np.ndarray]]:
    """Rows behind a suggestion, their parts of its probability, and the places in ``observed`` that led there."""
    means = means_of(profiles, np.append(observed, feature))
    parts = shares * means[:, -1]
    parts = parts / parts.sum()
    weights = profiles.weights()
    # How much likelier the keyword makes this cluster than it was before any keyword.
    pull = np.log(means[:, :-1]) - np.log(weights @ means[:, :-1])[None, :]
    reasons: list[tuple[int, float, np.ndarray]] = []
    for row in np.argsort(-parts, kind="stable")[:n_clusters]:
        if parts[row] < 0.05 and reasons:
            break
        led = np.argsort(-pull[row], kind="stable")[:n_keywords]
        reasons.append((int(row), float(parts[row]), led[pull[row, led] > 0]))
    return reasons
