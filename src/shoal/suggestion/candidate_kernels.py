# mypy: ignore-errors
"""Kernels: what remembered rows say of each feature, which features are worth a score, and their predictors.

A query is a set of given features. ``own`` is the remembered row that the query was made from, left out of every count
(-1: none), so that weights are learned as if the row had never been seen.
"""

from __future__ import annotations

import numpy as np

from shoal.jit import inline_kernel, kernel

# A remembered row i of length m_i that shares the features S' with the query weighs
# exp(sharpness * (sum over S' of log(1 + 1 / b_j) - absent * m_i)), b_j the share of rows that have j: a rare shared
# feature is evidence, a feature that the query does not have is evidence against. Three sharpnesses; the sharp weight
# is the square of the middle one.
SHARP, MIDDLE, BROAD = range(3)
SHARPNESS = np.array([2.0, 1.0, 0.5])
ABSENT = np.array([0.5, 0.5, 0.3])
REFUSED = 1.0  # nats that a remembered row loses by each refused feature it has
FAR = 16.0  # nats below the best row at which a row is left out (in the middle sharpness; half in the broad one)

# The predictors of a candidate: logit of its base rate b, log(1 + given), log of the expected hidden entries, ridge
# score e, log(e+ + .1 b + 1e-4), that times log(1 + given); factor score z, log(z+ + .01); from ROWS on v and
# log(v + .01 b) for each sharpness.
N_WAYS = 3
POPULARITY, LENGTH, HIDDEN, RIDGE, LOG_RIDGE, LOG_RIDGE_LENGTH, FACTOR, LOG_FACTOR, ROWS = range(9)
N_PREDICTORS = ROWS + 2 * N_WAYS
RIDGE_FLOOR, ROW_FLOOR = 0.1, 0.01  # shares of b inside the logs
FACTOR_FLOOR, TINY = 0.01, 1e-4


@inline_kernel
def base_rate(count, n_rows, has, left_out):
    """Smoothed share of rows that have a feature, the left-out row not counted."""
    return min((count - has + 0.5) / (n_rows - left_out + 1.0), 0.999)


@kernel
def row_weights(
    given, refused, own, count, n_rows, row_ptr, row_features, posting_ptr, posting_rows, shared, near, weights
):  # fmt: skip
    """Weights of the remembered rows that share a given feature: rows in ``near``, one column of ``weights`` for each
    sharpness, each summing to 1. Returns how many; ``shared`` is all zero before and after."""
    left_out = 1.0 if own >= 0 else 0.0
    found = 0
    for feature in given:
        # The row left out has every given feature.
        gain = np.log1p((n_rows - left_out + 1.0) / (count[feature] - left_out + 0.5))
        for at in range(posting_ptr[feature], posting_ptr[feature + 1]):
            row = posting_rows[at]
            if shared[row] == 0.0:
                near[found] = row
                found += 1
            shared[row] += gain
    for feature in refused:
        for at in range(posting_ptr[feature], posting_ptr[feature + 1]):
            row = posting_rows[at]
            if shared[row] > 0.0:
                shared[row] = max(shared[row] - REFUSED, 1e-12)
    best_middle, best_broad = -np.inf, -np.inf
    for k in range(found):
        row = near[k]
        if row != own:
            length = row_ptr[row + 1] - row_ptr[row]
            best_middle = max(best_middle, shared[row] - ABSENT[MIDDLE] * length)
            best_broad = max(best_broad, SHARPNESS[BROAD] * (shared[row] - ABSENT[BROAD] * length))
    kept = 0
    for k in range(found):
        row = near[k]
        overlap = shared[row]
        shared[row] = 0.0
        if row == own:
            continue
        length = row_ptr[row + 1] - row_ptr[row]
        middle = overlap - ABSENT[MIDDLE] * length - best_middle
        broad = SHARPNESS[BROAD] * (overlap - ABSENT[BROAD] * length) - best_broad
        if middle < -FAR and broad < -0.5 * FAR:
            continue
        near[kept] = row
        weights[kept, MIDDLE] = np.exp(middle)
        weights[kept, SHARP] = weights[kept, MIDDLE] ** 2
        weights[kept, BROAD] = np.exp(broad)
        kept += 1
    for way in range(N_WAYS):
        total = 0.0
        for k in range(kept):
            total += weights[k, way]
        for k in range(kept):
            weights[k, way] /= total
    return kept


@kernel
def row_scores(near, n_near, weights, row_ptr, row_features, out):
    """The weighted share of near rows that have each feature, for each sharpness: ``out`` (3, n_features)."""
    out[:] = 0.0
    for k in range(n_near):
        row = near[k]
        for at in range(row_ptr[row], row_ptr[row + 1]):
            feature = row_features[at]
            for way in range(N_WAYS):
                out[way, feature] += weights[k, way]


@kernel
def best_open(score, closed, chosen):
    """The features with the largest scores that are not closed, unordered (a heap); returns how many."""
    most = chosen.size
    heap = np.empty(most)
    n = 0
    for feature in range(score.size):
        if closed[feature]:
            continue
        value = score[feature]
        if n < most:
            at = n
            n += 1
            while at > 0 and heap[(at - 1) // 2] > value:
                heap[at] = heap[(at - 1) // 2]
                chosen[at] = chosen[(at - 1) // 2]
                at = (at - 1) // 2
        elif value > heap[0]:
            at = 0
            while True:
                child = 2 * at + 1
                if child >= most:
                    break
                if child + 1 < most and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= value:
                    break
                heap[at] = heap[child]
                chosen[at] = chosen[child]
                at = child
        else:
            continue
        heap[at] = value
        chosen[at] = feature
    return n


@inline_kernel
def fill_predictors(ridge, factor, row_score, base, n_given, log_hidden, out):
    """What the score of one candidate is linear in."""
    out[POPULARITY] = np.log(base / (1.0 - base))
    out[LENGTH] = np.log1p(n_given)
    out[HIDDEN] = log_hidden
    out[RIDGE] = ridge
    out[LOG_RIDGE] = np.log(max(ridge, 0.0) + RIDGE_FLOOR * base + TINY)
    out[LOG_RIDGE_LENGTH] = out[LOG_RIDGE] * out[LENGTH]
    out[FACTOR] = factor
    out[LOG_FACTOR] = np.log(max(factor, 0.0) + FACTOR_FLOOR)
    for way in range(N_WAYS):
        out[ROWS + 2 * way] = row_score[way]
        out[ROWS + 2 * way + 1] = np.log(row_score[way] + ROW_FLOOR * base)


@kernel
def candidates_of(
    given_ptr, given, refused_ptr, refused, own_rows, log_hidden, ridge_scores, factor_scores, count, n_rows,
    row_ptr, row_features, posting_ptr, posting_rows, candidates, predictors,
):  # fmt: skip
    """For every query its candidates (-1: no more) and their predictors."""
    n_features = count.size
    closed, has = np.zeros(n_features, np.bool_), np.zeros(n_features)
    screening = np.zeros(n_features)
    by_rows, here = np.zeros((N_WAYS, n_features)), np.zeros(N_WAYS)
    shared = np.zeros(row_ptr.size - 1)
    near, weights = np.zeros(row_ptr.size - 1, np.int64), np.zeros((row_ptr.size - 1, N_WAYS))
    for query in range(given_ptr.size - 1):
        asked = given[given_ptr[query] : given_ptr[query + 1]]
        no = refused[refused_ptr[query] : refused_ptr[query + 1]]
        own = own_rows[query]
        left_out = 1.0 if own >= 0 else 0.0
        whole = row_features[row_ptr[own] : row_ptr[own + 1]] if own >= 0 else row_features[:0]
        has[whole] = 1.0
        closed[asked] = True
        closed[no] = True
        n_near = row_weights(
            asked, no, own, count, n_rows, row_ptr, row_features, posting_ptr, posting_rows, shared, near, weights
        )
        row_scores(near, n_near, weights, row_ptr, row_features, by_rows)
        ridge, factor = ridge_scores[query], factor_scores[query]
        for feature in range(n_features):
            base = base_rate(count[feature], n_rows, has[feature], left_out)
            explained = max(ridge[feature], 0.0) + RIDGE_FLOOR * base + TINY
            screening[feature] = explained * explained * (by_rows[BROAD, feature] + ROW_FLOOR * base)
            screening[feature] *= max(factor[feature], 0.0) + FACTOR_FLOOR
        n = best_open(screening, closed, candidates[query])
        candidates[query, n:] = -1
        for at in range(n):
            feature = candidates[query, at]
            base = base_rate(count[feature], n_rows, has[feature], left_out)
            here[:] = by_rows[:, feature]
            fill_predictors(
                ridge[feature], factor[feature], here, base, asked.size, log_hidden[query], predictors[query, at]
            )
        has[whole] = 0.0
        closed[asked] = False
        closed[no] = False


@kernel
def best_lists(scores, given_ptr, given, lists):
    """The features with the largest scores of every query, best first, those given left out."""
    closed = np.zeros(scores.shape[1], np.bool_)
    chosen = np.empty(lists.shape[1], np.int64)
    for query in range(given_ptr.size - 1):
        asked = given[given_ptr[query] : given_ptr[query + 1]]
        closed[asked] = True
        n = best_open(scores[query], closed, chosen)
        lists[query, :n] = chosen[:n][np.argsort(-scores[query][chosen[:n]])]
        closed[asked] = False


@kernel
def keep_rows_with(
    near, n_near, weights, features, count, n_rows, row_ptr, row_features, posting_ptr, posting_rows, has
):  # fmt: skip
    """Move the rows that have any of ``features`` to the front of ``near`` and ``weights``; ``has``: which of them."""
    place = np.full(count.size, -1)
    place[features] = np.arange(features.size)
    kept = 0
    for k in range(n_near):
        row = near[k]
        found = False
        for at in range(row_ptr[row], row_ptr[row + 1]):
            column = place[row_features[at]]
            if column >= 0:
                has[kept, column] = True
                found = True
        if found:
            near[kept] = row
            weights[kept] = weights[k]
            kept += 1
    return kept
