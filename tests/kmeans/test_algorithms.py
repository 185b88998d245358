"""sparse, wand and auto: what they promise compared with exact."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from oracles import kmeans as oracle
from oracles.kmeans import topics
from shoal.errors import BadInput
from shoal.kmeans import InvertedIndex, SphericalKMeans
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import Centers, centers_from_rows, index_centers, own_similarities, thinned
from shoal.kmeans.exact import assign
from shoal.kmeans.lloyd import FullCost, assignment, improved, lloyd
from shoal.kmeans.rows import UnitRows, take_rows, unit_rows
from shoal.kmeans.select_algorithm import choose
from shoal.kmeans.statistics import Memory, Model, accumulate, reassign, update
from shoal.kmeans.wand import retrieve


def dense(centers: Centers, rows: UnitRows) -> np.ndarray:
    return centers.csr(rows).toarray()


def means_of(rows: UnitRows, labels: np.ndarray, old: Centers, features_kept: int | None = None) -> Centers:
    """The centers that an update gives for these labels."""
    zeros = np.zeros(rows.n_rows)
    model = Model(old, rows.n_ranks, features_kept)
    stats, _ = accumulate(Block(rows, np.ones(rows.n_rows)), model, Memory(labels.astype(np.int32), zeros, zeros))
    return update(model, stats).centers


# --- the bounds that skip work ----------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(2, 15), st.sampled_from([None, 3, 10]))
def test_skipping_centers_changes_no_label(seed, k, features_kept):
    """The assigner that remembers gives, at every step, what scoring every row against every center gives."""
    X, _ = topics(seed, n=150, d=60, k=5)
    rows = unit_rows(X)
    blocks, n_scored = [Block(rows, np.ones(X.shape[0]))], 0
    rng = np.random.default_rng(seed)
    model = Model(centers_from_rows(rows, rng.choice(rows.n_rows, k, replace=False)), rows.n_ranks, features_kept)
    memories = None
    for _ in range(8):
        moves, memories = assignment(blocks, model, reassign, memories, 1)
        labels, similarities, centers = memories[0].labels, memories[0].similarities, model.centers
        n_scored += moves.n_scored
        plain_labels, plain = assign(rows, index_centers(centers, rows.n_ranks))
        np.testing.assert_allclose(similarities, plain, atol=2e-6)
        _, _, gap = oracle.nearest(dense_rows(rows), dense_ranks(centers, rows))
        clear = gap > 4e-6
        np.testing.assert_array_equal(labels[clear], plain_labels[clear])
        if not moves.n_moved:
            break
        model, memories = improved(blocks, model, moves, memories, 1)
        served = np.flatnonzero(np.bincount(labels[labels >= 0], minlength=k))
        fresh = means_of(rows, labels, centers, features_kept)
        np.testing.assert_array_equal(dense(model.centers, rows)[served], dense(fresh, rows)[served])
    assert n_scored <= 8 * k * rows.n_rows


def test_rows_in_several_blocks_are_the_same_rows():
    X, _ = topics(9, n=1000)
    rows = unit_rows(X)
    parts = [slice(0, 300), slice(300, 301), slice(301, 1000)]
    seeds = centers_from_rows(rows, np.arange(0, 80, 10))
    labels = []
    for cut in ([slice(0, 1000)], parts):
        blocks = [Block(take_rows(rows, np.arange(1000)[at]), np.ones(1000)[at], at.start) for at in cut]
        labels.append(
            np.concatenate([m.labels for m in lloyd(blocks, Model(seeds, rows.n_ranks), max_iter=50, tol=0).memories])
        )
    np.testing.assert_array_equal(*labels)


def dense_rows(rows: UnitRows) -> np.ndarray:
    return rows.csr.toarray()


def dense_ranks(centers: Centers, rows: UnitRows) -> np.ndarray:
    return sp.csr_matrix((centers.weights, centers.ranks, centers.indptr), shape=(len(centers), rows.n_ranks)).toarray()


def test_work_fades_as_centers_come_to_rest():
    X, _ = topics(n=2000, k=8)
    rows = unit_rows(X)
    blocks, model = [Block(rows, np.ones(X.shape[0]))], Model(centers_from_rows(rows, np.arange(12)), rows.n_ranks)
    memories, scores = None, []
    for _ in range(25):
        moves, memories = assignment(blocks, model, reassign, memories, 1)
        scores.append(moves.n_scored)
        model, memories = improved(blocks, model, moves, memories, 1)
    assert scores[0] == 12 * 2000
    assert scores[-1] < 0.3 * scores[0]


# --- thinned centers --------------------------------------------------------------------------------------------------


def test_thinning_keeps_the_heaviest_at_unit_length():
    rows = unit_rows(sp.csr_matrix(np.array([[3.0, -4, 1, 0], [1, 1, 1, 1]])))
    thin = dense(thinned(centers_from_rows(rows, np.array([0, 1])), 2), rows)
    np.testing.assert_allclose(thin[0], [0.6, -0.8, 0, 0], rtol=1e-6)
    assert np.count_nonzero(thin[1]) == 2
    np.testing.assert_allclose(np.linalg.norm(thin, axis=1), 1, rtol=1e-6)


def test_updates_thin_like_thinning_the_full_center():
    X, labels = topics(3)
    rows = unit_rows(X)
    old = centers_from_rows(rows, np.arange(8))
    full, thin = means_of(rows, labels, old), means_of(rows, labels, old, features_kept=9)
    np.testing.assert_allclose(
        np.sort(np.abs(dense(thin, rows))), np.sort(np.abs(dense(thinned(full, 9), rows))), atol=1e-6
    )
    own = (oracle.unit(X) * dense(thin, rows)[labels]).sum(axis=1)
    np.testing.assert_allclose(own_similarities(rows, labels, thin), own, atol=1e-6)


@pytest.mark.parametrize("algorithm", ["sparse", "wand"])
def test_with_all_features_kept_the_answer_is_exact(algorithm):
    X, _ = topics(1)
    seeds = X[:8]
    exact = SphericalKMeans(8, algorithm="exact", init=seeds).fit(X)
    other = SphericalKMeans(
        8, algorithm=algorithm, init=seeds, features_kept=None, top=X.shape[0], thresholds="cold"
    ).fit(X)
    assert other.mean_similarity_ == pytest.approx(exact.mean_similarity_, rel=1e-3)
    assert (other.labels_ == exact.labels_).mean() > 0.97  # wand updates in the same way; ties and stopping may differ
    if algorithm == "sparse":
        np.testing.assert_array_equal(other.labels_, exact.labels_)


@pytest.mark.parametrize("algorithm", ["sparse", "wand"])
@pytest.mark.parametrize("features_kept", [15, "auto"])
def test_close_to_exact_and_certified(algorithm, features_kept):
    X, _ = topics(2, n=1500, k=10)
    exact = SphericalKMeans(10, algorithm="exact", random_state=0).fit(X)
    model = SphericalKMeans(10, algorithm=algorithm, features_kept=features_kept, top=300, random_state=0).fit(X)
    assert model.algorithm_ == algorithm
    assert model.mean_similarity_ > 0.97 * exact.mean_similarity_
    centers = model.cluster_centers_.toarray()
    own = (oracle.unit(X) * centers[model.labels_]).sum(axis=1)
    np.testing.assert_allclose(model.similarities_, own, atol=1e-6)
    _, best, _ = oracle.nearest(X, centers)
    assert model.certificate_["rows"] == 1500  # the sample is everything here, so the certificate is the truth
    assert model.certificate_["loss"] == pytest.approx((best - own).mean(), abs=1e-6)
    assert model.certificate_["exact_mean_similarity"] == pytest.approx(best.mean(), abs=1e-6)
    won = ~model.outliers_
    np.testing.assert_allclose(centers, oracle.means(X[won], model.labels_[won], 10), atol=1e-6)
    assert (model.predict(X) == model.labels_).mean() > 0.9


# --- wand -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("top", [1, 5, 10_000])
@pytest.mark.parametrize("thresholds", ["safe", "carried", "cold"])
def test_wand_offers_are_true_cosines(top, thresholds):
    X, _ = topics(4)
    rows = unit_rows(X)
    blocks = [Block(rows, np.ones(X.shape[0]))]
    model = Model(centers_from_rows(rows, np.arange(0, 60, 6)), rows.n_ranks, 20)
    step, memories = partial(retrieve, top=top, thresholds=thresholds), None
    for turn in range(4):
        moves, memories = assignment(blocks, model, step, memories, 1)
        labels, similarities, centers = memories[0].labels, memories[0].similarities, model.centers
        cosines = oracle.unit(X) @ dense(centers, rows).T
        won = labels >= 0
        np.testing.assert_allclose(similarities[won], cosines[won, labels[won]], atol=1e-6)
        assert (similarities[~won] == 0).all()
        # Each center has scored its top rows, so the best row of every center went to somebody at least as good.
        if turn == 0:
            best = cosines.argmax(axis=0)
            assert (similarities[best] >= cosines.max(axis=0) - 1e-6).all()
        if top == 10_000 and thresholds == "cold":
            np.testing.assert_allclose(similarities, np.maximum(cosines.max(axis=1), 0), atol=1e-6)
        model, memories = improved(blocks, model, moves, memories, 1)


def test_rows_nobody_retrieved_are_outliers_with_their_nearest_center():
    X, _ = topics(5, n=3000)
    model = SphericalKMeans(8, algorithm="wand", top=1, features_kept=5, random_state=1).fit(X)
    assert 0 < model.outliers_.sum() < 3000
    nearest, _, gap = oracle.nearest(X, model.cluster_centers_)
    lost = model.outliers_ & (gap > 1e-6)
    assert (model.labels_ >= 0).all()
    assert (model.labels_ == nearest)[lost].mean() > 0.6  # those that thinned centers reach keep the thinned answer


def test_an_index_serves_several_fits():
    X, _ = topics(6)
    index = InvertedIndex(X)
    for k in (3, 7):
        from_index = SphericalKMeans(k, algorithm="wand", features_kept=20, random_state=0).fit(index)
        from_rows = SphericalKMeans(k, algorithm="wand", features_kept=20, random_state=0).fit(X)
        np.testing.assert_array_equal(from_index.labels_, from_rows.labels_)
        np.testing.assert_array_equal(from_index.predict(X), from_rows.predict(X))


@pytest.mark.parametrize("algorithm", ["sparse", "wand"])
def test_threads_change_nothing(algorithm):
    X, _ = topics(7, n=5000)
    fits = [
        SphericalKMeans(9, algorithm=algorithm, features_kept=12, random_state=2, n_threads=n).fit(X) for n in (1, 3)
    ]
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
    np.testing.assert_array_equal(fits[0].similarities_, fits[1].similarities_)


def test_the_full_cost_is_checked_every_50_steps(monkeypatch):
    from shoal.kmeans import lloyd

    monkeypatch.setattr(lloyd, "STEPS_BETWEEN_FULL_COSTS", 2)
    X, _ = topics(8)
    rows = unit_rows(X)
    cost, blocks = FullCost(), [Block(rows, np.ones(X.shape[0]))]
    model = Model(centers_from_rows(rows, np.arange(5)), rows.n_ranks)
    assert [cost.settled(blocks, model, 1) for _ in range(4)] == [False, False, False, True]
    assert cost.best == pytest.approx(oracle.nearest(X, X[:5].toarray())[1].mean(), abs=1e-6)


# --- auto -------------------------------------------------------------------------------------------------------------


def test_auto_takes_exact_when_that_is_quick():
    X, _ = topics()
    model = SphericalKMeans(8, random_state=0).fit(X)
    assert model.algorithm_ == "exact"
    assert model.features_kept_ is None
    np.testing.assert_array_equal(model.labels_, SphericalKMeans(8, algorithm="exact", random_state=0).fit(X).labels_)


def test_auto_thins_when_exact_is_slow_and_says_so(monkeypatch):
    from shoal import progress
    from shoal.kmeans import select_algorithm

    said = []
    monkeypatch.setattr(select_algorithm, "message", said.append)
    monkeypatch.setattr(select_algorithm, "QUICK_STEP_SECONDS", 0.0)
    monkeypatch.setattr(select_algorithm, "CANDIDATES", (1, 150))
    costs = iter([1.0, 0.1, 0.1])
    monkeypatch.setattr(select_algorithm, "cost", lambda rows, index: next(costs))
    X, _ = topics()
    rows = unit_rows(X)
    choice = choose([Block(rows, np.ones(rows.n_rows))], centers_from_rows(rows, np.arange(8)), "auto")
    assert choice.algorithm == "sparse"
    assert choice.features_kept == 150  # 1 feature loses too much
    assert choice.exact_seconds == pytest.approx(1.0)
    assert "sparse with 150 features" in said[0]
    assert progress.as_note({}) == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"features_kept": 0}, "features_kept is 0"),
        ({"algorithm": "exact", "features_kept": 5}, "not exact"),
        ({"algorithm": "wand", "top": 0}, "top is 0"),
        ({"algorithm": "wand", "thresholds": "hot"}, "thresholds is 'hot'"),
        ({"algorithm": "wand", "bisecting": True}, "bisecting=True"),
        ({"init": np.ones((8, 3)), "bisecting": True}, "init is a matrix"),
    ],
)
def test_wrong_options_are_named(options, said):
    with pytest.raises(BadInput, match=said):
        SphericalKMeans(**options).fit(np.eye(3))
