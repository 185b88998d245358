"""The eight logs of loghub beside drain3: grouping accuracy, FGA, NMI and lines a second of CPU, in one run.

    python benchmarks/streams_logs.py [developed | heldout | all] [SEEDS] [COPIES]

Grouping accuracy: the share of lines whose group holds exactly the lines of one true template. FGA: F1 over groups.
Lines are read by ``shoal.read(tokens="log")``, whose time counts. COPIES repeats each log, for a rate on longer ones.
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import shoal
from common import data_dir, record
from shoal.metrics import normalized_mutual_information
from shoal.streams import TimeSensitiveMixture

DEVELOPED_ON = ["bgl", "openssh", "zookeeper", "hpc", "hdfs"]
HELD_OUT = ["apache", "linux", "spark"]


def lines_of(name: str) -> tuple[list[str], np.ndarray]:
    with gzip.open(data_dir() / f"loghub/{name}.tsv.gz", "rt", encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["content"] for row in rows], np.unique([row["event"] for row in rows], return_inverse=True)[1]


def grouping(labels: Sequence[int], truth: np.ndarray) -> tuple[float, float]:
    """Grouping accuracy, and FGA."""
    groups, places = np.unique(np.asarray(labels), return_inverse=True)
    templates = np.unique(truth)
    pairs, counts = np.unique(places * templates.size + truth, return_counts=True)
    exact = counts[
        (counts == np.bincount(places)[pairs // templates.size])
        & (counts == np.bincount(truth)[pairs % templates.size])
    ]
    precision, recall = exact.size / groups.size, exact.size / templates.size
    return float(exact.sum() / len(truth)), 2 * precision * recall / (precision + recall) if exact.size else 0.0


def ours(seed: int, way: str) -> Callable[[list[str]], Any]:
    def run(lines: list[str]) -> Any:
        data = shoal.read({"line": lines}, text="line", tokens="log")
        model = TimeSensitiveMixture(random_state=seed)
        return getattr(model, way)(data).labels_

    return run


def drain3(masking: bool) -> Callable[[list[str]], Any]:
    """With its defaults, and with the masks of the example in its README."""
    from drain3 import TemplateMiner
    from drain3.masking import MaskingInstruction
    from drain3.template_miner_config import TemplateMinerConfig

    edge, end = r"((?<=[^A-Za-z0-9])|^)", r"((?=[^A-Za-z0-9])|$)"
    masks = [
        (r"(([0-9a-f]{2,}:){3,}([0-9a-f]{2,}))", "ID"),
        (r"(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})", "IP"),
        (r"([0-9a-f]{6,} ?){3,}", "SEQ"),
        (r"([0-9A-F]{4} ?){4,}", "SEQ"),
        (r"(0x[a-f0-9A-F]+)", "HEX"),
        (r"([\-\+]?\d+)", "NUM"),
    ]

    def run(lines: list[str]) -> Any:
        config = TemplateMinerConfig()
        if masking:
            config.masking_instructions = [MaskingInstruction(edge + mask + end, name) for mask, name in masks]
        miner = TemplateMiner(config=config)
        return [miner.add_log_message(line)["cluster_id"] for line in lines]

    return run


def main(names: list[str], n_seeds: int, copies: int) -> None:
    ways = {f"TimeSensitiveMixture {way}, seed {seed}": ours(seed, way) for seed in range(n_seeds)
            for way in ("partial_fit", "fit")}  # fmt: skip
    ways |= {"drain3": drain3(False), "drain3, masks": drain3(True)}
    ours(0, "fit")(lines_of("bgl")[0][:300])  # compiles
    found: dict[str, list[tuple[float, ...]]] = {way: [] for way in ways}
    for name in names:
        lines, truth = lines_of(name)
        for way, run in ways.items():
            if copies > 1 and way.split(",")[0].endswith(" fit"):
                continue  # the rate of fit is not asked for
            began, cpu = time.perf_counter(), time.process_time()
            labels = run(lines * copies)
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
            accuracy, f1 = grouping(labels, np.tile(truth, copies))
            nmi = float(normalized_mutual_information(np.asarray(labels), np.tile(truth, copies)))
            found[way].append((accuracy, f1, nmi, len(labels) / seconds, len(labels) / cpu))
            record("streams", workload=f"log {name}, {len(labels):,} lines", model=way, seconds=seconds,
                   quality=accuracy, fga=f1, nmi=nmi, n_clusters=int(np.unique(labels).size),
                   true_clusters=int(np.unique(truth).size), items_per_cpu_second=len(labels) / cpu)  # fmt: skip
    for way, rows in found.items():
        if rows:
            accuracy, f1, nmi, per_second, per_cpu_second = np.mean(rows, axis=0)
            record("streams", workload=f"logs, mean of {','.join(names)}, copies {copies}", model=way, quality=accuracy,
                   fga=f1, nmi=nmi, items_per_second=per_second, items_per_cpu_second=per_cpu_second)  # fmt: skip


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "all"
    chosen = {"developed": DEVELOPED_ON, "heldout": HELD_OUT, "all": DEVELOPED_ON + HELD_OUT}[asked]
    main(chosen, int(sys.argv[2]) if len(sys.argv) > 2 else 3, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
