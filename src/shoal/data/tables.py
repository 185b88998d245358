"""A table behind DuckDB: what columns it has, and its rows in batches, each column cast to what it is wanted for."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.data.files import Dialect, Files, csv_dialect
from shoal.errors import BadInput, BadSource, MissingColumn

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BATCH_ROWS = 32_768
MEGABYTES_PER_THREAD = 125  # the least DuckDB advises
NUMBERS = re.compile(r"^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|REAL|DECIMAL.*)$")
MOMENTS = re.compile(r"^(DATE|TIMESTAMP.*)$")


@dataclass(frozen=True)
class Wanted:
    """A column and what it is wanted for: "text", "list", "numbers" (a list of numbers), "number" or "time"."""

    column: str
    kind: str


class Table:
    """Rows of named columns, read through a private in-memory DuckDB that may spill to disk."""

    def __init__(self, name: str, spool: Path | None = None) -> None:
        self.name = name
        self.spool = spool or Path(tempfile.mkdtemp(prefix="shoal-"))
        self.connection = connect(self.spool)
        self.columns: dict[str, str] = {}  # name -> DuckDB's type
        self.query = ""
        self.files: Files | None = None
        self.n_bytes = 0
        self.n_rows: int | None = None  # where it is known without a pass over the rows

    # --- the three kinds of table -------------------------------------------------------------------------------------

    @classmethod
    def of_files(cls, files: Files, spool: Path, quote: str | None = None) -> Table:
        table = cls(files.name, spool)
        table.files, table.n_bytes = files, files.n_bytes
        if files.format in ("csv", "tsv"):
            dialect = csv_dialect(files, quote)
            table.query = f"FROM {csv_scan(files, dialect)}"
            table.columns = dict.fromkeys(dialect.columns, "VARCHAR")
            return table
        table.query = f"FROM {json_scan(files) if files.format in ('json', 'jsonl') else parquet_scan(files)}"
        if files.format == "parquet":
            table.n_rows = int(table.run(f"SELECT count(*) {table.query}").fetchall()[0][0])
        return table._described()

    @classmethod
    def of_query(cls, query: str) -> Table:
        table = cls("the query")
        table.query = query.strip().rstrip(";")
        return table._described()

    @classmethod
    def of_arrow(cls, arrow: Any, name: str = "the table") -> Table:
        table = cls(name)
        table.connection.register("given", arrow)
        table.query, table.n_bytes = "FROM given", int(getattr(arrow, "nbytes", 0))
        table.n_rows = getattr(arrow, "num_rows", None)
        return table._described()

    def _described(self) -> Table:
        rows = self.run(f"DESCRIBE SELECT * FROM ({self.query})").fetchall()
        self.columns = {name: kind for name, kind, *_ in rows}
        return self

    # --- columns ------------------------------------------------------------------------------------------------------

    def require(self, column: str, role: str) -> str:
        """The column as the table spells it; a missing one is an error that lists those there are."""
        if column not in self.columns and self.files is not None and self.files.format in ("json", "jsonl"):
            # A key may first appear after the rows that were sampled.
            self.query = f"FROM {json_scan(self.files, sample=-1)}"
            self._described()
        if column in self.columns:
            return column
        folded = {name.lower(): name for name in self.columns}
        if column.lower() in folded:
            return folded[column.lower()]
        import difflib

        near = difflib.get_close_matches(column.lower(), folded, n=1, cutoff=0.5)
        names = sorted(self.columns, key=lambda name: name.lower() not in near)
        offer = f" Did you mean {folded[near[0]]!r}?" if near else ""
        raise MissingColumn(
            f"{self.name} has no column {column!r} (asked for by {role}=).{offer} It has: {', '.join(names)}."
        )

    def kind(self, column: str) -> str:
        """What a column holds: "list", "number", "time", "text" or "nested"."""
        declared = self.columns[column]
        if declared.endswith("]"):
            return "list"
        if NUMBERS.match(declared):
            return "number"
        if MOMENTS.match(declared):
            return "time"
        return "nested" if declared.startswith(("STRUCT", "MAP", "BLOB", "UNION")) else "text"

    # --- rows ---------------------------------------------------------------------------------------------------------

    def batches(
        self, wanted: Iterable[Wanted], batch_rows: int = BATCH_ROWS, sort_by: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, with columns c0, c1, ... as wanted; "number" and "time" add b0, b1, ...: what could
        not be read; "time" adds n0, n1, ...: bare numbers.

        Rows come in the order of the table; or, with the number of a wanted column in ``sort_by``, sorted by its value,
        and rows of equal value in the order of the table.
        """
        wanted = list(wanted)
        expressions = [
            f"{expression} AS {name}" for at, want in enumerate(wanted) for expression, name in self._cast(want, at)
        ]
        sql = f"SELECT {', '.join(expressions)} FROM ({self._scan(wanted)})"
        if sort_by is not None:
            # A sort spills whatever the limit. Runs in the order first seen would need a window or a join, and DuckDB's
            # window gave up at 100 MB on 4 million rows that are sorted within as much.
            placed = f"SELECT *, row_number() OVER () AS place FROM ({sql})"
            sql = f"SELECT * EXCLUDE (place) FROM ({placed}) ORDER BY c{sort_by}, place"
        relation = self.run(sql)
        try:
            to_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            yield from to_reader(batch_rows)
        except Exception as error:
            raise self._explained(error) from None

    def largest_number(self, column: str) -> float | None:
        """The largest bare number in a column of times, or None if it holds none."""
        scan = self._scan([Wanted(column, "time")])
        moment, number = self._moment_and_number(column)
        query = f"SELECT max(abs(CASE WHEN {moment} IS NULL THEN {number} END)) FROM ({scan})"
        found = self.run(query).fetchall()[0][0]
        return None if found is None else float(found)

    def sample(self, wanted: Iterable[Wanted], n_rows: int = 1000) -> list[tuple[Any, ...]]:
        """The first rows, as Python values."""
        wanted = list(wanted)
        expressions = [self._cast(want, at)[0][0] for at, want in enumerate(wanted)]
        try:
            return self.run(f"SELECT {', '.join(expressions)} FROM ({self._scan(wanted)}) LIMIT {n_rows}").fetchall()
        except BadSource:
            raise
        except Exception as error:
            raise self._explained(error) from None

    def _scan(self, wanted: list[Wanted]) -> str:
        """JSON is read straight into the wanted types, so that a value unlike the sampled ones does no harm."""
        if self.files is None or self.files.format not in ("json", "jsonl"):
            return self.query
        lists = {"list": "VARCHAR[]", "numbers": "DOUBLE[]"}
        return f"FROM {json_scan(self.files, {want.column: lists.get(want.kind, 'VARCHAR') for want in wanted})}"

    def _cast(self, want: Wanted, at: int) -> list[tuple[str, str]]:
        column = quoted(want.column)
        if want.kind == "text":
            return [(f"CAST({column} AS VARCHAR)", f"c{at}")]
        if want.kind in ("list", "numbers"):
            return [(f"CAST({column} AS {'VARCHAR' if want.kind == 'list' else 'DOUBLE'}[])", f"c{at}")]
        as_text = f"NULLIF(TRIM(CAST({column} AS VARCHAR)), '')"
        number = f"TRY_CAST({column} AS DOUBLE)"
        if want.kind == "time":
            moment, number = self._moment_and_number(want.column)
            bad = f"CASE WHEN {moment} IS NULL AND {number} IS NULL THEN {as_text} END"
            return [(f"CAST({moment} AS DOUBLE)", f"c{at}"), (f"CAST({number} AS DOUBLE)", f"n{at}"), (bad, f"b{at}")]
        return [(number, f"c{at}"), (f"CASE WHEN {number} IS NULL THEN {as_text} END", f"b{at}")]

    def _moment_and_number(self, column: str) -> tuple[str, str]:
        """A time as seconds, and as the bare number whose unit is decided later (times.py): one of them is null."""
        name, nothing = quoted(column), "CAST(NULL AS DOUBLE)"
        json = self.files is not None and self.files.format in ("json", "jsonl")  # is read as text
        if self.kind(column) == "time" and not json:
            return f"epoch({name})", nothing
        if self.kind(column) == "number" and not json:
            return nothing, f"CAST({name} AS DOUBLE)"
        as_text = f"TRIM(CAST({name} AS VARCHAR))"
        return f"epoch(TRY_CAST({as_text} AS TIMESTAMPTZ))", f"TRY_CAST({as_text} AS DOUBLE)"

    def run(self, sql: str) -> duckdb.DuckDBPyRelation:
        try:
            return self.connection.sql(sql)
        except Exception as error:
            raise self._explained(error) from None

    def _explained(self, error: Exception) -> Exception:
        """DuckDB's error as ours; its first lines say what and where."""
        known = type(error).__module__.startswith(("duckdb", "_duckdb", "pyarrow")) or type(error) is OSError
        if isinstance(error, BadInput | BadSource) or not known:
            return error
        lines = [line for line in str(error).splitlines() if line.strip() and "Possible" not in line]
        said = " ".join(lines[:4])[:500]
        if "OutOfMemory" in type(error).__name__:
            advice = "Give it more (memory_mb= of read_batches; 200 or more is advised), or fewer columns."
            return BadSource(f"{self.name} needs more memory than DuckDB may hold: {lines[0]} {advice}")
        kind = BadInput if "Conversion" in type(error).__name__ or "JSON transform" in said else BadSource
        return kind(f"{self.name} cannot be read: {said}")

    def limit_memory(self, megabytes: int) -> None:
        """What DuckDB may hold before it spills to disk; each of its threads needs a share to work in."""
        from shoal.threads import n_threads_available

        self.connection.execute(f"SET memory_limit = '{int(megabytes)}MB'")
        n_threads = min(n_threads_available(), max(1, megabytes // MEGABYTES_PER_THREAD))
        self.connection.execute(f"SET threads = {n_threads}")

    def close(self) -> None:
        self.connection.close()
        shutil.rmtree(self.spool, ignore_errors=True)


def connect(spool: Path) -> duckdb.DuckDBPyConnection:
    """A private database in memory that never downloads an extension and prints nothing."""
    import duckdb

    from shoal.threads import n_threads_available

    offline: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = duckdb.connect(":memory:", config=offline)
    connection.execute("SET TimeZone = 'UTC'")  # a time without a zone is UTC
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET temp_directory = {literal(str(spool / 'duckdb'))}")
    connection.execute(f"SET threads = {n_threads_available()}")
    return connection


def quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def path_list(files: Files) -> str:
    return "[" + ", ".join(literal(_plain(path)) for path in files.paths) + "]"


def _plain(path: str) -> str:
    """A path DuckDB will not take for a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def csv_scan(files: Files, dialect: Dialect) -> str:
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in dialect.columns)
    cut = f"delim = {literal(dialect.separator)}, quote = {literal(dialect.quote)}, escape = {literal(dialect.quote)}"
    return f"read_csv({path_list(files)}, auto_detect = false, header = true, columns = {{{columns}}}, {cut})"


def json_scan(files: Files, columns: dict[str, str] | None = None, sample: int = 20_480) -> str:
    form = "newline_delimited" if files.format == "jsonl" else "auto"
    if columns is None:
        return f"read_json({path_list(files)}, format = '{form}', sample_size = {sample}, union_by_name = true)"
    named = ", ".join(f"{literal(name)}: '{kind}'" for name, kind in columns.items())
    return f"read_json({path_list(files)}, format = '{form}', columns = {{{named}}})"


def parquet_scan(files: Files) -> str:
    return f"read_parquet({path_list(files)}, union_by_name = true)"
