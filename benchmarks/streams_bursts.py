"""Bursts in 73,121 news titles of April 2019: the ten strongest, and false alarms where times are shuffled.

    python benchmarks/streams_bursts.py [found] [shuffled] [arrivals] [SEEDS]

Shuffled: titles keep their order of the day, that is the times of the month stay, and titles are dealt to them anew, so
that no story bursts; every burst is a false alarm. Arrivals: held-out likelihood of times, how often forecasts hold.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import sys
import time
from typing import Any

import numpy as np

import shoal
from common import data_dir, record
from shoal.streams import TimeSensitiveMixture
from shoal.streams.arrivals import log_probabilities
from shoal.streams.events import DAY, FALSE_ALARMS_PER_DAY, moment

STORIES = {
    "Notre-Dame": ("2019-04-15", {"notre", "dame", "cathedral"}),
    "black hole": ("2019-04-10", {"hole"}),
    "Assange": ("2019-04-11", {"assange", "wikileaks"}),
    "Mueller": ("2019-04-18", {"mueller"}),
}


def titles() -> shoal.Dataset:
    path = data_dir() / "reddit_titles/news_2019-04_unlabelled.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    times = [datetime.datetime.fromisoformat(row["time"].replace("Z", "+00:00")).timestamp() for row in rows]
    columns = {"text": [row["title_lemmas"] for row in rows], "time": [moment_text(at) for at in times]}
    data = shoal.read(columns, text="text", time="time", weighting="count", stop_words="english")
    order = np.argsort(data.times, kind="stable")
    return shoal.Dataset(X=data.X[order], vocabulary=data.vocabulary, times=data.times[order])


def moment_text(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def streamed(data: shoal.Dataset, seed: int) -> tuple[TimeSensitiveMixture, float]:
    began = time.process_time()
    model = TimeSensitiveMixture(random_state=seed)
    model.partial_fit(data)
    return model, time.process_time() - began


def bursts_of(model: TimeSensitiveMixture) -> list[dict[str, Any]]:
    """Each story's strongest, strongest first."""
    found = [event for event in model.events_ if event["kind"] == "burst"]
    found.sort(key=lambda event: -event["strength"])
    first: dict[int, dict[str, Any]] = {}
    for event in found:
        first.setdefault(event["id"], event)
    return list(first.values())


def found(data: shoal.Dataset, seed: int) -> None:
    model, seconds = streamed(data, seed)
    top = []
    for event in bursts_of(model)[:20]:
        names = model.name_features(model.top_features(event["id"], 6).features)
        top.append((moment(event["at"]), round(event["strength"], 1), " ".join(names)))
    ranks = {}
    for story, (day, words) in STORIES.items():
        hits = [rank for rank, (when, _, names) in enumerate(top, start=1) if words & set(names.split())]
        on_day = [rank for rank in hits if top[rank - 1][0].startswith(day)]
        ranks[story] = (hits[0] if hits else None, on_day[0] if on_day else None)
    n_bursts = len([event for event in model.events_ if event["kind"] == "burst"])
    record("streams", workload="bursts of April 2019", model="TimeSensitiveMixture", seed=seed, cpu_seconds=seconds,
           items_per_cpu_second=len(data.times) / seconds, n_bursts=n_bursts,
           quality=float(sum(on is not None and on <= 10 for _, on in ranks.values())), rank_and_rank_on_its_day=ranks,
           strongest=top)  # fmt: skip


def shuffled(data: shoal.Dataset, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(data.times))
    mixed = shoal.Dataset(X=data.X[order], vocabulary=data.vocabulary, times=data.times)
    model, seconds = streamed(mixed, seed)
    bursts = bursts_of(model)
    n_bursts = len([event for event in model.events_ if event["kind"] == "burst"])
    days = float(np.ptp(data.times)) / DAY
    strongest = [(moment(event["at"]), round(event["strength"], 1), int(event["id"])) for event in bursts[:10]]
    record("streams", workload="bursts of April 2019, titles shuffled", model="TimeSensitiveMixture", seed=seed,
           cpu_seconds=seconds, quality=n_bursts / days, stated=FALSE_ALARMS_PER_DAY, n_bursts=n_bursts,
           strongest=strongest)  # fmt: skip


def arrivals(data: shoal.Dataset, seed: int) -> None:
    """Forecasts of the next hour after each part of the stream, against what came."""
    model, held, stories_held, at = TimeSensitiveMixture(random_state=seed), [], [], 0
    times = data.times
    for now in np.arange(times[0] + 2 * DAY, times[0] + 9 * DAY, 3 * 3600.0):
        upto = int(np.searchsorted(times, now))
        model.partial_fit(data.X[at:upto], times=times[at:upto])
        at = upto
        forecast = model.forecast_arrivals("1 hour", at=now)
        after = slice(upto, int(np.searchsorted(times, now + 3600.0)))
        held.append(forecast.low <= after.stop - after.start <= forecast.high)
        labels = model.predict(data.X[after], times=times[after])
        counts = np.array([(labels == id_).sum() for id_ in forecast.cluster_ids])
        stories_held.append(((forecast.cluster_low <= counts) & (counts <= forecast.cluster_high)).mean())
    part = times[:at]
    learned, alone = log_probabilities(part, float(model.kernel_.waves().decay[0]), model.concentration_)
    record("streams", workload="arrivals of April 2019, 9 days", model="TimeSensitiveMixture", seed=seed,
           quality=float(np.mean(held)), level=0.9, stories_held=float(np.mean(stories_held)), n_forecasts=len(held),
           nats_a_message_over_the_kernel_alone=(learned - alone) / len(part))  # fmt: skip


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.isdigit()] or ["found", "shuffled", "arrivals"]
    n_seeds = next((int(word) for word in sys.argv[1:] if word.isdigit()), 1)
    news = titles()
    for what in words:
        for each in range(n_seeds):
            {"found": found, "shuffled": shuffled, "arrivals": arrivals}[what](news, each)
