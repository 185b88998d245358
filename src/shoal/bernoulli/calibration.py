"""What a suggestion's probability means: learned on entries that were held out from a sample of rows.

``sum_l r~_l mu_ld`` takes the features of a cluster as independent, so it is too sure, and it does not know how much of
a row is hidden. The calibrated probability is a logistic function of its log-odds t, which rises with t, of the number
n of given features, and of the expected number H of hidden ones. With nothing to learn from, it is the number itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from shoal.base import storable
from shoal.bernoulli.adf import Block
from shoal.bernoulli.profiles import Profiles
from shoal.bernoulli.suggestion import suggested
from shoal.hidden_entries import Hidden, check_hidden, expected_hidden

MOST_ROWS = 400  # of the sample; each is used twice
N_SUGGESTED = 10
LEAST_SUGGESTIONS = 50  # from which there is something to learn
SHARES_HIDDEN = (0.7, 0.5, 0.3, 0.15)
QUANTILES = (0.3, 0.6, 0.85)  # of t, where the slope may change
LEAST_SLOPE = 0.1  # keeps the order of suggestions
LEAST_ODDS = 1e-9
PENALTY = 1.0  # on standardized features
MOST_STEPS = 50


@storable
class Calibration(NamedTuple):
    """From log-odds, given features and hidden ones to a probability."""

    knots: np.ndarray  # (3,) log-odds at which the slope changes
    weights: np.ndarray  # (9,) of: 1, t, three hinges, log H, t log H, log(1 + n), t log(1 + n); added to t itself
    lengths: np.ndarray  # (n,) lengths of rows
    shares: np.ndarray  # (n,) how many rows have them

    def probability(self, raw: np.ndarray, n_given: np.ndarray, hidden: Hidden = "third") -> np.ndarray:
        """Probabilities of suggestions, (n_rows, n), for rows of which ``n_given`` features are known."""
        t = logit(np.clip(raw, LEAST_ODDS, 1 - LEAST_ODDS))
        log_hidden = np.log(self.expected_hidden(n_given, hidden))[:, None]
        log_given = np.log1p(n_given)[:, None]
        return np.asarray(expit(self._rising(t, log_hidden, log_given)))

    def _rising(self, t: np.ndarray, log_hidden: np.ndarray, log_given: np.ndarray) -> np.ndarray:
        """The linear predictor from its value at the middle knot on, with no slope below :data:`LEAST_SLOPE`."""
        w, (low, middle, high) = self.weights, self.knots
        first = 1.0 + w[1] + w[6] * log_hidden + w[8] * log_given
        slopes = [np.maximum(first + part, LEAST_SLOPE) for part in np.cumsum([0.0, w[2], w[3], w[4]])]
        at_middle = first * middle + w[0] + w[2] * (middle - low) + w[5] * log_hidden + w[7] * log_given
        below = slopes[1] * (np.clip(t, low, middle) - middle) + slopes[0] * (np.minimum(t, low) - low)
        above = slopes[2] * (np.clip(t, middle, high) - middle) + slopes[3] * (np.maximum(t, high) - high)
        return np.asarray(at_middle + np.where(t < middle, below, above))

    def expected_hidden(self, n_given: np.ndarray, hidden: Hidden = "third") -> np.ndarray:
        """Expected number of hidden features of rows of which so many are known."""
        return expected_hidden(self.lengths, self.shares, n_given, check_hidden(hidden))


def uncalibrated(lengths: np.ndarray) -> Calibration:
    """The numbers as they are."""
    values, counts = np.unique(lengths, return_counts=True)
    if not values.size:
        values, counts = np.ones(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    return Calibration(np.array([-1.0, 0.0, 1.0]), np.zeros(9), values.astype(np.int64), counts / counts.sum())


def calibrated(profiles: Profiles, block: Block, rng: np.random.Generator) -> Calibration:
    """Learn the calibration on rows that the profiles have not learned."""
    calibration = uncalibrated(np.diff(block.rows.indptr))
    usable = np.flatnonzero(np.diff(block.rows.indptr) >= 2)
    if not usable.size:
        return calibration
    sample = block.rows[np.sort(rng.permutation(usable)[:MOST_ROWS])]
    parts = [_held_out(profiles, sample, "third", calibration, rng)]
    schemes = rng.integers(len(SHARES_HIDDEN) + 1, size=sample.shape[0])
    kinds: list[Hidden] = [*SHARES_HIDDEN, "one"]
    for number, hidden in enumerate(kinds):
        rows = sample[schemes == number]
        if rows.shape[0]:
            parts.append(_held_out(profiles, rows, hidden, calibration, rng))
    t, log_hidden, log_given, hits = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if t.size < LEAST_SUGGESTIONS:
        return calibration
    knots = np.quantile(t, QUANTILES)
    knots += np.arange(3) * 1e-6  # apart, whatever the data
    return calibration._replace(knots=knots, weights=_logistic(_design(t, knots, log_hidden, log_given), t, hits))


def _held_out(
    profiles: Profiles, rows: sp.csr_matrix, hidden: Hidden, calibration: Calibration, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Hide features, suggest, and see which suggestions were hidden: t, log H, log(1 + n) and hit of each."""
    visible = without(rows, hidden_entries(rows, hidden, rng))
    features, raw = suggested(profiles, visible, None, N_SUGGESTED)
    n_given = np.diff(visible.indptr)
    known = features >= 0
    of = np.nonzero(known)[0]
    if not of.size:  # of no row is there anything left to suggest; scipy also gives another type for no entries
        return np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)
    present = np.asarray(rows[of, features[known]]).ravel() > 0
    log_hidden = np.log(calibration.expected_hidden(n_given, hidden))
    t = logit(np.clip(raw[known], LEAST_ODDS, 1 - LEAST_ODDS))
    return t, log_hidden[of], np.log1p(n_given)[of], present.astype(np.float64)


def without(rows: sp.csr_matrix, hide: np.ndarray) -> sp.csr_matrix:
    """The rows without the entries of a mask."""
    visible = rows.copy()
    visible.data = np.where(hide, 0.0, visible.data)
    visible.eliminate_zeros()
    return visible


def hidden_entries(rows: sp.csr_matrix, hidden: Hidden, rng: np.random.Generator) -> np.ndarray:
    """A mask of entries to hide: a third of each row (at least one), one, or each with a probability."""
    lengths = np.diff(rows.indptr)
    of = np.repeat(np.arange(rows.shape[0]), lengths)
    draws = rng.random(rows.nnz)
    if not isinstance(hidden, str):
        return np.asarray(draws < hidden)
    order = np.lexsort((draws, of))
    rank = np.empty(rows.nnz, dtype=np.int64)
    rank[order] = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], lengths)
    n_hidden = np.ones_like(lengths) if hidden == "one" else np.maximum(1, lengths // 3)
    return np.asarray(rank < n_hidden[of])


def _design(t: np.ndarray, knots: np.ndarray, log_hidden: np.ndarray, log_given: np.ndarray) -> np.ndarray:
    hinges = [np.maximum(t - knot, 0.0) for knot in knots]
    return np.stack([np.ones(t.size), t, *hinges, log_hidden, t * log_hidden, log_given, t * log_given], axis=1)


def _logistic(design: np.ndarray, offset: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """Weights added to ``offset``, by Newton's method with halved steps; the penalty draws them to 0."""
    scale = np.maximum(design.std(axis=0), 1e-9)
    scale[0] = 1.0
    A, w = design / scale, np.zeros(design.shape[1])
    penalty = np.full(w.size, PENALTY)

    def loss(w: np.ndarray) -> float:
        z = offset + A @ w
        return float(np.logaddexp(0.0, z).sum() - hits @ z + (penalty * w**2).sum() / 2)

    now = loss(w)
    for _ in range(MOST_STEPS):
        p = expit(offset + A @ w)
        gradient = A.T @ (p - hits) + penalty * w
        step = np.linalg.solve((A * (p * (1 - p))[:, None]).T @ A + np.diag(penalty), gradient)
        size = 1.0
        while (after := loss(w - size * step)) > now and size > 1e-6:
            size /= 2
        if now - after < 1e-9 * abs(now):
            break
        w, now = w - size * step, after
    return np.asarray(w / scale)
