"""Mending: merges, splits and trades are taken only if the exact log joint gains."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.families.counts_kernels import has_room
from shoal.families.problem import CountProblem
from shoal.families.settings import Settings


def problem_of(family: str, n_clusters: int, seed: int) -> tuple[CountProblem, np.ndarray]:
    """Six topics of eight words each."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 6, 120)
    words = truth[:, None] * 8 + rng.integers(0, 8, (120, 9))
    X = sp.csr_matrix((np.ones(words.size), (np.repeat(np.arange(120), 9), words.ravel())), shape=(120, 48))
    settings = Settings(n_clusters, family, "dirichlet", 0.5, "auto", "auto", 64, "ranked", "diagonal", 10)
    return CountProblem(X, settings), truth


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "poisson"])
@pytest.mark.parametrize("sampler", ["gibbs", "indexed"])
@pytest.mark.parametrize("n_clusters", [6, 7, 12])
def test_mending_never_lowers_the_log_joint(family: str, sampler: str, n_clusters: int) -> None:
    for seed in range(3):
        problem, truth = problem_of(family, n_clusters, seed)
        # Two topics in one cluster, one topic in two, and a few rows astray.
        labels = np.where(truth == 1, 0, truth)
        labels[np.flatnonzero(truth == 2)[::2]] = 1
        labels[:5] = np.random.default_rng(seed).integers(0, 6, 5)
        chain = problem.chain(sampler, seed)
        problem.begin(chain, labels.astype(np.int32))
        chain.sweep()
        before = chain.log_joint()
        problem.mend(chain)
        assert chain.log_joint() >= before - 1e-6
        np.testing.assert_array_equal(chain.clusters.size, np.bincount(chain.labels, minlength=n_clusters))


@pytest.mark.parametrize("sampler", ["gibbs", "indexed"])
def test_a_full_mixture_trades_a_merge_for_a_split(sampler: str) -> None:
    problem, truth = problem_of("multinomial", 6, 0)
    labels = np.where(truth == 1, 0, truth)
    labels[np.flatnonzero(truth == 2)[::2]] = 1
    chain = problem.chain(sampler, 0)
    problem.begin(chain, labels.astype(np.int32))
    chain.sweep()
    assert problem.mend(chain)[1] >= 1
    chain.sweep()
    pairs = set(zip(truth.tolist(), chain.labels.tolist(), strict=True))
    assert len(pairs) == 6  # every topic is one cluster


@pytest.mark.parametrize("n_clusters", [2, 20])
def test_after_a_rebuild_there_is_room_for_any_row_anywhere(n_clusters: int) -> None:
    """Otherwise a sweep would rebuild for ever: long rows, and one cluster that has them all."""
    rng = np.random.default_rng(0)
    X = sp.random(40, 6000, density=0.3, random_state=rng, data_rvs=lambda n: np.ones(n), format="csr")
    settings = Settings(n_clusters, "multinomial", "dirichlet", 0.5, 0.1, 0.0, 64, "ranked", "diagonal", 10)
    problem = CountProblem(X, settings)
    chain = problem.chain("indexed", 0)
    for labels in (np.full(40, -1), np.zeros(40), np.where(np.arange(40) < 20, 0, 1), np.r_[1, np.zeros(39)]):
        chain.set_labels(labels.astype(np.int32))
        for n_features in np.diff(X.indptr):
            assert all(has_room(chain.clusters, cluster, n_features) for cluster in range(n_clusters))
