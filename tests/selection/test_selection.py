"""Choosing a number of clusters, seeing which are stable, and carrying ids to the next fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from shoal import BernoulliMixture, SphericalKMeans, choose_n_clusters, cluster_stability, match_clusters
from shoal.errors import BadInput
from shoal.selection.matching import _best_pairs
from shoal.selection.number_of_clusters import _fewest_that_explain, _is_hopeless


def planted(n_clusters: int, n_rows: int = 400, seed: int = 0, width: int = 6) -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_clusters, n_rows)
    rates = np.where(np.arange(n_clusters * width)[None, :] // width == labels[:, None], 1.5, 0.05)
    return sp.csr_matrix(rng.poisson(rates), dtype=float), labels


def test_ids_names_and_pins_are_carried_to_a_refit():
    X, _ = planted(5)
    old = SphericalKMeans(5, random_state=0).fit(X)
    old.name_cluster(3, "threes")
    old.pin_cluster(3)
    new = SphericalKMeans(5, random_state=7).fit(X)
    match = match_clusters(old, new, X)
    assert len(match.pairs) == 5
    assert not match.splits + match.merges + match.births + match.deaths
    match.carry(old, new)
    np.testing.assert_array_equal(new.labels_, old.labels_)
    assert new.roster_.names == {3: "threes"}
    assert new.roster_.pinned == [3]


def test_without_rows_clusters_match_by_the_names_of_their_features():
    X, _ = planted(4)
    old, new = (SphericalKMeans(4, random_state=seed).fit(X) for seed in (0, 3))
    by_rows, by_features = match_clusters(old, new, X), match_clusters(old, new)
    assert sorted(map(tuple, by_rows.pairs.tolist())) == sorted(map(tuple, by_features.pairs.tolist()))


def test_splits_and_merges_are_recorded():
    X, labels = planted(4, 800)
    fine = SphericalKMeans(4, init=np.array([X[labels == c].mean(axis=0).A1 for c in range(4)]), n_init=1).fit(X)
    coarse_seeds = np.array([X[np.isin(labels, pair)].mean(axis=0).A1 for pair in ((0, 1), (2, 3))])
    coarse = SphericalKMeans(2, init=coarse_seeds, n_init=1).fit(X)
    split = match_clusters(coarse, fine, X)
    assert len(split.pairs) + len(split.splits) == 4
    assert len(split.splits) == 2
    merged = match_clusters(fine, coarse, X)
    assert len(merged.merges) == 2
    merged.carry(fine, coarse)
    kinds = [event["kind"] for event in coarse.roster_.events]
    assert kinds.count("merge") == 2
    assert set(coarse.labels_.tolist()) <= {-1, *fine.cluster_ids_.tolist()}


def test_pairs_take_the_largest_overlap_and_each_cluster_once():
    rows, columns = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    taken = _best_pairs(rows, columns, np.array([0.6, 0.5, 0.9, 0.2]), 0.3)
    assert taken.tolist() == [2, 1]


def test_planted_clusters_are_stable_and_halves_of_one_are_not():
    X, _ = planted(3, 600)
    noise = sp.csr_matrix(np.random.default_rng(1).poisson(0.1, (600, 60)), dtype=float)
    rows = sp.block_diag([X, noise]).tocsr()
    model = SphericalKMeans(9, random_state=0).fit(rows)
    stability = cluster_stability(model, rows, n_resamples=6, random_state=0)
    planted_share = np.array([np.mean(np.flatnonzero(model.labels_ == c) < 600) for c in range(9)])
    assert stability[planted_share > 0.9].min() > stability[planted_share < 0.1].max()
    assert ((stability >= 0) & (stability <= 1)).all()


@pytest.mark.parametrize("estimator", [SphericalKMeans(), BernoulliMixture(clutter=False)])
def test_the_planted_number_is_recommended(estimator):
    X, _ = planted(6, 900, width=8)
    choice = choose_n_clusters(estimator, X, [2, 4, 6, 9, 14], n_resamples=3, random_state=0)
    assert choice.n_found == 6, choice
    assert choice.n_clusters >= 6
    assert "use 6" in choice.reason or "6 clusters" in choice.reason
    assert choice.figure().axes


def test_models_and_data_that_cannot_be_compared_are_refused():
    from shoal import TimeSensitiveMixture

    with pytest.raises(BadInput, match="finds the number by itself"):
        choose_n_clusters(TimeSensitiveMixture(), np.eye(20))
    with pytest.raises(BadInput, match="12 are needed"):
        choose_n_clusters(SphericalKMeans(), np.eye(5))


def test_numbers_that_cannot_help_are_not_tried():
    X, _ = planted(4, 900)
    unused = choose_n_clusters(BernoulliMixture(clutter=False), X, random_state=0)  # far bounds leave clusters unused
    assert unused.n_found == 4
    assert unused.tried.max() < 90
    trials = {
        4: np.array([[-5.0, 1.0, 4.0], [-5.1, 0.9, 4.0]]),
        8: np.array([[-6.0, 0.3, 8.0], [-6.1, 0.2, 8.0]]),
        16: np.array([[-4.0, 0.3, 16.0], [-4.1, 0.2, 16.0]]),
        32: np.array([[-5.0, 0.9, 12.0], [-5.1, 0.9, 12.0]]),
    }
    assert [_is_hopeless({k: trials[k] for k in trials if k <= most}, most) for most in trials] == [
        False, True, False, True,
    ]  # fmt: skip


def test_of_stable_numbers_the_smallest_that_explains_is_taken():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.01, 6)
    scores = {2: noise - 9.0, 3: noise - 6.0, 4: noise - 5.0, 6: noise - 4.99, 8: noise - 4.995}
    assert _fewest_that_explain([2, 3, 4, 6, 8], scores) == 4
    assert _fewest_that_explain([2, 8], scores) == 8
    unsure = np.array([1.0, -1, 1, -1, 1, -1])
    assert _fewest_that_explain([6, 8], {2: noise - 5, 6: noise, 8: noise + 0.1 + unsure}) == 6
