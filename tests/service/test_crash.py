"""SIGKILL at random moments: every acknowledged item is in the model once, and a replay gives the same bits."""

from __future__ import annotations

import pytest

from service.crashes import Starter, crash
from service.damage import damaged_snapshot, damaged_tail, killed_backups, killed_service, killed_trims, torn, zeroed


@pytest.fixture(scope="module")
def starter():
    starter = Starter()
    yield starter
    starter.close()


@pytest.mark.parametrize(("kind", "n_kills"), [("bernoulli", 2), ("kmeans", 1), ("stream", 1)])
def test_killed_services_lose_and_double_nothing(tmp_path, starter, kind, n_kills):
    found = crash(tmp_path / "service", kind, n_kills, starter, seed=1)
    assert found["acknowledged"] >= 200


def test_damage_is_cut_off_or_gone_around(tmp_path, starter):
    """benchmarks/service_crash.py does each of these a hundred times, for every model."""
    killed = killed_service(tmp_path, "kmeans", starter)
    assert killed.acknowledged <= set(killed.written)
    for damage in (torn, zeroed):
        assert damaged_tail(killed, tmp_path, damage, 4)["cut"] > 0
    damaged_snapshot(killed, tmp_path, 4)
    assert killed_trims(killed, tmp_path, 2)["at_work"] > 0
    killed_backups(killed, tmp_path, 2)
