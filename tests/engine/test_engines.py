"""Every engine gives the same bits, whatever the number of workers, and however many of them die."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from shoal.engine import Threads, Tree, engine_of, fold, using
from shoal.errors import BadInput

pytestmark = pytest.mark.filterwarnings("ignore::Warning:distributed", "ignore::ResourceWarning")


class Sums(NamedTuple):
    total: np.ndarray
    n: int


def accumulate(block, model, memory=None):
    """The nearest of two means for each number; remembers how often it was asked."""
    labels = np.abs(block[:, None] - model[None, :]).argmin(axis=1)
    total = np.bincount(labels, block, minlength=model.size)
    return Sums(np.append(total, np.bincount(labels, minlength=model.size)), len(block)), (memory or 0) + 1


def slowly(block, model, memory=None):
    time.sleep(0.05)
    return accumulate(block, model, memory)


def merge(a, b):
    return Sums(a.total + b.total, a.n + b.n)


def blocks():
    rng = np.random.default_rng(0)
    return [rng.normal(size=n) * 10.0 ** rng.integers(-8, 8) for n in rng.integers(1, 200, 13)]


def test_the_tree_does_not_depend_on_how_many_results_wait():
    parts = blocks()
    one = [fold(parts, accumulate, merge, np.array([-1.0, 1.0]), n_threads=n).stats for n in (1, 2, 5)]
    for other in one[1:]:
        np.testing.assert_array_equal(one[0].total, other.total)
    streamed = fold(iter(parts), accumulate, merge, np.array([-1.0, 1.0]), n_threads=3)
    np.testing.assert_array_equal(one[0].total, streamed.stats.total)
    assert streamed.memories is None


def test_a_tree_of_one_and_of_none():
    tree = Tree(lambda a, b: a + b)
    with pytest.raises(ValueError, match="no blocks"):
        tree.result()
    tree.add(3)
    assert tree.result() == 3


class Stopped(BaseException):
    pass


@pytest.mark.parametrize("algorithm", ["exact", "sparse", "wand"])
def test_a_fit_that_was_stopped_anywhere_goes_on_to_the_same_bits(tmp_path, algorithm):
    import scipy.sparse as sp

    from shoal import SphericalKMeans
    from shoal.engine import Threads, checkpointed

    X = sp.random(300, 30, density=0.2, random_state=0).tocsr()
    blocks = [X[:100], X[100:150], X[150:]]

    def fit():
        return SphericalKMeans(6, algorithm=algorithm, n_init=2, random_state=0).fit(blocks)

    class Fragile(Threads):
        """Dies in the middle of a pass, after so many passes."""

        def __init__(self, n_left):
            self.n_left = n_left

        def fold(self, blocks, accumulate, merge, model, **options):
            self.n_left -= 1
            if self.n_left < 0:
                list(map(accumulate, blocks[:2], [model] * 2, options["memories"]))
                raise Stopped
            return super().fold(blocks, accumulate, merge, model, **options)

    expected = fit()
    n_stops = 0
    for n_left in (0, 1, 3, 2, 5, 1, 4):
        try:
            with using(Fragile(n_left)), checkpointed(tmp_path, resume=True, work={"k": 6}):
                fit()
        except Stopped:
            n_stops += 1
    assert n_stops == 7
    with pytest.raises(BadInput, match="other k"), checkpointed(tmp_path, resume=True, work={"k": 7}):
        pass
    n_files = len(list(tmp_path.iterdir()))
    with checkpointed(tmp_path, resume=True, work={"k": 6}):
        model = fit()
    assert n_files > 10
    assert not list(tmp_path.iterdir())
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    assert (model.cluster_centers_ != expected.cluster_centers_).nnz == 0
    np.testing.assert_array_equal(model.objective_history_, expected.objective_history_)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    from shoal.engine import checkpointed

    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(BadInput, match=r"thesis\.txt"), checkpointed(tmp_path):
        pass
    assert (tmp_path / "thesis.txt").read_text()


def test_blocks_that_name_their_rows_are_read_where_they_are_used():
    class Part:
        def load(self):
            return np.array([1.0, 2.0])

    assert fold([Part(), Part()], accumulate, merge, np.zeros(1)).stats.n == 4


def test_engines_are_named():
    assert isinstance(engine_of("threads"), Threads)
    with pytest.raises(BadInput, match="engine is 'spark'"):
        engine_of("spark")


@pytest.fixture(scope="module")
def cluster():
    from distributed import Client, LocalCluster

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2])  # workers import the functions of this file, as tests.engine
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
            Client(local) as client,
        ):
            yield client


def test_dask_gives_the_bits_of_threads(cluster):
    parts, model = blocks(), np.array([-1.0, 1.0])
    expected = fold(parts, accumulate, merge, model)
    expected = fold(parts, accumulate, merge, model, memories=expected.memories)
    with using(cluster):
        first = fold(parts, accumulate, merge, model)
        second = fold(parts, accumulate, merge, model, memories=first.memories)
        from_iterator = fold(iter(parts), accumulate, merge, model)
    np.testing.assert_array_equal(second.stats.total, expected.stats.total)
    np.testing.assert_array_equal(from_iterator.stats.total, expected.stats.total)
    assert list(second.memories) == expected.memories == [2] * len(parts)


def test_a_model_learns_the_same_on_dask(cluster):
    import scipy.sparse as sp

    from shoal import ExponentialFamilyMixture

    X = sp.random(3000, 40, density=0.1, random_state=0, data_rvs=lambda n: np.ones(n)).tocsr()
    first, more = X[:1500], X[1500:]
    models = [ExponentialFamilyMixture(8, n_sweeps=4, random_state=0).fit(first) for _ in range(2)]
    models[0].partial_fit(more)
    with using(cluster):
        models[1].partial_fit(more)
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))


def test_a_worker_that_is_killed_changes_nothing(cluster):
    parts, model = blocks(), np.array([-1.0, 1.0])
    expected = fold(parts, accumulate, merge, model)
    expected = fold(parts, accumulate, merge, model, memories=expected.memories)
    with using(cluster):
        first = fold(parts, slowly, merge, model)
        pid = next(iter(cluster.run(os.getpid).values()))
        os.kill(pid, signal.SIGKILL)
        second = fold(parts, slowly, merge, model, memories=first.memories)
        memories = list(second.memories)
    np.testing.assert_array_equal(second.stats.total, expected.stats.total)
    assert memories == expected.memories


# --- data in parts ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Four files of texts with ids, of four kinds."""
    import json

    folder = tmp_path_factory.mktemp("days")
    rng = np.random.default_rng(0)
    for day in range(4):
        kinds = rng.integers(0, 4, 60 + day)
        words = [[f"w{4 * kind + word}" for word in rng.integers(0, 5, 6)] + [f"day{day}"] for kind in kinds]
        rows = [{"id": f"{day}-{at}", "text": " ".join(each)} for at, each in enumerate(words)]
        (folder / f"{day}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_parts_have_the_columns_and_weights_of_the_whole(days):
    import shoal

    options = {"item": "id", "text": "text", "min_items": 30}
    parts = shoal.engine.read_partitions(days / "*.jsonl", **options)
    whole = shoal.read(str(days / "*.jsonl"), **options)
    assert sorted(parts.columns.vocabulary) == sorted(whole.vocabulary)
    order = parts.columns.vocabulary.find(whole.vocabulary.strings)
    stacked = np.vstack([part.load(*part.needs()).X.toarray() for part in parts])
    np.testing.assert_allclose(stacked[:, order], whole.X.toarray(), rtol=1e-12)
    ids = np.concatenate([part.load(*part.needs()).ids for part in parts])
    assert ids.tolist() == whole.ids.tolist()


@pytest.mark.parametrize("algorithm", ["exact", "wand"])
def test_k_means_of_parts_has_the_bits_of_blocks_on_threads_and_on_dask(days, cluster, algorithm, tmp_path):
    import shoal
    from shoal.engine import checkpointed

    parts = shoal.engine.read_partitions(str(days / "*.jsonl"), item="id", text="text")

    def model():
        return shoal.SphericalKMeans(4, algorithm=algorithm, n_init=1, max_iter=3, random_state=0)

    expected = model().fit([part.load(*part.needs()) for part in parts])
    on_threads = model().fit(parts)
    with using(cluster):
        on_dask = model().fit(parts)
        with checkpointed(tmp_path):
            written = model().fit(parts)
    for other in (on_threads, on_dask, written):
        np.testing.assert_array_equal(other.labels_, expected.labels_)
        np.testing.assert_array_equal(other.similarities_, expected.similarities_)
        assert (other.cluster_centers_ != expected.cluster_centers_).nnz == 0


def test_dask_collections_are_read_like_files(days, cluster):
    import json

    import dask.bag
    import pandas as pd

    import shoal

    options = {"item": "id", "text": "text"}
    expected = shoal.engine.read_partitions(str(days / "*.jsonl"), **options)
    bag = dask.bag.read_text(str(days / "*.jsonl")).map(json.loads)
    frame = dask.delayed(pd.read_json)(str(days / "0.jsonl"), lines=True)
    for source in (bag, [frame]):
        with using(cluster):
            parts = shoal.engine.read_partitions(source, **options)
            labels = shoal.SphericalKMeans(4, n_init=1, max_iter=2, random_state=0).fit(parts).labels_
        n = len(parts)
        assert parts.n_items == sum(part.n_items for part in expected.parts[:n])
        if n == 4:
            same = shoal.SphericalKMeans(4, n_init=1, max_iter=2, random_state=0).fit(expected).labels_
            np.testing.assert_array_equal(labels, same)


def test_a_pattern_without_files_says_so(tmp_path):
    import shoal
    from shoal.errors import BadSource

    with pytest.raises(BadSource, match="no file matches"):
        shoal.engine.read_partitions(tmp_path / "*.parquet")
    with pytest.raises(BadInput, match="pattern of files"):
        shoal.engine.read_partitions(7)
