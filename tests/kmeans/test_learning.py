"""Blocks, batches, merged models and edited clusters; and input that is hostile or out of the ordinary."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

import shoal
from oracles import kmeans as oracle
from oracles.kmeans import topics
from shoal.data import Vocabulary
from shoal.errors import BadInput, BadModelFile, CannotMerge
from shoal.kmeans import SphericalKMeans

# --- blocks of rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"algorithm": "sparse", "features_kept": 20}, {"algorithm": "wand", "top": 99}]
)
def test_blocks_from_an_iterator_are_fitted_like_one_matrix(options):
    X, _ = topics(0)
    cuts = [X[:100], X[100:101], X[101:400], X[400:]]
    whole = SphericalKMeans(8, init=X[:8], n_threads=1, **options).fit(X)
    listed = SphericalKMeans(8, init=X[:8], **options).fit(cuts)
    spilled = SphericalKMeans(8, init=X[:8], n_threads=2, **options).fit(iter(cuts))
    np.testing.assert_array_equal(listed.labels_, spilled.labels_)
    np.testing.assert_array_equal(listed.similarities_, spilled.similarities_)
    if options.get("algorithm") != "wand":  # centers of wand retrieve their top rows of every block
        np.testing.assert_array_equal(whole.labels_, listed.labels_)
        np.testing.assert_allclose(whole.cluster_centers_.toarray(), listed.cluster_centers_.toarray(), atol=1e-6)
    assert listed.mean_similarity_ == pytest.approx(whole.mean_similarity_, rel=0.02)


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
def test_seeding_over_blocks_does_not_depend_on_the_blocks(init):
    X, _ = topics(1)
    one = SphericalKMeans(8, init="k-means||" if init == "k-means++" else init, n_init=1, random_state=3).fit(X)
    cuts = [X[:50], X[50:333], X[333:]]
    other = SphericalKMeans(8, init=init, n_init=1, random_state=3).fit(cuts)
    assert other.mean_similarity_ == pytest.approx(one.mean_similarity_, rel=0.05)
    reversed_ = SphericalKMeans(8, init=init, n_init=1, random_state=3).fit(cuts[::-1])
    back = np.concatenate([reversed_.labels_[-50:], reversed_.labels_[-333:-50], reversed_.labels_[:-333]])
    assert normalized_mutual_info_score(back, other.labels_) > 0.8


def test_batches_read_from_a_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    words = [["fish", "sea"], ["fish", "net"], ["bird", "sky"], ["bird", "nest"]] * 10
    path.write_text("\n".join(json.dumps({"id": at, "tags": pair}) for at, pair in enumerate(words)))
    batches = shoal.read_batches(path, item="id", features="tags", batch_rows=7)
    model = SphericalKMeans(2, random_state=0).fit(batches)
    assert model.cluster_sizes_.tolist() == [20, 20]
    assert model.item_ids_.size == 40
    assert len(model.vocabulary_) == 6
    assert len(set(model.labels_[::4])) == 1


def test_weights_of_blocks_and_too_few_of_them():
    X, _ = topics(2, n=100)
    weights = np.random.default_rng(0).random(100)
    one = SphericalKMeans(4, init=X[:4]).fit(X, sample_weight=weights)
    other = SphericalKMeans(4, init=X[:4]).fit([X[:30], X[30:]], sample_weight=[weights[:30], weights[30:]])
    np.testing.assert_array_equal(one.labels_, other.labels_)
    with pytest.raises(BadInput, match="fewer parts"):
        SphericalKMeans(4).fit([X[:30], X[30:]], sample_weight=[weights[:30]])
    with pytest.raises(BadInput, match="there are no blocks"):
        SphericalKMeans(4).fit(iter([]))


# --- models that grow, merge and are edited ---------------------------------------------------------------------------


def test_a_growing_vocabulary():
    first = shoal.Dataset(sp.csr_matrix(np.eye(3)), Vocabulary(["a", "b", "c"]))
    second = shoal.Dataset(sp.csr_matrix(np.array([[1.0, 1, 0], [0, 1, 1]])), Vocabulary(["d", "a", "b"]))
    model = SphericalKMeans(3, random_state=0).partial_fit(first)
    model.partial_fit(second)
    assert model.n_features_in_ == 4
    assert [str(model.vocabulary_[at]) for at in range(4)] == ["a", "b", "c", "d"]
    by_name = model.predict(shoal.Dataset(sp.csr_matrix(np.eye(4)), Vocabulary(["d", "c", "b", "a"])))
    plain = model.predict(np.eye(4))
    np.testing.assert_array_equal(by_name, plain[::-1])
    assert model.cluster_sizes_.sum() == 5


def test_models_of_halves_merge_to_the_whole():
    X, _ = topics(3)
    start = oracle.means(X, np.arange(600) % 8, 8)
    one, other, whole = (SphericalKMeans(8, init=start, max_iter=1) for _ in range(3))
    for model, rows in ((one, X[:250]), (other, X[250:]), (whole, X)):
        model.partial_fit(rows)  # one pass against the same start
    swapped = copy.deepcopy(other).merge(one)
    one.merge(other)
    np.testing.assert_allclose(one.cluster_centers_.toarray(), whole.cluster_centers_.toarray(), atol=1e-6)
    np.testing.assert_allclose(swapped.cluster_centers_.toarray(), one.cluster_centers_.toarray(), atol=1e-6)
    np.testing.assert_allclose(one.mean_lengths_, whole.mean_lengths_, atol=1e-6)
    np.testing.assert_array_equal(one.cluster_sizes_, whole.cluster_sizes_)
    base = copy.deepcopy(whole)
    two = [copy.deepcopy(base).partial_fit(rows) for rows in (X[:100], X[100:200])]
    two[0].merge(two[1], base=base)
    assert two[0].cluster_sizes_.sum() == 800
    with pytest.raises(CannotMerge, match="different clusters"):
        one.merge(SphericalKMeans(3).fit(X))
    with pytest.raises(CannotMerge, match="200 and 2 features"):
        one.merge(SphericalKMeans(2).fit(np.eye(2)))


def test_clusters_merge_split_and_go_on_learning():
    X, _ = topics(4)
    model = SphericalKMeans(8, random_state=0).fit(X)
    sizes = model.cluster_sizes_
    model.merge_clusters([2, 5], into=1)
    assert model.cluster_ids_.tolist() == [0, 1, 3, 4, 6, 7]
    assert model.cluster_sizes_.tolist() == [sizes[0], sizes[[1, 2, 5]].sum(), *sizes[[3, 4, 6, 7]]]
    mine = model.labels_ == 1
    np.testing.assert_allclose(
        model.cluster_centers_[1].toarray()[0], oracle.means(X[mine], np.zeros(mine.sum(), int), 1)[0], atol=1e-3
    )
    assert model.split_cluster(1, X) == 8
    assert model.cluster_ids_.tolist() == [0, 1, 3, 4, 6, 7, 8]
    assert model.cluster_sizes_.sum() == 600
    assert set(model.predict(X)) == {0, 1, 3, 4, 6, 7, 8}
    assert model.partial_fit(X[:9]).cluster_ids_.tolist() == [0, 1, 3, 4, 6, 7, 8]
    assert set(model.labels_) <= {0, 1, 3, 4, 6, 7, 8}
    with pytest.raises(BadInput, match="nothing to split"):
        model.split_cluster(1, X[:1])


def test_memberships_are_the_largest_cosines():
    X, _ = topics(5, n=100)
    model = SphericalKMeans(7, random_state=0).fit(X)
    few, table = model.memberships(X, top=3), model.transform(X)
    assert few.shape == table.shape
    assert (np.diff(few.indptr) <= 3).all()
    largest = np.sort(np.where(table > 0, table, 0), axis=1)[:, -3:].sum(axis=1)
    np.testing.assert_allclose(np.asarray(few.sum(axis=1)).ravel(), largest, rtol=1e-5)
    np.testing.assert_allclose(model.score_samples(X), table.max(axis=1), rtol=1e-5)


def test_a_refused_call_changes_nothing():
    X, _ = topics(6, n=100)
    model = SphericalKMeans(4, random_state=0).fit(X)
    before = copy.deepcopy(model.fitted_state())
    calls = [
        lambda: model.fit(X, sample_weight=[1.0]),
        lambda: model.fit([X, "text"]),
        lambda: model.partial_fit(X, sample_weight=np.full(100, 1e308)),
        lambda: model.partial_fit(X[:, :7]),
        lambda: SphericalKMeans(4, n_threads="x").fit(X),
        lambda: model.merge_clusters([9], into=0),
    ]
    for call in calls:
        with pytest.raises((BadInput, ValueError)):
            call()
    for name, value in model.fitted_state().items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, before[name])


# --- hostile and unlucky input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("X", [[[1.0], [-1.0]], [[1.0, 2.0], [-1.0, -2.0]], np.vstack([np.eye(4), -np.eye(4)])])
def test_rows_that_cancel(X):
    for k in (1, 2):
        model = SphericalKMeans(k, random_state=0).fit(np.array(X))
        assert np.isfinite(model.cluster_centers_.data).all()
        assert model.labels_.max() < k  # a row that shares no feature with a center is unassigned


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_weights_and_rows_of_any_size(scale):
    X, _ = topics(7, n=200)
    plain = SphericalKMeans(5, random_state=0).fit(X)
    weighted = SphericalKMeans(5, random_state=0).fit(X, sample_weight=np.full(200, scale))
    np.testing.assert_array_equal(plain.labels_, weighted.labels_)
    assert weighted.mean_similarity_ == pytest.approx(plain.mean_similarity_)
    weighted.partial_fit(X[:20], sample_weight=np.full(20, scale))
    assert np.isfinite(weighted.cluster_centers_.data).all()
    if 1e-250 < scale < 1e250:
        scaled = SphericalKMeans(5, random_state=0).fit(X * scale)
        np.testing.assert_array_equal(plain.predict(X), scaled.predict(X))


def test_three_billion_columns_of_which_forty_are_used():
    rng = np.random.default_rng(0)
    columns = np.sort(rng.choice(3_000_000_000, 40, replace=False))
    X = sp.random(60, 40, 0.2, format="csr", random_state=0) + sp.csr_matrix(np.eye(60, 40))
    wide = sp.csr_matrix((X.data, columns[X.indices], X.indptr), shape=(60, 3_000_000_000))
    model, narrow = SphericalKMeans(4, random_state=0).fit(wide), SphericalKMeans(4, random_state=0).fit(X)
    assert model.mean_similarity_ == pytest.approx(narrow.mean_similarity_, abs=0.05)
    np.testing.assert_array_equal(model.predict(wide), model.labels_)
    model.partial_fit(wide[:5])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("masses_", np.zeros(3)),
        ("labels_", np.zeros(100)),
        ("mean_lengths_", np.full(4, np.nan)),
        ("features_kept_", -1),
        ("tree_", np.zeros((3, 3), np.int64)),
        ("n_features_in_", 3),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(name, value):
    X, _ = topics(8, n=100)
    model = SphericalKMeans(4, random_state=0).fit(X)
    model.check_state()
    setattr(model, name, value)
    with pytest.raises(BadModelFile):
        model.check_state()


@pytest.mark.parametrize("wrong", [-1, 2**31 - 1, 10**6])
def test_offsets_and_columns_of_centers_are_checked(wrong):
    X, _ = topics(8, n=100)
    model = SphericalKMeans(4, random_state=0).fit(X)
    for part in ("indices", "indptr"):
        broken = copy.deepcopy(model)
        getattr(broken.cluster_centers_, part)[1] = wrong
        with pytest.raises(BadModelFile):
            broken.check_state()
