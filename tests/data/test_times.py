"""Times in many spellings."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import BadInput


def times_of(values, **options):
    table = values if isinstance(values, pa.Table) else pa.table({"t": values, "tags": [["a"]] * len(values)})
    return shoal.read(table, features="tags", time="t", **options)


@settings(max_examples=15)
@given(st.lists(st.datetimes(dt.datetime(1901, 1, 1), dt.datetime(2200, 1, 1)), min_size=1, max_size=5))
def test_iso_text_and_timestamps_agree(moments):
    expected = [moment.replace(tzinfo=dt.UTC).timestamp() for moment in moments]
    zone = dt.timezone(dt.timedelta(hours=-3, minutes=-30))
    for values in (
        [moment.isoformat() for moment in moments],
        [moment.replace(tzinfo=dt.UTC).astimezone(zone).isoformat(" ") for moment in moments],
        [moment.isoformat() + "Z" for moment in moments],
        pa.array(moments, pa.timestamp("us")),
        pa.array([moment.replace(tzinfo=dt.UTC) for moment in moments], pa.timestamp("us", tz="America/New_York")),
    ):
        np.testing.assert_allclose(times_of(values).times, expected, atol=2e-6)  # microseconds in float64


def test_days():
    assert times_of(["1970-01-02", "2019-12-31"]).times.tolist() == [86400.0, 1577750400.0]
    assert times_of(pa.array([dt.date(1970, 1, 2)])).times.tolist() == [86400.0]


@pytest.mark.parametrize(("unit", "scale"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_numbers_are_told_by_their_size(unit, scale):
    seconds = [0, 1_546_398_245, 1_546_398_246]
    for kind in (pa.int64(), pa.float64(), pa.string()):
        dataset = times_of(pa.array([second * scale for second in seconds], pa.int64()).cast(kind, safe=False))
        assert dataset.times.tolist() == seconds
        assert dataset.recipe.time_unit == unit
        assert f"taken as {unit} since 1970" in dataset.summary["guessed"][-1]


def test_the_unit_may_be_said_and_is_remembered():
    dataset = times_of([5000, 6000], time_unit="ms")
    assert dataset.times.tolist() == [5.0, 6.0]
    again = shoal.read(pa.table({"t": [7000], "tags": [["a"]]}), recipe=dataset)
    assert again.times.tolist() == [7.0]


def test_a_missing_time_is_nan_and_counted():
    dataset = times_of(["2019-01-01", None, " "])
    assert np.isnan(dataset.times[1:]).all()
    assert dataset.summary["missing_times"] == 2


def test_pandas_times():
    frame = pd.DataFrame({"t": pd.to_datetime(["2019-01-01", None]), "tags": [["a"], ["b"]]})
    assert shoal.read(frame, time="t").times[0] == 1546300800.0


def test_what_is_no_time_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"row 2 of column 't' holds 'yesterday', which is not a time.*Write times as"):
        times_of(["2019-01-01", "yesterday"])
    path = tmp_path / "t.csv"
    path.write_text("t,tags\n" + "2019-01-01,a\n" * 70_000 + "2019-13-01,a\n")
    with pytest.raises(BadInput, match="row 70001 of column 't' holds '2019-13-01'"):
        shoal.read(path, features="tags", time="t")
    with pytest.raises(BadInput, match="row 70001 of column 't'"):
        list(shoal.read_batches(path, features="tags", time="t", batch_rows=1000))
    with pytest.raises(BadInput, match="infinite time"):
        times_of([1.0, np.inf])
    with pytest.raises(BadInput, match="time= needs"):
        times_of(pa.table({"t": [[1]], "tags": [["a"]]}))
