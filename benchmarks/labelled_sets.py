"""Every labelled set of the measuring data in one form: counts of words or tags, labels, and times where there are any.

At most MOST_ROWS rows of a set are used: a random sample, drawn once, or of a stream the first rows.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import lzma
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from common import data_dir

MOST_ROWS = int(os.environ.get("SHOAL_MOST_ROWS", 5000))


class Labelled(NamedTuple):
    """A set ready for every model."""

    X: sp.csr_matrix  # counts
    truth: np.ndarray
    times: np.ndarray | None  # seconds, or order of arrival
    kind: str  # "text", "sets", "stream" or "log"
    all_rows: int
    lines: list[str] | None = None  # of logs, as they were written


def records(path: str) -> Iterator[dict[str, Any]]:
    opened = lzma.open if path.endswith(".xz") else gzip.open
    with opened(data_dir() / path, "rt", encoding="utf-8", newline="") as lines:
        if ".jsonl" in path:
            yield from map(json.loads, lines)
        else:
            yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def words(text: str) -> list[str]:
    return [w for w in re.findall(r"[a-z][a-z0-9_'+-]+", text.lower()) if w not in ENGLISH_STOP_WORDS]


def counted(
    texts: list[list[str]], truth: list[Any], kind: str, times: Any = None, *, all_rows: int = 0, lines: Any = None
) -> Labelled:
    """Words in two rows or more as counts; rows that keep none are left out."""
    X = CountVectorizer(analyzer=lambda words: words, min_df=2).fit_transform(texts).astype(np.float64)
    kept = np.flatnonzero(np.diff(X.indptr) > 0)
    clock = None if times is None else np.asarray(times, dtype=float)[kept]
    labels = np.unique(np.asarray(truth, dtype=str)[kept], return_inverse=True)[1]
    kept_lines = None if lines is None else [lines[at] for at in kept]
    return Labelled(X[kept], labels, clock, kind, all_rows or len(texts), kept_lines)


def sampled(rows: list[Any]) -> list[Any]:
    """At most MOST_ROWS of them, in their order."""
    if len(rows) <= MOST_ROWS:
        return rows
    return [rows[at] for at in np.sort(np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS])]


def texts(path: str, *, text: Callable[[dict], str], label: str, raw: bool = True) -> Labelled:
    rows = list(records(path))
    some = sampled(rows)
    cut = [words(text(row)) if raw else text(row).split() for row in some]
    return counted(cut, [row[label] for row in some], "text", all_rows=len(rows))


def clean(path: str) -> Labelled:
    """Sets whose words were cut by their authors."""
    return texts(path, text=lambda row: row["text"], label="label", raw=False)


def newsgroup_body(row: dict) -> str:
    """Headers, quoted lines and signatures would give the answer away."""
    body = row["text"].partition("\n\n")[2]
    return "\n".join(line for line in body.split("\n") if not re.match(r"\s*[>|:]|.*(writes|wrote):", line))


def tags(path: str, features: Callable[[dict], list[str]], label: Callable[[dict], str]) -> Labelled:
    rows = [row for row in records(path) if features(row) and label(row)]
    some = sampled(rows)
    return counted([sorted(set(features(row))) for row in some], [label(row) for row in some], "sets",
                   all_rows=len(rows))  # fmt: skip


def seconds_of(stamp: str) -> float:
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def mails() -> Labelled:
    rows = sorted((r for r in records("linux_mips_mail/mails.jsonl.xz") if r["time"] > "2003"), key=lambda r: r["time"])
    some = rows[:MOST_ROWS]
    cut = [words(r["subject"].removeprefix("Re: ")) + words(r["text"])[:40] for r in some]
    return counted(cut, [r["thread"] for r in some], "stream", [seconds_of(r["time"]) for r in some],
                   all_rows=len(rows))  # fmt: skip


def crisis(path: str, label: Callable[[dict], str]) -> Labelled:
    rows = sorted(records(path), key=lambda r: r["time"])
    some = sampled(rows)
    return counted([words(r["text"]) for r in some], [label(r) for r in some], "stream",
                   [seconds_of(r["time"]) for r in some], all_rows=len(rows))  # fmt: skip


def chat() -> Labelled:
    rows = [r for r in records("ubuntu_irc/messages.tsv.gz") if r["type"] == "msg"]
    files = {name: at for at, name in enumerate(dict.fromkeys(r["file"] for r in rows))}
    some = rows[:MOST_ROWS]
    clock = [
        86_400.0 * files[r["file"]] + 3600 * int(r["time"][:2]) + 60 * int(r["time"][3:5]) if r["time"] else np.nan
        for r in some
    ]
    clock = np.maximum.accumulate(np.nan_to_num(clock, nan=0.0))
    return counted([[*words(r["text"]), f"nick={r['nick']}"] for r in some],
                   [f"{r['file']}:{r['conversation']}" for r in some], "stream", clock, all_rows=len(rows))  # fmt: skip


def in_order(name: str) -> Labelled:
    rows = list(records(f"mstream_short_streams/{name}.tsv.gz"))
    some = rows[:MOST_ROWS]
    return counted([r["text"].split() for r in some], [r["label"] for r in some], "stream", np.arange(len(some)),
                   all_rows=len(rows))  # fmt: skip


def log(name: str) -> Labelled:
    rows = list(records(f"loghub/{name}.tsv.gz"))
    return counted([re.findall(r"[A-Za-z]\w+", r["content"]) for r in rows], [r["event"] for r in rows], "log",
                   np.arange(len(rows)), lines=[r["content"] for r in rows])  # fmt: skip


LOGS = ("apache", "bgl", "hdfs", "hpc", "linux", "openssh", "spark", "zookeeper")
SETS: dict[str, Callable[[], Labelled]] = {
    "20newsgroups": lambda: texts("20newsgroups/docs.jsonl.xz", text=newsgroup_body, label="label"),
    "arxiv abstracts": lambda: texts("arxiv/abstracts_sample.jsonl.xz", text=lambda r: f"{r['title']} {r['text']}",
                                     label="label"),
    "arxiv titles": lambda: texts("arxiv/titles.tsv.xz", text=lambda r: r["title"], label="primary_cat"),
    "debian descriptions": lambda: texts("debian_packages/packages.jsonl.xz",
                                         text=lambda r: f"{r['short']} {r['long']}", label="section"),
    "octis_bbc_news": lambda: clean("octis_bbc_news/docs.tsv.gz"),
    "octis_dblp": lambda: clean("octis_dblp/docs.tsv.gz"),
    "octis_m10": lambda: clean("octis_m10/docs.tsv.gz"),
    "ag_news_test": lambda: texts("ag_news_test/docs.tsv.gz", text=lambda r: f"{r['title']} {r['text']}",
                                  label="label"),
    "stackoverflow titles": lambda: texts("stackoverflow_titles/titles.tsv.gz", text=lambda r: r["text"],
                                          label="label"),
    "searchsnippets": lambda: clean("short_text/searchsnippets.tsv.gz"),
    "googlenews": lambda: clean("short_text/googlenews.tsv.gz"),
    "tweet": lambda: clean("short_text/tweet.tsv.gz"),
    "pascal_flickr": lambda: clean("short_text/pascal_flickr.tsv.gz"),
    "reddit titles": lambda: texts("reddit_titles/posts.tsv.gz", text=lambda r: r["title_lemmas"], label="subreddit",
                                   raw=False),
    "debian tags": lambda: tags("debian_packages/packages.jsonl.xz", lambda r: r["tags"], lambda r: r["section"]),
    "recipes": lambda: tags("recipes/recipes.tsv.gz", lambda r: r["ingredients"].split(), lambda r: r["region"]),
    "linux_mips_mail": mails,
    "crisislex t26": lambda: crisis("crisislex/t26.tsv.gz", lambda r: r["event"]),
    "crisislex t6": lambda: crisis("crisislex/t6.tsv.gz", lambda r: f"{r['event']} {r['on_topic']}"),
    "ubuntu_irc": chat,
    "mstream tweets": lambda: in_order("tweets"),
    "mstream news": lambda: in_order("news"),
    **{f"loghub {name}": (lambda name=name: log(name)) for name in LOGS},
}  # fmt: skip
