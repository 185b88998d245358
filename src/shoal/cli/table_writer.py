"""Tables written to a file or to standard output, a part at a time."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.atomic import atomic_write
from shoal.cli.output_files import check_table_format
from shoal.progress import message

# A spreadsheet runs such a cell when it opens the file: an = at the start, or another sign of a formula with a call,
# a reference or a pipe after it. Names such as @somebody and numbers such as -5 or +49 123 are left as they are.
FORMULA = re.compile(r"^(?:\s*=|[+@-].*[(|!])", re.DOTALL)


class TableWriter:
    """Writes Arrow tables of one schema, one after another."""

    def __init__(self, out: Any, kind: str) -> None:
        self.out, self.kind = out, kind
        self.parquet: Any = None
        self.n_rows = self.n_formulas = 0

    def write(self, table: Any) -> None:
        if self.kind == "parquet":
            import pyarrow.parquet

            self.parquet = self.parquet or pyarrow.parquet.ParquetWriter(self.out, table.schema)
            self.parquet.write_table(table)
        elif self.kind == "csv":
            self._write_csv(table)
        else:
            for batch in table.to_batches(max_chunksize=10_000):
                lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
                self.out.write(lines.encode("utf-8", "backslashreplace"))
        self.n_rows += table.num_rows

    def _write_csv(self, table: Any) -> None:
        import pyarrow as pa
        import pyarrow.csv

        for at, column in enumerate(table.schema):
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                table = table.set_column(at, column.name, self._without_formulas(table.column(at)))
        options = pyarrow.csv.WriteOptions(include_header=self.n_rows == 0)
        buffer = io.BytesIO()
        pyarrow.csv.write_csv(table, buffer, options)
        self.out.write(buffer.getbuffer())

    def _without_formulas(self, column: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pc.any(pc.match_substring_regex(column, r"^[\s=+@-]")).as_py():
            return column
        values = column.to_pylist()
        formulas = [value is not None and FORMULA.match(value) is not None for value in values]
        self.n_formulas += sum(formulas)
        return pa.array(
            [f"'{v}" if is_formula else v for v, is_formula in zip(values, formulas, strict=True)], column.type
        )

    def close(self) -> None:
        if self.parquet is not None:
            self.parquet.close()
        if self.n_formulas:
            message(f"{self.n_formulas:,} names begin like formulas; a ' was put before them for spreadsheets")


@contextmanager
def open_table(out: Path | None, *, json_lines: bool = False) -> Iterator[TableWriter]:
    """CSV, JSON lines or Parquet by the file's ending; CSV or JSON lines on standard output without one.

    A file appears whole or not at all.
    """
    check_table_format(out, json_lines=json_lines)
    if out is None:
        writer = TableWriter(sys.stdout.buffer, "jsonl" if json_lines else "csv")
        yield writer
        writer.close()
        sys.stdout.flush()
        return
    with atomic_write(out) as file:
        writer = TableWriter(file, "jsonl" if json_lines else out.suffix.lstrip(".").lower())
        yield writer
        writer.close()
