"""Tables written to a file or to standard output."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from shoal.errors import BadInput, BadSource


def write_table(table: Any, out: Path | None, *, json_lines: bool = False) -> None:
    """Write an Arrow table as CSV, JSON lines or Parquet by the file's ending; to standard output without one.

    A file appears whole or not at all.
    """
    if out is None:
        if json_lines:
            _write_json_lines(table, sys.stdout)
        else:
            import pyarrow.csv

            pyarrow.csv.write_csv(table, sys.stdout.buffer)
        return
    kind = "jsonl" if json_lines else out.suffix.lstrip(".").lower()
    if kind not in ("csv", "jsonl", "parquet"):
        raise BadInput(f"--out {out}: cannot tell the format from {out.suffix!r}. Use .csv, .jsonl or .parquet.")
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        if kind == "parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(table, part)
        elif kind == "csv":
            import pyarrow.csv

            pyarrow.csv.write_csv(table, part)
        else:
            with open(part, "w", encoding="utf-8") as file:
                _write_json_lines(table, file)
        os.replace(part, out)
    except OSError as error:
        raise BadSource(f"cannot write {out}: {error.strerror or error}. Nothing was changed.") from None
    finally:
        part.unlink(missing_ok=True)


def _write_json_lines(table: Any, file: Any) -> None:
    for batch in table.to_batches(max_chunksize=10_000):
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
