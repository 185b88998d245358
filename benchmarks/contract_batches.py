"""``shoal fit --batch-rows`` with the process limited to 1 GB, on 721,181 arXiv titles and 1.3M generated ads.

python benchmarks/contract_batches.py [arxiv|ads|all] [limit in MB]

The limit is that of a control group (of the first version, needs root): all memory in use, file cache included, with a
kill where it is exceeded. RLIMIT_AS and RLIMIT_DATA also count what threads and DuckDB reserve and do not use.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from common import Timer, data_dir, record
from shoal.datasets import make_zipf_ads


def write_ads(path: Path, n_ads: int = 1_300_000) -> None:
    """One row an ad with a list of keywords."""
    data = make_zipf_ads(n_ads, n_features=73_000, keywords_per_item=20, words_per_topic=200, random_state=0)
    names = np.array([f"k{at}" for at in range(data.X.shape[1])])
    with pq.ParquetWriter(path, pa.schema([("id", pa.int64()), ("keywords", pa.list_(pa.string()))])) as writer:
        for start in range(0, n_ads, 50_000):
            rows = data.X[start : start + 50_000]
            lists = pa.ListArray.from_arrays(pa.array(rows.indptr, pa.int32()), pa.array(names[rows.indices]))
            table = pa.table({"id": np.arange(start, start + rows.shape[0]), "keywords": lists})
            writer.write_table(table)


def write_titles(path: Path) -> None:
    source = data_dir() / "arxiv" / "titles.tsv.xz"
    import lzma

    with lzma.open(source, "rt", encoding="utf-8") as lines, open(path.with_suffix(".tsv"), "w") as out:
        out.writelines(lines)
    duckdb.sql(
        f"COPY (SELECT arxiv_id AS id, title FROM read_csv('{path.with_suffix('.tsv')}', delim='\t', quote='')) "
        f"TO '{path}' (FORMAT parquet)"
    )


@contextmanager
def control_group(mb: int) -> Iterator[Path]:
    """A group whose processes may use so much memory together."""
    group = Path("/sys/fs/cgroup/memory/shoal-benchmark")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(mb * 10**6))
        yield group
    finally:
        group.rmdir()


def run(name: str, columns: list[str], path: Path, limit: int) -> None:
    options = ["-k", "100", "--batch-rows", "50000", "--set", "max_iter=3", "--set", "n_init=1", "--json", "--quiet"]
    command = [sys.executable, "-m", "shoal", "fit", str(path), *columns, *options, "--out", f"{path}.shoal"]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    with control_group(limit) as group, Timer() as timer:

        def enter() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

        ran = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=enter)
    if ran.returncode:
        sys.exit(f"{name}: exit code {ran.returncode}: {ran.stderr[-2000:]}")
    facts = json.loads(ran.stdout)
    record(
        "cli_batch_rows", workload=name, limit_mb=limit, limit="control group", model=facts["model"],
        items=facts["items"], features=facts["features"], clusters=100, iterations=facts["iterations"],
        peak_mb=facts["peak_mb"], seconds=timer.seconds, mean_similarity=facts["mean_similarity"],
    )  # fmt: skip


def main() -> None:
    which = sys.argv[1] if len(sys.argv) > 1 else "all"
    limit = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory() as folder:
        if which in ("arxiv", "all"):
            path = Path(folder, "titles.parquet")
            write_titles(path)
            run("arxiv titles", ["--item", "id", "--text", "title"], path, limit)
        if which in ("ads", "all"):
            path = Path(folder, "ads.parquet")
            # In a process of its own, whose memory is gone before the fit begins.
            if not os.fork():
                write_ads(path)
                os._exit(0)
            os.wait()
            run("generated ads", ["--item", "id", "--features", "keywords"], path, limit)


if __name__ == "__main__":
    main()
