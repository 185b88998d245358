"""Every sampler, every family: the share of time spent at each labeling is its exact posterior probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from oracles.families import all_labelings, codes, exact_posterior, gaussian_log_marginal, log_labels, log_marginal
from shoal.families import Bernoulli, Gaussian, Multinomial, Poisson
from shoal.families.kernels.fastex_kernels import hash_sample_rows, move_hashed
from shoal.families.kernels.gaussian_fastex_kernels import hash_sample_gauss
from shoal.families.kernels.gaussian_kernels import gibbs_gauss
from shoal.families.kernels.gibbs_kernels import gibbs_rows
from shoal.families.kernels.indexed_kernels import sample_rows
from shoal.families.kernels.metropolis_hastings_kernels import move_row
from shoal.families.samplers.fastex import FastExChain
from shoal.families.samplers.gaussian_fastex import GaussianFastExChain
from shoal.families.samplers.gaussian_gibbs import GaussianChain
from shoal.families.samplers.gibbs import GibbsChain
from shoal.families.samplers.indexed import IndexedChain
from shoal.families.samplers.items import as_items

K, N = 3, 5
N_SWEEPS = {"gibbs": 100_000, "indexed": 120_000, "settled": 500_000, "ranked": 120_000, "published": 250_000}
# Proposals by the published bound are seldom accepted. Four rows make 14 partitions instead of 41: less noise.
N_PUBLISHED = 4
FAMILIES = {
    "multinomial": Multinomial(mean=np.array([0.4, 0.3, 0.2, 0.1]), strength=2.0, smoothing=0.1),
    "poisson": Poisson(mean=np.array([0.9, 0.8, 0.5, 0.3]), strength=0.7),
    "bernoulli": Bernoulli(mean=np.array([0.4, 0.5, 0.6, 0.2]), strength=1.5),
}
COUNTS = np.array([[2, 0, 1, 0], [1, 0, 0, 0], [0, 3, 0, 0], [0, 1, 1, 0], [1, 1, 0, 1]], dtype=float)
MEASURES = np.array([[0.3, -1.0], [0.5, -0.8], [-1.2, 0.9], [0.1, 0.4], [1.4, 0.2]])


@njit
def count_indexed(core, rest, n_sweeps, seen):
    items, prior, clusters, postings = core
    lists, tuning, state, tally, work = rest
    n = len(items.length)
    for sweep in range(n_sweeps):
        sample_rows(items, prior, clusters, postings, lists, tuning, 0, n, (sweep, False), state, tally, work)
        note(clusters.labels, seen)


@njit
def count_gibbs(core, rest, n_sweeps, seen):
    items, prior, clusters, postings = core
    dense, log_gamma, per_split, state, tally, work, more = rest
    n = len(items.length)
    for _ in range(n_sweeps):
        gibbs_rows(items, prior, clusters, postings, (dense, log_gamma, per_split), 0, n, state, tally, work, more)
        note(clusters.labels, seen)


@njit
def count_fastex(core, rest, n_sweeps, seen):
    items, prior, clusters, postings = core
    hashes, tuning, scores, state, tally, work = rest
    n = len(items.length)
    for _ in range(n_sweeps):
        hash_sample_rows(items, prior, clusters, postings, hashes, tuning, 0, n, scores, state, tally, work)
        note(clusters.labels, seen)


@njit
def count_gauss(core, rest, n_sweeps, seen):
    X, prior, clusters = core
    state, tally, work = rest
    for _ in range(n_sweeps):
        gibbs_gauss(X, prior, clusters, 0, len(X), state, tally, work)
        note(clusters.labels, seen)


@njit
def count_gauss_fastex(core, rest, n_sweeps, seen):
    X, prior, clusters = core
    hashes, share, scores, scratch, state, tally, work = rest
    for _ in range(n_sweeps):
        hash_sample_gauss(X, prior, clusters, hashes, share, 0, len(X), scores, scratch, state, tally, work)
        note(clusters.labels, seen)


@njit
def note(labels, seen):
    at = 0
    for label in labels:
        at = at * K + label
    seen[at] += 1


def rows_of(sampler: str) -> int:
    return N_PUBLISHED if sampler == "published" else N


def make_chain(sampler: str, family_name: str, alpha: float, dp_concentration: float) -> Any:
    """Chains whose proposals are poor on purpose, so that the correction has real work to do."""
    published, few = sampler == "published", {"n_candidates": 1, "share_uniform": 0.3}
    n = rows_of(sampler)
    if family_name in ("gaussian", "spherical"):
        family = Gaussian(np.zeros(2), np.ones(2), kappa=0.5, a=1.5, b=0.8, spherical=family_name == "spherical")
        measured = family.prior(alpha=alpha, dp_concentration=dp_concentration)
        if sampler == "gibbs":
            return GaussianChain(MEASURES[:n], measured, K, seed=1)
        return GaussianFastExChain(MEASURES[:n], measured, K, seed=1, n_bits=8, published=published, **few)
    counted = FAMILIES[family_name]
    X = sp.csr_matrix(COUNTS[:n])
    items, indexed, unit = as_items(X, binary=counted.binary, n_clusters=K, budget=100, least=2)
    prior = counted.prior(alpha=alpha, dp_concentration=dp_concentration, unit=unit, n_rows=n)
    if sampler == "gibbs":
        return GibbsChain(items, indexed, prior, K, seed=1)
    if sampler == "indexed":
        return IndexedChain(items, indexed, prior, K, seed=1, refresh=1, **few)
    if sampler == "settled":
        chain = IndexedChain(items, indexed, prior, K, seed=1, refresh=3, **few)
        # Whatever the lists are when they are fixed, and whichever rows they settle: two of these rows are passed over,
        # and one has its turn now and then.
        chain.lists.candidates[:, 0] = [0, 1, 2, -1, 0]
        chain.lists.lead[:] = [25, 0, 30, 7, -1]
        chain.freeze_adaptation()
        return chain
    return FastExChain(items, indexed, prior, K, seed=1, n_bits=16, published=published, **few)


def time_at_labelings(chain: Any, n_sweeps: int) -> np.ndarray:
    """The share of sweeps that ended at each labeling, in the order of all_labelings."""
    n = len(chain.labels)
    chain.set_labels(np.zeros(n, np.int32))
    chain.sweep()
    seen = np.zeros(K**n, np.int64)
    end = (chain.random, chain.tally)
    if isinstance(chain, GaussianChain):
        core: tuple[Any, ...] = (chain.X, chain.prior, chain.clusters)
        if isinstance(chain, GaussianFastExChain):
            rest: tuple[Any, ...] = (chain.hashes, chain.share_uniform, chain.scores, chain.scratch, *end, chain.ranked)
            count_gauss_fastex(core, rest, n_sweeps, seen)
        else:
            count_gauss(core, (*end, chain.work), n_sweeps, seen)
        return seen / n_sweeps
    core = (chain.items, chain.prior, chain.clusters, chain.postings)
    if isinstance(chain, GibbsChain):
        rest = (chain.dense, chain.log_gamma, chain.per_split, *end, chain.work, chain.dense_work)
        count_gibbs(core, rest, n_sweeps, seen)
    elif isinstance(chain, IndexedChain):
        count_indexed(core, (chain.lists, chain.tuning, *end, chain.work), n_sweeps, seen)
    else:
        count_fastex(core, (chain.hashes, chain.tuning, chain.scores, *end, chain.work), n_sweeps, seen)
    return seen / n_sweeps


def exact_shares(family_name: str, alpha: float, dp_concentration: float, n: int = N) -> np.ndarray:
    def of_labels(labels: np.ndarray) -> float:
        return log_labels(labels, K, alpha, dp_concentration)

    if family_name in ("gaussian", "spherical"):
        spherical = family_name == "spherical"
        return exact_posterior(
            MEASURES[:n], K, lambda rows: gaussian_log_marginal(rows, 0.5, 1.5, 0.8, spherical=spherical), of_labels
        )
    family = FAMILIES[family_name]
    X = (COUNTS[:n] > 0).astype(float) if family.binary else COUNTS[:n]
    return exact_posterior(X, K, lambda rows: log_marginal(family_name, rows, family.shape, family.rate), of_labels)


def partition_numbers(n: int) -> np.ndarray:
    """For each labeling, the number of the partition it stands for."""
    names: dict[tuple[int, ...], int] = {}
    out = []
    for labels in all_labelings(n, K):
        first: dict[int, int] = {}
        key = tuple(first.setdefault(int(label), len(first)) for label in labels)
        out.append(names.setdefault(key, len(names)))
    return np.array(out)


COUNTED = ("gibbs", "indexed", "settled", "published", "ranked")
CASES = [(sampler, family) for family in FAMILIES for sampler in COUNTED]
CASES += [(sampler, family) for family in ("gaussian", "spherical") for sampler in ("gibbs", "published", "ranked")]
PROCESS = [("gibbs", "multinomial"), ("indexed", "multinomial"), ("ranked", "bernoulli"), ("gibbs", "gaussian")]


@pytest.mark.parametrize(
    ("sampler", "family_name", "alpha", "dp_concentration"),
    [(*case, 0.7, 0.0) for case in CASES] + [(*case, 0.0, 0.9) for case in PROCESS],
)
def test_time_at_each_labeling_is_its_posterior(
    sampler: str, family_name: str, alpha: float, dp_concentration: float
) -> None:
    exact = exact_shares(family_name, alpha, dp_concentration, rows_of(sampler))
    seen = time_at_labelings(make_chain(sampler, family_name, alpha, dp_concentration), N_SWEEPS[sampler])
    # Labelings that differ only in the clusters' numbers are one partition: fewer cells, less noise of chance.
    partition = partition_numbers(rows_of(sampler))
    gap = np.bincount(partition, seen) - np.bincount(partition, exact)
    assert 0.5 * np.abs(gap).sum() < 0.01


@njit
def count_moves_indexed(core, rest, row, sweep, n_draws, seen):
    items, prior, clusters, postings = core
    lists, tuning, state, tally, work = rest
    own = clusters.labels[row]
    for _ in range(n_draws):
        sample_rows(items, prior, clusters, postings, lists, tuning, row, row + 1, (sweep, False), state, tally, work)
        target = clusters.labels[row]
        seen[target] += 1
        if target != own:
            move_row(items, prior, clusters, postings, row, target, own, work.marked)


@njit
def count_moves_fastex(core, rest, row, sweep, n_draws, seen):
    items, prior, clusters, postings = core
    hashes, tuning, scores, state, tally, work = rest
    own = clusters.labels[row]
    for _ in range(n_draws):
        hash_sample_rows(items, prior, clusters, postings, hashes, tuning, row, row + 1, scores, state, tally, work)
        target = clusters.labels[row]
        seen[target] += 1
        if target != own:
            move_hashed(items, prior, clusters, postings, hashes, row, target, own, work.marked)


def chances(chain: Any, labels: np.ndarray, row: int, sweep: int, n_draws: int) -> np.ndarray:
    """(K,) how often one visit to a row takes it where, from this labeling."""
    chain.set_labels(labels.astype(np.int32))
    seen = np.zeros(K, np.int64)
    chain.visit(0, 0)  # makes the postings, or the hashes
    end = (chain.random, chain.tally, chain.work)
    core = (chain.items, chain.prior, chain.clusters, chain.postings)
    if isinstance(chain, IndexedChain):
        count_moves_indexed(core, (chain.lists, chain.tuning, *end), row, sweep, n_draws, seen)
    else:
        count_moves_fastex(core, (chain.hashes, chain.tuning, chain.scores, *end), row, sweep, n_draws, seen)
    return seen / n_draws


@pytest.mark.parametrize("sampler", ["indexed", "settled", "published", "ranked"])
def test_a_step_is_in_detailed_balance(sampler: str) -> None:
    """pi(a) P(a -> b) = pi(b) P(b -> a) for one visit to one row."""
    n = rows_of(sampler)
    exact = exact_shares("multinomial", 0.7, 0.0, n)
    chain = make_chain(sampler, "multinomial", 0.7, 0.0)
    n_draws, n_moves = 20_000, 0
    for number, labels in enumerate([[0, 0, 1, 2, 0], [0, 0, 0, 1, 1], [2, 1, 1, 0, 2], [1, 1, 1, 1, 1]]):
        for row in range(n):
            orbit = np.repeat([labels[:n]], K, axis=0)
            orbit[:, row] = range(K)
            share = exact[codes(orbit, K)]
            share = share / share.sum()
            # Where lists are fixed, visits to every other labeling are made with lists of the moment.
            step = np.array([chances(chain, state, row, 3 * (number % 2) - row, n_draws) for state in orbit])
            flow = share[:, None] * step
            error = share[:, None] * np.sqrt((step * (1 - step) + 1 / n_draws) / n_draws)
            assert (np.abs(flow - flow.T) < 5 * np.hypot(error, error.T)).all()
            np.testing.assert_allclose(share @ step, share, atol=5 * np.sqrt(0.25 / n_draws))
            n_moves += int((step.sum() - np.trace(step)) * n_draws)
    assert n_moves > 1000
