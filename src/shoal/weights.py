"""Row weights of any size, brought to a range in which sums and squares neither overflow nor vanish."""

from __future__ import annotations

import numpy as np

from shoal.errors import BadInput

MOST_REPETITIONS = 1e15  # a larger sum of weights would no longer change when 1 is added


def scaled_weights(weights: np.ndarray, masses: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Weights divided by a power of two, which is exact, so that the largest (or the largest mass) is about 1.

    >>> scaled_weights(np.array([3e300, 1e300]))[0].round(3).tolist()
    [1.12, 0.373]
    >>> scaled_weights(np.zeros(2))
    (array([0., 0.]), 1.0)
    """
    with np.errstate(over="ignore"):
        total = float(weights.sum()) + (float(masses.sum()) if masses is not None else 0.0)
    if not np.isfinite(total):
        raise BadInput("the sample weights add up to more than a number can hold; divide them all by the largest.")
    largest = max(float(weights.max(initial=0.0)), float(masses.max(initial=0.0)) if masses is not None else 0.0)
    unit = float(2.0 ** np.floor(np.log2(largest))) if largest > 0 else 1.0
    return weights / unit, unit


def repetitions(weights: np.ndarray) -> np.ndarray:
    """Weights that count how often a row came; their sum must stay countable."""
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total > MOST_REPETITIONS:
        raise BadInput(
            f"the sample weights add up to {total:g}; a weight is how often a row came, and "
            f"{MOST_REPETITIONS:g} is the most that can be counted. Divide them all by the largest."
        )
    return weights


def positive_repetitions(weights: np.ndarray) -> np.ndarray:
    """As :func:`repetitions`; all zero would leave nothing to learn."""
    if weights.size and not weights.any():
        raise BadInput("every sample_weight is zero, so there is nothing to learn; give some row a positive weight.")
    return repetitions(weights)
