"""What a plan says, against what then happens."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.cli.plan import extrapolated, peak_of, shares_for
from shoal.data.sampling import Size


def test_a_small_source_is_fitted_whole(shoal, shops):
    columns = ["--item", "id", "--features", "tags", "-k", 2]
    planned = shoal("plan", shops / "day1.parquet", *columns, "--json")
    assert planned.code == 0, planned.err
    facts = json.loads(planned.out)
    assert (facts["items"], facts["features"], facts["non_zeros"]) == (80, 8, 240)
    assert facts["trials"] == "80 items"
    assert 50 < facts["peak_mb"] < 3000
    assert facts["seconds"] > 0


@pytest.mark.parametrize("shape", ["text", "long", "matrix"])
def test_samples_of_every_shape_are_read_as_the_whole(tmp_path, shape, monkeypatch):
    from shoal.data import ReadOptions
    from shoal.data.sampling import size_of, write_samples

    rng = np.random.default_rng(0)
    options = ReadOptions(weighting="count")
    if shape == "matrix":
        import scipy.sparse as sp

        source = sp.random(1000, 20, 0.2, "csr", random_state=0)
        path = tmp_path / "s.npz"
    else:
        path = tmp_path / "s.parquet"
        if shape == "text":
            source = pa.table({"text": [" ".join(rng.choice(["red", "fox", "wine"], 3)) for _ in range(1000)]})
        else:
            source = pa.table({"item": np.repeat(np.arange(1000), 4), "tag": rng.choice(["a", "b", "c"], 4000)})
    assert size_of(source, options).items == 1000
    write_samples(source, options, {path: 0.3})
    size = size_of(path, options)
    assert 230 < size.items < 370
    if shape == "long":
        assert set(np.bincount(pq.read_table(path)["item"].to_numpy())) == {0, 4}  # whole items


def test_two_trials_are_drawn_on_to_the_whole():
    trials = [{"items": 100, "seconds": 1.0}, {"items": 200, "seconds": 1.5}]
    assert extrapolated(trials, "seconds", Size(1000, 1, 1)) == pytest.approx(5.5)
    assert extrapolated(trials[:1], "seconds", Size(100, 1, 1)) == 1.0
    peaks = [{"items": 100, "features": 10, "peak_mb": 300.0}, {"items": 200, "features": 20, "peak_mb": 320.0}]
    assert peak_of(peaks, Size(1000, 30, 0)) == pytest.approx(340)  # by features: 10 more of them at 2 MB each
    assert peak_of(peaks, Size(1000, 20, 10**6)) == pytest.approx(360)  # by cells: 800 items at 0.05 MB each
    same = [trial | {"features": 5} for trial in peaks]
    assert peak_of(same, Size(1000, 5, 0)) == pytest.approx(480)  # by items, where there are no other features
    for n in (10, 20_000, 30_000, 10**6, 10**8):
        shares = shares_for(Size(n, 1, 1))
        assert list(shares) == sorted(shares)
        assert all(0 < share <= 1 for share in shares)
        assert n * shares[-1] <= max(20_000, 150_000)


def test_what_a_trial_refuses_the_plan_refuses(shoal, shops):
    done = shoal("plan", shops / "day1.parquet", "--item", "id", "--features", "tags", "-k", 5000)
    assert done.code == 2
    assert "trial fit" in done.err
    assert shoal("plan", shops / "day1.parquet", "--set", "color=red").code == 2
