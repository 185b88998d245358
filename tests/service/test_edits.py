"""Edits over a real service: what they change, and undoing them."""

from __future__ import annotations

from service.samples import items, learned, new_model, running


def test_a_merge_moves_items_and_undo_puts_all_back_and_keeps_what_was_learned_since(tmp_path):
    with running(tmp_path, new_model("bernoulli")) as client:
        learned(client, items(400))
        before = client.get("/clusters?sort=id").json()["clusters"]
        a, b = before[0]["id"], before[1]["id"]
        merged = client.post(f"/clusters/{a}/merge", json={"clusters": [b]}).json()
        assert merged["n_changed"] > 0
        assert {one["to"] for one in merged["changed"]} == {a}
        assert client.get(f"/clusters/{b}").status_code == 404
        assert f"merged into {a}" in client.get(f"/clusters/{b}").json()["error"]["message"]
        learned(client, items(20, start=400))
        undone = client.post("/undo", json={"edit": merged["edit"]}).json()
        assert undone["undid"] == merged["edit"]
        assert client.get(f"/clusters/{b}").status_code == 200
        assert client.get("/stats").json()["items"] == 420
        assert client.post("/undo", json={"edit": merged["edit"]}).status_code == 409
        kinds = [event["kind"] for event in client.get("/events").json()["events"]]
        assert "merge" in kinds
        assert "undo" in kinds


def test_names_and_pins_are_kept_and_undone_in_turn(tmp_path):
    with running(tmp_path, new_model("bernoulli")) as client:
        learned(client, items(200))
        id_ = client.get("/clusters").json()["clusters"][0]["id"]
        first = client.post(f"/clusters/{id_}/name", json={"name": "one"}).json()
        second = client.post(f"/clusters/{id_}/name", json={"name": "two"}).json()
        pinned = client.post(f"/clusters/{id_}/pin", json={"pinned": True}).json()
        assert client.get(f"/clusters/{id_}").json()["pinned"]
        assert client.post("/undo", json={"edit": first["edit"]}).status_code == 409
        for edit in (pinned, second):
            assert client.post("/undo", json={"edit": edit["edit"]}).status_code == 200
        card = client.get(f"/clusters/{id_}").json()
        assert (card["name"], card["pinned"]) == ("one", False)
        assert client.get("/edits").json()["undoable"] == first["edit"]


def test_a_catalog_made_before_an_undoing_is_not_used_after_it(tmp_path):
    with running(tmp_path, new_model("bernoulli")) as client:
        learned(client, items(200))
        service = client.service
        id_ = client.get("/clusters").json()["clusters"][0]["id"]
        edit = client.post(f"/clusters/{id_}/name", json={"name": "one"}).json()["edit"]
        service.view.catalog.build_seconds = 1e6  # so slow to make that it would be kept for as long as it holds
        assert client.post("/undo", json={"edit": edit}).status_code == 200
        assert client.get(f"/clusters/{id_}").json()["name"] != "one"


def test_a_split_divides_the_items(tmp_path):
    with running(tmp_path, new_model("bernoulli")) as client:
        learned(client, items(400))
        a, b = (one["id"] for one in client.get("/clusters").json()["clusters"][:2])
        client.post(f"/clusters/{a}/merge", json={"clusters": [b]})
        split = client.post(f"/clusters/{a}/split", json={}).json()
        assert split["n_changed"] > 0
        assert client.get(f"/clusters/{split['new_cluster']}").status_code == 200


def test_edits_of_clusters_that_are_not_there_are_404_and_nothing_is_written(tmp_path):
    with running(tmp_path, new_model("kmeans")) as client:
        learned(client, items(60))
        position = client.get("/stats").json()["journal_position"]
        assert client.post("/clusters/9999/name", json={"name": "x"}).status_code == 404
        assert client.post("/clusters/9999/merge", json={"clusters": [1]}).status_code == 404
        assert client.get("/stats").json()["journal_position"] == position


def test_a_name_does_not_make_the_catalog_anew(tmp_path):
    with running(tmp_path, new_model("bernoulli")) as client:
        learned(client, items(200))
        before = client.service.view.catalog
        id_ = before.entries[0].id
        client.post(f"/clusters/{id_}/name", json={"name": "one"})
        after = client.service.view.catalog
        assert after.entries[0].name == "one"
        assert after.vectors is before.vectors
