"""Candidates from the index: the best-ranked clusters by the row's rare features, the row itself left out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.families.kernels.candidates_kernels import (
    DENSE_UP_TO,
    KNOWN,
    known_score,
    list_candidates,
    list_others,
    remember_candidates,
)
from shoal.families.kernels.counts_kernels import DEAD
from shoal.families.kernels.indexed_kernels import LATE, SELDOM, SURE
from shoal.families.kernels.metropolis_hastings_kernels import move_row
from shoal.families.kernels.scores_kernels import UNKNOWN_SCORE, score_row
from shoal.families.options import Settings
from shoal.families.samplers.count_problem import CountProblem
from shoal.families.samplers.indexed import KEEP, IndexedChain

N, K, D = 90, 12, 60


def chain_of(family: str, n_clusters: int, seed: int) -> tuple[IndexedChain, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = sp.random(N, D, density=0.15, random_state=rng, data_rvs=lambda n: rng.integers(1, 4, n), format="csr")
    settings = Settings(
        n_clusters, family, "dirichlet", 0.5, "auto", "auto", 64, "ranked", "diagonal", 10, least=5, budget=20
    )
    chain = CountProblem(X.astype(np.float64), settings).chain("indexed", seed)
    assert isinstance(chain, IndexedChain)
    labels = rng.integers(0, K, N).astype(np.int32)
    labels[0] = K - 1  # alone in its cluster
    labels[1:][labels[1:] == K - 1] = 0
    chain.set_labels(labels)
    chain.post()
    return chain, labels


def ranks(chain: IndexedChain, row: int) -> dict[int, float]:
    """By the definition: what each of the row's rare features speaks for a cluster, and the cluster's own part."""
    items, clusters, postings = chain.items, chain.clusters, chain.postings
    sums = chain.sums(least=1.0).toarray().round().astype(int)
    scanned = slice(items.ptr[row], items.ptr[row] + items.scan[row])
    features, counts = items.features[scanned], items.counts[scanned]
    found = {}
    for cluster in range(K):
        gain = 0.0
        for feature, count in zip(features, counts, strict=True):
            if sums[cluster, feature] > 0:
                level = int(np.log2(sums[cluster, feature]))
                gain += postings.gains[postings.gain_start[feature] + level] * count
        if gain > 0:
            found[cluster] = gain + clusters.weight[cluster] - counts.sum() * clusters.slope[cluster]
    return found


def chosen(chain: IndexedChain, n_chosen: int) -> list[tuple[int, float]]:
    work = chain.work
    return list(zip(work.chosen[:n_chosen].tolist(), work.ranks[:n_chosen].tolist(), strict=True))


@pytest.mark.parametrize("family", ["multinomial", "poisson", "bernoulli"])
@pytest.mark.parametrize("n_clusters", [K, DENSE_UP_TO + 1])  # all sums looked at, or those that were touched
def test_candidates_are_the_best_ranked_without_the_row_itself(family: str, n_clusters: int) -> None:
    chain, labels = chain_of(family, n_clusters, 0)
    most = chain.lists.candidates.shape[1]
    with_row = [
        chosen(chain, list_candidates(chain.items, chain.prior, chain.clusters, chain.postings, row, own, chain.work))
        for row, own in enumerate(labels.tolist())
    ]
    for row in range(N):
        without = labels.copy()
        without[row] = -1
        chain.set_labels(without)
        chain.post()
        expected = sorted(ranks(chain, row).items(), key=lambda pair: (-pair[1], pair[0]))
        found, scores = zip(*with_row[row], strict=True)
        np.testing.assert_allclose(scores, [rank for _, rank in expected[:most]], rtol=1e-4, atol=1e-4)
        if len(expected) <= most or expected[most - 1][1] - expected[most][1] > 1e-3:
            assert set(found) == {cluster for cluster, _ in expected[:most]}


@pytest.mark.parametrize("family", ["multinomial", "poisson", "bernoulli"])
def test_lists_that_are_kept_hold_the_rows_own_cluster(family: str) -> None:
    chain, labels = chain_of(family, K, 1)
    most = chain.lists.candidates.shape[1]
    chain._list_group(0, N)
    for row, own in enumerate(labels.tolist()):
        listed = [cluster for cluster in chain.lists.candidates[row].tolist() if cluster >= 0]
        assert len(set(listed)) == len(listed)
        assert (own in listed) == (chain.clusters.size[own] > 1)
        n_others, _ = list_others(chain.items, chain.prior, chain.clusters, chain.postings, row, own, chain.work)
        others = chain.work.chosen[:n_others].tolist()
        assert [cluster for cluster in listed if cluster != own] == others[: most - (own in listed)]


def live_postings(chain: IndexedChain) -> list[tuple[int, int, int]]:
    """(feature, cluster, level) of all postings that are not dead."""
    postings = chain.postings
    found = []
    for feature, (start, length) in enumerate(zip(postings.start, postings.length, strict=True)):
        entries = postings.entries[start : start + length]
        found += [(feature, int(entry) >> 5, int(entry) & 31) for entry in entries if entry & 31 != DEAD]
    return sorted(found)


def wanted_postings(chain: IndexedChain) -> list[tuple[int, int, int]]:
    sums = chain.sums(least=1.0).toarray().round().astype(int)
    clusters, features = np.nonzero(sums * chain.postings.indexed)
    levels = np.log2(sums[clusters, features]).astype(int)
    return sorted(zip(features.tolist(), clusters.tolist(), levels.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_postings_keep_up_with_moves_and_growing_tables(seed: int) -> None:
    chain, _ = chain_of("multinomial", K, seed)
    rng = np.random.default_rng(seed)
    started = chain.clusters.start.copy()
    for _ in range(40):
        for row in rng.integers(0, N, 20).tolist():
            own, target = int(chain.labels[row]), int(rng.integers(0, 3 if rng.random() < 0.7 else K))
            if own != target:
                move_row(
                    chain.items, chain.prior, chain.clusters, chain.postings, row, own, target, chain.work.marked
                )  # fmt: skip
        if chain.postings.left_out[0] > 0:
            break
        assert live_postings(chain) == wanted_postings(chain)
    assert (chain.clusters.start != started).any()  # some tables grew, and forgot features whose counts were 0


def test_no_list_is_made_from_postings_that_lack_some() -> None:
    chain, labels = chain_of("multinomial", K + N, 5)
    chain.postings = chain.postings._replace(entries=chain.postings.entries[: chain.postings.top[0]])
    for row, own in enumerate(labels.tolist()):
        move_row(chain.items, chain.prior, chain.clusters, chain.postings, row, own, K + row, chain.work.marked)
    assert chain.postings.left_out[0] > 0
    assert live_postings(chain) != wanted_postings(chain)
    chain._list_group(0, N)
    assert live_postings(chain) == wanted_postings(chain)


@pytest.mark.parametrize(
    ("own", "empty", "lead"), [(5, -12.0, 8.0), (3, -12.0, -8.0), (5, -1.5, -0.5), (5, -99.0, 8.0)]
)
def test_what_is_remembered_is_who_has_hope_and_the_lead(own: int, empty: float, lead: float) -> None:
    chain, _ = chain_of("multinomial", K, 0)
    chain.work.chosen[:3], chain.work.scores[:3] = [3, 5, 7], [-10.0, -2.0, -40.0]
    own_score = {5: -2.0, 3: -10.0}[own]
    assert remember_candidates(chain.lists, 4, own, own_score, 3, empty, KEEP, chain.work) == 2
    assert chain.lists.candidates[4, :3].tolist() == [3, 5, -1]
    assert chain.lists.lead[4] == lead


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
def test_rows_are_passed_over_as_their_lead_says(fixed: bool, parallel: bool) -> None:
    chain, _ = chain_of("multinomial", K, 2)
    chain.parallel = parallel
    for _ in range(3):
        chain.sweep()
    if fixed:
        chain.freeze_adaptation()
    rows, refresh = np.arange(N), chain.tuning.refresh
    chain.lists.lead[:] = np.array([KEEP + 1, SURE + 1, SURE - 1, -1.0])[rows % 4]
    expected: list[int] = []
    for _ in range(LATE * refresh):
        lead, at = chain.lists.lead, rows + chain.n_sweeps
        due = at % (LATE * refresh) == 0 if fixed else (at % refresh == 0) | (chain.lists.stable < 1)
        passed = (lead > KEEP) | ((lead > SURE) & (at % SELDOM > 0))
        expected.append(int((passed & ~due).sum()))
        assert chain.sweep().skipped == expected[-1]
    assert 0 < expected[0] < N


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("family", ["multinomial", "poisson", "bernoulli"])
def test_scores_that_are_known_are_what_they_would_be_computed_anew(family: str, parallel: bool) -> None:
    keeping, forgetting = (chain_of(family, K, 3)[0] for _ in range(2))
    n_known = n_scored = n_saved = 0
    for sweep in range(20):
        for chain in (keeping, forgetting):
            chain.parallel = parallel
            if sweep == 10:
                chain.freeze_adaptation()
        forgetting.lists.scored[:] = -1
        facts = keeping.sweep()
        n_scored += facts.scored
        n_saved += forgetting.sweep().scored - facts.scored
        np.testing.assert_array_equal(keeping.labels, forgetting.labels)
        lists, clusters = keeping.lists, keeping.clusters
        for row, own in enumerate(keeping.labels.tolist()):
            for cluster in lists.candidates[row, :KNOWN].tolist():
                known = UNKNOWN_SCORE if cluster < 0 else known_score(clusters, lists, row, cluster)
                if known != UNKNOWN_SCORE and clusters.size[cluster] > (cluster == own):
                    score = score_row(keeping.items, keeping.prior, clusters, row, cluster, cluster == own,
                                      keeping.work.marked)  # fmt: skip
                    assert known == score
                    n_known += 1
    assert n_known > 500
    if family != "bernoulli":  # there, tables are laid out anew for each sweep, and the order shows in the last digits
        assert n_saved > 0.1 * n_scored


def test_a_new_prior_makes_all_scores_unknown() -> None:
    chain, _ = chain_of("multinomial", K, 4)
    chain.sweep()

    def n_known() -> int:
        pairs = ((row, cluster) for row in range(N) for cluster in range(K))
        return sum(known_score(chain.clusters, chain.lists, *pair) != UNKNOWN_SCORE for pair in pairs)

    assert n_known() > 0
    chain.set_prior(chain.prior._replace(alpha=chain.prior.alpha * 2))
    assert n_known() == 0
