"""Pieces of DuckDB's SQL: names and texts made safe, and the scans of the files it reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.data.csv_dialect import Dialect
    from shoal.data.files import Files

# A row may be as long as this; DuckDB sizes its buffers by it, so it is no larger than a document needs.
MAX_LINE_BYTES = 2_097_152


def quoted(name: str) -> str:
    """A column's name, safe inside SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text, safe inside SQL."""
    return "'" + text.replace("'", "''") + "'"


def path_list(paths: Iterable[str]) -> str:
    return "[" + ", ".join(literal(_plain(path)) for path in paths) + "]"


def _plain(path: str) -> str:
    """A path DuckDB will not take for a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def csv_scan(files: Files, dialect: Dialect, *, typed: bool = False) -> str:
    """Cut as the first line shows, every column as text unless ``typed``: guesses from the rows may prove wrong."""
    if typed:
        columns = f"auto_detect = true, names = [{', '.join(map(literal, dialect.columns))}]"
    else:
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in dialect.columns)
        columns = f"auto_detect = false, columns = {{{columns}}}"
    cut = f"delim = {literal(dialect.separator)}, quote = {literal(dialect.quote)}, escape = {literal(dialect.quote)}"
    if dialect.new_line:
        cut += f", new_line = {literal(dialect.new_line)}"
    # On several threads DuckDB 2.0 loses, without a word, a last row that is longer than its buffer; on one thread it
    # refuses it. Of a plain file the last row is looked at beforehand; a packed one would have to be unpacked for it.
    one_thread = ", parallel = false" if files.is_packed else ""
    header = "true" if dialect.has_header else "false"
    return f"read_csv({path_list(files.paths)}, header = {header}, {columns}, {cut}{one_thread}{_hive(files)})"


def json_scan(files: Files, columns: dict[str, str] | None = None, sample: int = 20_480) -> str:
    form = "newline_delimited" if files.format == "jsonl" else "auto"
    if columns is None:
        shape = f"sample_size = {sample}, union_by_name = true"
    else:
        shape = "columns = {" + ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns.items()) + "}"
    return f"read_json({path_list(files.paths)}, format = '{form}', {shape}{_hive(files)})"


def parquet_scan(files: Files) -> str:
    return f"read_parquet({path_list(files.paths)}, union_by_name = true{_hive(files)})"


def _hive(files: Files) -> str:
    """Folders called ``name=value`` are columns, as text, when the source is a folder."""
    if not files.folders:
        return ", hive_partitioning = false"
    types = ", ".join(f"{literal(name)}: VARCHAR" for name in files.folders)
    return f", hive_partitioning = true, hive_types = {{{types}}}"


def text_list(column: str) -> str:
    """A list that a text column spells out, or NULL: ``["a","b"]``, ``['a', 'b']``, ``['a' 'b']``, ``{a,b}``,
    ``c("a", "b")``."""
    text = f"TRIM({column})"
    braces = f"'[' || {text}[2:-2] || ']'"
    vector = f"'[' || {text}[3:-2] || ']'"
    blanks = f"regexp_replace({text}, '([''\"])\\s+([''\"])', '\\1, \\2', 'g')"  # numpy writes no commas
    parsed = "TRY_CAST({} AS VARCHAR[])"
    return (
        f"CASE WHEN {text} = '' THEN [] "
        f"WHEN regexp_matches({text}, '^\\{{\\s*(\"[^\"]*\"|''[^'']*'')\\s*:') THEN NULL "  # a dictionary
        f"WHEN {text}[1] = '{{' AND {text}[-1] = '}}' THEN {parsed.format(braces)} "
        f"WHEN {text}[1:2] = 'c(' AND {text}[-1] = ')' THEN {parsed.format(vector)} "
        f"WHEN {text}[1] <> '[' THEN NULL "
        f"WHEN json_valid({text}) THEN json_transform({text}, '[\"VARCHAR\"]') "
        f"WHEN NOT contains({text}, ',') THEN {parsed.format(blanks)} "
        f"ELSE {parsed.format(text)} END"
    )
