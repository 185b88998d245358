"""Streams with real clocks: mailing-list threads, IRC conversations, crisis events, and the news of April 2019.

Each labelled stream is also given to the same model without time (a step kernel).
"""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import lzma
import re
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

import shoal
from common import PLOTS, Timer, data_dir, peak_mb, record
from shoal.metrics import b_cubed, normalized_mutual_information, variation_of_information
from shoal.report import write_report
from shoal.streams import Evidence, Inference, StepKernel, TimeSensitiveMixture, plots, with_evidence

WORD = re.compile(r"[a-z][a-z0-9_+'-]+")
STORIES = {  # words of the story, the day it broke
    "Notre-Dame fire": ({"notre", "dame"}, "2019-04-15"),
    "Assange arrest": ({"assange"}, "2019-04-11"),
    "black hole image": ({"black", "hole"}, "2019-04-10"),
    "Mueller report": ({"mueller"}, "2019-04-18"),
}


def words_of(text: str) -> list[str]:
    return [word for word in WORD.findall(text.lower()) if word not in ENGLISH_STOP_WORDS]


def as_dataset(texts: Iterable[list[str]], times: Any) -> shoal.Dataset:
    columns: dict[str, int] = {}
    indices: list[int] = []
    indptr = [0]
    for words in texts:
        indices += [columns.setdefault(word, len(columns)) for word in words]
        indptr.append(len(indices))
    X = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(indptr) - 1, len(columns)))
    X.sum_duplicates()
    from shoal.data import Vocabulary

    return shoal.Dataset(X=X, vocabulary=Vocabulary(list(columns)), times=np.asarray(times, dtype=float))


def seconds_of(stamp: str) -> float:
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def rows_of(path: str) -> list[dict[str, str]]:
    with gzip.open(data_dir() / path, "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def compare(name: str, data: shoal.Dataset, truth: np.ndarray, **options: Any) -> None:
    for model, kernel in (("TimeSensitiveMixture", None), ("the same without time", StepKernel())):
        with Timer() as timer:
            fitted = TimeSensitiveMixture(kernel, random_state=0, **options).partial_fit(data)
        labels = fitted.labels_
        record(
            "streams",
            workload=name,
            model=model,
            seconds=timer.seconds,
            peak_mb=peak_mb(),
            quality=normalized_mutual_information(labels, truth),
            vi=variation_of_information(labels, truth),
            b_cubed=float(b_cubed(truth, labels).f1) if hasattr(b_cubed(truth, labels), "f1") else None,
            n_items=len(labels),
            n_clusters=int(np.unique(labels).size),
            true_clusters=int(np.unique(truth).size),
            rate=float(fitted.kernel_.waves().decay[0]),
        )


def mails(n: int) -> None:
    with lzma.open(data_dir() / "linux_mips_mail" / "mails.jsonl.xz", "rt", encoding="utf-8") as lines:
        items = sorted(map(json.loads, lines), key=lambda item: item["time"])
    items = [item for item in items if item["time"] > "2003"][:n]
    texts = [words_of(item["subject"].removeprefix("Re: ")) + words_of(item["text"])[:40] for item in items]
    data = as_dataset(texts, [seconds_of(item["time"]) for item in items])
    compare(f"linux_mips_mail, {n} mails", data, np.array([item["thread"] for item in items]))


def crisis() -> None:
    rows = sorted(rows_of("crisislex/t26.tsv.gz"), key=lambda row: row["time"])
    data = as_dataset([words_of(row["text"]) for row in rows], [seconds_of(row["time"]) for row in rows])
    compare("crisislex t26", data, np.array([row["event"] for row in rows]))


def conversations(split: str) -> None:
    """IRC: every file by itself; who speaks and who is addressed are evidence; system lines are their own."""
    rows = [row for row in rows_of("ubuntu_irc/messages.tsv.gz") if row["split"] == split]
    files = list(dict.fromkeys(row["file"] for row in rows))
    truth = np.array([row["conversation"] for row in rows])
    for model, kernel in (("TimeSensitiveMixture", None), ("the same without time", StepKernel())):
        labels = np.empty(len(rows), dtype=object)
        with Timer() as timer:
            for file in files:
                at = [i for i, row in enumerate(rows) if row["file"] == file]
                for i in at:
                    labels[i] = f"{file}:system:{i}"
                said = [i for i in at if rows[i]["type"] == "msg"]
                fitted = disentangle([rows[i] for i in said], kernel)
                for i, label in zip(said, fitted, strict=True):
                    labels[i] = f"{file}:{label}"
        text = labels.astype(str)
        record(
            "streams",
            workload=f"ubuntu_irc {split}",
            model=model,
            seconds=timer.seconds,
            quality=1.0 - variation_of_information(text, truth) / np.log(len(rows)),
            nmi=normalized_mutual_information(text, truth),
            n_items=len(rows),
            n_clusters=int(np.unique(text).size),
            true_clusters=int(np.unique(truth).size),
            elsner=0.821,
            rules=(0.806, 0.661),
        )


def disentangle(rows: list[dict[str, str]], kernel: Any) -> np.ndarray:
    nicks = {row["nick"].lower() for row in rows}
    minutes, day = [], 0.0
    for row in rows:
        hour, minute = row["time"].split(":")
        now = 60.0 * float(hour) + float(minute) + day
        if minutes and now < minutes[-1] - 600:
            day, now = day + 1440.0, now + 1440.0
        minutes.append(now)
    people = []
    for row in rows:
        called = [word for word in re.findall(r"[\w\[\]^`|{}-]+", row["text"].lower())[:2] if word in nicks]
        people.append([row["nick"].lower(), *called])
    texts = [[word for word in words_of(row["text"]) if word not in nicks] for row in rows]
    data = as_dataset(texts, minutes)
    X, names = with_evidence(data.X, list(data.vocabulary), {"person": people})
    rich = shoal.Dataset(X=X, vocabulary=names, times=np.asarray(minutes))
    model = TimeSensitiveMixture(
        kernel,
        evidence=[Evidence("person:", weight=2.0, strength=1.0)],
        inference=Inference(n_sweeps=60, burn_in=40),
        random_state=0,
    )
    return model.fit(rich).labels_


def births_of(model: TimeSensitiveMixture) -> dict[int, str]:
    """The day of each cluster's birth as the model's events tell it: when it first weighed three messages."""
    return {event["id"]: plots.name_of_day(event["at"]) for event in model.events_ if event["kind"] == "birth"}


def by_day(times: np.ndarray) -> dict[str, int]:
    """How many messages on each of the first days."""
    days, counts = np.unique(np.floor(times / 86400.0), return_counts=True)
    return {plots.name_of_day(day * 86400.0)[5:]: int(n) for day, n in list(zip(days, counts, strict=True))[:10]}


def news() -> None:
    rows = rows_of("reddit_titles/news_2019-04_unlabelled.tsv.gz")
    data = as_dataset([row["title_lemmas"].split() for row in rows], [seconds_of(row["time"]) for row in rows])
    with Timer() as timer:
        model = TimeSensitiveMixture(random_state=0).partial_fit(data)
    labels, times = model.labels_, data.times
    days = np.floor(times / 86400.0)
    top, births = plots.top_stories(model, times), births_of(model)
    for story, (words, broke) in STORIES.items():
        columns = data.vocabulary.find(sorted(words))
        about = np.asarray((data.X[:, columns] > 0).sum(axis=1)).ravel() == len(words)
        on_day = days == seconds_of(broke + "T00:00:00Z") // 86400
        clusters, counts = np.unique(labels[about & on_day], return_counts=True)
        best = int(clusters[np.argmax(counts)])
        members = labels == best
        fresh = [int(id_) for id_ in clusters[np.argsort(-counts)] if births.get(int(id_)) == broke]
        record(
            "streams",
            workload="reddit news 2019-04",
            model="TimeSensitiveMixture",
            seconds=timer.seconds,
            quality=float((about & members).sum() / members.sum()),
            story=story,
            broke=broke,
            first_message=plots.name_of_day(float(times[members].min())),
            birth_event=births.get(best),
            bursts_in_top_stories=[story.day for story in top if story.cluster == best and story.burst],
            messages_by_day=by_day(times[members]),
            first_titles=[rows[i]["title_lemmas"] for i in np.flatnonzero(members)[:4]],
            cluster=best,
            size=int(members.sum()),
            share_of_story_that_day=float((about & members & on_day).sum() / (about & on_day).sum()),
            words=plots.words_for(model, best, 8),
            born_that_day=[(id_, int((labels == id_).sum()), plots.words_for(model, id_, 5)) for id_ in fresh[:3]],
        )
    PLOTS.mkdir(exist_ok=True)
    for path in (arg for arg in sys.argv if arg.endswith(".html")):
        write_report(path, model, data, title="News of April 2019")
    for name, figure in (
        ("time_versus_cluster", plots.time_versus_cluster(model, times)),
        ("stream_graph", plots.stream_graph(model, times)),
        ("top_stories", plots.top_stories_table(model, times)),
    ):
        figure.savefig(PLOTS / f"streams_news_{name}.png", dpi=80)


if __name__ == "__main__":
    what = sys.argv[1:] or ["mails", "crisis", "irc", "news"]
    if "mails" in what:
        mails(15_000)
    if "crisis" in what:
        crisis()
    if "irc" in what:
        conversations("dev")
        conversations("test")
    if "news" in what:
        news()
