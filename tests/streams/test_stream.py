"""The stream: the same answer however it is cut, resumed or saved; bounded; late messages; edits; lives."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp

import shoal
from shoal.data import Vocabulary
from shoal.datasets import make_threads
from shoal.errors import BadInput, BadModelFile
from shoal.streams import Evidence, ExponentialKernel, Inference, PeriodicKernel, TimeSensitiveMixture, with_evidence
from shoal.streams.inference.posterior import distance
from shoal.streams.state import arrays as st
from shoal.streams.state.stored_state import from_columns, to_columns

SMALL = Inference(window=60, batch=20, resamplings=2)


@pytest.fixture(scope="module")
def data():
    return make_threads(
        800, n_features=500, length=12, prior=0.01, zipf=1.0, decay=0.05, concentration=0.3, random_state=4
    )


def fed(data, cuts, **options):
    model = TimeSensitiveMixture(inference=SMALL, random_state=3, **options)
    for lo, hi in zip([0, *cuts], [*cuts, len(data)], strict=True):
        model.partial_fit(data.X[lo:hi], times=data.times[lo:hi])
    return model


def test_it_finds_the_threads(data):
    model = fed(data, [])
    assert distance(model.all_labels_, np.asarray(data.labels)) < 0.5
    assert 1e-3 < float(model.kernel_.parameters()[0]) < 1.0


def test_the_cut_into_calls_does_not_matter(data):
    whole = fed(data, [])
    np.testing.assert_array_equal(whole.all_labels_, fed(data, [1, 7, 133, 500]).all_labels_)
    single = TimeSensitiveMixture(inference=SMALL, random_state=3)
    for row, time in zip(data.X[:130], data.times[:130], strict=True):
        single.learn_one(row, time)
    np.testing.assert_array_equal(single.all_labels_, fed(data[:130], []).all_labels_)


@pytest.mark.parametrize("options", [{}, {"drift": 0.01}, {"kernel": PeriodicKernel(30.0, 0.02), "concentration": 0.3}])
def test_saved_in_mid_stream_and_resumed_bit_for_bit(data, tmp_path, options):
    model = fed(data[:333], [], **options)
    shoal.save(tmp_path / "model.shoal", model)
    again = shoal.load(tmp_path / "model.shoal")
    again = getattr(again, "model", again)
    for each in (model, again):
        each.partial_fit(data.X[333:], times=data.times[333:])
    np.testing.assert_array_equal(model.all_labels_, again.all_labels_)
    a, b = model.stream_.state, again.stream_.state
    for group in ("clusters", "tables", "postings", "window", "prior"):
        for left, right in zip(getattr(a, group), getattr(b, group), strict=True):
            assert left.tobytes() == right.tobytes()
    assert a.status.tobytes() == b.status.tobytes()


def words_by_cluster(model):
    """Totals of the live clusters' tables, recounted from scratch."""
    state = model.stream_.state
    for slot in state.live:
        start = state.clusters.record.table_start[slot]
        size = st.SMALLEST_TABLE << state.clusters.record.size_class[slot]
        yield slot, state.tables.counts[start : start + size][state.tables.keys[start : start + size] >= 0].sum()


def test_tables_and_index_stay_true(data):
    """After hundreds of moves: totals are sums of tables, and every posting entry equals its table's count."""
    model = fed(data, [])
    state = model.stream_.state
    for slot, total in words_by_cluster(model):
        assert total == state.clusters.totals[slot].sum()
    record, postings, tables = state.clusters.record, state.postings, state.tables
    n_entries = 0
    for feature in range(500):
        for at in range(postings.start[feature], postings.start[feature] + postings.length[feature]):
            slot = postings.slot[at]
            assert record.id[slot] >= 0
            start, size = record.table_start[slot], st.SMALLEST_TABLE << record.size_class[slot]
            found = start + np.flatnonzero(tables.keys[start : start + size] == feature)
            assert found.size == 1
            assert tables.counts[found[0]] == postings.amount[at]
            assert tables.where[found[0]] == at - postings.start[feature]
            n_entries += 1
    assert n_entries == record.n_terms[state.live].sum()
    counts = np.bincount(state.window.docs.slot[: state.n_docs], minlength=len(record))
    np.testing.assert_array_equal(record.n_members[state.live] - record.n_settled[state.live], counts[state.live])


def test_index_and_exhaustive_scores_choose_alike(data):
    near = fed(data, [])
    full = TimeSensitiveMixture(inference=Inference(window=60, batch=20, budget=-1), random_state=3).partial_fit(
        data.X, data.times
    )
    assert distance(near.labels_, full.all_labels_) < 0.1


def test_memory_stays_bounded_on_a_long_stream():
    rng = np.random.default_rng(0)
    options = {"concentration": 1.0, "strength": 20.0, "inference": SMALL, "random_state": 0}
    model = TimeSensitiveMixture(ExponentialKernel(0.05), **options)
    sizes = []
    for day in range(12):
        words = rng.integers(0, 400, (400, 6)) + 50 * (day % 3)
        X = sp.csr_matrix((np.ones(2400), words.ravel(), np.arange(0, 2401, 6)), shape=(400, 500))
        X.sum_duplicates()
        model.partial_fit(X, times=np.arange(400.0) + 400 * day)
        state = model.stream_.state
        groups = (state.clusters, state.tables, state.postings, state.window, state.prior)
        sizes.append(sum(array.nbytes for group in groups for array in group))
    assert sizes[-1] <= 1.3 * sizes[3]
    assert model.stream_.history.n_retired > 100


def test_late_messages_take_their_place(data):
    """A message that comes late, but within the window, ends where it would have been."""
    late = np.arange(200)
    late[[120, 125]] = late[[125, 120]]
    model = TimeSensitiveMixture(ExponentialKernel(0.05), concentration=0.3, inference=SMALL, random_state=3)
    model.partial_fit(data.X[late], times=data.times[late])
    times = model.stream_.state.window.docs.time[: model.stream_.state.n_docs]
    assert (np.diff(times) >= 0).all()
    straight = TimeSensitiveMixture(ExponentialKernel(0.05), concentration=0.3, inference=SMALL, random_state=3)
    straight.partial_fit(data.X[:200], times=data.times[:200])
    assert distance(model.all_labels_[np.argsort(late)], straight.all_labels_) < 0.25
    assert model.stream_.n_late == 0
    model.partial_fit(data.X[:1], times=data.times[:1])  # long ago: taken as if at the window's edge
    assert model.stream_.n_late == 1


@pytest.mark.parametrize("folder", [False, True])
def test_labels_keep_the_order_of_arrival(data, tmp_path, folder):
    """Messages that change places in time still get their own labels back."""
    order = np.arange(600).reshape(-1, 3)[:, ::-1].ravel()
    history = str(tmp_path / "log") if folder else None
    model = TimeSensitiveMixture(inference=SMALL, random_state=3, history_dir=history)
    model.partial_fit(data.X[order], times=data.times[order])
    n = 600 - model.stream_.state.n_docs
    if folder:
        labels = np.fromfile(tmp_path / "log" / "labels.int64", dtype="<i8")[:n]
        times = np.fromfile(tmp_path / "log" / "times.float64", dtype="<f8")[:n]
    else:
        labels, times = model.all_labels_[:n], model.all_times_[:n]
    assert distance(labels, np.asarray(data.labels)[order][:n]) < 0.5
    assert (times == data.times[order][:n]).mean() > 0.99


def test_growing_vocabulary():
    model = TimeSensitiveMixture(base="uniform", random_state=0)
    first = model.learn_one(["rain", "rain", "rain", "wind"], time=0.0)
    assert model.learn_one({"rain": 4, "storm": 1}, time=1.0) == first
    other = model.learn_one(["goal", "goal", "goal", "match"], time=1.5)
    assert other != first
    assert model.learn_one(["goal", "goal", "goal", "cup"], time=2.0) == other
    assert list(model.vocabulary_) == ["rain", "wind", "storm", "goal", "match", "cup"]
    assert model.name_features(model.top_features(other, 1).features) == ["goal"]
    with pytest.raises(BadInput, match="split"):
        model.learn_one("goal and cup")
    rows = [
        shoal.Dataset(X=sp.csr_matrix(np.eye(n)), vocabulary=Vocabulary([f"w{at}" for at in range(n)])) for n in (3, 5)
    ]
    wide = TimeSensitiveMixture(random_state=0).partial_fit(rows[0]).partial_fit(rows[1])
    assert wide.n_features_in_ == 5
    with pytest.raises(BadInput, match="expecting 5"):
        wide.partial_fit(np.eye(7))
    with pytest.raises(BadInput, match="7 columns"):
        wide.learn_one(np.ones(7))


def test_evidence_joins_what_words_leave_apart():
    texts = [["aa", "ab"], ["zz", "zy"], ["ac", "ad"], ["zx", "zw"], ["ae", "af"], ["zv", "zu"]]
    owners = ["anna", "ben", "anna", "ben", "anna", "ben"]
    names = sorted({word for text in texts for word in text})
    X = sp.csr_matrix([[float(name in text) for name in names] for text in texts])
    wide, vocabulary = with_evidence(X, names, {"owner": owners})
    rows = shoal.Dataset(X=wide, vocabulary=vocabulary, times=np.arange(6.0))
    options = {"kernel": ExponentialKernel(0.1), "concentration": 0.2, "random_state": 0}
    plain = TimeSensitiveMixture(**options).partial_fit(X, times=np.arange(6.0))
    assert len(set(plain.all_labels_)) > 2
    model = TimeSensitiveMixture(evidence=[Evidence("owner:", weight=3.0)], **options).partial_fit(rows)
    assert model.all_labels_.tolist() == [0, 1, 0, 1, 0, 1]


def two_stories():
    X = np.zeros((40, 4))
    X[::2, :2], X[1::2, 2:] = 3.0, 3.0
    model = TimeSensitiveMixture(
        ExponentialKernel(0.1), concentration=0.1, base="uniform", strength=2.0, inference=SMALL
    )
    return model.partial_fit(X, times=np.arange(40.0))


def test_merge_split_pin_name():
    model = two_stories()
    assert sorted(set(model.all_labels_)) == [0, 1]
    fresh = model.split_cluster(0, [30, 32, 34])
    assert model.all_labels_[[28, 30, 32, 34, 36]].tolist() == [0, fresh, fresh, fresh, 0]
    model.merge_clusters(fresh, 1)
    assert model.all_labels_[30] == 1
    assert fresh not in model.cluster_ids_
    state = model.stream_.state
    for slot, total in words_by_cluster(model):
        assert total == pytest.approx(state.clusters.totals[slot].sum())
    model.name_cluster(1, "the other story")
    assert {life.id: life.name for life in model.clusters_}[1] == "the other story"
    model.pin_cluster(1)
    model.partial_fit(np.tile([3.0, 3.0, 0, 0], (200, 1)), np.arange(1000.0, 1200.0))
    assert 1 in model.cluster_ids_
    assert [event["kind"] for event in model.events_ if event["id"] == fresh][:2] == ["split", "merge"]
    with pytest.raises(BadInput, match="itself"):
        model.merge_clusters(1, 1)
    with pytest.raises(BadInput, match="not all"):
        model.split_cluster(1, [])
    with pytest.raises(BadInput, match="no live cluster"):
        model.pin_cluster(99)


@pytest.mark.parametrize("folder", [False, True])
def test_histories_death_and_revival(tmp_path, folder):
    model = two_stories()
    if folder:
        model.use_history_dir(str(tmp_path))
    model.partial_fit(np.tile([0, 0, 3.0, 3.0], (200, 1)), np.arange(500.0, 700.0))
    gone = next(life for life in model.clusters_ if life.id == 0)
    assert (gone.alive, gone.born, gone.last_seen, gone.size) == (False, 0.0, 38.0, 20)
    assert sum(gone.counts) == 20
    assert {"kind": "death", "id": 0, "into": None, "at": 38.0} in model.events_
    assert model.top_features(0, 2).features.tolist() == [0, 1]
    assert 0 in model.reported_cluster_ids()
    assert 0 not in model.cluster_ids_
    model.revive(0)
    assert model.predict(np.array([[3.0, 3.0, 0, 0]])).tolist() == [0]


def test_weekly_clusters_sleep_and_reactivate():
    """A periodic kernel: silent between weeks, retired to sleep, awake for the next announcement."""
    rng = np.random.default_rng(0)
    times, X = [], []
    for day in np.arange(0.0, 60.0, 0.05):
        weekly = abs((day + 3.5) % 7.0 - 3.5) < 0.05
        row = np.zeros(30)
        row[[0, 1] if weekly else rng.integers(2, 30, 2)] += 4.0
        times.append(day)
        X.append(row)
    kernel = ExponentialKernel(1.0) + PeriodicKernel(period=7.0, rate=0.01, sharpness=20.0)
    model = TimeSensitiveMixture(
        kernel, concentration=0.05, base="uniform", strength=3.0, random_state=0,
        inference=Inference(window=20, batch=10, retire_below=0.2),
    ).partial_fit(np.array(X), times=times)  # fmt: skip
    labels = model.all_labels_[np.array([row[0] > 0 for row in X])]
    assert len(set(labels)) == 1
    assert model.stream_.history.n_retired > 0


def test_words_drift():
    """A story whose words change over its life stays one story if old words are forgotten."""
    n, width = 300, 40
    X = np.zeros((n, width))
    for i in range(n):
        X[i, (i * (width - 6) // n) : (i * (width - 6) // n) + 6] = 2.0
    times = np.arange(n, dtype=float)
    model = TimeSensitiveMixture(
        ExponentialKernel(0.02), concentration=0.05, drift=0.05, base="uniform", strength=4.0, inference=SMALL
    ).partial_fit(X, times=times)
    still = TimeSensitiveMixture(
        ExponentialKernel(0.02), concentration=0.05, base="uniform", strength=4.0, inference=SMALL
    ).partial_fit(X, times=times)
    assert len(set(model.all_labels_)) < len(set(still.all_labels_))


def test_history_folder_keeps_memory_flat(data, tmp_path):
    model = TimeSensitiveMixture(inference=SMALL, random_state=3, history_dir=str(tmp_path / "log"))
    model.partial_fit(data.X, times=data.times)
    settled = np.fromfile(tmp_path / "log" / "labels.int64", dtype="<i8")
    plain = fed(data, [])
    np.testing.assert_array_equal(
        np.concatenate([model.stream_.stories.roots(settled), model.all_labels_]), plain.all_labels_
    )
    assert model.stream_.history.labels.size == 0


def test_fit_then_go_on(data):
    model = TimeSensitiveMixture(inference=Inference(n_sweeps=20, burn_in=10, window=60, batch=20), random_state=0)
    model.fit(data.X[:200], times=data.times[:200])
    first = model.all_labels_.copy()
    model.partial_fit(data.X[200:], times=data.times[200:])
    assert len(model.all_labels_) == 800
    assert distance(model.all_labels_[:200], first) < 0.3
    assert distance(model.all_labels_, np.asarray(data.labels)) < 0.6


def test_each_cluster_may_fade_at_its_own_rate():
    """A story that speaks once in a long while, and quick ones that come and go."""
    rng = np.random.default_rng(0)
    X = np.zeros((3000, 204))
    for i in range(3000):
        word = 0 if i % 60 == 0 else 2 + 2 * (i // 30)
        X[i, word : word + 2] = 2 + rng.integers(0, 3, 2)
    times = np.arange(3000.0)
    options = {"base": "uniform", "strength": 10.0, "random_state": 0}
    inference = Inference(window=60, batch=20, rate_per_cluster=True)
    model = TimeSensitiveMixture(inference=inference, **options).partial_fit(X, times=times)
    state = model.stream_.state
    slow = state.live[np.flatnonzero(model.cluster_ids_ == model.all_labels_[2940])[0]]
    assert len(set(model.all_labels_[::60][20:])) == 1
    assert state.clusters.record.rate[slow] < float(model.kernel_.parameters()[0])


def test_a_model_file_that_contradicts_itself_is_refused(data):
    """One number in any index of the state changed at random: refused, or harmless to learning and asking."""
    stream = fed(data[:300], []).stream_
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        columns = to_columns(copy.deepcopy(stream.state))
        group = columns[str(rng.choice(["clusters", "tables", "postings", "window", "status"]))]
        arrays = {**group, **group.get("record", {}), **group.get("docs", {})}
        name = str(rng.choice([each for each, array in arrays.items() if isinstance(array, np.ndarray)]))
        array = arrays[name] = np.array(arrays[name])
        if array.size == 0:
            continue
        array.flat[int(rng.integers(0, max(1, array.size // 20)))] = rng.choice([-7, 10**6, 2**31 - 1])
        for each in (group, group.get("record", {}), group.get("docs", {})):
            if name in each:
                each[name] = array
        try:
            state = from_columns(columns)
        except BadModelFile:
            refused += 1
            continue
        state.resample(0, state.n_docs, budget=100, n_best=4, uniforms=np.full(state.n_docs, 0.5))
    assert refused > 15
