"""``shoal serve``: options, refusals, several processes, replicas, checks and backups."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import httpx
import pytest

from service.crashes import TERM, Process
from service.samples import items, learned, new_model, running, wait_until
from shoal.errors import BadSource
from shoal.service import Limits, Service
from shoal.service.folder import backup, check

ROOT = Path(__file__).parents[2]


def serve(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "shoal", "serve", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_every_option_and_every_limit_is_documented():
    import typer

    from shoal.cli.main import app

    text = (ROOT / "docs" / "service.md").read_text()
    options = [flag for one in typer.main.get_command(app).commands["serve"].params for flag in one.opts]
    missing = [flag for flag in options if flag.startswith("--") and f"`{flag}`" not in text]
    assert missing == []
    for name in Limits.__dataclass_fields__:
        assert f"`--{name.replace('_', '-')}`" in text


def test_beyond_localhost_without_a_token_it_refuses_to_start(tmp_path):
    done = serve("--new", "--dir", tmp_path, "--host", "0.0.0.0", "--port", 0)
    assert done.returncode == 2
    assert "there is no token" in done.stderr


def test_a_short_token_is_refused(tmp_path):
    (tmp_path / "tokens").write_text("write short\n")
    done = serve("--new", "--dir", tmp_path, "--token-file", tmp_path / "tokens")
    assert done.returncode == 2
    assert "16 or more" in done.stderr


def test_readers_share_an_address_and_one_writer_learns(tmp_path):
    service = Process(tmp_path, "kmeans", "-k", "4", "--workers", "2")
    try:
        with httpx.Client(base_url=service.url, timeout=120) as client:
            answer = client.post("/learn", json={"items": items(200)}, params={"wait": 60})
            assert answer.status_code == 202, answer.text
            wait_until(lambda: client.get("/clusters").json()["total"] == 4)
            rows = client.post("/assign", json={"items": items(8)}).json()["items"]
            assert [rows[at]["cluster"] == rows[at + 4]["cluster"] for at in range(4)] == [True] * 4
            id_ = rows[0]["cluster"]
            assert client.post(f"/clusters/{id_}/name", json={"name": "shared"}).status_code == 200
            wait_until(lambda: client.get(f"/clusters/{id_}").json()["name"] == "shared")
            assert client.get("/stats").json()["role"] == "writer"
            assert '"who": "127.0.0.1"' in (tmp_path / "audit.log").read_text()
    finally:
        code = service.end(TERM)
    assert code == 0


def test_what_was_changed_is_seen_by_whoever_changed_it(tmp_path):
    """With readers in processes of their own, an edit and items that were waited for are there when it is answered."""
    service = Process(tmp_path, "bernoulli", "-k", "4", "--workers", "2", "--snapshot-seconds", "60")
    with httpx.Client(base_url=service.url, timeout=60) as client:
        sent = client.post("/learn", json={"items": items(100)}, params={"wait": 60}).json()
        assert sent["learned"]
        assert sent["snapshot"] >= sent["position"]
        cluster = client.get("/clusters").json()["clusters"][0]["id"]
        named = client.post(f"/clusters/{cluster}/name", json={"name": "mine"}).json()
        assert named["snapshot"] >= named["edit"]
        assert client.get(f"/clusters/{cluster}").json()["name"] == "mine"
        assert client.post("/undo", json={"edit": named["edit"]}).json()["snapshot"] > named["edit"]
        assert client.get(f"/clusters/{cluster}").json()["name"] != "mine"
        unwaited = client.post("/learn", json={"items": items(5, start=100)}).json()
        assert unwaited["learned"] == (unwaited["snapshot"] >= unwaited["position"])
        began = time.monotonic()
        assert client.post("/learn", json={"items": items(5, start=100)}).json()["known"] == 5
        assert time.monotonic() - began < 5  # nobody asked to wait
    assert service.end(TERM) == 0


def test_a_follower_reads_and_does_not_write(tmp_path):
    with running(tmp_path, new_model("kmeans"), snapshot_seconds=0.2) as client:
        learned(client, items(100))
        wait_until(lambda: client.get("/stats").json()["saved_position"] > 0)
        follower = Service(tmp_path, follow=True, follow_seconds=0.05)
        follower.start()
        learned(client, items(50, start=100))
        wait_until(lambda: follower.view.record.n_items == 150)
        assert len(follower.view.assign(items(2))) == 2
        with pytest.raises(ValueError, match="read-only replica"):
            follower.learn(items(1))
        follower.close()


def test_a_folder_has_one_writer(tmp_path):
    with running(tmp_path, new_model("kmeans")), pytest.raises(ValueError, match="another shoal service"):
        Service(tmp_path)


def test_a_check_finds_damage_and_a_start_falls_back(tmp_path):
    with running(tmp_path, new_model("bernoulli"), snapshot_seconds=0.1) as client:
        for start in (0, 100, 200):
            learned(client, items(100, start=start))
            wait_until(lambda: client.get("/stats").json()["saved_position"] == client.get("/stats").json()["snapshot"])
    assert check(tmp_path).is_whole
    newest = sorted((tmp_path / "snapshots").glob("snapshot-*.shoal"))[-1]
    whole = bytearray(newest.read_bytes())
    whole[len(whole) // 2] ^= 1
    newest.write_bytes(bytes(whole))
    found = check(tmp_path)
    assert not found.is_whole
    assert "damaged" in found.troubles[0]
    with running(tmp_path) as client:
        stats = client.get("/stats").json()
        assert stats["items"] == 300
        assert len(stats["damaged_snapshots"]) == 1


def test_a_backup_taken_while_it_learns_starts_again(tmp_path):
    with running(tmp_path / "one", new_model("kmeans"), snapshot_seconds=0.1) as client:
        for start in range(0, 300, 50):
            learned(client, items(50, start=start))
            backup(tmp_path / "one", tmp_path / f"copy-{start}.tar")
    for start in range(0, 300, 50):
        place = tmp_path / f"restored-{start}"
        with tarfile.open(tmp_path / f"copy-{start}.tar") as tar:
            tar.extractall(place, filter="data")
        assert check(place).is_whole
        with running(place) as client:
            assert client.get("/stats").json()["items"] == start + 50
    with pytest.raises(BadSource, match="not the folder of a service"):
        check(tmp_path)


def test_a_model_file_is_served_and_another_one_is_not_mixed_in(tmp_path):
    from shoal import save

    model = new_model("kmeans")
    with running(tmp_path / "made", model) as client:
        learned(client, items(100))
        fitted = client.service.view.model
    save(tmp_path / "model.shoal", fitted)
    first = serve(tmp_path / "model.shoal", "--port", "0", "--reserve-mb", "1e9", "--check", tmp_path / "made")
    assert json.loads(first.stdout)["whole"]
    import shoal.cli.serve as command

    place = command.folder_of(tmp_path / "model.shoal")
    start = command.model_to_start(tmp_path / "model.shoal", place, False, command.Model.kmeans, None, [])
    with running(place, start) as client:
        assert client.get("/stats").json()["clusters"] == 4
        learned(client, items(10, start=1000))
    assert command.model_to_start(tmp_path / "model.shoal", place, False, command.Model.kmeans, None, []) is None
    save(tmp_path / "model.shoal", fitted.set_params(n_threads=2))
    (place / "service.json").write_text("{}")
    with pytest.raises(ValueError, match=re.escape("was started from another model.shoal")):
        command.model_to_start(tmp_path / "model.shoal", place, False, command.Model.kmeans, None, [])
