"""How well a chain's clusters predict rows that are each left out in turn, and merges that are decided by it.

The joint of rows and labels charges every row the entropy of its label. Where rows are short, or clusters of sets
overlap, that is much of what a row weighs: the joint then prefers one cluster to several that predict better, and
smoothing that is learned from the one keeps it. The likelihood of rows alone does not: a row may belong to either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from shoal.families.distributions.counts import CountFamily
from shoal.families.kernels.held_out_kernels import (
    LeftOutRows,
    fill_terms,
    score_left_out,
    tabulate,
    union_gain,
    union_gains,
)
from shoal.families.kernels.scores_kernels import Prior
from shoal.families.kernels.size_prior_kernels import LOG_ZERO
from shoal.families.samplers.count_chain import CountChain

# Rows by which merges are decided: so many, and so many for each cluster, as long as there are not too many scores.
LEFT_OUT, LEFT_OUT_PER_CLUSTER, LEFT_OUT_SCORES = 2_000, 100, 20_000_000
LEARNING_ROWS, LEAST_LEARNING_ROWS, LEARNING_SCORES = 1_000, 200, 300_000
WORTH = 3.0  # two clusters must predict the rows better than one by so many nats
STEP, MOST_STEPS = 1.3, 6


class HeldOut:
    """Rows left out in turn, scored under the clusters of a chain as it is."""

    def __init__(self, chain: CountChain, n_rows: int) -> None:
        self.chain, items = chain, chain.items
        rows = np.random.default_rng(chain.n_sweeps).permutation(len(chain.labels))[:n_rows]
        rows = rows[np.argsort(items.length[rows], kind="stable")]
        width = items.ptr[rows + 1] - items.ptr[rows]
        ptr = np.concatenate([[0], np.cumsum(width)])
        at = np.arange(ptr[-1]) + np.repeat(items.ptr[rows] - ptr[:-1], width)
        held, features = np.unique(items.features[at], return_inverse=True)
        place = np.full(len(chain.prior.shape), -1)
        place[held] = np.arange(len(held))
        live = np.flatnonzero(chain.clusters.size)
        seen = np.zeros((len(held), len(live)), np.int32)
        tabulate(chain.clusters, place, live, seen)
        self.rows = LeftOutRows(rows, ptr, features, items.counts[at], held, live, seen)

    def scores(self, prior: Prior | None = None) -> np.ndarray:
        """(m, c) log weight and log predictive of each row under each live cluster, the row left out of its own."""
        chain, prior = self.chain, prior or self.chain.prior
        terms = np.zeros(self.rows.seen.shape)
        out = np.zeros((len(self.rows.rows), len(self.rows.live)))
        fill_terms(prior, chain.clusters, self.rows, terms)
        score_left_out(chain.items, prior, chain.clusters, self.rows, terms, chain.work.marked, out)
        return out

    def log_likelihood(self, prior: Prior | None = None) -> float:
        """Sum over the rows of their log predictive, up to what does not depend on the clusters."""
        return float(logsumexp(self.scores(prior), axis=1).sum())


class Unions:
    """What merging pairs of clusters does to the likelihood of rows left out."""

    def __init__(self, chain: CountChain) -> None:
        n_live = int(np.count_nonzero(chain.clusters.size))
        most = LEFT_OUT_SCORES // chain.n_clusters
        self.chain, self.held_out = chain, HeldOut(chain, min(max(LEFT_OUT, LEFT_OUT_PER_CLUSTER * n_live), most))
        self.rows = self.held_out.rows
        self.scores = np.ascontiguousarray(self.held_out.scores().T)
        self.totals = logsumexp(self.scores, axis=0)
        self.column = np.zeros(len(self.rows.rows))
        self.single, self.stamps = np.zeros(len(self.rows.held)), np.zeros(len(self.rows.held), np.int64)
        self.stamp = 0

    def places(self, clusters: Any) -> np.ndarray:
        """Clusters as they are numbered among the live ones."""
        return np.asarray(np.searchsorted(self.rows.live, clusters))

    def gains(self, pairs: np.ndarray) -> np.ndarray:
        """(m,) nats that the rows gain if a pair of clusters becomes one, each pair by itself."""
        chain, out = self.chain, np.zeros(len(pairs))
        union_gains(
            chain.items, chain.prior, chain.clusters, self.rows, self.scores, self.totals, self.places(pairs),
            self.single, self.stamps, self.column, out,
        )  # fmt: skip
        self.stamp = len(pairs) + 1
        return out

    def gain(self, one: int, two: int) -> float:
        """Nats that the rows gain if these become one now; what they score then is kept until it is `accepted`."""
        chain, pair = self.chain, (int(self.places(one)), int(self.places(two)))
        self.stamp += 1
        return float(
            union_gain(
                chain.items, chain.prior, chain.clusters, self.rows, self.scores, self.totals, pair, self.single,
                self.stamps, self.stamp, self.column,
            )
        )  # fmt: skip

    def accepted(self, one: int, two: int) -> None:
        """The pair whose gain was asked for last has become one, in the place of the first."""
        kept, gone = int(self.places(one)), int(self.places(two))
        self.scores[kept], self.scores[gone] = self.column, LOG_ZERO
        self.totals = logsumexp(self.scores, axis=0)
        self.rows.seen[:, kept] += self.rows.seen[:, gone]
        self.rows.seen[:, gone] = 0


def learn_smoothing(chain: CountChain, family: CountFamily, rate: float, least: float) -> CountFamily:
    """Climb the likelihood of rows left out, and the exponential prior of smoothing with this rate, by its smoothing.

    Predicting each word from all others of its cluster instead, or the joint, has no end where rows are short: the more
    smoothing the fewer clusters, and the fewer clusters the more smoothing, down to a single one."""
    n_live = int(np.count_nonzero(chain.clusters.size))
    held_out = HeldOut(chain, int(np.clip(LEARNING_SCORES // n_live, LEAST_LEARNING_ROWS, LEARNING_ROWS)))

    def value(smoothing: float) -> float:
        shape = smoothing + family.strength * family.mean
        trial = chain.prior._replace(shape=shape, shape_total=float(shape.sum()))
        return held_out.log_likelihood(trial) - rate * smoothing

    best = family.smoothing
    best_value = value(best)
    for factor in (STEP, 1 / STEP):
        for _ in range(MOST_STEPS):
            trial = max(best * factor, least)
            if trial == best or (found := value(trial)) <= best_value:
                break
            best, best_value = trial, found
    return replace(family, smoothing=float(best))
