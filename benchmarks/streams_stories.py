"""Stories, threads and log lines with defaults: the stream, stories over the stream, and fit, on labeled sets.

    python benchmarks/streams_stories.py [NAMES] [SEEDS]

NMI is geometric, B-cubed is F1, CPU seconds are of the process. ``heldout`` runs the third of the sets that nothing was
chosen on.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import lzma
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from common import data_dir, peak_mb, record
from shoal.metrics import b_cubed, normalized_mutual_information
from shoal.streams import Inference, TimeSensitiveMixture

WORD = re.compile(r"[a-z][a-z0-9_+'-]+")
DEVELOPED_ON = ["news", "news_t", "news_jitter", "tweets_t", "stackoverflow", "flickr", "bbc", "log:bgl", "log:openssh",
                "log:zookeeper", "tweet"]  # fmt: skip
HELD_OUT = ["tweets", "mail", "irc", "snippets", "m10", "log:linux", "log:spark"]
Rows = tuple[sp.csr_matrix, np.ndarray, np.ndarray]


def words_of(text: str) -> list[str]:
    return [word for word in WORD.findall(text.lower()) if word not in ENGLISH_STOP_WORDS]


def table(path: str) -> list[dict[str, str]]:
    with gzip.open(data_dir() / path, "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def matrix(texts: Sequence[list[str]], labels: Sequence[Any], times: Any = None) -> Rows:
    columns: dict[str, int] = {}
    indices = [columns.setdefault(word, len(columns)) for text in texts for word in text]
    indptr = np.cumsum([0, *map(len, texts)])
    X = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(texts), len(columns)))
    X.sum_duplicates()
    truth = np.unique(np.asarray(labels), return_inverse=True)[1]
    return X, truth, np.arange(len(truth), dtype=float) if times is None else np.asarray(times, dtype=float)


def mixed(path: str, n: int) -> Rows:
    """A set without a clock, in a random order."""
    rows = table(path)
    order = np.random.default_rng(0).permutation(len(rows))[:n]
    return matrix([rows[i]["text"].split() for i in order], [rows[i]["label"] for i in order])


MIXED = {
    "stackoverflow": ("short_text/stackoverflow.tsv.gz", 8000),
    "snippets": ("short_text/searchsnippets.tsv.gz", 6000),
    "bbc": ("octis_bbc_news/docs.tsv.gz", 2225),
    "m10": ("octis_m10/docs.tsv.gz", 8000),
    "flickr": ("short_text/pascal_flickr.tsv.gz", 5000),
    "tweet": ("short_text/tweet.tsv.gz", 5000),
}


def load(name: str) -> Rows:
    if name in MIXED:
        return mixed(*MIXED[name])
    if name in ("news", "news_t", "tweets", "tweets_t"):
        rows = table(f"mstream_short_streams/{name}.tsv.gz")
        return matrix([row["text"].split() for row in rows], [row["label"] for row in rows])
    if name == "news_jitter":  # topic-ordered news, each delayed by an exponential of mean 200 places
        rows = table("mstream_short_streams/news_t.tsv.gz")
        at = np.arange(len(rows)) + np.random.default_rng(0).exponential(200, len(rows))
        order = np.argsort(at)[:6359]
        return matrix([rows[i]["text"].split() for i in order], [rows[i]["label"] for i in order], at[order])
    if name.startswith("log:"):
        rows = table(f"loghub/{name[4:]}.tsv.gz")
        lines = [[word.lower() for word in re.findall(r"[A-Za-z][A-Za-z_]+", row["content"])] for row in rows]
        return matrix([line or ["<none>"] for line in lines], [row["event"] for row in rows])
    return {"mail": mail, "irc": irc}[name]()


def mail() -> Rows:
    with lzma.open(data_dir() / "linux_mips_mail/mails.jsonl.xz", "rt", encoding="utf-8") as lines:
        items = sorted(map(json.loads, lines), key=lambda item: item["time"])
    items = [item for item in items if str(item["time"]) > "2003"][:6000]
    texts = [words_of(item["subject"].removeprefix("Re: ")) + words_of(item["text"])[:40] for item in items]
    times = [datetime.datetime.fromisoformat(str(item["time"]).replace("Z", "+00:00")).timestamp() for item in items]
    return matrix(texts, [item["thread"] for item in items], times)


def irc() -> Rows:
    rows = [row for row in table("ubuntu_irc/messages.tsv.gz") if row["split"] == "dev" and row["type"] == "msg"]
    files = {name: at for at, name in enumerate(dict.fromkeys(row["file"] for row in rows))}
    times = np.array([int(row["time"][:2]) * 60 + int(row["time"][3:5]) + 2000 * files[row["file"]] for row in rows])
    order = np.argsort(times, kind="stable")
    texts = [words_of(rows[i]["text"]) or ["<none>"] for i in order]
    return matrix(texts, [rows[i]["conversation"] for i in order], times[order])


def quality(labels: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    return {
        "nmi": round(float(normalized_mutual_information(labels, truth, average="geometric")), 3),
        "ari": round(float(adjusted_rand_score(truth, labels)), 3),
        "ami": round(float(adjusted_mutual_info_score(truth, labels)), 3) if len(truth) < 9000 else -1.0,
        "b3": round(float(b_cubed(truth, labels).f1), 3),
        "k": int(np.unique(labels).size),
    }


def run(name: str, seed: int) -> None:
    X, truth, times = load(name)
    for way in ("stream", "stories", "fit"):
        inference = Inference(stories=way != "stream")
        model = TimeSensitiveMixture(inference=inference, random_state=seed)
        started = time.process_time()
        (model.fit if way == "fit" else model.partial_fit)(X, times=times)
        seconds = time.process_time() - started
        found = quality(model.all_labels_, truth)
        record("streams", workload=f"stories {name}", model=f"TimeSensitiveMixture {way}", seconds=seconds,
               peak_mb=peak_mb(), quality=found["nmi"], seed=seed, **found)  # fmt: skip


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "developed"
    names = {"developed": DEVELOPED_ON, "heldout": HELD_OUT}.get(asked) or asked.split(",")
    for each in names:
        for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
            run(each, seed)
