"""A full disk makes the service read-only, with 507; it goes on by itself when there is space again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from service.damage import fill_and_free
from service.samples import items, learned, new_model, running
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


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="mounting a small tmpfs needs root")
@pytest.mark.parametrize("reserve_mb", [1.0, 0.0])
def test_nothing_acknowledged_is_lost_and_it_recovers(small_disk, reserve_mb):
    with running(small_disk / "s", new_model("kmeans"), reserve_mb=reserve_mb, snapshot_seconds=0.3) as client:
        learned(client, items(100))
        fill_and_free(client, small_disk, sent=100)
    assert check(small_disk / "s").is_whole
