"""Merges, splits and trades are taken only if the exact log joint gains."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln

from shoal.families.distributions.counts import falling_table
from shoal.families.kernels.counts_kernels import has_room
from shoal.families.kernels.split_merge_kernels import join_counts, merge_gain
from shoal.families.options import Settings
from shoal.families.samplers import split_merge
from shoal.families.samplers.count_problem import CountProblem


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
def test_split_merge_never_lowers_the_log_joint(family: str, sampler: str, n_clusters: int) -> None:
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
        problem.split_merge(chain)
        assert chain.log_joint() >= before - 1e-6
        np.testing.assert_array_equal(chain.clusters.size, np.bincount(chain.labels, minlength=n_clusters))


@pytest.mark.parametrize(("sampler", "all_pairs"), [("gibbs", True), ("gibbs", False), ("indexed", True)])
def test_a_full_mixture_trades_a_merge_for_a_split(
    sampler: str, all_pairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not all_pairs:
        monkeypatch.setattr(split_merge, "ALL_PAIRS_UP_TO", 0)
    problem, truth = problem_of("multinomial", 6, 0)
    labels = np.where(truth == 1, 0, truth)
    labels[np.flatnonzero(truth == 2)[::2]] = 1
    chain = problem.chain(sampler, 0)
    problem.begin(chain, labels.astype(np.int32))
    chain.sweep()
    assert problem.split_merge(chain)[1] >= 1
    chain.sweep()
    pairs = set(zip(truth.tolist(), chain.labels.tolist(), strict=True))
    assert len(pairs) == 6  # every topic is one cluster


@pytest.mark.parametrize("unit", [1.0, 1 / 1024])
def test_joined_counts_keep_their_definition(unit: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        a = 10 ** rng.uniform(-4, 3)
        more, fewer = sorted(np.ceil(10 ** rng.uniform(0, 5, 2)).astype(int))[::-1]
        ratio, log_rest = join_counts(a, more, fewer, unit)
        terms = gammaln([a + (more + fewer) * unit, a + more * unit, a + fewer * unit, a])
        # What is compared is a difference of numbers as large as the terms: their rounding is all that is allowed.
        tolerance = 1e-15 * np.abs(terms).sum() * 4 + 1e-11
        assert abs(np.log(ratio) + log_rest - terms @ [1, -1, -1, 1]) < tolerance


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "poisson"])
def test_a_merge_gains_what_the_log_joint_says(family: str) -> None:
    for seed in range(3):
        problem, truth = problem_of(family, 7, seed)
        chain = problem.chain("gibbs", seed)
        chain.set_labels(truth.astype(np.int32))
        gain = merge_gain(chain.prior, chain.clusters, 1, 4, falling_table(chain.prior))
        before = chain.log_joint()
        split_merge.move_rows(chain, np.flatnonzero(truth == 4), 1)
        assert chain.log_joint() - before == pytest.approx(gain, abs=1e-6)


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "poisson"])
@pytest.mark.parametrize("outcome", ["taken", "undone", "no room"])
def test_a_split_is_whole_or_leaves_everything_as_it_was(family: str, outcome: str) -> None:
    for seed in range(3):
        problem, truth = problem_of(family, 12, seed)
        chain = problem.chain("gibbs", seed)
        chain.set_labels(np.where(truth == 1, 0, truth).astype(np.int32))
        labels, before, gain = chain.labels.copy(), chain.log_joint(), 0.0
        if outcome == "no room":
            chain.clusters.top[0] = len(chain.clusters.slots)
        least = {"taken": 0.0, "undone": 1e9, "no room": 0.0}[outcome]
        assert split_merge.try_split(chain, np.flatnonzero(labels == 0), least) == (outcome == "taken")
        if outcome == "taken":
            assert (chain.labels == 0).sum() == 0
            assert len(np.unique(chain.labels[labels == 0])) == 2
            gain = chain.log_joint() - before
            assert gain > 0
        np.testing.assert_array_equal(chain.labels[labels > 0], labels[labels > 0])
        if outcome != "taken":
            np.testing.assert_array_equal(chain.labels, labels)
        # What is kept of the clusters is what their labels say.
        kept = chain.sums(1.0), *(part.copy() for part in (chain.clusters.size, chain.clusters.total))
        empty = set(chain.clusters.empty[: chain.clusters.empty[12]].tolist())
        weight, log_joint = chain.clusters.weight.copy(), chain.log_joint()
        assert log_joint == pytest.approx(before + gain, abs=1e-6)
        chain.set_labels(chain.labels.copy())
        assert (kept[0] != chain.sums(1.0)).nnz == 0
        np.testing.assert_array_equal(kept[1], chain.clusters.size)
        np.testing.assert_array_equal(kept[2], chain.clusters.total)
        np.testing.assert_allclose(weight, chain.clusters.weight, rtol=1e-12)
        assert empty == set(chain.clusters.empty[: chain.clusters.empty[12]].tolist())
        assert log_joint == pytest.approx(chain.log_joint(), abs=1e-6)


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "poisson"])
@pytest.mark.parametrize("sampler", ["gibbs", "indexed", "fastex"])
def test_log_marginals_that_were_kept_are_those_of_the_labels(family: str, sampler: str) -> None:
    problem, _ = problem_of(family, 9, 0)
    chain = problem.chain(sampler, 0)
    problem.begin(chain, np.random.default_rng(0).integers(0, 9, 120).astype(np.int32))
    for _ in range(4):
        chain.sweep()
        kept = chain.log_marginals()
        np.testing.assert_array_equal(kept, chain.log_marginals(chain.prior))
        problem.split_merge(chain)
        problem.learn(chain)
        np.testing.assert_array_equal(chain.log_marginals(), chain.log_marginals(chain.prior))


def test_disjoint_pairs_are_the_first_of_each_cluster() -> None:
    left, right = np.array([0, 0, 2, 1, 3]), np.array([1, 2, 3, 4, 4])
    np.testing.assert_array_equal(split_merge.disjoint(left, right, 9), [[0, 1], [2, 3]])
    np.testing.assert_array_equal(split_merge.disjoint(left, right, 1), [[0, 1]])


def test_likely_pairs_hold_the_halves_of_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_merge, "ALL_PAIRS_UP_TO", 0)
    problem, truth = problem_of("multinomial", 12, 0)
    labels = np.where((truth == 2) & (np.arange(120) % 2 == 0), 9, truth)
    chain = problem.chain("gibbs", 0)
    chain.set_labels(labels.astype(np.int32))
    pairs = split_merge.likely_pairs(chain, np.flatnonzero(chain.clusters.size))
    assert [2, 9] in np.sort(pairs, axis=1).tolist()


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
