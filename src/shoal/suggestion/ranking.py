"""From sets to candidates, scores and probabilities, in blocks on threads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.suggestion.candidate_kernels import N_PREDICTORS, POPULARITY, best_lists, candidates_of
from shoal.suggestion.factors import Factors
from shoal.suggestion.logistic import sigmoid
from shoal.suggestion.model import Queries, SuggestionModel, counts_of
from shoal.suggestion.ridge import LocalRidge, Ridge
from shoal.threads import ordered_map, row_blocks

N_COMMON = 10  # features that an empty set is completed by
BLOCK_CELLS = 2_000_000  # queries x features scored at once on one thread


def blocks_of(n_queries: int, n_features: int) -> list[tuple[int, int]]:
    """Ranges of queries; they depend on the data alone, never on the number of threads."""
    return row_blocks(n_queries, max(16, BLOCK_CELLS // max(n_features, 1)))


def ridge_scores(ridge: Ridge | None, model: SuggestionModel, queries: Queries) -> np.ndarray:
    """e of every feature; rows that queries were made from are forgotten."""
    n_features = model.stats.n_features
    if ridge is None:
        return np.zeros((queries.given.shape[0], n_features))
    if isinstance(ridge, LocalRidge) or not (queries.own >= 0).all():
        return ridge.scores(model.stats, queries.given)
    return ridge.scores_without(model.stats, queries.given, queries.own)


def factor_scores(folds: Sequence[Factors], queries: Queries) -> np.ndarray:
    """z of every feature, by the factors that have not seen the row."""
    scores = np.zeros(queries.given.shape)
    for fold, factors in enumerate(folds):
        here = np.flatnonzero(queries.fold == fold)
        scores[here] = factors.scores(queries.given[here], queries.refused[here])
    return scores


def predictors_of(
    model: SuggestionModel,
    queries: Queries,
    n_candidates: int,
    n_threads: int | None = None,
    folds: Sequence[Factors] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Candidates (n, n_candidates), -1 where there are no more, and predictors (n, n_candidates, N_PREDICTORS).

    ``folds``: the factors to use for queries of each fold; none: those of the model.
    """
    n_queries, n_features = queries.given.shape
    n_candidates = min(n_candidates, n_features)

    def run(block: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        some = queries.part(*block)
        n = some.given.shape[0]
        candidates = np.full((n, n_candidates), -1, np.int64)
        predictors = np.zeros((n, n_candidates, N_PREDICTORS))
        candidates_of(
            some.given.indptr.astype(np.int64), some.given.indices.astype(np.int32),
            some.refused.indptr.astype(np.int64), some.refused.indices.astype(np.int32),
            some.own, some.log_hidden, ridge_scores(model.ridge, model, some),
            factor_scores(folds or (model.factors,), some), *counts_of(model), candidates, predictors,
        )  # fmt: skip
        return candidates, predictors

    parts = list(ordered_map(run, blocks_of(n_queries, n_features), n_threads))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def scores_of(model: SuggestionModel, queries: Queries, candidates: np.ndarray, predictors: np.ndarray) -> np.ndarray:
    """The linear score of every candidate; -inf where there is none. With nothing given, popularity decides alone."""
    score = predictors @ model.weights[:-1] + model.weights[-1]
    score = np.where(queries.is_empty[:, None], predictors[:, :, POPULARITY], score)
    return np.where(candidates >= 0, score, -np.inf)


def probabilities_of(model: SuggestionModel, queries: Queries, score: np.ndarray) -> np.ndarray:
    """The probability of each score, (n_queries, n).

    With nothing given, the base rates sum to the mean length of a row; their odds are scaled to sum to about the
    number of hidden entries.
    """
    log_hidden = queries.log_hidden[:, None]
    calibrated = model.calibration.probability(score, log_hidden, queries.log_given[:, None])
    by_popularity = sigmoid(score + log_hidden - np.log(max(model.stats.mean_length, 1e-6)))
    return np.where(queries.is_empty[:, None], by_popularity, calibrated)


def hidden_of_empty_sets(model: SuggestionModel, share: float) -> float:
    """What stands for the number of hidden entries where nothing is seen and each entry is hidden with this chance.

    A row of m entries shows nothing with probability share^m. Such rows are short, and may hardly have what is common
    in all rows: this is the mean length of a row times how much of the common features they have, relative to all.
    """
    stats, postings = model.stats, model.postings
    chance = share ** np.diff(stats.row_ptr)
    common = np.argsort(-stats.frequency, kind="stable")[:N_COMMON]
    theirs = sum(chance[postings.rows[postings.ptr[d] : postings.ptr[d + 1]]].sum() for d in common) / chance.sum()
    return float(stats.mean_length * theirs * stats.n_rows / max(float(stats.frequency[common].sum()), 1.0))


def best_of(score: np.ndarray, candidates: np.ndarray, n: int) -> np.ndarray:
    """Places of the ``n`` largest scores of each row, best first; ties go to the smaller column number."""
    order = np.lexsort((candidates, -score), axis=1)
    return order[:, :n]


def ranked(
    model: SuggestionModel, queries: Queries, n: int, n_threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The ``n`` best features of each query and their probabilities, both (n_queries, n); -1 and 0 where none."""
    n_queries = queries.given.shape[0]
    features, probabilities = np.full((n_queries, n), -1, np.int64), np.zeros((n_queries, n))
    if n_queries == 0 or queries.given.shape[1] == 0:
        return features, probabilities
    candidates, predictors = predictors_of(model, queries, max(n, model.settings.n_candidates), n_threads)
    score = scores_of(model, queries, candidates, predictors)
    best = best_of(score, candidates, n)
    chosen, at = np.take_along_axis(candidates, best, 1), np.take_along_axis(score, best, 1)
    some = chosen >= 0
    probability = probabilities_of(model, queries, np.where(some, at, 0))
    features[:, : chosen.shape[1]] = chosen
    probabilities[:, : chosen.shape[1]] = np.where(some, probability, 0)
    return features, probabilities


def ridge_lists(
    ridge: Ridge, model: SuggestionModel, queries: Queries, n: int, n_threads: int | None = None
) -> np.ndarray:
    """The ``n`` best features by the ridge alone."""

    def run(block: tuple[int, int]) -> np.ndarray:
        some = queries.part(*block)
        lists = np.full((some.given.shape[0], n), -1, np.int64)
        best_lists(
            ridge_scores(ridge, model, some), some.given.indptr.astype(np.int64),
            some.given.indices.astype(np.int32), lists,
        )  # fmt: skip
        return lists

    return np.concatenate(list(ordered_map(run, blocks_of(*queries.given.shape), n_threads)))
