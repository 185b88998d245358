"""Several sources under names of their own in one private DuckDB, for models that learn from a query over them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shoal.data.connection import connect
from shoal.data.files import find_files
from shoal.data.query import checked_query, is_query
from shoal.data.sources import as_arrow
from shoal.data.sql import quoted
from shoal.data.table import Table, listed
from shoal.errors import BadInput, MissingColumn


class NamedTables:
    """Files, folders, queries and tables in memory as views; numbers in CSV files are numbers here.

    Examples
    --------
    >>> with NamedTables() as tables:
    ...     columns = tables.add("clicks", {"user": ["ann", "bob", "ann"], "n": [1, 2, 3]})
    ...     rows = tables.connection.execute("SELECT user, sum(n) FROM clicks GROUP BY user ORDER BY user").fetchall()
    >>> columns, rows
    (['user', 'n'], [('ann', 4), ('bob', 2)])
    """

    def __init__(self) -> None:
        self.spool = Path(tempfile.mkdtemp(prefix="shoal-"))
        self.connection = connect(self.spool)
        self.n_tables = 0

    def add(self, name: str, source: Any) -> list[str]:
        """Make ``source`` the view ``name``; the names of its columns. A query may use the views added before."""
        spool = self.spool / str(self.n_tables)
        spool.mkdir()
        self.n_tables += 1
        if isinstance(source, str) and is_query(source):
            query = checked_query(self.connection, source)
        elif isinstance(source, str | Path):
            files = find_files(str(source), spool)
            if files.format in ("npz", "svmlight"):
                raise BadInput(f"{files.name} is a matrix without column names; a table with named columns is needed.")
            query = Table.of_files(files, spool, connection=self.connection, typed=True).query
        else:
            given = f"given_{self.n_tables}"
            self.connection.register(given, as_arrow(source))
            query = f"FROM {given}"
        table = Table(name if isinstance(source, str | Path) else f"the {name} table", spool, self.connection)
        table.run_statement(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS FROM ({query})")
        table.query = f"FROM {quoted(name)}"
        return list(table.described().columns)

    def close(self) -> None:
        self.connection.close()
        shutil.rmtree(self.spool, ignore_errors=True)

    def __enter__(self) -> NamedTables:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def require_columns(columns: Iterable[str], needed: Iterable[str], where: str) -> None:
    """Every needed column must be there; a missing one is named with those that look like it."""
    import difflib

    present = list(columns)
    for name in needed:
        if name not in present:
            near = difflib.get_close_matches(name, present, 3)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise MissingColumn(f"{where} has no column {name!r}; its columns are {listed(present)}.{hint}")
