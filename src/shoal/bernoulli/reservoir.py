"""The start of one pass: EM on a reservoir, from more seeds than clusters, with the strength of the prior learned.

Dense in (features seen at least twice in the reservoir) x (clusters); nothing here grows with the length of the stream.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.adf import Block, responsibilities_of
from shoal.bernoulli.entries_kernels import GRID
from shoal.bernoulli.flat_clutter import flat_of, received, shares_of_clutter, with_flat
from shoal.bernoulli.merging import merged_down
from shoal.bernoulli.profiles import Profiles, empty_profiles, with_entries
from shoal.bernoulli.seeding import seed_rows
from shoal.bernoulli.statistics import ExpectedCounts, Theta, add_counts, expect, maximize
from shoal.bernoulli.strength import FIRST_STRENGTH, learned_strength
from shoal.engine import fold

SEEDS_PER_CLUSTER = 1.5
LEAST_RESERVOIR, RESERVOIR_PER_CLUSTER, MOST_RESERVOIR = 20_000, 200, 50_000
LEAST_HEAD, HEAD_PER_CLUSTER, MOST_HEAD = 4_000, 40, 20_000
MOST_CELLS = 4_000_000  # features x seeds of the dense arrays
LEAST_COUNT = 1e-4  # a smaller expected count earns no entry
ITERATIONS_SEEDS, ITERATIONS_HEAD, ITERATIONS_RESERVOIR = 20, 10, 25
LOOKS, STILL_GROWS = 8, 1.02  # at the rows of the clutter, while each finds so many times the rows of the last
FURTHER = 0.9  # below 1, where over-relaxed EM still converges
TOLERANCE = 1e-5
N_BLOCKS = 4  # of rows that are looked at on threads
WIDTH = 16  # responsibilities of a row that rare features are counted by


def reservoir_size(n_clusters: int) -> int:
    """Rows the start is made from: enough for each cluster, and no more than can be looked at often."""
    return max(LEAST_RESERVOIR, min(RESERVOIR_PER_CLUSTER * n_clusters, MOST_RESERVOIR), n_clusters)


class Prior(NamedTuple):
    """What the start must know beforehand."""

    seen: np.ndarray  # (n_features + 1,)
    background: np.ndarray
    strength: float | None  # None: learned
    clutter: bool
    flat: bool
    n_threads: int | None = None


def started(block: Block, n_clusters: int, prior: Prior, init: str, rng: np.random.Generator) -> Profiles:
    """Profiles of at most ``n_clusters`` clusters, from rows in random order; the clutter, if any, has no rows yet."""
    kept = _frequent(block.rows, n_clusters)
    X = block.rows[:, kept]
    X.sort_indices()
    background, dense = prior.background[kept], Block(X, block.weights)
    climb = _Climb(background, prior.strength, prior.clutter, prior.n_threads)
    n_head = min(X.shape[0], max(min(max(LEAST_HEAD, HEAD_PER_CLUSTER * n_clusters), MOST_HEAD), n_clusters))
    head = Block(X[:n_head], block.weights[:n_head])
    seeds = seed_rows(head.rows, math.ceil(SEEDS_PER_CLUSTER * n_clusters), background, init, rng)
    stats = climb.run(head, climb.of_seeds(head.rows, seeds), ITERATIONS_SEEDS)
    stats = climb.with_clutter(head, stats)
    first = climb.n_clutter
    if stats.mass.size - first > n_clusters:
        counts, mass = merged_down(
            stats.counts[:, first:], stats.mass[first:], background, climb.strength, n_clusters
        )  # fmt: skip
        stats = _joined(stats.counts[:, :first], stats.mass[:first], stats._replace(counts=counts, mass=mass))
    stats = climb.with_clutter(head, climb.run(head, stats, ITERATIONS_HEAD))
    if n_head < X.shape[0]:
        stats = climb.with_clutter(dense, climb.run(dense, stats, ITERATIONS_RESERVOIR))
    return _as_profiles(stats, climb.n_clutter, kept, block, climb.strength, prior)


def _joined(counts: np.ndarray, mass: np.ndarray, clusters: ExpectedCounts) -> ExpectedCounts:
    """The clutter's column, if any, before those of the clusters."""
    both = np.ascontiguousarray(np.hstack([counts, clusters.counts]))
    return clusters._replace(counts=both, mass=np.append(mass, clusters.mass))


def _frequent(rows: sp.csr_matrix, n_clusters: int) -> np.ndarray:
    """Features seen at least twice, as many of the most frequent as the dense arrays have room for."""
    often = np.bincount(rows.indices, minlength=rows.shape[1])
    kept = np.flatnonzero(often >= min(2, max(1, rows.shape[0] // 100)))
    most = max(100, int(MOST_CELLS / (SEEDS_PER_CLUSTER * n_clusters)))
    if kept.size > most:
        kept = np.sort(kept[np.argsort(-often[kept], kind="stable")[:most]])
    return kept


class _Climb:
    """EM with a strength that is learned half-way and at the end of each run, unless it was given."""

    def __init__(
        self, background: np.ndarray, strength: float | None, clutter: bool, n_threads: int | None
    ) -> None:  # fmt: skip
        self.background, self.learns, self.n_threads = background, strength is None, n_threads
        self.strength = FIRST_STRENGTH if strength is None else strength
        self.clutter, self.n_clutter = clutter, 0  # wanted; columns that are clutter

    def of_seeds(self, rows: sp.csr_matrix, seeds: np.ndarray) -> ExpectedCounts:
        counts = np.zeros((rows.shape[1], max(seeds.size, 1)))  # one cluster where every row is empty
        for cluster, row in enumerate(seeds):
            counts[rows.indices[rows.indptr[row] : rows.indptr[row + 1]], cluster] = 1.0
        return ExpectedCounts(counts, np.ones(counts.shape[1]), -np.inf)

    def theta(self, stats: ExpectedCounts) -> Theta:
        # One row alone would be over-sure: seeds start with a prior worth two rows at least.
        strength = self.strength if np.isfinite(stats.log_likelihood) else max(self.strength, FIRST_STRENGTH)
        if not self.n_clutter:
            return maximize(stats, self.background, strength=strength)
        clusters = maximize(self.clusters(stats), self.background, strength=strength)
        return with_flat(clusters, flat_of(stats.counts[:, 0], float(stats.mass[0]), float(stats.mass.sum())))

    def clusters(self, stats: ExpectedCounts) -> ExpectedCounts:
        """What the clusters have received, without the clutter."""
        counts = np.ascontiguousarray(stats.counts[:, self.n_clutter :])
        return stats._replace(counts=counts, mass=stats.mass[self.n_clutter :])

    def with_clutter(self, block: Block, stats: ExpectedCounts) -> ExpectedCounts:
        """Rows that clusters without them explain worse than one mean for all features go to the clutter, column 0.

        A cluster that is clutter itself still has its weight after one look, and loses more of it with each.
        """
        if not self.clutter:
            return stats
        before, stats = 0.0, self.clusters(stats)
        self.n_clutter = 0
        for _ in range(LOOKS):
            clusters = self.clusters(stats)
            theta = maximize(clusters, self.background, strength=self.strength)
            shares = shares_of_clutter(block, clusters, theta, self.background, self.strength)
            if shares is None:
                break
            rest = Block(block.rows, block.weights * (1 - shares))
            found = fold(_blocks(rest), expect, add_counts, theta, n_threads=self.n_threads).stats
            counts, mass = received(block.rows, block.weights * shares)
            stats, self.n_clutter = _joined(counts[:, None], np.array([mass]), found), 1
            if mass < STILL_GROWS * before:
                break
            before = mass
        return stats

    def run(self, block: Block, stats: ExpectedCounts, iterations: int) -> ExpectedCounts:
        """EM until the likelihood moves little; learning the strength may lower it.

        Each step goes :data:`FURTHER` of the way from the last counts to the new ones beyond the new ones, unless the
        likelihood has just fallen: as far as plain EM in about half the iterations (over-relaxation).
        """
        blocks = _blocks(block)
        before, last = -np.inf, None
        theta = self.theta(stats)
        for number in range(iterations):
            stats = fold(blocks, expect, add_counts, theta, n_threads=self.n_threads).stats
            if self.learns and number in (iterations // 2, iterations - 1):
                own = self.clusters(stats)
                self.strength = learned_strength(own.counts, own.mass, self.background, self.strength)
            gain = stats.log_likelihood - before
            if number > iterations // 2 and 0 <= gain < TOLERANCE * abs(stats.log_likelihood):
                break
            before = stats.log_likelihood
            if number < iterations - 1:
                theta = self.theta(stats if last is None or gain < 0 else _beyond(last, stats))
            last = stats
        return stats


def _blocks(block: Block) -> list[Block]:
    edges = np.linspace(0, block.rows.shape[0], N_BLOCKS + 1).astype(np.int64)
    return [Block(block.rows[a:b], block.weights[a:b]) for a, b in pairwise(edges)]


def _beyond(last: ExpectedCounts, now: ExpectedCounts) -> ExpectedCounts:
    counts = np.maximum(now.counts + FURTHER * (now.counts - last.counts), 0.0)
    mass = np.maximum(now.mass + FURTHER * (now.mass - last.mass), 0.0)
    return ExpectedCounts(np.minimum(counts, mass), mass, now.log_likelihood)


def _as_profiles(
    stats: ExpectedCounts, n_found: int, kept: np.ndarray, block: Block, strength: float, prior: Prior
) -> Profiles:  # fmt: skip
    """The expected counts as entries; features that had no room are counted by the rows' responsibilities.

    ``n_found``: columns that are clutter. A clutter that was not found has no rows yet.
    """
    n_clutter = int(prior.clutter) - n_found
    profiles = empty_profiles(
        prior.seen, stats.mass.size - n_found, clutter=prior.clutter, strength=strength, flat=prior.flat
    )  # fmt: skip
    profiles.mass[n_clutter:] = np.rint(stats.mass * GRID) / GRID
    profiles.has_entries[:n_found] = True
    feature, cluster = np.nonzero(stats.counts > LEAST_COUNT)
    hits = np.rint(stats.counts[feature, cluster] * GRID) / GRID
    cluster, feature = cluster + n_clutter, kept[feature]
    dense = with_entries(profiles, cluster, feature, hits)
    rare = np.setdiff1d(np.arange(prior.background.size), kept)
    if not rare.size:
        return dense
    found = responsibilities_of(dense, block, width=min(WIDTH, dense.n_rows))
    share = sp.csr_matrix(
        ((found.values * block.weights[:, None])[found.rows >= 0],
         (np.nonzero(found.rows >= 0)[0], found.rows[found.rows >= 0])),
        shape=(block.rows.shape[0], dense.n_rows),
    )  # fmt: skip
    more = (share.T @ block.rows[:, rare]).tocoo()
    some = more.data > LEAST_COUNT
    return with_entries(
        profiles,
        np.concatenate([cluster, more.row[some]]),
        np.concatenate([feature, rare[more.col[some]]]),
        np.concatenate([hits, np.rint(more.data[some] * GRID) / GRID]),
    )
