"""A full disk makes the service read-only, with 507; it goes on by itself when there is space again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from service.samples import items, learned, new_model, running, wait_until
from shoal.service.folder import check


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.decode()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def filled(disk, leave=0):
    """Fill the disk but for some bytes; the file to remove again."""
    stats = os.statvfs(disk)
    n_bytes = stats.f_bavail * stats.f_frsize - leave
    (disk / "filler").write_bytes(bytes(n_bytes))
    return disk / "filler"


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="mounting a small tmpfs needs root")
@pytest.mark.parametrize("reserve_mb", [1.0, 0.0])
def test_nothing_acknowledged_is_lost_and_it_recovers(small_disk, reserve_mb):
    with running(small_disk / "s", new_model("kmeans"), reserve_mb=reserve_mb, snapshot_seconds=0.3) as client:
        learned(client, items(100))
        filler = filled(small_disk)
        statuses, sent = [], 100
        for _ in range(200):
            answer = client.post("/learn", json={"items": items(5, start=sent)})
            statuses.append(answer.status_code)
            if answer.status_code == 507:
                break
            sent += 5
        assert statuses[-1] == 507
        assert "disk" in answer.json()["error"]["message"]
        assert client.get("/healthz").json()["read_only"]
        assert "shoal_read_only 1" in client.get("/metrics").text
        assert client.post("/assign", json={"items": items(2)}).status_code == 200
        filler.unlink()
        wait_until(lambda: client.post("/learn", json={"items": items(5, start=sent)}).status_code == 202)
        learned(client, items(5, start=sent + 5))
        assert client.get("/stats").json()["read_only"] is None
        assert client.get("/stats").json()["items"] == sent + 10
    assert check(small_disk / "s").is_whole
