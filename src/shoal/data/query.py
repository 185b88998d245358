"""A query that the user gave as the source: one statement that reads, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import BadInput, BadSource

if TYPE_CHECKING:
    import duckdb

# Comments and opening brackets may come before the first word.
BEGINNING = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(SELECT|WITH|FROM|VALUES)\b(?=[\s('\"*\[])", re.I | re.S)
# What DuckDB's parser calls the parts that only read. Every other kind of node is refused: a COPY or an INSERT, which
# version 2 also accepts inside a WITH, and those of later versions.
READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}


def is_query(source: str) -> bool:
    """Whether a text is a query rather than the name of a file; a file by that very name comes first.

    >>> is_query("-- all of them\\nSELECT * FROM 'ads.parquet'"), is_query("selected.csv")
    (True, False)
    """
    return BEGINNING.match(source) is not None and not _is_file(source)


def checked_query(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """The query, ready to stand in brackets, if it is one statement that reads and does nothing else."""
    parsed = json.loads(connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0])
    if parsed.get("error"):
        message = str(parsed.get("error_message", "")).strip()
        if "Only SELECT" in message:
            raise _not_reading(query)
        hint = f" If a file was meant: there is no file {query!r} in {Path.cwd()}." if _looks_like_file(query) else ""
        raise BadSource(f"the query cannot be read: {message}.{hint}")
    statements = parsed.get("statements", [])
    if len(statements) != 1 or not set(_nodes(statements)) <= READING_NODES:
        raise _not_reading(query)
    # A comment at the end must not swallow the bracket that follows, so it gets a line of its own.
    return _without_semicolon(query) + "\n"


def missing_file_hint(query: str) -> str:
    """For a query that fails: perhaps it was the name of a file.

    >>> missing_file_hint("select me.csv").startswith(" If a file was meant")
    True
    """
    return f" If a file was meant: there is no file {query!r} in {Path.cwd()}." if _looks_like_file(query) else ""


def _nodes(value: Any) -> Iterator[str]:
    """The kinds of query nodes anywhere in a parsed statement."""
    if isinstance(value, list):
        for item in value:
            yield from _nodes(item)
    elif isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and kind.endswith("_NODE"):
            yield kind
        for item in value.values():
            yield from _nodes(item)


def _without_semicolon(query: str) -> str:
    """Without the ``;`` that ends the statement (comments may follow it)."""
    import duckdb

    ends = [at for at, kind in duckdb.tokenize(query) if query[at] == ";" and kind == duckdb.token_type.operator]
    return query if not ends else query[: ends[0]] + query[ends[0] + 1 :]


def _not_reading(query: str) -> BadInput:
    return BadInput(
        f"a source may be one SELECT that reads and nothing else, and {_short(query)!r} is more than that. "
        "Run the other statements in DuckDB first, and give the SELECT alone."
    )


def _looks_like_file(query: str) -> bool:
    return "\n" not in query and Path(query.strip()).suffix.lstrip(".").isalnum() and " " not in Path(query).suffix


def _is_file(source: str) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):  # longer than a file's name can be, or with a zero byte in it
        return False


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
