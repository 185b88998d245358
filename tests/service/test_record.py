"""What is kept along with the model: bursts, the timeline, and its way into a snapshot and back."""

from __future__ import annotations

import numpy as np

from service.samples import items
from shoal.service.record import N_BINS, LearnedItem, Record

HOUR = 3600.0


def arrivals(*times, cluster=1):
    return [LearnedItem(f"i{at}-{time}", cluster, 0.5, float(time), ("x", "y")) for at, time in enumerate(times)]


def bursts(record):
    return [event for event in record.events if event["kind"] == "burst"]


def test_a_steady_stream_never_bursts_even_when_it_has_just_begun():
    record = Record()
    record.add_items(arrivals(*np.arange(0, 24 * HOUR, 60)))
    assert bursts(record) == []


def test_ten_times_the_usual_rate_is_one_burst():
    record = Record()
    record.add_items(arrivals(*np.arange(0, 12 * HOUR, 300)))
    record.add_items(arrivals(*np.arange(12 * HOUR, 12.5 * HOUR, 20)))
    assert [event["cluster"] for event in bursts(record)] == [1]
    assert 12 * HOUR < bursts(record)[0]["time"] < 12.25 * HOUR
    record.add_items(arrivals(*np.arange(12.5 * HOUR, 20 * HOUR, 300)))
    assert not record.rates[1].bursting


def test_a_burst_that_is_over_fades_even_if_no_item_comes():
    record = Record()
    record.add_items(arrivals(*np.arange(0, 12 * HOUR, 300)))
    record.add_items(arrivals(*np.arange(12 * HOUR, 12.5 * HOUR, 20)))
    last = record.rates[1].last
    record.end_bursts(last + 60)
    assert record.rates[1].bursting
    record.end_bursts(last + 2 * HOUR)
    record.end_bursts(last + 3 * HOUR)
    assert [event["kind"] for event in record.events] == ["burst", "fade"]
    assert record.rates[1].last == last


def test_nothing_is_kept_for_clusters_that_are_gone():
    record = Record()
    for cluster in range(1000):
        record.add_items(arrivals(0, 60, cluster=cluster))
        record.forget(cluster)
    assert not record.rates
    assert not record.timeline


def test_the_timeline_counts_every_item_in_a_bounded_number_of_bins():
    record = Record()
    for times in (np.arange(0, 30 * 24 * HOUR, HOUR), [365 * 24 * HOUR], [-40 * 24 * HOUR]):
        record.add_items(arrivals(*times))
    bins = record.timeline[1]
    assert sum(bins.values()) == record.n_items
    assert max(bins) - min(bins) < N_BINS
    assert (record.first_bin, record.last_bin) == (min(bins), max(bins))


def test_a_merged_cluster_leaves_its_past_to_the_other():
    record = Record()
    record.add_items(arrivals(0, 60, 120, cluster=1) + arrivals(30, 90, cluster=2))
    record.merge_timeline(1, 2)
    assert sum(record.timeline[2].values()) == 5
    assert record.rates[2].n_items == 5
    assert 1 not in record.rates


def test_it_comes_back_from_a_snapshot_as_it_was():
    record = Record(n_recent=3)
    record.add_items([LearnedItem(one["id"], at % 2, 0.1 * at, one["time"], tuple(one["features"])) for at, one in
                      enumerate(items(5))])  # fmt: skip
    record.add_event("name", 1, 5.0, note="\0<b>\u202e")
    again = Record.from_state(record.to_state())
    assert again == record
    assert len(again.recent) == 3


def test_a_merge_before_the_first_item_leaves_the_timeline_to_begin_with_it():
    record = Record()
    record.merge_timeline(2, into=1)
    record.add_items(arrivals(1.7e9))
    assert record.bin_seconds == 60.0
    assert record.first_bin == record.last_bin == 1.7e9 // 60
