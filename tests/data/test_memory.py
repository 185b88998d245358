"""Batches take the memory of a batch and the vocabulary, not of the file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import shoal

WORD = "'w' || (hash(i + {salt}) % 2000)"
TEN = "[" + ", ".join(WORD.format(salt=salt * 101) for salt in range(10)) + "]"
COLUMNS = {
    "text": f"array_to_string({TEN}, ' ') AS words",
    "long": f"'user number ' || (i * 7919 % ({{rows}} // 10)) AS \"user\", {WORD.format(salt=7)} AS tag, 1 AS n",
}
OPTIONS = {
    "text": "text='words'",
    "long": "item='user', feature='tag', weight='n'",
}
READ = """
import sys
import shoal

rows = total = 0
for batch in shoal.read_batches(sys.argv[1], batch_rows=5_000, memory_mb=60, {options}):
    rows, total = rows + len(batch), total + batch.X.nnz
status = open("/proc/self/status").read()
print(rows, total, next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


def peak_of_reading(path: Path, shape: str) -> tuple[int, int, float]:
    """Rows and non-zeros read in a process of its own, and its peak memory in MB."""
    source = str(Path(shoal.__file__).parent.parent)
    env = os.environ | {"PYTHONPATH": source, "SHOAL_NUM_THREADS": "2"}
    command = [sys.executable, "-c", READ.format(options=OPTIONS[shape]), str(path)]
    run = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert run.returncode == 0, run.stderr
    rows, total, kilobytes = map(int, run.stdout.split())
    return rows, total, kilobytes / 1000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("shape", "form", "small", "large"),
    [
        ("text", "parquet", 200_000, 1_000_000),  # the larger: 60 MB of text, 120 MB of cells
        ("long", "parquet", 600_000, 3_000_000),  # the larger: 130 MB of pairs
    ],
)
def test_memory_does_not_grow_with_the_file(tmp_path, shape, form, small, large):
    peaks = []
    for n_rows in (small, large):
        path = tmp_path / f"{n_rows}.{form}"
        columns = COLUMNS[shape].format(rows=n_rows)
        duckdb.sql(f"COPY (SELECT {columns} FROM range({n_rows}) t(i)) TO '{path}' (FORMAT {form})")
        rows, total, peak = peak_of_reading(path, shape)
        assert rows == (n_rows if shape != "long" else n_rows // 10)
        assert total > n_rows / 2
        peaks.append(peak)
    # The larger holds 100 MB more. How much is in flight at once depends on how threads happen to be served.
    assert peaks[1] - peaks[0] < 65, peaks
