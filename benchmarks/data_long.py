"""A long table of 12 million (item, feature, weight) rows into a matrix: all at once, and in batches of bounded memory.

The rival reads the same Parquet file with pandas, numbers both columns with ``factorize`` and builds the matrix with
scipy. Each runs in a process of its own, so that each has its own peak memory; both end with the same totals.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import shoal
from common import Timer, peak_mb, record

PAIRS = 12_000_000
COLUMNS = {"item": "user", "feature": "tag", "weight": "n"}


def own_peak_mb() -> float:
    """The peak of this process alone: what getrusage says is handed down from the parent that started it."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    kilobytes = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), None)
    return peak_mb() if kilobytes is None else kilobytes * 1024 / 1e6


def write(path: Path) -> None:
    """1.2 million users in no order, 300,000 tags of which few are common; fixed by the row number."""
    import duckdb

    duckdb.sql(f"""
        COPY (SELECT 'user-' || (hash(i) % 1200000) AS user,
                     'tag-' || CAST(floor(300000 * pow((hash(i + 7) % 1000003) / 1000003.0, 3)) AS BIGINT) AS tag,
                     CAST(1 + hash(i + 11) % 5 AS DOUBLE) AS n
              FROM range({PAIRS}) t(i)) TO '{path}' (FORMAT parquet)""")


def facts(X) -> dict[str, float]:
    return {"rows": X.shape[0], "features": X.shape[1], "non_zeros": int(X.nnz), "total": float(X.sum())}


def read_whole(path: Path):
    return facts(shoal.read(path, **COLUMNS).X)


def read_batches(path: Path):
    rows = non_zeros = total = features = 0
    for batch in shoal.read_batches(path, batch_rows=100_000, memory_mb=1000, **COLUMNS):
        rows, non_zeros, total = rows + len(batch), non_zeros + int(batch.X.nnz), total + float(batch.X.sum())
        features = batch.X.shape[1]
    return {"rows": rows, "features": features, "non_zeros": non_zeros, "total": total}


def read_pandas(path: Path):
    import pandas as pd
    import scipy.sparse as sp

    frame = pd.read_parquet(path)
    rows, users = pd.factorize(frame["user"])
    columns, tags = pd.factorize(frame["tag"])
    X = sp.csr_matrix((frame["n"].to_numpy(), (rows, columns)), shape=(len(users), len(tags)))
    X.sum_duplicates()
    return facts(X)


RUNS = {"shoal.read": read_whole, "shoal.read_batches": read_batches, "pandas.factorize": read_pandas}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", nargs=2, metavar=("WHICH", "FILE"))
    arguments = parser.parse_args()
    if arguments.run:
        import pyarrow as pa

        table = pa.table({"user": ["a"], "tag": ["b"], "n": [1.0]})
        shoal.read(table, **COLUMNS)  # compiling is apart
        list(shoal.read_batches(table, **COLUMNS))
        with Timer() as timer:
            found = RUNS[arguments.run[0]](Path(arguments.run[1]))
        print(json.dumps(found | {"seconds": timer.seconds, "peak_mb": own_peak_mb()}))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.parquet"
        write(path)
        answers = {}
        for which in RUNS:
            command = [sys.executable, __file__, "--run", which, str(path)]
            answers[which] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    totals = {tuple(answer[name] for name in ("rows", "features", "non_zeros", "total")) for answer in answers.values()}
    if len(totals) != 1:
        sys.exit(f"the answers differ: {answers}")
    for which, answer in answers.items():
        record("data", workload="long table of 12 million pairs, from parquet", model=which, equal=True, **answer)


if __name__ == "__main__":
    main()
