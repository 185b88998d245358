"""Maximum likelihood for the same mixture by expectation maximization: the baseline, and a choice for small data.

The parameters are dense here, n_features x n_clusters, which is what makes a pass fast; ``fit`` refuses where that
would not fit. The strength of the prior is learned (empirical Bayes) unless it is given.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.adf import Block
from shoal.bernoulli.profiles import Profiles, empty_profiles, with_entries
from shoal.bernoulli.statistics import ExpectedCounts, Theta, add_counts, expect, maximize
from shoal.bernoulli.strength import FIRST_STRENGTH, learned_strength
from shoal.engine import fold
from shoal.errors import BadInput
from shoal.progress import Monitor

MOST_CELLS = 100_000_000  # of the dense n_features x n_clusters array, 8 bytes each
N_BLOCKS = 4  # rows are summed in this many fixed blocks, whatever the number of threads
WEIGHT = 1e-6  # rows that the prior gives to each cluster: next to none
CHANGED = 1.1  # the strength is learned until it changes by less than this factor


def blocks_of(rows: sp.csr_matrix, weights: np.ndarray) -> list[Block]:
    """Rows in a fixed number of blocks."""
    edges = np.linspace(0, rows.shape[0], min(N_BLOCKS, rows.shape[0]) + 1).astype(np.int64)
    return [Block(rows[a:b], weights[a:b]) for a, b in pairwise(edges)]


class EM:
    """Steps of EM on fixed blocks, from clusters of one seed row each."""

    def __init__(
        self, blocks: list[Any], total: float, background: np.ndarray, *, strength: float | None, clutter: bool,
        n_threads: int | None,
    ) -> None:  # fmt: skip
        self.background, self.clutter, self.n_threads = background, clutter, n_threads
        self.learns, self.strength = strength is None, FIRST_STRENGTH if strength is None else strength
        self.blocks, self.total = blocks, max(total, 1e-300)

    def begin(self, rows: sp.csr_matrix, seeds: np.ndarray, n_clusters: int) -> Theta:
        """Parameters of the seeds. One row alone would be over-sure: the prior is worth two rows at least."""
        counts = np.zeros((rows.shape[1], n_clusters + self.clutter))
        for cluster, seed in enumerate(seeds, start=int(self.clutter)):
            counts[rows.indices[rows.indptr[seed] : rows.indptr[seed + 1]], cluster] += 1.0
        stats = ExpectedCounts(counts, np.ones(counts.shape[1]), 0.0)
        return self._maximize(stats, max(self.strength, FIRST_STRENGTH))

    def step(self, theta: Theta) -> tuple[ExpectedCounts, Theta]:
        """E-step as a fold over the blocks, then the M-step."""
        stats = fold(self.blocks, expect, add_counts, theta, n_threads=self.n_threads).stats
        return stats, self._maximize(stats, self.strength)

    def learn_strength(self, stats: ExpectedCounts) -> bool:
        """The strength of most evidence; whether it changed by much. Learned when clusters have parted."""
        if not self.learns:
            return False
        first = int(self.clutter)
        before = self.strength
        self.strength = learned_strength(
            stats.counts[:, first:], stats.mass[first:], self.background, self.strength
        )  # fmt: skip
        return max(self.strength / before, before / self.strength) > CHANGED

    def _maximize(self, stats: ExpectedCounts, strength: float) -> Theta:
        return maximize(stats, self.background, strength=strength, weight=WEIGHT, clutter=self.clutter)


def fit_em(em: EM, theta: Theta, *, max_iter: int, tol: float) -> tuple[ExpectedCounts, Monitor]:
    """EM until the log likelihood moves by less than ``tol`` of itself and the strength by little."""
    with Monitor("EM", max_iter=max_iter, tol=tol) as monitor:
        while monitor.running:
            stats, after = em.step(theta)
            monitor.report(stats.log_likelihood, log_likelihood=stats.log_likelihood / em.total)
            if monitor.converged and not monitor.interrupted and em.learn_strength(stats):
                monitor.converged = False
                after = em._maximize(stats, em.strength)
            theta = after
    return stats, monitor


def check_room(n_features: int, n_clusters: int) -> None:
    """Refuse dense parameters that would not fit."""
    if n_features * n_clusters > MOST_CELLS:
        raise BadInput(
            f'inference="em" keeps n_features x n_clusters = {n_features:,} x {n_clusters:,} numbers, over the '
            f'limit of {MOST_CELLS:,}. Use inference="adf", whose cost does not depend on the number of features.'
        )


def as_profiles(stats: ExpectedCounts, seen: np.ndarray, *, clutter: bool, strength: float, flat: bool) -> Profiles:
    """The same beliefs as sparse profiles: an entry wherever a cluster expects to have seen the feature."""
    profiles = empty_profiles(
        seen, stats.mass.size - clutter, clutter=clutter, strength=strength, weight=WEIGHT, flat=flat
    )  # fmt: skip
    profiles.mass[:] = stats.mass
    counts = stats.counts
    if clutter:
        counts = counts.copy()
        profiles.default_hits[0] = counts[:, 0].sum()
        counts[:, 0] = 0.0
    feature, cluster = np.nonzero(counts > 1e-6)
    return with_entries(profiles, cluster, feature, counts[feature, cluster])
