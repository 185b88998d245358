"""The number of clusters of labeled text: bounds of 1, 3 and 10 times the true number, and "auto".

Stop words of English are left out of raw text; lemmatized sets are taken as they are. Times are CPU time.

    python benchmarks/families_number.py [set,set|all|aside] [n_rows]
"""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import re
import sys
import time

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from common import data_dir, record
from shoal.families import ExponentialFamilyMixture

# (file, label, text, raw text). Those of ASIDE were not looked at while the rule was found.
SETS = {
    "bbc_news": ("octis_bbc_news/docs.tsv.gz", "label", "text", False),
    "m10": ("octis_m10/docs.tsv.gz", "label", "text", False),
    "dblp": ("octis_dblp/docs.tsv.gz", "label", "text", False),
    "searchsnippets": ("short_text/searchsnippets.tsv.gz", "label", "text", False),
    "stackoverflow": ("short_text/stackoverflow.tsv.gz", "label", "text", False),
    "tweet": ("short_text/tweet.tsv.gz", "label", "text", False),
    "googlenews": ("short_text/googlenews.tsv.gz", "label", "text", False),
    "20newsgroups": ("20newsgroups/docs.jsonl.xz", "label", "text", True),
}
ASIDE = {
    "pascal_flickr": ("short_text/pascal_flickr.tsv.gz", "label", "text", False),
    "ag_news": ("ag_news_test/docs.tsv.gz", "label", "text", True),
    "arxiv": ("arxiv/abstracts_sample.jsonl.xz", "label", "text", True),
    "crisislex": ("crisislex/t26.tsv.gz", "event", "text", True),
}


def read(name: str, n_rows: int):
    path, label, text, raw = (SETS | ASIDE)[name]
    opener = lzma.open if path.endswith("xz") else gzip.open
    with opener(data_dir() / path, "rt", encoding="utf-8", newline="") as lines:
        if ".jsonl" in path:
            rows = [json.loads(line) for line in lines]
        else:
            rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    texts = [row[text] for row in rows]
    if name == "20newsgroups":  # headers name the group
        texts = [re.split(r"\n\s*\n", one, maxsplit=1)[-1] for one in texts]
    options = {"min_df": 3, "max_df": 0.3, "stop_words": "english"} if raw else {"min_df": 2}
    X = CountVectorizer(token_pattern=r"(?u)\b\w+\b", **options).fit_transform(texts).astype(np.float64)
    labels = np.unique([row[label] for row in rows], return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(np.flatnonzero(np.diff(X.indptr) > 0))[:n_rows]
    return X[order], labels[order]


def main() -> None:
    chosen = sys.argv[1] if len(sys.argv) > 1 else "all"
    n_rows = int(sys.argv[2]) if len(sys.argv) > 2 else 4_000
    names = {"all": list(SETS), "aside": list(ASIDE)}.get(chosen, chosen.split(","))
    for name in names:
        X, truth = read(name, n_rows)
        k = len(np.unique(truth))
        bounds = {"1x": k, "3x": 3 * k, "10x": 10 * k, "auto": "auto"}
        for which, bound in bounds.items():
            began = time.process_time()
            model = ExponentialFamilyMixture(bound if bound == "auto" else min(bound, X.shape[0] // 4), random_state=0)
            labels = model.fit(X).labels_
            record(
                "families", workload=f"number-{name}-{X.shape[0]}", model=f"shoal-{which}", true=k,
                seconds=time.process_time() - began, clock="cpu", found=model.n_clusters_,
                quality=normalized_mutual_info_score(truth, labels), ari=adjusted_rand_score(truth, labels),
                reason=model.number_of_clusters_.reason if bound == "auto" else None,
            )  # fmt: skip


if __name__ == "__main__":
    main()
