"""Visits decided side by side are visits row by row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.errors import BadInput
from shoal.families import ExponentialFamilyMixture
from shoal.families.kernels.random_kernels import start_stream, uniform
from shoal.families.options import Settings
from shoal.families.samplers.count_problem import CountProblem
from shoal.families.samplers.indexed import IndexedChain


def rows(n: int, n_topics: int, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Topics that share most of their words with the next, so that many rows stay in doubt."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_topics, n)
    words = truth[:, None] * 3 + rng.integers(0, 10, (n, 6))
    X = sp.csr_matrix((np.ones(words.size), (np.repeat(np.arange(n), 6), words.ravel())), shape=(n, 3 * n_topics + 10))
    return X, truth


def chain_of(family: str, *, group_rows: int, n_threads: int = 1) -> IndexedChain:
    X, truth = rows(2000, 30)
    settings = Settings(40, family, "dirichlet", 2.0, "auto", "auto", 64, "ranked", "diagonal", 5)
    chain = CountProblem(X, settings._replace(n_threads=n_threads, parallel=True)).chain("indexed", 3)
    assert isinstance(chain, IndexedChain)
    chain.set_labels(truth.astype(np.int32))
    chain.sweep()
    chain.group_rows = group_rows
    chain.freeze_adaptation()
    return chain


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "poisson"])
def test_with_fixed_lists_the_size_of_groups_does_not_show(family: str) -> None:
    alone, grouped = chain_of(family, group_rows=1), chain_of(family, group_rows=500, n_threads=2)
    n_moved = 0
    for _ in range(6):
        # However many rows move, decisions are taken side by side, and taken again where need be.
        alone.n_moved = grouped.n_moved = 0
        n_moved += alone.sweep().moved
        grouped.sweep()
        np.testing.assert_array_equal(alone.labels, grouped.labels)
    assert n_moved > 500


def test_threads_do_not_show_and_the_log_joint_is_level() -> None:
    X, _ = rows(3000, 30)
    options = {"sampler": "indexed", "n_sweeps": 16, "random_state": 0}
    fitted = [ExponentialFamilyMixture(40, parallel=True, n_threads=n, **options).fit(X) for n in (1, 2)]
    np.testing.assert_array_equal(fitted[0].labels_, fitted[1].labels_)
    np.testing.assert_array_equal(fitted[0].samples_, fitted[1].samples_)
    assert fitted[0].acceptance_ == fitted[1].acceptance_
    one_by_one = ExponentialFamilyMixture(40, **options).fit(X)
    assert abs(fitted[0].log_joint_ - one_by_one.log_joint_) < 0.005 * abs(one_by_one.log_joint_)


@pytest.mark.parametrize("sampler", ["gibbs", "fastex"])
def test_a_sampler_that_visits_row_by_row_cannot_be_parallel(sampler: str) -> None:
    with pytest.raises(BadInput, match="parallel=True is for sampler='indexed'"):
        ExponentialFamilyMixture(4, sampler=sampler, parallel=True).fit(rows(50, 4)[0])


def test_streams_of_neighboring_rows_have_nothing_in_common() -> None:
    state, draws = np.zeros(1, np.uint64), np.zeros((4000, 2))
    for row in range(len(draws)):
        start_stream(state, np.uint64(0x1234567890ABCDEF), row)
        draws[row] = uniform(state), uniform(state)
    # Means of 4,000 even draws are within 5 standard errors of a half, and correlations near 0.
    assert (np.abs(draws.mean(axis=0) - 0.5) < 5 * np.sqrt(1 / 12 / 4000)).all()
    assert abs(np.corrcoef(draws.T)[0, 1]) < 5 / np.sqrt(4000)
    assert abs(np.corrcoef(draws[1:, 0], draws[:-1, 0])[0, 1]) < 5 / np.sqrt(4000)
    assert abs(np.corrcoef(draws[1:, 1], draws[:-1, 1])[0, 1]) < 5 / np.sqrt(4000)


def test_want_of_room_at_the_first_row_does_not_show() -> None:
    X = sp.csr_matrix(np.kron(np.eye(2), np.ones((1, 20)))[[0] + [1] * 30])  # row 0 has nothing in common with the rest
    settings = Settings(5, "multinomial", "dirichlet", 1.0, "auto", "auto", 64, "ranked", "diagonal", 5)
    chains = []
    for _ in range(2):
        chain = CountProblem(X, settings._replace(parallel=True)).chain("indexed", 0)
        chain.set_labels(np.zeros(31, np.int32))
        chains.append(chain)
    ample, tight = chains
    tight.clusters = tight.clusters._replace(slots=tight.clusters.slots[: tight.clusters.top[0]])
    assert tight.visit(0, 31) == 0  # row 0 moves to an empty cluster, whose table has to grow
    tight.rebuild(list_empty=False)
    assert tight.visit(0, 31) == ample.visit(0, 31) == 31
    assert ample.labels[0] != 0
    np.testing.assert_array_equal(tight.labels, ample.labels)
    np.testing.assert_array_equal(tight.random, ample.random)
