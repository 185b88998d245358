"""Penalized logistic regression by Newton's method."""

from __future__ import annotations

import numpy as np

MAX_STEPS, SMALLEST_STEP = 50, 1e-3


def fit_logistic(predictors: np.ndarray, outcome: np.ndarray, *, penalty: float) -> np.ndarray:
    """Weights and, last, the intercept; ``penalty`` is on squared weights of standardized predictors.

    A step that does not lower the loss is halved: plain Newton steps diverge without a sign on data where few
    outcomes are 1.
    """
    mean, spread = predictors.mean(axis=0), predictors.std(axis=0) + 1e-6
    design = np.empty((predictors.shape[0], predictors.shape[1] + 1))
    design[:, 0] = 1.0
    design[:, 1:] = (predictors - mean) / spread
    penalties = np.full(design.shape[1], penalty)
    # The intercept is all but free; a trace of penalty keeps it finite where every outcome is the same.
    penalties[0] = 1e-3
    weights = np.zeros(design.shape[1])
    share = np.clip(outcome.mean(), 1e-6, 1 - 1e-6)
    weights[0] = np.log(share / (1 - share))
    current = _loss(design @ weights, outcome, weights, penalties)
    for _ in range(MAX_STEPS):
        before = current
        weights, current = _step(design, outcome, weights, penalties, current)
        if before - current < 1e-4 + 1e-7 * before:
            break
    slopes = weights[1:] / spread
    return np.append(slopes, weights[0] - slopes @ mean)


def _loss(score: np.ndarray, outcome: np.ndarray, weights: np.ndarray, penalties: np.ndarray) -> float:
    return float((np.logaddexp(0, score) - outcome * score).sum() + 0.5 * penalties @ weights**2)


def _step(
    design: np.ndarray, outcome: np.ndarray, weights: np.ndarray, penalties: np.ndarray, current: float
) -> tuple[np.ndarray, float]:
    """One Newton step, halved until the loss does not rise; the weights as they were if nothing helps."""
    probability = sigmoid(design @ weights)
    gradient = design.T @ (probability - outcome) + penalties * weights
    curvature = design.T @ (design * (probability * (1 - probability))[:, None]) + np.diag(penalties + 1e-9)
    direction = np.linalg.solve(curvature, gradient)
    size = 1.0
    while size >= SMALLEST_STEP:
        tried = weights - size * direction
        loss = _loss(design @ tried, outcome, tried, penalties)
        if loss <= current:
            return tried, loss
        size /= 2
    return weights, current


def sigmoid(score: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-score)), strictly between 0 and 1."""
    return np.asarray(1 / (1 + np.exp(-np.clip(score, -35, 35))))
