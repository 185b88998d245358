"""Topics compared with stories: fit on sets in order of their rows, how many clusters, how large, NMI and ARI.

python benchmarks/streams_topics.py [NAMES]      names of labelled_sets.py, separated by commas
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from common import peak_mb, record
from labelled_sets import SETS
from shoal.metrics import normalized_mutual_information
from shoal.streams import TimeSensitiveMixture

NAMES = ["pascal_flickr", "searchsnippets", "octis_bbc_news", "ag_news_test"]


def run(name: str) -> None:
    data = SETS[name]()
    for granularity in ("stories", "topics"):
        began = time.process_time()
        model = TimeSensitiveMixture(granularity=granularity, random_state=0).fit(data.X)
        seconds = time.process_time() - began
        sizes = np.unique(model.labels_, return_counts=True)[1]
        record(
            "streams", workload=f"granularity {name}", model=f"TimeSensitiveMixture {granularity}",
            rows=data.X.shape[0], cpu_seconds=seconds, peak_mb=peak_mb(), k=sizes.size,
            true_k=np.unique(data.truth).size,
            quality=normalized_mutual_information(model.labels_, data.truth, average="geometric"),
            ari=adjusted_rand_score(data.truth, model.labels_), largest_share=sizes.max() / sizes.sum(),
        )  # fmt: skip


if __name__ == "__main__":
    for each in sys.argv[1].split(",") if len(sys.argv) > 1 else NAMES:
        run(each)
