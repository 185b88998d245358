"""The base measure of words: in how many clusters a word occurs, not how often it occurs.

The background of all tokens is dominated by the largest clusters, so a new cluster would look like them. What the model
asks for is the number of times that a word was drawn anew from the base measure (the tables of the Chinese restaurant):
its expectation given the counts of the present clusters, shrunk towards uniform as far as the counts ask for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from shoal.streams.base_measures import base_measure
from shoal.streams.kernels.evidence_kernels import better_strength, expected_tables, list_words
from shoal.streams.state import arrays as st
from shoal.streams.state.stream_state import StreamState

LOG_GAMMA_RANGE = (-2.0, 18.0)
STRENGTH_RANGE = (0.05, 1e7)
STRENGTH_STEPS = 5
PSEUDO_COUNT_SCALE = 1.0  # of a feature, before anything is known: the uniform Dirichlet


class Words(NamedTuple):
    """The words of some clusters, one cluster after another."""

    features: np.ndarray
    counts: np.ndarray
    totals: np.ndarray  # (clusters,)
    starts: np.ndarray  # (clusters + 1,)


def words_of_clusters(state: StreamState, slots: np.ndarray) -> Words:
    n = int(state.clusters.record.n_terms[slots].sum())
    features, counts = np.empty(n, dtype=np.int64), np.empty(n)
    starts = np.zeros(slots.size + 1, dtype=np.int64)
    n = list_words(state.clusters, state.tables, state.prior, slots, starts, features, counts)
    return Words(features[:n], counts[:n], state.clusters.totals[slots, 0].copy(), starts)


def uniform_share(tables: np.ndarray, n_features: int) -> float:
    """The concentration gamma of a symmetric Dirichlet over the mean of the base measure, given its tables.

    Few clusters or an even vocabulary make it large, and the mean uniform.
    """
    held, total = tables[tables > 0], float(tables.sum())

    def cost(log_gamma: float) -> float:
        gamma = math.exp(log_gamma)
        share = gamma / n_features
        return -float(gammaln(gamma) - gammaln(gamma + total) + (gammaln(held + share) - gammaln(share)).sum())

    found = minimize_scalar(cost, bounds=LOG_GAMMA_RANGE, method="bounded", options={"xatol": 0.05})
    return math.exp(float(found.x))


def limit_strength(state: StreamState) -> None:
    """A chain begins with at most the pseudo-counts of the uniform Dirichlet.

    A strength that is too large makes all clusters look alike, their labels keep it large, and a chain seldom leaves.
    """
    if state.status[0].family == st.MULTINOMIAL and state.status[0].drift == 0.0:
        most = PSEUDO_COUNT_SCALE * float(state.prior.blocks.width[0])
        state.set_strength(min(most, float(state.prior.blocks.strength[0])))


def learn_base(state: StreamState, *, mean: bool, strength: bool, rounds: int = 2) -> None:
    """Move the base measure's mean and strength to what the present clusters make likeliest; in place."""
    if state.status[0].family != st.MULTINOMIAL or state.status[0].drift > 0.0 or not (mean or strength):
        return
    slots = np.ascontiguousarray(state.live)
    words = words_of_clusters(state, slots)
    if words.totals.sum() <= 0.0:
        return
    of_words = state.prior.block == 0
    width = int(state.prior.blocks.width[0])
    tables = np.empty(len(state.prior.seen))
    for _ in range(rounds):
        if mean:
            bases = base_measure(state.prior, float(state.status[0].floor))
            expected_tables(words.features, words.counts, bases, tables)
            smooth = tables[of_words] + uniform_share(tables, width) / width
            # pseudo-counts are proportional to seen + floor
            state.prior.seen[of_words] = smooth - state.status[0].floor
            state.prior.blocks.mass[0] = float(state.prior.seen[of_words].sum())
        if strength:
            bases = base_measure(state.prior, float(state.status[0].floor))
            before = float(state.prior.blocks.strength[0])
            after = better_strength(*words[:3], bases / before, before, STRENGTH_STEPS, PSEUDO_COUNT_SCALE * width)
            state.set_strength(float(np.clip(after, *STRENGTH_RANGE)))
    state.set_strength(float(state.prior.blocks.strength[0]))
