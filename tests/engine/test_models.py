"""Every model that merges gives the same bits on 1, 2 and 4 worker processes as on threads, from the same parts."""

from __future__ import annotations

import glob
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import shoal
from shoal.engine import Partitions, read_partitions, using
from shoal.errors import BadInput

pytestmark = pytest.mark.filterwarnings("ignore::Warning:distributed", "ignore::ResourceWarning")

N_PARTS, ROWS = 4, 150


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Files of sets with ids, of five kinds."""
    folder, rng = tmp_path_factory.mktemp("sets"), np.random.default_rng(0)
    for part in range(N_PARTS):
        kinds = rng.integers(0, 5, ROWS + part)
        tags = [sorted({f"w{12 * kind + word}" for word in rng.integers(0, 12, 7)}) for kind in kinds]
        ids = [f"{part}-{row}" for row in range(len(kinds))]
        pq.write_table(pa.table({"id": ids, "tags": tags, "kind": kinds}), folder / f"{part}.parquet")
    return f"{folder}/*.parquet"


@pytest.fixture(scope="module")
def curves(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Files of means and variances, of three kinds."""
    folder, rng = tmp_path_factory.mktemp("curves"), np.random.default_rng(0)
    for part in range(N_PARTS):
        means = rng.normal(10.0 * rng.integers(0, 3, ROWS))
        table = {"id": np.arange(ROWS) + part * ROWS, "mean": means, "variance": rng.gamma(5.0, 0.2, ROWS)}
        pq.write_table(pa.table(table), folder / f"{part}.parquet")
    return f"{folder}/*.parquet"


def parts_of(pattern: str) -> Partitions:
    if "curves" in pattern:
        return read_partitions(pattern, item="id", numeric=["mean", "variance"])
    return read_partitions(pattern, item="id", features="tags")


MODELS = {
    "k-means": shoal.SphericalKMeans(5, n_init=1, random_state=0),
    "adf": shoal.BernoulliMixture(5, random_state=0),
    "adf-passes": shoal.BernoulliMixture(5, n_passes=3, random_state=0),
    "em": shoal.BernoulliMixture(5, inference="em", max_iter=10, random_state=0),
    "families": shoal.ExponentialFamilyMixture(12, n_sweeps=8, random_state=0),
    "families-sets": shoal.ExponentialFamilyMixture(12, family="bernoulli", n_sweeps=8, random_state=0),
    "densities": shoal.DensityKMeans(3, random_state=0),
    "suggester": shoal.Suggester(random_state=0),
}


def found(name: str, pattern: str) -> dict[str, Any]:
    """What a fit of the parts finds."""
    model = clone(MODELS[name]).fit(parts_of(pattern))
    if name == "suggester":
        best, probabilities = model.suggest_batch(model.model_.stats.rows()[:40], n=3)
        return {"pairs": model.model_.stats.pairs.toarray(), "best": best, "probabilities": probabilities}
    what = {"labels": model.labels_, "sizes": model.cluster_sizes_, "history": np.array(model.objective_history_)}
    if name == "densities":
        what["centers"] = model.cluster_centers_
    return what


@pytest.fixture(scope="module")
def on_threads(sets: str, curves: str) -> dict[str, dict[str, Any]]:
    return {name: found(name, curves if name == "densities" else sets) for name in MODELS}


@pytest.fixture(scope="module")
def largest() -> Any:
    from distributed import Client, LocalCluster

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2])  # workers import the functions of this file
        with (
            LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as local,
            Client(local) as client,
        ):
            yield client


@pytest.fixture(scope="module", params=[4, 2, 1])
def client(request: pytest.FixtureRequest, largest: Any) -> Any:
    """So many workers: fewer from parameter to parameter, as starting one takes longer than these tests."""
    largest.cluster.scale(request.param)
    while len(largest.scheduler_info(n_workers=-1)["workers"]) != request.param:
        time.sleep(0.05)
    return largest


def test_every_model_has_the_bits_of_threads(client: Any, on_threads: Any, sets: str, curves: str) -> None:
    for name, expected in on_threads.items():
        with using(client):
            again = found(name, curves if name == "densities" else sets)
        for what, values in expected.items():
            np.testing.assert_array_equal(again[what], values, err_msg=f"{what} of {name}")


def test_a_replay_has_the_bits_of_threads(client: Any) -> None:
    from shoal.auction import Market, baseline_policy
    from shoal.auction.statistics import replay_blocks

    market = Market(10, n_days=3, page_views_per_day=50, random_state=0)
    log = market.log(baseline_policy(market, tuning="coarse").policy)
    days = [log.on_days([day]) for day in range(3)]
    expected = replay_blocks(days)
    with using(client):
        again = replay_blocks(days)
    for one, other in zip(expected.totals, again.totals, strict=True):
        np.testing.assert_array_equal(one, other)


def test_streams_by_key_have_the_bits_of_threads(client: Any) -> None:
    rng = np.random.default_rng(0)
    key = rng.permutation(np.repeat(["a", "b", "c"], 40))
    X = np.eye(6)[rng.integers(0, 3, 120) + 3 * (key == "b")] * 3
    model = shoal.TimeSensitiveMixture(random_state=0)
    expected = shoal.engine.fit_by_key(model, X, key, times=np.arange(120.0))
    with using(client):
        again = shoal.engine.fit_by_key(model, X, key, times=np.arange(120.0))
    assert list(again) == ["a", "b", "c"]
    for name, fitted in expected.items():
        np.testing.assert_array_equal(fitted.labels_, again[name].labels_)
        alone = shoal.TimeSensitiveMixture(random_state=0).fit(X[key == name], times=np.arange(120.0)[key == name])
        np.testing.assert_array_equal(fitted.labels_, alone.labels_)


def test_parts_find_the_kinds(on_threads: Any, sets: str) -> None:
    kinds = np.concatenate([pq.read_table(file)["kind"].to_numpy() for file in sorted(glob.glob(sets))])
    for name in ("adf", "adf-passes", "em", "families", "families-sets"):
        assert shoal.metrics.variation_of_information(kinds, on_threads[name]["labels"]) < 0.05, name


def test_suggestions_of_parts_are_those_of_one_matrix(sets: str) -> None:
    whole = shoal.read(sets, item="id", features="tags")
    one, other = (shoal.Suggester(random_state=0).fit(source) for source in (whole, parts_of(sets)))
    assert one.row_ids_.tolist() == other.row_ids_.tolist()
    first, second = (model.suggest(["w1", "w2"], n=3) for model in (one, other))
    assert {each.name for each in first} == {each.name for each in second}


def test_what_parts_cannot_do_is_refused(sets: str) -> None:
    parts = parts_of(sets)
    weights = np.ones(parts.n_items)
    for model in (shoal.BernoulliMixture(3), shoal.DensityKMeans(3, family="poisson")):
        with pytest.raises(BadInput, match="sample_weight"):
            model.fit(parts, sample_weight=weights)
    with pytest.raises(BadInput, match="family='gaussian' is not for partitions"):
        shoal.ExponentialFamilyMixture(3, family="gaussian").fit(parts)
    with pytest.raises(BadInput, match="one by one"):
        shoal.TimeSensitiveMixture().fit(parts)


def test_the_scheduler_forgets_old_passes(client: Any) -> None:
    from shoal.engine import fold

    counts, memories = [], None
    with using(client):
        for _ in range(24):
            found = fold([1.0, 2.0], _count, _add, np.zeros(10), memories=memories)
            memories = found.memories
            counts.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
    assert list(memories) == [24, 24]
    assert max(counts) < 90


def _count(block: float, model: np.ndarray, memory: int | None = None) -> tuple[float, int]:
    return block, (memory or 0) + 1


def _add(a: float, b: float) -> float:
    return a + b
