"""``read_batches`` holds one batch and the vocabulary, whatever the size of the file.

A file of each shape and format is made in two sizes, one four times the other, with the same vocabulary. Each is read
in a fresh process, which says how much memory it held at most. The run fails if a larger file needs much more memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import shoal
from common import Timer, peak_mb, record

FORMATS = {"parquet": "FORMAT parquet", "csv": "FORMAT csv, HEADER", "jsonl": "FORMAT json"}
N_WORDS = 50_000
OPTIONS = {
    "text": {"text": "words", "weighting": "tfidf"},
    "list": {"features": "words"},
    "delimited": {"features": "words", "delimiter": "|"},
    "long": {"item": "user", "feature": "tag", "weight": "n"},
}
MODES = {"counted": {}, "fixed": {"vocabulary": [f"w{word}" for word in range(N_WORDS)]}, "growing": {"grow": True}}
MEMORY_MB = 200  # DuckDB's share
RATIO_ALLOWED = 1.25


def write(path: Path, shape: str, n_rows: int) -> None:
    """Rows of five words, few of them common; or pairs of a user, in no order, and a word. Fixed by the row number."""
    import duckdb

    def word(salt: str) -> str:
        return f"'w' || CAST(floor({N_WORDS} * pow((hash(i + {salt}) % 1000003) / 1000003.0, 3)) AS BIGINT)"

    five = "[" + ", ".join(word(str(101 * place)) for place in range(5)) + "]"
    columns = {
        "text": f"'row ' || i AS id, array_to_string({five}, ' ') AS words",
        "list": f"'row ' || i AS id, {five} AS words",
        "delimited": f"'row ' || i AS id, array_to_string({five}, '|') AS words",
        "long": f"'user-' || (hash(i) % {n_rows // 10}) AS \"user\", {word('7')} AS tag, 1 + hash(i + 11) % 5 AS n",
    }
    form = FORMATS[path.suffix[1:]]
    duckdb.sql(f"COPY (SELECT {columns[shape]} FROM range({n_rows}) t(i)) TO '{path}' ({form})")


def read(path: Path, shape: str, mode: str, batch_rows: int) -> dict[str, float]:
    options = OPTIONS[shape] | MODES[mode]
    if mode == "growing" and shape == "text":
        options |= {"weighting": "count"}
    rows, total = 0, 0.0
    with Timer() as timer:
        for batch in shoal.read_batches(path, batch_rows=batch_rows, memory_mb=MEMORY_MB, **options):
            rows, total, width = rows + len(batch), total + float(batch.X.sum()), batch.X.shape[1]
    return {"rows": rows, "total": total, "features": width, "seconds": timer.seconds, "peak_mb": peak_mb()}


def in_own_process(*what: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--run", *what]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="*", default=list(OPTIONS), choices=list(OPTIONS))
    parser.add_argument("--formats", nargs="*", default=list(FORMATS), choices=list(FORMATS))
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=list(MODES))
    parser.add_argument("--rows", type=int, default=12_000_000, help="of the larger file")
    parser.add_argument("--batch-rows", type=int, default=100_000)
    parser.add_argument("--dry", action="store_true", help="record nothing")
    parser.add_argument("--run", nargs=4, metavar=("FILE", "SHAPE", "MODE", "BATCH_ROWS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        path, shape, mode, batch_rows = asked.run
        print(json.dumps(read(Path(path), shape, mode, int(batch_rows))))
        return
    failed = []
    for shape, form in product(asked.shapes, asked.formats):
        if (shape, form) == ("list", "csv"):  # CSV has no lists
            continue
        with tempfile.TemporaryDirectory() as folder:
            sizes = (asked.rows // 4, asked.rows)
            paths = [Path(folder) / f"{size}.{form}" for size in sizes]
            for path, size in zip(paths, sizes, strict=True):
                write(path, shape, size)
            for mode in asked.modes:
                small, large = (in_own_process(str(path), shape, mode, str(asked.batch_rows)) for path in paths)
                ratio = large["peak_mb"] / small["peak_mb"]
                facts = {
                    "workload": f"{shape} from {form}, {mode} vocabulary, in batches of {asked.batch_rows}",
                    "model": "shoal.read_batches",
                    "file_rows": list(sizes),
                    "file_mb": [round(path.stat().st_size / 1e6, 1) for path in paths],
                    "peak_mb": large["peak_mb"],
                    "peak_mb_of_quarter": small["peak_mb"],
                    "ratio": ratio,
                    "seconds": large["seconds"],
                    "features": large["features"],
                }
                print(json.dumps(facts), flush=True) if asked.dry else record("data", **facts)
                if ratio > RATIO_ALLOWED:
                    failed.append(facts["workload"])
    if failed:
        sys.exit(f"memory grew with the file: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
