"""``update``: from statistics to a model whose probabilities hold.

Penalty, weights and calibration are learned on a sample of the remembered rows with some of their entries hidden, and
for each row everything is as if that row had never been seen: counts and rows leave it out, the ridge leaves it out
exactly (:func:`shoal.suggestion.ridge._downdated`). The local ridge has no cheap way to forget one row; there the
sample is left out of the counts, and joins them once the weights are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.hidden_entries import Hidden, expected_hidden
from shoal.suggestion.calibration import fit_calibration
from shoal.suggestion.candidate_kernels import FACTOR, LOG_FACTOR
from shoal.suggestion.factors import Factors, fit_factors, no_factors
from shoal.suggestion.logistic import fit_logistic
from shoal.suggestion.model import Queries, SuggestionModel, empty_model, postings_of
from shoal.suggestion.ranking import best_of, predictors_of, ridge_lists, scores_of
from shoal.suggestion.ridge import Ridge, ridge_of, ridge_way
from shoal.suggestion.statistics import SuggestionStats, merge, without

PENALTIES = (3.0, 30.0, 300.0)
MOST_SCORED = 1000  # rows that choose the penalty
TOLERANCE = 0.7  # standard errors of the paired difference within which a larger penalty is taken
OTHER_PROTOCOLS = (0.7, 0.5, 0.3, 0.15, "one")  # each sample row is used twice: a third hidden, and one of these
GROWTH = 1.2  # weights are learned again when the rows have grown by this factor since
WEIGHT_PENALTY = 1.0
LIST_LENGTH = 10
LEAST_GAIN = 0.005  # mean of recall@10 and nDCG@10 that factors must add to be kept
FOLDS, FEW_ROWS, MANY_ROWS = 5, 4, 10  # of the factors; rows are few or many compared with the sample


class Sample(NamedTuple):
    """Rows with entries hidden."""

    rows: np.ndarray  # (n,) number of the remembered row
    queries: Queries
    whole: sp.csr_matrix  # the rows with nothing hidden


def update(model: SuggestionModel, stats: SuggestionStats) -> SuggestionModel:
    """The model after some more rows; ``model`` stays as it is.

    Penalty, weights and calibration are learned again whenever the rows have grown by a fifth since they were.

    Parameters
    ----------
    model : SuggestionModel
        The model, which is unchanged.
    stats : SuggestionStats
        Statistics of the new rows.
    """
    total = merge(model.stats, stats)
    if model.ridge is None or total.n_rows >= GROWTH * model.n_rows_learned:
        return learn(model._replace(stats=total))
    settings = model.settings
    way = ridge_way(total.n_rows, total.n_features, settings.ridge)
    ridge = ridge_of(total, model.penalty, way, settings.n_threads)
    factors = model.factors.widened(total.n_features)
    return model._replace(stats=total, postings=postings_of(total), way=way, ridge=ridge, factors=factors)


def learn(model: SuggestionModel) -> SuggestionModel:
    """Everything from the statistics: ridge weights and their penalty, the weights of the predictors, calibration."""
    settings, total = model.settings, model.stats
    model = empty_model(total, settings)
    if total.n_rows == 0 or total.row_features.size == 0:
        return model
    way = ridge_way(total.n_rows, total.n_features, settings.ridge)
    sample = draw_sample(total, settings.n_sample, way != "local", settings.seed)
    seen = total if way != "local" else without(total, np.unique(sample.rows))
    model = model._replace(stats=seen, postings=postings_of(seen), way=way)
    penalty, ridge = choose_penalty(model, sample)
    folds, factors = cross_fit(total, sample, settings.seed)
    model = fit_weights(model._replace(penalty=penalty, ridge=ridge, factors=factors), sample, folds)
    if way == "local":
        ridge = ridge_of(total, penalty, way, settings.n_threads)
        model = model._replace(stats=total, postings=postings_of(total), ridge=ridge)
    return model._replace(n_rows_learned=total.n_rows)


def draw_sample(stats: SuggestionStats, n_sample: int, exact: bool, seed: int) -> Sample:
    """Rows of at least two entries, each twice. Where rows cannot be forgotten exactly, at most a fifth of them."""
    rng = np.random.default_rng(seed)
    long_enough = np.flatnonzero(np.diff(stats.row_ptr) >= 2)
    most = n_sample if exact else min(n_sample, stats.n_rows // 5)
    chosen = np.sort(rng.permutation(long_enough)[:most])
    rows = np.concatenate([chosen, chosen])
    other = [OTHER_PROTOCOLS[k] for k in rng.integers(0, len(OTHER_PROTOCOLS), chosen.size)]
    protocols: list[Hidden] = [*["third"] * chosen.size, *other]
    given = []
    for row, protocol in zip(rows, protocols, strict=True):
        entries = rng.permutation(stats.row_features[stats.row_ptr[row] : stats.row_ptr[row + 1]])
        given.append(np.sort(entries[n_hidden(entries.size, protocol, rng) :]))
    ptr = np.append(0, np.cumsum([len(seen) for seen in given])).astype(np.int64)
    features = np.concatenate([*given, np.zeros(0, np.int32)]).astype(np.int32)
    sets = sp.csr_matrix((np.ones(features.size), features, ptr), shape=(rows.size, stats.n_features))
    own = rows if exact else np.full(rows.size, -1)
    log_hidden = _log_hidden(stats.lengths(), np.diff(ptr), protocols)
    n_folds = FOLDS if stats.n_rows < FEW_ROWS * chosen.size else 1
    fold = np.tile(np.arange(chosen.size) % n_folds, 2)
    return Sample(rows, Queries(sets, sp.csr_matrix(sets.shape), own, log_hidden, fold), stats.rows()[rows])


def _log_hidden(lengths: np.ndarray, n_given: np.ndarray, protocols: list[Hidden]) -> np.ndarray:
    """What each query is expected to miss, by the protocol that made it."""
    log_hidden = np.zeros(n_given.size)
    for protocol in ("third", *OTHER_PROTOCOLS):
        here = np.array([one == protocol for one in protocols], bool)
        log_hidden[here] = np.log(expected_hidden(np.arange(lengths.size), lengths, n_given[here], protocol))
    return log_hidden


def n_hidden(length: int, protocol: Hidden, rng: np.random.Generator) -> int:
    """How many of a row's entries to hide."""
    if protocol == "third":
        return max(1, length // 3)
    if protocol == "one":
        return 1
    return int(rng.binomial(length, float(protocol)))


def choose_penalty(model: SuggestionModel, sample: Sample) -> tuple[float, Ridge]:
    """The largest penalty that is not clearly worse than the best, by recall and nDCG of the ridge alone.

    From 3, 30 and 300 outwards by tens while the best is at an end, then three times the best.
    """
    n = min(MOST_SCORED, sample.rows.size // 2)
    queries = sample.queries.part(0, n)
    hidden = sample.whole[:n] - queries.given
    hidden.eliminate_zeros()
    hidden.sort_indices()
    tried: dict[float, np.ndarray] = {}
    ridges: dict[float, Ridge] = {}

    def attempt(penalty: float) -> None:
        ridges[penalty] = ridge_of(model.stats, penalty, model.way, model.settings.n_threads)
        lists = ridge_lists(ridges[penalty], model, queries, LIST_LENGTH, model.settings.n_threads)
        tried[penalty] = list_quality(hidden, lists)

    def best() -> float:
        return max(tried, key=lambda penalty: float(tried[penalty].mean()))

    if n == 0:
        return PENALTIES[1], ridge_of(model.stats, PENALTIES[1], model.way, model.settings.n_threads)
    for penalty in PENALTIES:
        attempt(penalty)
    for _ in range(3):
        if best() == max(tried):
            attempt(max(tried) * 10)
        elif best() == min(tried):
            attempt(min(tried) / 10)
        else:
            break
    attempt(best() * 3)
    chosen = _largest_close(tried, best())
    return chosen, ridges[chosen]


def _largest_close(tried: dict[float, np.ndarray], best: float) -> float:
    """The largest penalty whose mean loss against the best is within 0.7 of its standard error."""
    close = [best]
    for penalty, quality in tried.items():
        loss = tried[best] - quality
        if loss.mean() <= TOLERANCE * loss.std() / np.sqrt(loss.size):
            close.append(penalty)
    return max(close)


def list_quality(hidden: sp.csr_matrix, lists: np.ndarray) -> np.ndarray:
    """Mean of recall@10 and nDCG@10 of each list."""
    return quality_of_hits(entries_at(hidden, lists), np.diff(hidden.indptr))


def quality_of_hits(hit: np.ndarray, n_relevant: np.ndarray) -> np.ndarray:
    """Mean of recall and nDCG of each list, from which of its places are right."""
    gain = 1 / np.log2(np.arange(hit.shape[1]) + 2)
    ideal = np.cumsum(gain)[np.minimum(n_relevant, hit.shape[1]) - 1]
    return np.asarray((hit.sum(axis=1) / n_relevant + hit @ gain / ideal) / 2)


def entries_at(X: sp.csr_matrix, columns: np.ndarray) -> np.ndarray:
    """X[row, columns[row, k]], 0 where the column is -1."""
    entry = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)) * X.shape[1] + X.indices
    asked = np.arange(X.shape[0])[:, None] * X.shape[1] + columns
    place = np.searchsorted(entry, asked)
    found = (np.append(entry, -1)[place] == asked) & (columns >= 0)
    return np.asarray(np.where(found, np.append(X.data, 0.0)[place], 0.0))


def cross_fit(stats: SuggestionStats, sample: Sample, seed: int) -> tuple[list[Factors], Factors]:
    """Factors that have not seen the sample rows of each fold, and those that answer queries.

    Factors cannot forget a row exactly. Where rows are many, the sample is left out as a whole; where few, in five
    parts, so that the factors are learned from nearly as many rows as the final ones. The final ones see all rows,
    unless rows are so many that the sample does not matter.
    """
    rows = stats.rows()
    folds = []
    for fold in range(int(sample.queries.fold.max(initial=0)) + 1):
        kept = np.ones(stats.n_rows, bool)
        kept[sample.rows[sample.queries.fold == fold]] = False
        folds.append(fit_factors(rows[kept], seed + fold))
    many = stats.n_rows > MANY_ROWS * sample.rows.size
    return folds, folds[0] if many else fit_factors(rows, seed)


def fit_weights(model: SuggestionModel, sample: Sample, folds: Sequence[Factors]) -> SuggestionModel:
    """Weights of the predictors, then the calibration, both by penalized maximum likelihood on the sample.

    Factors are kept only where the lists of the sample are better with them; most sets of short rows need none.
    """
    queries, settings = sample.queries, model.settings
    if sample.rows.size == 0:
        return model._replace(factors=no_factors(model.stats.n_features))
    candidates, predictors = predictors_of(model, queries, settings.n_candidates, settings.n_threads, folds)
    some = (candidates >= 0) & ~queries.is_empty[:, None]
    if not some.any():
        return model._replace(factors=no_factors(model.stats.n_features))
    outcome = entries_at(sample.whole, candidates)
    n_hidden = np.diff(sample.whole.indptr) - np.diff(queries.given.indptr)
    without = predictors.copy()
    without[:, :, [FACTOR, LOG_FACTOR]] = 0.0  # their weights are then exactly 0
    plain = _weighted(model._replace(factors=no_factors(model.stats.n_features)), without, outcome, some)
    joined = _weighted(model, predictors, outcome, some)
    lists = [
        _listed_outcome(one, queries, candidates, numbers, outcome)
        for one, numbers in ((plain, without), (joined, predictors))
    ]
    asked = n_hidden > 0
    qualities = [quality_of_hits(hit[asked], n_hidden[asked]).mean() for hit in lists]
    better = qualities[1] - qualities[0] >= LEAST_GAIN
    return _calibrated(
        joined if better else plain, queries, candidates, predictors if better else without, outcome, some
    )


def _weighted(model: SuggestionModel, predictors: np.ndarray, outcome: np.ndarray, some: np.ndarray) -> SuggestionModel:
    return model._replace(weights=fit_logistic(predictors[some], outcome[some], penalty=WEIGHT_PENALTY))


def _listed_outcome(
    model: SuggestionModel, queries: Queries, candidates: np.ndarray, predictors: np.ndarray, outcome: np.ndarray
) -> np.ndarray:
    """Which of the ten best candidates of each query are hidden entries."""
    best = best_of(scores_of(model, queries, candidates, predictors), candidates, LIST_LENGTH)
    return np.take_along_axis(outcome * (candidates >= 0), best, 1)


def _calibrated(
    model: SuggestionModel, queries: Queries, candidates: np.ndarray, predictors: np.ndarray,
    outcome: np.ndarray, some: np.ndarray,
) -> SuggestionModel:  # fmt: skip
    """With the calibration curve learned on the ten best candidates of each query."""
    score = scores_of(model, queries, candidates, predictors)
    best = best_of(score, candidates, LIST_LENGTH)
    listed = np.take_along_axis(some, best, 1)

    def of_list(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.broadcast_to(values[:, None], best.shape)[listed])

    calibration = fit_calibration(
        np.take_along_axis(score, best, 1)[listed], of_list(queries.log_hidden), of_list(queries.log_given),
        np.take_along_axis(outcome, best, 1)[listed],
    )  # fmt: skip
    return model._replace(calibration=calibration)
