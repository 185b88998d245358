"""Short texts in stream order (MStream's four sets): NMI of one pass with the defaults, over ten seeds.

The figures beside it are those of Yin et al. (KDD 2018), NMI with the geometric mean.
"""

from __future__ import annotations

import gzip
import sys

import numpy as np
import scipy.sparse as sp

from common import Timer, data_dir, peak_mb, record
from shoal.metrics import normalized_mutual_information
from shoal.streams import StepKernel, TimeSensitiveMixture
from shoal.streams.inference import rate_learning, streaming

PUBLISHED = {"tweets": (0.844, 0.823), "tweets_t": (0.882, 0.923), "news": (0.834, 0.797), "news_t": (0.850, 0.873)}

CHOSEN = [
    (rate_learning, "EAGERNESS"),
    (rate_learning, "START_CONCENTRATION"),
    (streaming, "PRIOR_DOCUMENTS"),
    (streaming, "FRAGMENTED"),
]


def load(name: str) -> tuple[sp.csr_matrix, np.ndarray]:
    with gzip.open(data_dir() / "mstream_short_streams" / f"{name}.tsv.gz", "rt") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines][1:]
    columns: dict[str, int] = {}
    indices = [columns.setdefault(word, len(columns)) for row in rows for word in row[2].split()]
    indptr = np.cumsum([0, *(len(row[2].split()) for row in rows)])
    X = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(rows), len(columns)))
    X.sum_duplicates()
    return X, np.array([int(row[1]) for row in rows])


def main(names: list[str], n_seeds: int) -> None:
    for name in names:
        X, truth = load(name)
        mstream, mstreamf = PUBLISHED[name]
        for model, kernel in (("TimeSensitiveMixture", None), ("the same without time", StepKernel())):
            geometric, arithmetic, seconds = [], [], []
            for seed in range(n_seeds if kernel is None else 1):
                with Timer() as timer:
                    labels = TimeSensitiveMixture(kernel, random_state=seed).partial_fit(X).labels_
                geometric.append(normalized_mutual_information(labels, truth, average="geometric"))
                arithmetic.append(normalized_mutual_information(labels, truth, average="arithmetic"))
                seconds.append(timer.seconds)
            record(
                "streams",
                workload=f"mstream {name}",
                model=model,
                seconds=float(np.median(seconds)),
                peak_mb=peak_mb(),
                quality=float(np.mean(geometric)),
                sd=float(np.std(geometric)),
                least=float(np.min(geometric)),
                nmi_arithmetic=float(np.mean(arithmetic)),
                n_clusters=int(np.unique(labels).size),
                seeds=len(geometric),
                mstream=mstream,
                mstreamf=mstreamf,
            )


def sensitivity() -> None:
    """The constants that were chosen with an eye on these four sets, halved and doubled one at a time; one seed."""
    sets = {name: load(name) for name in PUBLISHED}
    for where, constant in CHOSEN:
        usual = getattr(where, constant)
        for factor in (0.5, 2.0):
            setattr(where, constant, factor * usual)
            found = {}
            with Timer() as timer:
                for name, (X, truth) in sets.items():
                    labels = TimeSensitiveMixture(random_state=0).partial_fit(X).labels_
                    found[name] = normalized_mutual_information(labels, truth, average="geometric")
            setattr(where, constant, usual)
            record(
                "streams",
                workload="mstream, sensitivity",
                model=f"{constant} {factor * usual:g} instead of {usual:g}",
                seconds=timer.seconds,
                quality=float(np.mean(list(found.values()))),
                beats_both_on=sum(found[name] > max(PUBLISHED[name]) for name in found),
                **found,
            )


if __name__ == "__main__":
    if sys.argv[1:] == ["sensitivity"]:
        sensitivity()
    else:
        names = sys.argv[1].split(",") if len(sys.argv) > 1 else list(PUBLISHED)
        main(names, int(sys.argv[2]) if len(sys.argv) > 2 else 10)
