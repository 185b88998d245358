"""What a model remembers of its fit is on the cards and the timeline before anything has been learned."""

from __future__ import annotations

import numpy as np
import pytest

from service.samples import items, learned, running
from shoal import ExponentialFamilyMixture, SphericalKMeans, read
from shoal.base import TopFeatures
from shoal.service.comparison import compared
from shoal.streams import TimeSensitiveMixture


def shop(n=120):
    made = items(n)
    table = {
        "id": [item["id"] for item in made],
        "tags": [item["features"] for item in made],
        "when": [item["time"] for item in made],
    }
    return read(table, item="id", features="tags", time="when", time_unit="s")


def test_cards_show_items_of_the_fit_until_others_are_learned(tmp_path):
    model = SphericalKMeans(4, random_state=0).fit(shop())
    first = int(model.labels_[0])
    with running(tmp_path / "s", model) as client:
        card = client.get(f"/clusters/{first}").json()
        assert len(card["typical_items"]) == len(card["borderline_items"]) == 8
        scores = [item["score"] for item in card["typical_items"]]
        assert scores == sorted(scores, reverse=True)
        assert all(model.labels_[int(item["id"].split("-")[1])] == first for item in card["typical_items"])
        other = next(one["id"] for one in client.get("/clusters").json()["clusters"] if one["id"] != first)
        merged = client.post(f"/clusters/{other}/merge", json={"clusters": [first]}).json()
        assert len(client.service.view.record.fitted[other]) == 32
        assert first not in client.service.view.record.fitted
        client.post("/undo", json={"edit": merged["edit"]})
        assert client.get(f"/clusters/{first}").json()["typical_items"] == card["typical_items"]
    with running(tmp_path / "s") as client:
        assert client.get(f"/clusters/{first}").json()["typical_items"] == card["typical_items"]
        learned(client, [{"id": "new", "features": items(1)[0]["features"]}])
        assert [item["id"] for item in client.get(f"/clusters/{first}").json()["typical_items"]] == ["new"]


def test_the_timeline_begins_with_the_times_of_the_fit(tmp_path):
    data = shop()
    model = TimeSensitiveMixture(random_state=0).fit(data, times=data.times)
    with running(tmp_path, model) as client:
        rows = client.get("/timeline", params={"n": 100}).json()["clusters"]
        sizes = {one["id"]: one["size"] for one in client.get("/clusters").json()["clusters"]}
        assert {row["id"]: sum(row["counts"]) for row in rows} == sizes
        learned(client, items(8, start=120))
        again = client.get("/timeline", params={"n": 100}).json()["clusters"]
        assert sum(sum(row["counts"]) for row in again) == 128


@pytest.fixture(scope="module")
def measured():
    rng = np.random.default_rng(0)
    centers = ([1.5, 30_000.0], [4.5, 30_300.0])
    X = np.concatenate([rng.normal(center, [0.1, 100.0], (40, 2)) for center in centers])
    return ExponentialFamilyMixture(2, family="gaussian", random_state=0).fit(X)


def test_measurements_are_compared_by_value_and_drawn_in_their_range(tmp_path, measured):
    with running(tmp_path, measured) as client:
        low = client.post("/assign", json={"values": [1.5, 30_000.0]}).json()["items"][0]["cluster"]
        card = client.get(f"/clusters/{low}").json()
        assert {one["name"] for one in card["features"]} == {"feature 0", "feature 1"}
        for one in card["features"]:
            assert one["range"][0] == one["value"] < one["range"][1]
        (neighbor,) = card["neighbors"]
        assert neighbor["more_here"] == []
        assert [phrase.split()[:2] for phrase in sorted(neighbor["more_there"])] == [["feature", "0"], ["feature", "1"]]
        assert all(" against " in phrase for phrase in neighbor["more_there"])


def test_a_feature_that_hardly_differs_sets_nothing_apart(measured):
    here = TopFeatures(np.array([0, 1]), np.array([0.9, 0.01]), "share")
    there = TopFeatures(np.array([0, 1]), np.array([0.1, 0.012]), "share")
    assert compared(measured, here, there, {})["more_here"] == []
    assert compared(measured, here, there, {})["more_there"] == ["feature 1"]


def test_a_model_that_was_fitted_long_ago_does_not_squeeze_the_timeline(tmp_path):
    data = shop()
    model = TimeSensitiveMixture(random_state=0).fit(data, times=data.times)
    with running(tmp_path, model) as client:
        learned(client, [{**item, "time": 1.8e9} for item in items(8, start=120)])
        rows = client.get("/timeline", params={"n": 100}).json()["clusters"]
        assert sum(sum(row["counts"]) for row in rows) == 8
        assert rows[0]["bin_seconds"] == 60
