"""Suggestion by profiles: features observed, features rejected, and all others unknown (the paper's last section)::

r~_l ~ gamma_l prod_{d in S} mu_ld        p(x_d = 1 | S) = sum_l r~_l mu_ld
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.profiles import Profiles, means_of
from shoal.bernoulli.suggestion_kernels import score_observed, suggest_rows
from shoal.errors import UnknownFeature
from shoal.threads import ordered_map, row_blocks
from shoal.validation import check_features

BLOCK_ROWS = 4096
NEGLIGIBLE = 1e-4  # a cluster with less than this share of the largest responsibility is left out
LEAST_PART = 0.05  # of a probability, for a cluster to be named as a reason


def memberships(profiles: Profiles, observed: np.ndarray, rejected: np.ndarray) -> np.ndarray:
    """r~: how likely each cluster is, given features that are there, features that are not, and nothing of the rest."""
    scores = np.zeros(profiles.n_rows)
    score_observed(observed, rejected, profiles, profiles.means(), np.log(profiles.weights()), scores)
    shares = np.exp(scores - scores.max())
    shares[shares < NEGLIGIBLE] = 0.0
    return np.asarray(shares / shares.sum())


def suggested(
    profiles: Profiles, observed: sp.csr_matrix, rejected: sp.csr_matrix | None, n: int, n_threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The ``n`` likeliest other features of each row, -1 where there are fewer, and sum_l r~_l mu_ld of each."""
    rejected = sp.csr_matrix(observed.shape) if rejected is None else rejected
    features = np.full((observed.shape[0], min(n, profiles.n_features)), -1, dtype=np.int64)
    probabilities = np.zeros(features.shape)
    means, log_weights = profiles.means(), np.log(profiles.weights())
    used = profiles.n_entries
    above_default = means - profiles.default_means(profiles.cluster[:used], profiles.feature[:used])
    popular = np.argsort(-profiles.background, kind="stable")

    def one(block: tuple[int, int]) -> None:
        a, b = block
        suggest_rows(
            observed.indptr[a : b + 1], observed.indices, rejected.indptr[a : b + 1], rejected.indices, profiles,
            means, above_default, log_weights, popular, NEGLIGIBLE, features[a:b], probabilities[a:b],
        )  # fmt: skip

    list(ordered_map(one, row_blocks(observed.shape[0], BLOCK_ROWS), n_threads))
    return features, probabilities


def reasons_for(
    profiles: Profiles,
    features: np.ndarray,
    observed: np.ndarray,
    shares: np.ndarray,
    *,
    n_clusters: int = 3,
    n_features: int = 3,
) -> list[list[tuple[int, float, np.ndarray]]]:
    """For each suggested feature: rows of the model behind it, their parts of its probability, and the places in
    ``observed`` that led.

    The parts are the terms r~_l mu_ld of the number itself.
    """
    of_observed, of_features = means_of(profiles, observed), means_of(profiles, features)
    # How much likelier each observed feature makes a cluster than it was before any feature.
    pull = np.log(of_observed) - np.log(profiles.weights() @ of_observed)[None, :]
    parts = shares[:, None] * of_features
    parts /= parts.sum(axis=0)

    def reasons(part: np.ndarray) -> Iterator[tuple[int, float, np.ndarray]]:
        for number, row in enumerate(np.argsort(-part, kind="stable")[:n_clusters]):
            if part[row] < LEAST_PART and number:
                return
            led = np.argsort(-pull[row], kind="stable")[:n_features]
            yield int(row), float(part[row]), led[pull[row, led] > 0]

    return [list(reasons(part)) for part in parts.T]


# --- features by name -------------------------------------------------------------------------------------------------


def columns_of(what: str, features: Iterable[Any], n_features: int, vocabulary: Any, names: Any) -> np.ndarray:
    """Names or column numbers as column numbers, each once."""
    named, numbers = check_features(what, features, n_features)
    return np.unique(np.array(numbers + _find(named, vocabulary, names), dtype=np.int64))


def _find(wanted: list[str], vocabulary: Any, names: Any) -> list[int]:
    if not wanted:
        return []
    if vocabulary is None:
        known = {str(name): at for at, name in enumerate(names if names is not None else [])}
        places = [known.get(name, -1) for name in wanted]
    else:
        places = vocabulary.find(wanted).tolist()
    for name, place in zip(wanted, places, strict=True):
        if place < 0:
            near = list(vocabulary.near(name, 3)) if vocabulary is not None else []
            hint = f" Did you mean {', '.join(repr(str(one)) for one in near)}?" if near else ""
            source = "the vocabulary" if vocabulary is not None else "the model, which was fitted without names"
            raise UnknownFeature(f"{name!r} is not in {source}.{hint}")
    return [int(place) for place in places]


def one_row(columns: np.ndarray, n_features: int) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(columns.size), columns, np.array([0, columns.size])), shape=(1, n_features))
