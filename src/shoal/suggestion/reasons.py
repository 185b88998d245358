"""Why a feature was suggested: parts that add up to the number stated.

In the score every predictor is a sum over given features (the ridge) or over remembered rows, and what is bent by a
logarithm is shared out in proportion to the terms of that sum. So the score is a base, which holds whatever is given,
plus one part for each given feature and each remembered row. The probability is one function C of the score. Along
the straight path from base to score every part is multiplied by (C(score) - C(base)) / (score - base): integrated
gradients (Sundararajan et al., 2017), which do not depend on an order and add up exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.suggestion.candidate_kernels import (
    FACTOR,
    FACTOR_FLOOR,
    HIDDEN,
    LENGTH,
    LOG_FACTOR,
    LOG_RIDGE,
    LOG_RIDGE_LENGTH,
    N_WAYS,
    POPULARITY,
    RIDGE,
    RIDGE_FLOOR,
    ROW_FLOOR,
    ROWS,
    TINY,
    keep_rows_with,
    row_weights,
)
from shoal.suggestion.model import Queries, SuggestionModel, counts_of
from shoal.suggestion.ranking import probabilities_of
from shoal.suggestion_records import Reason, Suggestion

N_NAMED = 3  # remembered rows named in a reason


class Explanation(NamedTuple):
    """Parts of the probabilities of k features for one set: base + of_given + of_rows adds up to each."""

    probability: np.ndarray  # (k,)
    base: np.ndarray  # (k,) before anything given or remembered is looked at
    of_given: np.ndarray  # (n_given, k)
    rows: np.ndarray  # (n_rows,) remembered rows with a part
    of_rows: np.ndarray  # (n_rows, k)


def explain(model: SuggestionModel, query: Queries, features: np.ndarray) -> Explanation:
    """Parts of the probability of each feature for a single query."""
    base = base_rates(model, features)
    at_base = _base_score(model, query, base)
    of_given = _ridge_parts(model, query, features, base) + _factor_parts(model, query, features)
    rows, of_rows = _row_parts(model, query, features, base)
    score = at_base + of_given.sum(axis=0) + of_rows.sum(axis=0)
    low, high = (probabilities_of(model, query, value[None])[0] for value in (at_base, score))
    distance = score - at_base
    moved = np.abs(distance) > 1e-12
    scale = np.where(moved, (high - low) / np.where(moved, distance, 1.0), 0.0)
    return Explanation(high, low, of_given * scale, rows, of_rows * scale)


def base_rates(model: SuggestionModel, features: np.ndarray) -> np.ndarray:
    """Smoothed share of rows that have each feature."""
    return np.minimum((model.stats.frequency[features] + 0.5) / (model.stats.n_rows + 1.0), 0.999)


def _slope_of_log(model: SuggestionModel, query: Queries) -> float:
    """The weight of log(e+ + ...) for this set."""
    return float(model.weights[LOG_RIDGE] + model.weights[LOG_RIDGE_LENGTH] * query.log_given[0])


def _base_score(model: SuggestionModel, query: Queries, base: np.ndarray) -> np.ndarray:
    """The score if nothing were explained by the ridge and no remembered row had the feature."""
    weights = model.weights
    if query.is_empty[0]:
        return np.log(base / (1 - base))
    score = weights[-1] + weights[POPULARITY] * np.log(base / (1 - base))
    score = score + weights[LENGTH] * query.log_given[0] + weights[HIDDEN] * query.log_hidden[0]
    score = score + _slope_of_log(model, query) * np.log(RIDGE_FLOOR * base + TINY)
    score = score + weights[LOG_FACTOR] * np.log(FACTOR_FLOOR)
    logs_of_rows = weights[ROWS + 1 : ROWS + 2 * N_WAYS : 2].sum()
    return np.asarray(score + logs_of_rows * np.log(ROW_FLOOR * base))


def _ridge_parts(model: SuggestionModel, query: Queries, features: np.ndarray, base: np.ndarray) -> np.ndarray:
    """What each given feature adds to each score, through the ridge."""
    given = query.given.indices
    if model.ridge is None or given.size == 0:
        return np.zeros((given.size, features.size))
    terms = model.ridge.weights_to(model.stats, given, features)
    total = terms.sum(axis=0)
    floor = RIDGE_FLOOR * base + TINY
    positive = total > 0
    bent = np.where(positive, np.log1p(np.maximum(total, 0) / floor), 0.0)
    # The logarithm is shared out in proportion to the terms.
    per_term = np.where(positive, bent / np.where(positive, total, 1.0), 0.0)
    return np.asarray(terms * (model.weights[RIDGE] + _slope_of_log(model, query) * per_term))


def _factor_parts(model: SuggestionModel, query: Queries, features: np.ndarray) -> np.ndarray:
    """What each given feature adds to each score, through the factors."""
    given = query.given.indices
    terms = model.factors.weights_to(given, query.refused.indices, features)
    total = terms.sum(axis=0)
    positive = total > 0
    bent = np.where(positive, np.log1p(np.maximum(total, 0) / FACTOR_FLOOR), 0.0)
    per_term = np.where(positive, bent / np.where(positive, total, 1.0), 0.0)
    return np.asarray(terms * (model.weights[FACTOR] + model.weights[LOG_FACTOR] * per_term))


def _row_parts(
    model: SuggestionModel, query: Queries, features: np.ndarray, base: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What each remembered row adds to each score; rows without any of the features are left out."""
    counts = counts_of(model)
    n_rows = model.stats.n_rows
    near, weights = np.zeros(n_rows, np.int64), np.zeros((n_rows, N_WAYS))
    given, refused = query.given.indices.astype(np.int32), query.refused.indices.astype(np.int32)
    n_near = row_weights(given, refused, -1, *counts, np.zeros(n_rows), near, weights)
    has = np.zeros((n_near, features.size), np.bool_)
    n = keep_rows_with(near, n_near, weights, features, *counts, has)
    near, weights, has = near[:n].copy(), weights[:n], has[:n]
    parts = np.zeros(has.shape)
    for way in range(N_WAYS):
        terms = weights[:, way, None] * has
        total = terms.sum(axis=0)
        positive = total > 0
        bent = np.where(positive, np.log1p(total / (ROW_FLOOR * base)), 0.0)
        per_term = np.where(positive, bent / np.where(positive, total, 1.0), 0.0)
        parts += terms * (model.weights[ROWS + 2 * way] + model.weights[ROWS + 2 * way + 1] * per_term)
    return near, parts


class RowGroups(NamedTuple):
    """What the remembered rows are called, and the cluster of each; None where there is no such thing."""

    ids: np.ndarray | None
    clusters: np.ndarray | None
    cluster_names: dict[int, str]

    def name_rows(self, rows: np.ndarray) -> list[str]:
        return [f"row {row}" if self.ids is None else str(self.ids[row]) for row in rows]

    def name_cluster(self, cluster: int) -> str:
        return self.cluster_names.get(cluster, "unassigned" if cluster == -1 else f"cluster {cluster}")


def suggestions_of(
    features: np.ndarray, names: list[str], given_names: list[str], explanation: Explanation, groups: RowGroups
) -> list[Suggestion]:
    """Suggestions with reasons: clusters or rows and given features, the largest share first, and the base last."""
    found = []
    for at, feature in enumerate(features):
        probability = float(explanation.probability[at])
        reasons = _given_reasons(explanation.of_given[:, at], given_names, probability)
        reasons += _row_reasons(explanation.rows, explanation.of_rows[:, at], groups, probability)
        reasons.sort(key=lambda reason: -reason.share)
        base = Reason(None, "how common it is", float(explanation.base[at]) / probability, [], "base")
        found.append(Suggestion(int(feature), names[at], probability, [*reasons, base]))
    return found


def _given_reasons(parts: np.ndarray, names: list[str], probability: float) -> list[Reason]:
    return [
        Reason(None, name, float(part) / probability, [name], "feature")
        for name, part in zip(names, parts, strict=True)
        if part != 0
    ]


def _row_reasons(rows: np.ndarray, parts: np.ndarray, groups: RowGroups, probability: float) -> list[Reason]:
    """The parts of the remembered rows, together or by cluster."""
    some = np.flatnonzero(parts)
    if not some.size:
        return []
    rows, parts = rows[some], parts[some]
    if groups.clusters is None:
        return [Reason(None, "similar rows", float(parts.sum()) / probability, _closest(rows, parts, groups), "rows")]
    reasons = []
    for cluster in np.unique(groups.clusters[rows]):
        here = groups.clusters[rows] == cluster
        because = _closest(rows[here], parts[here], groups)
        share = float(parts[here].sum()) / probability
        reasons.append(Reason(int(cluster), groups.name_cluster(int(cluster)), share, because))
    return reasons


def _closest(rows: np.ndarray, parts: np.ndarray, groups: RowGroups) -> list[str]:
    """The rows with the largest parts."""
    return groups.name_rows(rows[np.argsort(-np.abs(parts), kind="stable")[:N_NAMED]])
