"""The private DuckDB behind every table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.data.sql import literal

if TYPE_CHECKING:
    import duckdb


def connect(spool: Path) -> duckdb.DuckDBPyConnection:
    """A private database in memory that never downloads an extension, prints nothing and sees no Python variables."""
    import duckdb

    from shoal.threads import n_threads_available

    offline: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = duckdb.connect(":memory:", config=offline)
    connection.execute("SET TimeZone = 'UTC'")  # a time without a zone is UTC
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET python_enable_replacements = false")
    connection.execute(f"SET temp_directory = {literal(str(spool / 'duckdb'))}")
    connection.execute(f"SET threads = {n_threads_available()}")
    return connection
