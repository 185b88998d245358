"""The routes, over a real service with a real journal."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import socket
import threading

import httpx
import numpy as np
import pytest

from service.samples import items, learned, new_model, running, wait_until
from shoal.service import Client, Limits, Tokens
from shoal.service.client import ServiceError
from shoal.service.server import listen

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "'; DROP TABLE entries; --",
    "a\0b",
    "\u202eright to left",
    "=1+1",
    "\x1b[31m",
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("api"), new_model("bernoulli")) as client:
        learned(client, items(400))
        yield client


def test_what_was_learned_is_assigned_and_counted(client):
    stats = client.get("/stats").json()
    assert stats["items"] >= 400
    assert stats["clusters"] >= 2
    assert stats["snapshot"] >= 1
    answer = client.post("/assign", json={"items": items(8)})
    rows = answer.json()["items"]
    assert [rows[at]["cluster"] == rows[at + 4]["cluster"] for at in range(4)] == [True] * 4
    assert all(0 <= row["score"] <= 1 for row in rows)
    assert answer.headers["X-Shoal-Snapshot"] == str(answer.json()["snapshot"])


def test_asking_changes_nothing(client):
    before = client.get("/stats").json()
    client.post("/assign", json={"features": ["never seen", "g0w1"]})
    client.post("/suggest", json={"observed": ["g0w1"]})
    after = client.get("/stats").json()
    assert [before[name] for name in ("items", "features", "journal_position")] == [
        after[name] for name in ("items", "features", "journal_position")
    ]


def test_memberships_are_probabilities(client):
    rows = client.post("/assign?top=3", json={"items": items(4)}).json()["items"]
    for row in rows:
        shares = [one["probability"] for one in row["memberships"]]
        assert 0 < sum(shares) <= 1 + 1e-9
        assert shares == sorted(shares, reverse=True)


def test_sending_an_item_again_does_not_learn_it_twice(client):
    n_items = client.get("/stats").json()["items"]
    answer = learned(client, items(10))
    assert (answer["accepted"], answer["known"]) == (0, 10)
    assert client.get("/stats").json()["items"] == n_items


def test_suggestions_have_probabilities_and_reasons_and_take_no_for_an_answer(client):
    first = client.post("/suggest", json={"observed": ["g1w0", "g1w1"], "n": 3}).json()["suggestions"]
    assert {one["feature"] for one in first} <= {"shared", *(f"g1w{n}" for n in range(6))}
    assert 0 < first[0]["probability"] <= 1
    assert first[0]["reasons"]
    refused = {"observed": ["g1w0", "g1w1"], "rejected": [first[0]["feature"]], "n": 3}
    second = client.post("/suggest", json=refused).json()["suggestions"]
    assert first[0]["feature"] not in [one["feature"] for one in second]


def test_an_unknown_feature_is_answered_with_near_ones(client):
    answer = client.post("/suggest", json={"observed": ["g1w00"]})
    assert answer.status_code == 404
    assert "g1w0" in answer.json()["error"]["message"]


def test_clusters_are_searched_sorted_and_paged(client):
    everything = client.get("/clusters").json()
    sizes = [one["size"] for one in everything["clusters"]]
    assert sizes == sorted(sizes, reverse=True)
    assert everything["total"] == len(sizes)
    first = client.get("/clusters?page_size=1&sort=id&order=ascending").json()
    second = client.get("/clusters?page_size=1&sort=id&order=ascending&page=2").json()
    assert first["clusters"][0]["id"] < second["clusters"][0]["id"]
    assert client.get("/clusters?search=g2w").json()["total"] >= 1
    assert client.get("/clusters?search=nothing+has+this").json()["total"] == 0


def test_clusters_are_filtered_and_reasons_call_them_as_the_list_does(client):
    assert client.get("/clusters?only=active").json()["total"] >= 4
    assert client.get("/clusters?only=nothing").status_code == 422
    first = client.get("/clusters").json()["clusters"][0]
    edit = client.post(f"/clusters/{first['id']}/name", json={"name": "mine"}).json()["edit"]
    assert [one["id"] for one in client.get("/clusters?only=named").json()["clusters"]] == [first["id"]]
    observed = [name for name in first["features"] if name.startswith("g")][:1]
    reasons = client.post("/suggest", json={"observed": observed}).json()["suggestions"][0]["reasons"]
    assert "mine" in [reason["name"] for reason in reasons if reason["cluster"] == first["id"]]
    client.post("/undo", json={"edit": edit})
    names = [one["name"] for one in client.get("/clusters").json()["clusters"]]
    assert len(set(names)) == len(names)
    assert "mine" not in names


def test_a_card_says_what_there_is(client):
    id_ = client.get("/clusters").json()["clusters"][0]["id"]
    card = client.get(f"/clusters/{id_}").json()
    assert card["features"][0]["low"] <= card["features"][0]["high"]
    assert card["typical_items"]
    assert card["typical_items"][0]["score"] >= card["typical_items"][-1]["score"]
    assert sum(card["history"]["counts"]) > 0


def test_a_cluster_that_is_not_there_is_404(client):
    answer = client.get("/clusters/9999")
    assert answer.status_code == 404
    assert answer.json()["error"]["kind"] == "not_found"


def test_every_view_comes_as_csv_and_ndjson(client):
    first = client.get("/clusters").json()["clusters"][0]["id"]
    views = ("/clusters", f"/clusters/{first}", f"/clusters/{first}/items", "/events", "/timeline", "/map", "/stats")
    for path in views:
        text = client.get(path, params={"format": "csv"}).text
        assert len(list(csv.DictReader(io.StringIO(text)))) >= 1, path
        lines = client.get(path, params={"format": "ndjson"}).text.splitlines()
        assert all(json.loads(line) for line in lines)
    assert client.post("/assign?format=csv", json={"items": items(2)}).text.startswith("id,cluster,score")
    assert client.get("/clusters", params={"format": "csv", "search": "no such"}).text.startswith("id,name,")
    assert client.get("/edits", params={"format": "csv"}).text.startswith("edit,action,cluster")


def test_bulk_in_bulk_out(client):
    body = "\n".join(json.dumps(item) for item in items(2500, start=10_000))
    kind = {"Content-Type": "application/x-ndjson"}
    answer = client.post("/learn?wait=60", content=body, headers=kind).json()
    assert answer["accepted"] == 2500
    assert answer["learned"]
    lines = client.post("/assign", content=body, headers=kind).text.splitlines()
    assert len(lines) == 2500
    assert json.loads(lines[-1])["id"] == "item-12499"


def test_a_bad_line_is_named_and_what_came_before_stays(client):
    good = [json.dumps({"id": f"line-{n}", "features": ["g0w1"]}) for n in range(1200)]
    body = "\n".join([*good, '{"id": "x", "features": [1]}'])
    answer = client.post("/learn", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code == 422
    assert answer.json()["error"]["line"] == 1201
    assert answer.json()["error"]["accepted"] == 1000


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "3", '{"items": []}', '{"features": [""]}', '{"features": ["a"], "text": "b"}', '{"items": [{}]}',
     '{"features": {"a": -1}}', '{"features": {"a": NaN}}', '{"features": ["a"], "time": "noon"}',
     '{"features": ["a"], "other": 1}', '{"features": ["\\ud800"]}', '{"id": 3, "features": ["a"]}',
     '{"features": ["a"], "time": 1e300}', "[" * 100_000],
)  # fmt: skip
def test_bad_items_are_refused_in_one_shape(client, body):
    answer = client.post("/learn", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, body[:50]
    assert set(answer.json()["error"]) >= {"status", "kind", "message"}


def test_hostile_names_are_data(client):
    some = [{"id": name, "features": [name, "g0w1", "g0w2"]} for name in HOSTILE]
    learned(client, some)
    assert [row["unknown_features"] for row in client.post("/assign", json={"items": some}).json()["items"]] == [0] * 6
    id_ = client.get("/clusters").json()["clusters"][-1]["id"]
    for name in HOSTILE:
        assert client.post(f"/clusters/{id_}/name", json={"name": name}).json()["name"] == name
        assert client.get(f"/clusters/{id_}").json()["name"] == name
        table = csv.DictReader(io.StringIO(client.get(f"/clusters?format=csv&search={id_}").text))
        shown = next(row["name"] for row in table if row["id"] == str(id_))
        assert not shown.startswith(("=", "+", "-", "@"))
        answer = client.post("/suggest", json={"observed": [name]})
        assert answer.status_code == 200
    too_long = client.post(f"/clusters/{id_}/name", json={"name": "x" * 1_000_000})
    assert too_long.status_code == 422
    assert len(too_long.text) < 2000
    learned(client, [{"id": "megabyte", "text": "x" * 1_000_000}])


def test_no_route_takes_a_path_or_sql(client):
    for path in ("/assets/../app.py", "/assets/%2e%2e%2fapp.py", "/assets/..%5capp.py", "/clusters/1%20OR%201=1"):
        assert client.get(path).status_code in (404, 422)


def test_answers_carry_the_security_headers(client):
    for path in ("/", "/stats", "/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_other_origins_and_names_are_refused(client):
    assert client.post("/learn", content="{}", headers={"Content-Type": "text/plain"}).status_code == 415
    assert client.get("/stats", headers={"Host": "evil.example"}).status_code == 403


def test_metrics_are_what_prometheus_reads(client):
    text = client.get("/metrics").text
    assert 'shoal_requests_total{method="POST",route="/learn",status="202"}' in text
    assert "shoal_lag_items 0" in text
    assert "shoal_ready 1" in text


def test_the_openapi_document_has_examples(client):
    document = client.get("/openapi.json").json()
    assert document["components"]["schemas"]["ItemIn"]["examples"]
    assert "/learn" in document["paths"]


# --- other models -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["kmeans", "stream"])
def test_other_models_learn_and_are_asked(tmp_path, kind):
    with running(tmp_path, new_model(kind)) as client:
        learned(client, items(300))
        learned(client, items(50, start=300))
        rows = client.post("/assign", json={"items": items(8)}).json()["items"]
        assert len({row["cluster"] for row in rows}) >= 2
        assert client.get("/clusters").json()["total"] >= 2
        id_ = client.get("/clusters").json()["clusters"][0]["id"]
        card = client.get(f"/clusters/{id_}").json()
        assert card["features"]
        assert {"name", "similarity", "more_here", "more_there"} <= set(card["neighbors"][0])
        answer = client.post("/suggest", json={"observed": ["g0w1"]})
        assert answer.status_code == 409
        assert "does not suggest" in answer.json()["error"]["message"]


def test_a_model_that_cannot_learn_more_says_so(tmp_path):
    from shoal import DensityKMeans

    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(3), size=60)
    with running(tmp_path, DensityKMeans(3, family="dirichlet", random_state=0).fit(X)) as client:
        answer = client.post("/learn", json={"values": [0.2, 0.3, 0.5]})
        assert answer.status_code in (202, 409)
        if answer.status_code == 409:
            assert "cannot learn" in answer.json()["error"]["message"]


def test_a_new_model_says_how_many_items_it_needs(tmp_path):
    with running(tmp_path, new_model("kmeans")) as client:
        answer = client.post("/assign", json={"features": ["a"]})
        assert answer.status_code == 409
        assert "begins when 50 items have come" in answer.json()["error"]["message"]
        client.post("/learn", json={"items": items(30)})
        assert client.get("/stats").json()["clusters"] == 0
        learned(client, items(30, start=30))
        assert client.get("/stats").json()["clusters"] == 4


# --- the client ---------------------------------------------------------------------------------


def test_the_client_has_the_verbs_of_an_estimator(client):
    with Client(client.url) as model:
        ask_and_edit(model)


def ask_and_edit(model):
    labels = model.predict([["g0w1", "g0w2"], ["g1w1", "g1w2"], {"g0w1": 1, "g0w3": 1}])
    assert labels[0] == labels[2] != labels[1]
    assert model.suggest(["g0w1"], n=2)[0]["probability"] > 0
    model.partial_fit([{"id": "by client", "features": ["g0w1"]}], times=[1.7e9])
    assert model.cluster_ids_.size == model.cluster_sizes_.size
    edit = model.name_cluster(int(model.cluster_ids_[0]), "called by the client")
    assert model.cluster_card(int(model.cluster_ids_[0]))["name"] == "called by the client"
    model.undo(edit["edit"])
    with pytest.raises(ServiceError, match="no live cluster") as caught:
        model.name_cluster(9999, "x")
    assert caught.value.status == 404


# --- tokens and limits --------------------------------------------------------------------------


def test_without_or_with_a_wrong_token_every_writing_route_is_401(tmp_path):
    tokens = Tokens.of(write=["w" * 32], read=["r" * 32], protect_reads=True)
    with running(tmp_path, new_model("kmeans"), tokens=tokens) as client:
        writing = [
            path.replace("{cluster}", "1")
            for path, methods in client.get("/openapi.json", headers={"Authorization": "Bearer " + "r" * 32})
            .json()["paths"]
            .items()
            if "post" in methods and path not in ("/assign", "/suggest")
        ]
        assert len(writing) == 6
        for path in writing:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic " + "w" * 32}):
                assert client.post(path, json={}, headers=headers).status_code == 401
            assert client.post(path, json={}, headers={"Authorization": "Bearer " + "r" * 32}).status_code == 403
        allowed = client.post("/learn", json={"features": ["a"]}, headers={"Authorization": "Bearer " + "w" * 32})
        assert allowed.status_code == 202
        assert client.get("/stats").status_code == 401
        assert client.get("/stats", headers={"Authorization": "Bearer " + "r" * 32}).status_code == 200
        assert client.get("/").status_code == client.get("/healthz").status_code == 200


def test_too_large_bodies_and_too_many_items_are_413(tmp_path):
    limits = Limits(max_body_mb=0.01, max_items=5)
    with running(tmp_path, new_model("kmeans"), limits=limits) as client:
        large = json.dumps({"features": ["x" * 900] * 20})
        assert client.post("/learn", content=large, headers={"Content-Type": "application/json"}).status_code == 413
        pieces = client.post("/learn", content=iter([large.encode()]), headers={"Content-Type": "application/json"})
        assert pieces.status_code == 413
        assert client.post("/learn", json={"items": items(6)}).status_code == 413


def test_a_full_queue_is_429_and_says_when_to_try_again(tmp_path):
    limits = Limits(queue_items=20)
    with running(tmp_path, new_model("kmeans"), limits=limits) as client:
        assert client.post("/learn", json={"items": items(40)}).status_code == 202  # 50 are needed to begin
        wait_until(lambda: client.service.writer.lag_items > 20)
        answer = client.post("/learn", json={"items": items(40, start=40)})
        assert answer.status_code == 429
        assert answer.headers["Retry-After"] == "1"
        assert client.get("/healthz").status_code == 200


def test_callers_who_wait_hold_up_nobody(tmp_path):
    """More of them than there are threads to answer questions."""
    with running(tmp_path, new_model("kmeans"), limits=Limits(max_requests=100)) as client:

        async def wait_for_all():
            async with httpx.AsyncClient(base_url=client.url, timeout=60) as many:
                await asyncio.gather(*(many.post("/learn?wait=4", json=item) for item in items(45)))

        waiting = threading.Thread(target=lambda: asyncio.run(wait_for_all()))
        waiting.start()
        wait_until(lambda: client.get("/stats").json()["lag_items"] == 45)
        assert client.post("/assign", json={"features": ["a"]}).status_code == 409  # 50 items are needed to begin
        assert client.get("/readyz").status_code == 200
        assert waiting.is_alive()
        waiting.join()


def test_answers_are_not_held_back_for_an_acknowledgement():
    with contextlib.closing(listen("127.0.0.1", 0)) as found:
        assert found.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY on connections of no other sockets


def test_a_restart_goes_on_where_it_was(tmp_path):
    with running(tmp_path, new_model("bernoulli")) as client:
        learned(client, items(300))
        id_ = client.get("/clusters").json()["clusters"][0]["id"]
        client.post(f"/clusters/{id_}/name", json={"name": "kept"})
        before = client.get(f"/clusters/{id_}").json()
        events = client.get("/events").json()
    with running(tmp_path) as client:
        assert client.get(f"/clusters/{id_}").json() == before
        assert client.get("/events").json() == events
        assert learned(client, items(10))["known"] == 10
