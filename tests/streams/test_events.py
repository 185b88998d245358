"""Bursts: how often there is a false one, that a true one is found, and that each event is told once."""

from __future__ import annotations

import math

import numpy as np
import pytest

import shoal
from shoal.cli.show import show_events
from shoal.streams import Inference, TimeSensitiveMixture
from shoal.streams.events import EventLog, Watch

DAY = 86400.0


def test_a_constant_rate_seldom_alarms():
    """Ville's inequality: over the whole of their lives, at most a share a of stories ever shows evidence 1 / a."""
    rng = np.random.default_rng(0)
    ever = []
    for _ in range(400):
        watch, most = Watch(0.0, 0.0), -math.inf
        for t in np.cumsum(rng.exponential(rng.choice([0.01, 1.0, 100.0]), 150)):
            watch.add([float(t)])
            if watch.n_gaps % 10 == 0:
                watch.note_change()
            most = max(most, watch.log_evidence()[0])
        ever.append(most)
    for level in (0.1, 0.02):
        assert (np.array(ever) >= -math.log(level)).mean() <= level + 2 * math.sqrt(level / 400)


def test_false_alarms_stay_within_the_budget():
    rng = np.random.default_rng(1)
    log, days = EventLog(), 20
    times = np.sort(rng.uniform(0, days * DAY, 20_000))
    stories = rng.integers(0, 40, times.size) + 40 * (times // (5 * DAY)).astype(int)
    for lo in range(0, times.size, 250):
        log.arrived(stories[lo : lo + 250], times[lo : lo + 250], float(times[lo : lo + 250].max()))
    assert len(log.bursts) <= days + 3 * math.sqrt(days)
    assert log.spent <= days


def test_a_burst_is_found_told_once_and_kept(tmp_path, capsys):
    """Two stories at a steady rate; on the third day one of them is everywhere."""
    rng = np.random.default_rng(2)
    steady = [np.sort(rng.uniform(0, 4 * DAY, 150)) for _ in range(2)]
    sudden = np.sort(rng.uniform(2.5 * DAY, 2.6 * DAY, 120))
    times = np.concatenate([*steady, sudden])
    about = np.repeat([0, 1, 1], [150, 150, 120])
    order = np.argsort(times)
    X = np.zeros((times.size, 4))
    X[about == 0, :2], X[about == 1, 2:] = 3.0, 3.0
    model = TimeSensitiveMixture(
        "exponential", half_life="1 day", concentration=0.1, base="uniform", strength=2.0,
        inference=Inference(window=60, batch=20), random_state=0,
    )  # fmt: skip
    model.partial_fit(X[order], times=times[order])
    bursts = [event for event in model.events_ if event["kind"] == "burst"]
    story = model.all_labels_[np.flatnonzero(about[order] == 1)[-1]]
    assert [event["id"] for event in bursts] == [story]
    assert 2.4 * DAY < bursts[0]["at"] < 2.6 * DAY
    assert bursts[0]["strength"] > 20.0
    show_events(model, 5, False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "strongest bursts"
    assert f"burst  {story:>6}  feature" in lines[1]
    assert lines[2] == "latest events"
    with pytest.raises(shoal.errors.BadInput, match="has no events"):
        show_events(shoal.SphericalKMeans(2), 5, False)
    shoal.save(tmp_path / "model.shoal", model)
    again = shoal.load(tmp_path / "model.shoal")
    for each in (model, getattr(again, "model", again)):
        told = each.new_events()
        assert [event.kind for event in told].count("birth") == 2
        assert [(event.kind, event.id) for event in told if event.kind == "burst"] == [("burst", story)]
        assert each.new_events() == []


def test_a_story_that_is_everywhere_from_its_first_minute_bursts():
    """400 messages in 78 minutes, after two days of other stories that come at steady rates."""
    rng = np.random.default_rng(3)
    steady = np.sort(rng.uniform(0, 4 * DAY, 800))
    sudden = 2 * DAY + np.sort(rng.uniform(0, 78 * 60.0, 400))
    times, stories = np.append(steady, sudden), np.append(rng.integers(0, 8, 800), np.full(400, 8))
    order = np.argsort(times)
    times, stories, log = times[order], stories[order], EventLog()
    for lo in range(0, times.size, 100):
        log.arrived(stories[lo : lo + 100], times[lo : lo + 100], float(times[lo : lo + 100].max()))
    assert [id_ for id_, _, _ in log.bursts] == [8]
    (_, at, strength), *_ = log.bursts
    assert abs(at - 2 * DAY) < 3600.0
    assert strength > 100.0


TEXT = ["2019-04-15 17:00", "2019-04-15 17:30"]


@pytest.mark.parametrize("times", [TEXT, np.array(TEXT, "M8[s]")])
def test_times_as_people_write_them(times):
    pd = pytest.importorskip("pandas")
    for given in (times, pd.Series(pd.to_datetime(times)), list(pd.to_datetime(times).to_pydatetime())):
        model = TimeSensitiveMixture(random_state=0).fit(np.eye(2), times=given)
        np.testing.assert_allclose(model.all_times_, [1555347600.0, 1555349400.0])
    with pytest.raises(shoal.errors.BadInput, match=r"times\[1\] is missing"):
        model.fit(np.eye(2), times=np.array(["2019-04-15", "NaT"], "M8[s]"))


@pytest.mark.parametrize("seed", range(8))
def test_looking_only_when_a_burst_is_possible_misses_none(seed):
    rng = np.random.default_rng(seed)
    log, eager, now = EventLog(), EventLog(), 1e9
    for _ in range(60):
        n = int(rng.integers(1, 200))
        times = now + np.cumsum(rng.exponential(rng.choice([0.01, 1.0, 60.0, 3000.0]), n))
        stories = rng.integers(0, rng.choice([1, 3, 30]), n)
        now = float(times[-1])
        for each in eager.watched.values():
            each.look_at = 0  # looks at every batch
        for one in (log, eager):
            one.arrived(stories, times, now)
    assert log.bursts == eager.bursts
    assert log.waiting == eager.waiting
    assert len(log.bursts) > 5
