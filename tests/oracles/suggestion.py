"""Suggestion, slow and plainly right: dense matrices, general inverses, loops over rows, refits without a row."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np


def ridge_weights(X, penalty):
    """B with e = s @ B: column d holds -P_jd / P_dd, P the general inverse of X'X + penalty I."""
    P = np.linalg.inv(X.T @ X + penalty * np.eye(X.shape[1]))
    return -P / np.diag(P)


def local_ridge_weights(X, penalty, width):
    """Each column regressed on the `width` others of largest c_jd^2 / (c_j + penalty), by a general solver."""
    gram = X.T @ X
    count = np.diag(gram)
    B = np.zeros(gram.shape)
    for d in range(X.shape[1]):
        gain = {j: gram[j, d] ** 2 / (count[j] + penalty) for j in range(X.shape[1]) if j != d and gram[j, d] > 0}
        best = sorted(gain, key=lambda j: (-gain[j], j))[:width]
        if best:
            B[best, d] = np.linalg.solve(gram[np.ix_(best, best)] + penalty * np.eye(len(best)), gram[best, d])
    return B


def row_scores(X, given, refused=(), sharpness=1.0, absent=0.5, far=None):
    """For every feature, the weighted share of rows that have it, over the rows that share a given feature."""
    n_rows, count = X.shape[0], X.sum(axis=0)
    log_weight = {}
    for row, x in enumerate(X):
        shared = [j for j in given if x[j]]
        if shared:
            overlap = sum(math.log1p((n_rows + 1) / (count[j] + 0.5)) for j in shared)
            for j in refused:
                if x[j] and overlap > 0:
                    overlap = max(overlap - 1.0, 1e-12)
            log_weight[row] = sharpness * (overlap - absent * x.sum())
    if not log_weight:
        return np.zeros(X.shape[1])
    best = max(log_weight.values())
    weight = {row: math.exp(value - best) for row, value in log_weight.items()}
    return sum(w * X[row] for row, w in weight.items()) / sum(weight.values())


def factor_score(V, given, refused, feature, unseen=0.03, penalty=0.03):
    """z of one feature: the row factors solve the weighted least squares over every feature, written out."""
    weight = np.full(len(V), unseen)
    weight[[*given, *refused]] += 1
    A = sum(w * np.outer(v, v) for w, v in zip(weight, V, strict=True))
    A = A + penalty * (len(given) + unseen * len(V)) * np.eye(V.shape[1])
    return float(V[feature] @ np.linalg.solve(A, sum((V[j] for j in given), np.zeros(V.shape[1]))))


def predictors(X, given, feature, penalty, log_hidden, V, refused=()):
    """The predictors of one candidate, from a dense X in which the set asked about does not occur."""
    b = min((X[:, feature].sum() + 0.5) / (X.shape[0] + 1), 0.999)
    e = sum(ridge_weights(X, penalty)[j, feature] for j in given)
    log_given = math.log1p(len(given))
    log_ridge = math.log(max(e, 0) + 0.1 * b + 1e-4)
    z = factor_score(V, given, refused, feature)
    found = [math.log(b / (1 - b)), log_given, log_hidden, e, log_ridge, log_ridge * log_given]
    found += [z, math.log(max(z, 0) + 0.01)]
    for sharpness, absent in ((2.0, 0.5), (1.0, 0.5), (0.5, 0.3)):
        v = row_scores(X, given, refused, sharpness, absent)[feature]
        found += [v, math.log(v + 0.01 * b)]
    return np.array(found)


def expected_hidden(lengths, n_given, hidden):
    """Enumerate every row length and every way it could have shown `n_given` entries."""
    mass = hidden_mass = 0.0
    for m, n_rows in enumerate(lengths):
        if hidden == "third":
            seen = {m - max(1, m // 3): 1.0} if m > 0 else {}
        else:
            seen = {k: math.comb(m, k) * hidden ** (m - k) * (1 - hidden) ** k for k in range(m + 1)}
        chance = n_rows * seen.get(n_given, 0.0)
        mass += chance
        hidden_mass += chance * (m - n_given)
    return hidden_mass / mass if mass else None


def calibrated(knots, weights, score, log_hidden, log_given):
    """The calibration curve by small steps: the integral of its slope, which is kept at .1 or above."""

    def slope(t):
        bends = sum(bend for knot, bend in zip(knots, weights[1:4], strict=True) if t > knot)
        return max(weights[0] + bends + weights[5] * log_hidden + weights[7] * log_given, 0.1)

    at_knot = weights[8] + weights[4] * log_hidden + weights[6] * log_given
    at_knot += knots[0] * (weights[0] + weights[5] * log_hidden + weights[7] * log_given)
    edges = [knots[0], *[k for k in knots[1:] if k < score], score] if score > knots[0] else [score, knots[0]]
    sign = 1 if score > knots[0] else -1
    steps = [slope((low + high) / 2) * (high - low) for low, high in pairwise(edges)]
    return 1 / (1 + math.exp(-(at_knot + sign * sum(steps))))
