"""Chains of a part, with the rest of the data added: their sums are those of all rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.families.options import Settings
from shoal.families.samplers.count_chain import CountChain
from shoal.families.samplers.count_problem import CountProblem
from shoal.families.samplers.part_chain import PartChain, SumsChain

K = 6


def problem_of(family: str) -> tuple[CountProblem, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.poisson(0.4, (80, 20)).astype(float))
    settings = Settings(K, family, "dirichlet", 0.5, "auto", "auto", 64, "ranked", "diagonal", 10)
    return CountProblem(X, settings), rng.integers(0, K - 2, 80).astype(np.int32)  # two clusters are empty


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "poisson"])
def test_sums_have_the_joint_of_their_rows(family: str) -> None:
    problem, labels = problem_of(family)
    whole = CountChain(problem.items, problem.indexed, problem.prior, K, seed=0)
    whole.set_labels(labels)
    sums = SumsChain(problem.statistics(labels, K), problem.family, problem.prior, 80)
    assert sums.log_joint() == pytest.approx(whole.log_joint(), rel=1e-12)


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "poisson"])
def test_a_part_sees_the_clusters_of_all_rows(family: str) -> None:
    problem, labels = problem_of(family)
    own, rest = slice(0, 30), slice(30, 80)
    others = problem.family.statistics(problem.X[rest], labels[rest], K)
    local = np.array([0, 1, 2, 3, 5, 4])  # the empty slots the other way round
    chain = PartChain(problem.X[own], others, local, problem.prior, problem.family, problem.settings, 0)
    chain.begin(labels[own])
    np.testing.assert_array_equal(chain.clusters.size, np.bincount(labels, minlength=K))
    whole = problem.statistics(labels, K).sums
    np.testing.assert_allclose(chain.sums(0.5).toarray(), whole.toarray())
    after = chain.drawn(labels[own])
    size = np.bincount(local[after], minlength=K) + np.bincount(labels[rest], minlength=K)
    np.testing.assert_array_equal(chain.clusters.size, size)
    assert chain.placed().min() >= 0
