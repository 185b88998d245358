"""From the score of a suggestion to its probability: a rising curve, learned on suggestions whose outcome is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.base import storable
from shoal.suggestion.logistic import fit_logistic, sigmoid

KNOTS = (0.3, 0.6, 0.85)  # quantiles of the scores in lists of ten
LEAST_SLOPE = 0.1
PENALTY = 5.0


@storable
class Calibration(NamedTuple):
    """logit p as a linear spline in the score, turned by how much is hidden and how much is given.

    ``weights``: of the score, of what it exceeds each knot by, of log H, score x log H, log(1 + n), score x
    log(1 + n), and the intercept.
    """

    knots: np.ndarray  # (3,)
    weights: np.ndarray  # (9,)

    def probability(self, score: np.ndarray, log_hidden: np.ndarray, log_given: np.ndarray) -> np.ndarray:
        """Probability of each score; the arguments are broadcast together.

        Every slope is kept at or above 0.1, so the probability rises with the score and the order within a list stays.
        """
        knots, weights = self.knots, self.weights
        slope = weights[0] + weights[5] * log_hidden + weights[7] * log_given
        at_first = weights[-1] + weights[4] * log_hidden + weights[6] * log_given + knots[0] * slope
        logit = at_first + np.minimum(score - knots[0], 0) * np.maximum(slope, LEAST_SLOPE)
        ends = (*knots[1:], np.inf)
        for start, end, bend in zip(knots, ends, weights[1:4], strict=True):
            slope = slope + bend
            logit = logit + np.clip(score - start, 0, end - start) * np.maximum(slope, LEAST_SLOPE)
        return sigmoid(logit)


def uncalibrated() -> Calibration:
    """The score is the logit: for models with too few rows to learn from."""
    return Calibration(np.zeros(3), np.array([1.0, 0, 0, 0, 0, 0, 0, 0, 0]))


def fit_calibration(
    score: np.ndarray, log_hidden: np.ndarray, log_given: np.ndarray, outcome: np.ndarray
) -> Calibration:
    """By penalized maximum likelihood on the scores of lists whose outcome is known; all of one shape (n,)."""
    knots = np.quantile(score, KNOTS)
    excess = [np.maximum(score - knot, 0) for knot in knots]
    terms = [score, *excess, log_hidden, score * log_hidden, log_given, score * log_given]
    return Calibration(knots, fit_logistic(np.stack(terms, axis=1), outcome, penalty=PENALTY))
