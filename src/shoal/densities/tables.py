"""Any table as a DuckDB view: a file, a folder or pattern of files, a SELECT, or a data frame in memory."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

from shoal.errors import BadInput, BadSource, MissingColumn

READERS = {
    ".parquet": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}


def connect() -> duckdb.DuckDBPyConnection:
    """A private database in memory that stays silent."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


def quoted(name: str) -> str:
    """A column's name, safe inside SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A literal, safe inside SQL."""
    return "'" + value.replace("'", "''") + "'"


def view(connection: duckdb.DuckDBPyConnection, name: str, source: Any) -> list[str]:
    """Give ``source`` the name ``name`` in this database; the names of its columns."""
    try:
        if isinstance(source, (str, Path)):
            sql = _sql_for(str(source))
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {sql}")
        else:
            connection.register(name, _as_table(source))
        return [row[0] for row in connection.execute(f"DESCRIBE {name}").fetchall()]
    except duckdb.Error as error:
        raise BadSource(f"cannot read {source!r}: {error}") from None


def require_columns(columns: Iterable[str], wanted: Iterable[str], where: str) -> None:
    """Every wanted column must be there; a missing one is named with those that look like it."""
    present = list(columns)
    for name in wanted:
        if name not in present:
            near = difflib.get_close_matches(name, present, 3)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise MissingColumn(f"{where} has no column {name!r}; its columns are {', '.join(present)}.{hint}")


def _as_table(source: Any) -> Any:
    if isinstance(source, dict):
        import pyarrow as pa

        return pa.table(source)
    return source


def _sql_for(source: str) -> str:
    if source.lstrip()[:7].lower() == "select " or source.lstrip()[:5].lower() == "with ":
        return source
    path = Path(source)
    if path.is_dir():
        kinds = sorted({file.suffix for file in path.iterdir() if file.suffix in READERS})
        if len(kinds) != 1:
            found = "none" if not kinds else ", ".join(kinds)
            raise BadSource(f"the folder {source} should hold files of one kind ({', '.join(READERS)}); found {found}.")
        return f"SELECT * FROM {READERS[kinds[0]]}({text(str(path / ('*' + kinds[0])))})"
    plain = source.removesuffix(".gz").removesuffix(".zst")
    suffix = Path(plain).suffix
    if suffix not in READERS:
        raise BadInput(
            f"{source!r} is neither a SELECT nor a file shoal can read; give a {', '.join(READERS)} file, a folder of "
            "them, a SELECT, or a data frame."
        )
    if not any(mark in source for mark in "*?[") and "://" not in source and not path.exists():
        raise BadSource(f"there is no file {source}.")
    return f"SELECT * FROM {READERS[suffix]}({text(source)})"
