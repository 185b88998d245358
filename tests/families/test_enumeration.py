"""Every sampler, every family: the share of time spent at each labelling is its exact posterior probability."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from oracles.families import all_labellings, exact_posterior, log_labels, log_marginal
from shoal.families.bernoulli import Bernoulli
from shoal.families.chain import CountChain
from shoal.families.gibbs import GibbsChain
from shoal.families.gibbs_kernels import gibbs_rows
from shoal.families.indexed import IndexedChain
from shoal.families.indexed_kernels import sample_rows
from shoal.families.multinomial import Multinomial
from shoal.families.poisson import Poisson
from shoal.families.rows import as_items

FAMILIES = {
    "multinomial": Multinomial(mean=np.array([0.4, 0.3, 0.2, 0.1]), strength=2.0, smoothing=0.1),
    "poisson": Poisson(mean=np.array([0.9, 0.8, 0.5, 0.3]), strength=0.7),
    "bernoulli": Bernoulli(mean=np.array([0.4, 0.5, 0.6, 0.2]), strength=1.5),
}
K, N = 3, 5


@njit
def count_labellings(visit, chain, place_of, n_sweeps, seen):
    """Sweep many times inside compiled code, and count where the chain is."""
    labels = chain[2].labels
    for _ in range(n_sweeps):
        visit(chain)
        at = 0
        for row in range(len(labels)):
            at = at * place_of + labels[row]
        seen[at] += 1


@njit
def visit_indexed(chain):
    items, prior, clusters, postings, lists, tuning, state, tally, work = chain
    sample_rows(items, prior, clusters, postings, lists, tuning, 0, len(items.length), 0, state, tally, work)


@njit
def visit_gibbs(chain):
    items, prior, clusters, postings, dense, log_gamma, per_split, state, tally, work, dense_work = chain
    gibbs_rows(
        items,
        prior,
        clusters,
        postings,
        dense,
        log_gamma,
        per_split,
        0,
        len(items.length),
        state,
        tally,
        work,
        dense_work,
    )


def time_at_labellings(chain: CountChain, n_sweeps: int) -> np.ndarray:
    """The share of sweeps that ended at each labelling, in the order of all_labellings."""
    seen = np.zeros(K**N, np.int64)
    chain.sweep()
    core = (chain.items, chain.prior, chain.clusters, chain.postings)
    if isinstance(chain, GibbsChain):
        rest = (chain.dense, chain.log_gamma, chain.per_split, chain.random, chain.tally, chain.work, chain.dense_work)
        count_labellings(visit_gibbs, core + rest, K, n_sweeps, seen)
    elif isinstance(chain, IndexedChain):
        parts = (chain.lists, chain.tuning, chain.random, chain.tally, chain.work)
        count_labellings(visit_indexed, core + parts, K, n_sweeps, seen)
    return seen / n_sweeps


def partition_numbers() -> np.ndarray:
    """For each labelling, the number of the partition it stands for."""
    names = {}
    out = []
    for labels in all_labellings(N, K):
        first: dict[int, int] = {}
        key = tuple(first.setdefault(int(label), len(first)) for label in labels)
        out.append(names.setdefault(key, len(names)))
    return np.array(out)


def make_chain(sampler: str, family_name: str, X: np.ndarray, *, alpha: float, newborn: float) -> CountChain:
    family = FAMILIES[family_name]
    items, indexed, unit = as_items(sp.csr_matrix(X), binary=family.binary, n_clusters=K, budget=100, least=2)
    prior = family.prior(alpha=alpha, newborn=newborn, unit=unit, n_rows=len(X))
    if sampler == "gibbs":
        chain: CountChain = GibbsChain(items, indexed, prior, K, seed=1)
    else:
        # One candidate at most, and a third of the proposals even: the correction has real work to do.
        chain = IndexedChain(items, indexed, prior, K, seed=1, n_candidates=1, refresh=1, share_uniform=0.3)
    chain.set_labels(np.zeros(len(X), np.int32))
    return chain


def rows_of(family_name: str) -> np.ndarray:
    X = np.array([[2, 0, 1, 0], [1, 0, 0, 0], [0, 3, 0, 0], [0, 1, 1, 0], [1, 1, 0, 1]], dtype=float)
    return (X > 0).astype(float) if family_name == "bernoulli" else X


@pytest.mark.parametrize("family_name", FAMILIES)
@pytest.mark.parametrize("sampler", ["gibbs", "indexed"])
@pytest.mark.parametrize(("alpha", "newborn"), [(0.7, 0.0), (0.0, 0.9)], ids=["dirichlet", "process"])
def test_time_at_each_labelling_is_its_posterior(sampler: str, family_name: str, alpha: float, newborn: float) -> None:
    X, family = rows_of(family_name), FAMILIES[family_name]
    exact = exact_posterior(
        X,
        K,
        lambda rows: log_marginal(family_name, rows, family.shape, family.rate),
        lambda labels: log_labels(labels, K, alpha, newborn),
    )
    chain = make_chain(sampler, family_name, X, alpha=alpha, newborn=newborn)
    seen = time_at_labellings(chain, 400_000)
    # Labellings that differ only in the clusters' numbers are one partition: fewer cells, less noise of chance.
    partition = partition_numbers()
    gap = np.bincount(partition, seen) - np.bincount(partition, exact)
    assert 0.5 * np.abs(gap).sum() < 0.01
    assert 0.5 * np.abs(seen - exact).sum() < 0.03
