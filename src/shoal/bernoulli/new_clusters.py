"""Clusters for rows that no cluster explains: found in one half of some rows, kept if the other half is likelier."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import logit

from shoal.bernoulli.adf import Block, responsibilities_of
from shoal.bernoulli.entries_kernels import GRID
from shoal.bernoulli.merging import Merger, gains_of, merged_rows, near_pairs
from shoal.bernoulli.profiles import Profiles, rebuilt, with_entries, with_new_rows
from shoal.bernoulli.scoring import log_total_weight
from shoal.bernoulli.seeding import far_apart

EARNED = 6.0  # nats that a new cluster must earn on rows it was not made of
MOST_AT_ONCE = 8
ITERATIONS = 10
POORLY = 0.25  # share of the rows, the worst explained, that seeds are taken from
LEAST_ROWS = 20
LEAST_COSINE = 0.1  # of clusters that may be merged to make room


class Candidates:
    """New components on top of a mixture that stays as it is: EM in which the whole mixture is one component."""

    def __init__(self, profiles: Profiles, rows: sp.csr_matrix, weights: np.ndarray, known: np.ndarray) -> None:
        self.profiles, self.weights = profiles, weights
        self.features = np.unique(rows.indices[~profiles.uninformative[rows.indices]])
        self.X = rows[:, self.features].tocsr()
        self.known = known  # (n,) log p(x) - log p(x | background) under the mixture
        self.b = profiles.background[self.features]
        rest = ~profiles.uninformative
        rest[self.features] = False
        self.rest = profiles.background[rest]

    def log_ratios(self, counts: np.ndarray, mass: np.ndarray, X: sp.csr_matrix) -> np.ndarray:
        """log p(x | component) - log p(x | background), (n, m)."""
        s = self.profiles.strength
        mean = np.clip((counts + s * self.b) / (s + mass)[:, None], 1e-12, 1 - 1e-9)
        absent = np.log1p(-mean) - np.log1p(-self.b)
        shrunk = (s / (s + mass))[:, None]
        others = ((1 - shrunk) * self.rest.sum() + (1 - shrunk**2) * (self.rest**2).sum() / 2).ravel()
        return np.asarray(X @ (logit(mean) - logit(self.b)).T + absent.sum(axis=1) + others)

    def climb(self, seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Counts and masses of components that begin with one row each."""
        counts, mass = self.X[seeds].toarray(), np.ones(seeds.size)
        for _ in range(ITERATIONS):
            shares = self.shares(counts, mass) * self.weights[:, None]
            counts, mass = np.asarray((self.X.T @ shares).T), shares.sum(axis=0)
        return counts, mass

    def shares(self, counts: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Responsibilities of the components; what is left is the mixture's."""
        scores = self.log_ratios(counts, mass, self.X) + np.log(self.prior(mass))
        old = self.known + np.log(max(1.0 - self.prior(mass).sum(), 1e-6))
        best = np.maximum(scores.max(axis=1), old)
        shares = np.exp(scores - best[:, None])
        return np.asarray(shares / (shares.sum(axis=1) + np.exp(old - best))[:, None])

    def prior(self, mass: np.ndarray) -> np.ndarray:
        return np.asarray((mass + 1e-3) / (self.weights.sum() + 1.0))


def with_new_clusters(
    profiles: Profiles, block: Block, n_most: int, rng: np.random.Generator, pinned: np.ndarray, past: Block | None
) -> tuple[Profiles, Block, list[Merger], int]:
    """Add clusters for rows that are poorly explained.

    The rows that a new cluster was made of belong to it: their weights are reduced by what it took. Where ``n_most``
    clusters are there already, two that lose least are merged first, if less is lost on all rows so far (``past``, a
    sample whose weights stand for all) than the new cluster earns on the rows it was not made of. Returns the profiles,
    the rows still to learn, the mergers and the number of new clusters, which come last.
    """
    n = block.rows.shape[0]
    if n < 2 * LEAST_ROWS:
        return profiles, block, [], 0
    known = responsibilities_of(profiles, block, width=1).log_norms - log_total_weight(profiles)
    half, other = np.arange(0, n, 2), np.arange(1, n, 2)
    candidates = Candidates(profiles, block.rows[half], block.weights[half], known[half])
    seeds = _seeds(profiles, block.rows[half], known[half], rng)
    if not seeds.size:
        return profiles, block, [], 0
    counts, mass = candidates.climb(seeds)
    chosen, earned = _earning(candidates, counts, mass, block.rows[other], block.weights[other], known[other])
    n_free = n_most - profiles.n_clusters
    mergers: list[Merger] = []
    if chosen.size > n_free:
        profiles, mergers = _with_room(profiles, earned[max(n_free, 0) :], pinned, past)
        chosen = chosen[: max(n_free, 0) + len(mergers)]
    if not chosen.size:
        return profiles, block, mergers, 0
    counts, mass = counts[chosen], mass[chosen]
    shares = candidates.shares(counts, mass)
    taken = shares * block.weights[half][:, None]
    weights = block.weights.copy()
    weights[half] -= taken.sum(axis=1)
    profiles = _appended(profiles, candidates.features, np.asarray((candidates.X.T @ taken).T), taken.sum(axis=0))
    return profiles, Block(block.rows, np.maximum(weights, 0.0)), mergers, chosen.size


def _seeds(profiles: Profiles, rows: sp.csr_matrix, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows far apart among those explained worst, by feature."""
    lengths = np.diff(rows.indptr)
    usable = np.flatnonzero(lengths >= 2)
    if usable.size < LEAST_ROWS:
        return usable[:0]
    each = known[usable] / lengths[usable]
    worst = usable[each <= np.quantile(each, POORLY)]
    return worst[far_apart(rows[worst], min(MOST_AT_ONCE, worst.size), profiles.background, rng)]


def _earning(
    candidates: Candidates, counts: np.ndarray, mass: np.ndarray, rows: sp.csr_matrix, weights: np.ndarray,
    known: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The components that earn their keep on other rows, the best first, each given those before it."""
    X = rows[:, candidates.features].tocsr()
    scores = candidates.log_ratios(counts, mass, X) + np.log(candidates.prior(mass))
    prior = candidates.prior(mass)
    chosen: list[int] = []
    earned: list[float] = []
    left = list(np.flatnonzero(mass >= 2))
    while left:
        now = np.logaddexp(known[:, None] + np.log1p(-prior[left]), scores[:, left])
        gains = weights @ (now - known[:, None])
        best = int(np.argmax(gains))
        if gains[best] < EARNED:
            break
        known = now[:, best]
        earned.append(float(gains[best]))
        chosen.append(int(left.pop(best)))
    return np.array(chosen, dtype=np.int64), np.array(earned)


def _with_room(
    profiles: Profiles, earned: np.ndarray, pinned: np.ndarray, past: Block | None
) -> tuple[Profiles, list[Merger]]:
    """Merge, for each new cluster, the pair that loses least on past rows, as long as the new one earns more."""
    mergers: list[Merger] = []
    pinned = pinned.copy()
    if past is None:
        return profiles, mergers
    for nats in earned:
        first, second = near_pairs(profiles, LEAST_COSINE)
        free = ~(pinned[first] | pinned[second])
        first, second = first[free], second[free]
        if not first.size:
            break
        gains = gains_of(profiles, first, second, past)
        best = int(np.argmax(gains))
        if -gains[best] >= nats:
            break
        a, b = int(first[best]), int(second[best])
        step = Merger(a, b) if profiles.mass[a] >= profiles.mass[b] else Merger(b, a)
        profiles, pinned = merged_rows(profiles, [step]), np.delete(pinned, step.gone)
        mergers.append(step)
    return profiles, mergers


def _appended(profiles: Profiles, features: np.ndarray, counts: np.ndarray, mass: np.ndarray) -> Profiles:
    """New clusters after the others."""
    n_rows, used = profiles.n_rows, profiles.n_entries
    profiles = with_new_rows(profiles, mass.size)
    profiles.mass[n_rows:] = np.rint(mass * GRID) / GRID
    new, column = np.nonzero(counts > 1e-4)
    hits = np.rint(counts[new, column] * GRID) / GRID
    wide = with_entries(
        profiles,
        np.concatenate([profiles.cluster[:used], n_rows + new]),
        np.concatenate([profiles.feature[:used], features[column]]),
        np.concatenate([profiles.hits[:used], hits]),
        np.concatenate([profiles.loss[:used], np.zeros(new.size)]),
    )
    wide.hits_from_default[:used] = profiles.hits_from_default[:used]
    return rebuilt(wide)
