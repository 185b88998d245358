"""Learning in batches, and trees of clusters."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import kmeans as oracle
from oracles.kmeans import topics
from shoal.errors import BadInput, CannotMerge
from shoal.kmeans import SphericalKMeans
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import centers_from_rows
from shoal.kmeans.rows import take_rows, unit_rows
from shoal.kmeans.statistics import Model, Stats, accumulate, merge, update
from shoal.kmeans.streaming import FEATURES_IN_A_STREAM

# --- accumulate, merge, update ----------------------------------------------------------------------------------------


def stats_of(X, k, *cuts) -> list[Stats]:
    """The statistics of the rows between the cuts, against the first k rows as centers."""
    rows = unit_rows(X)
    model = Model(centers_from_rows(rows, np.arange(k)), rows.n_ranks)
    ends = [0, *cuts, X.shape[0]]
    parts = [take_rows(rows, np.arange(start, stop)) for start, stop in itertools.pairwise(ends)]
    return [accumulate(Block(part, np.ones(part.n_rows)), model)[0] for part in parts]


def table(stats: Stats, d: int) -> np.ndarray:
    out = np.zeros((stats.mass.size, d))
    for cluster, (start, size) in enumerate(zip(stats.starts, stats.sizes, strict=True)):
        out[cluster, stats.ranks[start : start + size]] = stats.sums[start : start + size]
    return out


def test_two_halves_merge_to_the_whole_and_are_a_step_of_lloyd():
    X, _ = topics(0)
    rows = unit_rows(X)
    (whole,), halves = stats_of(X, 8), stats_of(X, 8, 250)
    merged = merge(*halves)
    np.testing.assert_allclose(table(merged, rows.n_ranks), table(whole, rows.n_ranks), rtol=1e-12)
    np.testing.assert_allclose(merged.mass, whole.mass, rtol=1e-12)
    np.testing.assert_allclose(table(merge(*halves[::-1]), rows.n_ranks), table(merged, rows.n_ranks), rtol=1e-12)
    assert merged.similarity == pytest.approx(whole.similarity, rel=1e-12)
    labels, best, _ = oracle.nearest(X, X[:8])
    labels[best <= 0] = -1  # nothing in common with any center
    stepped = update(Model(centers_from_rows(rows, np.arange(8)), rows.n_ranks), whole)
    np.testing.assert_allclose(stepped.centers.csr(rows).toarray(), oracle.means(X, labels, 8), atol=1e-5)
    np.testing.assert_array_equal(whole.mass, np.bincount(labels[labels >= 0], minlength=8))


def test_statistics_of_different_models_do_not_merge():
    X, _ = topics(0)
    with pytest.raises(CannotMerge, match="sums of 8 clusters cannot be merged with sums of 3"):
        merge(*(stats_of(X, k)[0] for k in (8, 3)))


def test_a_center_is_the_running_mean_of_the_rows_it_won():
    X, _ = topics(1)
    model = SphericalKMeans(5, init=X[:5].toarray())
    won = np.zeros((5, X.shape[1]))
    for batch in (X[:200], X[200:350], X[350:]):
        model.partial_fit(batch)
        for row, label in zip(oracle.unit(batch), model.labels_, strict=True):
            if label >= 0:
                won[label] += row
        np.testing.assert_allclose(model.cluster_centers_.toarray(), oracle.unit(won), atol=1e-5)
    assert model.n_iter_ == 3
    np.testing.assert_array_equal(model.cluster_sizes_, model.masses_)
    np.testing.assert_array_equal(model.cluster_ids_, np.arange(5))


def test_learning_goes_on_after_fit_and_keeps_ids():
    X, _ = topics(2)
    model = SphericalKMeans(8, random_state=0).fit(X)
    before = model.cluster_centers_.toarray()
    lengths = [(oracle.unit(X)[model.labels_ == c]).mean(axis=0) for c in range(8)]
    np.testing.assert_allclose(model.mean_lengths_, np.linalg.norm(lengths, axis=1), rtol=1e-3)
    model.partial_fit(X[:20])
    assert ((model.cluster_centers_.toarray() * before).sum(axis=1) > 0.98).all()


def test_weights_count_as_repetition():
    X, _ = topics(3, n=100)
    weights = np.random.default_rng(0).integers(0, 4, 100)
    weighted = SphericalKMeans(4, init=X[:4].toarray()).partial_fit(X, sample_weight=weights)
    repeated = SphericalKMeans(4, init=X[:4].toarray()).partial_fit(X[np.repeat(np.arange(100), weights)])
    np.testing.assert_allclose(weighted.cluster_centers_.toarray(), repeated.cluster_centers_.toarray(), atol=1e-6)


def test_memory_stays_bounded_on_a_long_stream():
    rng = np.random.default_rng(0)
    model = SphericalKMeans(2, random_state=0, features_kept=50)
    for _ in range(20):
        batch = sp.random(50, 100_000, 0.001, format="csr", random_state=rng)
        model.partial_fit(batch)
        assert model.cluster_centers_.nnz <= 100
    assert FEATURES_IN_A_STREAM < 100_000


def test_the_first_batch_must_hold_enough_rows():
    with pytest.raises(BadInput, match="n_clusters=8 is more than the 2 distinct rows"):
        SphericalKMeans(8).partial_fit(np.eye(2))


def test_streaming_finds_the_topics():
    X, _ = topics(4, n=4000, k=5)
    model = SphericalKMeans(5, random_state=0)
    for start in range(0, 4000, 500):
        model.partial_fit(X[start : start + 500])
    assert model.score(X) > 0.85 * SphericalKMeans(5, random_state=0).fit(X).score(X)


def test_folding_many_parts():
    X, _ = topics(5)
    assert reduce(merge, stats_of(X, 3, 100, 200, 300, 400, 500)).weight == 600


# --- trees ------------------------------------------------------------------------------------------------------------


def test_a_tree_of_clusters():
    X, _ = topics(6)
    model = SphericalKMeans(9, bisecting=True, random_state=0).fit(X)
    assert model.tree_.shape == (8, 3)
    assert sorted([*model.leaves_, *model.tree_[:, 0]]) == list(range(17))
    assert (model.tree_[:, 0] < model.tree_[:, 1]).all()
    assert (model.cluster_sizes_ > 0).all()
    assert model.cluster_sizes_.sum() == X.shape[0]
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(
        model.cluster_centers_.toarray(), model.node_centers_[model.leaves_].toarray(), atol=1e-7
    )
    assert (np.diff(model.objective_history_) > -1e-9).all()
    assert model.objective_history_[-1] == pytest.approx(model.mean_similarity_, abs=1e-5)
    flat = SphericalKMeans(9, random_state=0).fit(X)
    assert model.mean_similarity_ > 0.9 * flat.mean_similarity_


def test_a_tree_with_empty_rows_and_copies():
    X = sp.csr_matrix(np.array([[1.0, 0, 0], [2, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 1]]))
    model = SphericalKMeans(3, bisecting=True, random_state=0).fit(X)
    assert model.labels_[2] == -1
    assert model.labels_[0] == model.labels_[1]
    assert sorted(model.cluster_sizes_) == [1, 1, 2]
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    with pytest.raises(BadInput, match="more than the 3 distinct rows"):
        SphericalKMeans(4, bisecting=True).fit(X)


def test_one_cluster_is_a_tree_too():
    X, _ = topics(7)
    model = SphericalKMeans(1, bisecting=True).fit(X)
    assert (model.predict(X) == 0).all()
