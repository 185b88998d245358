"""A table behind DuckDB: what columns it has, and its rows in batches, each column cast to what it is requested for."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.data.connection import connect
from shoal.data.csv_dialect import csv_dialect
from shoal.data.files import Files, most_unpacked, not_unpacked, not_utf8, too_large
from shoal.data.query import checked_query, missing_file_hint
from shoal.data.sql import csv_scan, json_scan, literal, parquet_scan, quoted, text_list
from shoal.data.times import unit_of_numbers
from shoal.errors import BadInput, BadSource, MissingColumn

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BATCH_ROWS = 32_768
MEGABYTES_PER_THREAD = 125  # the least DuckDB advises
NUMBERS = re.compile(r"^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|REAL|DECIMAL.*|BOOLEAN)$")
MOMENTS = re.compile(r"^(DATE|TIMESTAMP.*)$")
NOT_FOR_USERS = re.compile(r"^\s*(\*|Possible|(file|delimiter) =)")  # DuckDB's advice on its own options
NUMBER_TEXT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True)
class ColumnRequest:
    """A column and what it is requested for: "text", "list", "numbers" (a list of numbers), "number" or "time"."""

    column: str
    kind: str
    format: str | None = None  # of times, as strptime has it


@dataclass(frozen=True)
class Column:
    """A field of a nested column: its type, the expression that gives it, and the column of the table it is in."""

    type: str
    expression: str
    top: str


class Table:
    """Rows of named columns, read through a private in-memory DuckDB that may spill to disk."""

    def __init__(
        self, name: str, spool: Path | None = None, connection: duckdb.DuckDBPyConnection | None = None
    ) -> None:
        self.name = name
        self.spool = spool or Path(tempfile.mkdtemp(prefix="shoal-"))
        self.connection = connection or connect(self.spool)
        self.columns: dict[str, str] = {}  # name -> DuckDB's type
        self.fields: dict[str, Column] = {}  # fields of nested columns, by their dotted names
        self.query = ""
        self.files: Files | None = None
        self.n_bytes = 0
        self.n_rows: int | None = None  # where it is known without a pass over the rows

    # --- the three kinds of table -------------------------------------------------------------------------------------

    @classmethod
    def of_files(
        cls, files: Files, spool: Path, quote: str | None = None, *, connection: Any = None, typed: bool = False
    ) -> Table:
        """``typed`` leaves it to DuckDB to find numbers and dates in CSV files; all is text otherwise."""
        table = cls(files.name, spool, connection)
        table.files, table.n_bytes = files, files.n_bytes
        if files.format in ("csv", "tsv", "lines"):
            dialect = csv_dialect(files, quote)
            table.query = f"FROM {csv_scan(files, dialect, typed=typed)}"
            table.columns = dict.fromkeys([*dialect.columns, *files.folders], "VARCHAR")
            return table
        table.query = f"FROM {json_scan(files) if files.format in ('json', 'jsonl') else parquet_scan(files)}"
        if files.format == "parquet":
            table.n_rows = int(table.fetch(f"SELECT count(*) {table.query}")[0][0])
        return table.described()

    @classmethod
    def of_query(cls, query: str, spool: Path | None = None) -> Table:
        table = cls("the query", spool)
        table.query = checked_query(table.connection, query)
        try:
            return table.described()
        except (BadInput, BadSource) as error:
            raise type(error)(f"{error}{missing_file_hint(query)}") from None

    @classmethod
    def of_arrow(cls, arrow: Any, name: str = "the table", spool: Path | None = None) -> Table:
        table = cls(name, spool)
        table.connection.register("given", arrow)
        table.query, table.n_bytes = "FROM given", int(getattr(arrow, "nbytes", 0))
        table.n_rows = getattr(arrow, "num_rows", None)
        return table.described()

    def described(self) -> Table:
        rows = self.fetch(f"DESCRIBE SELECT * FROM ({self.query})")
        self.columns = {name: kind for name, kind, *_ in rows}
        return self

    @property
    def is_json(self) -> bool:
        return self.files is not None and self.files.format in ("json", "jsonl")

    # --- columns ------------------------------------------------------------------------------------------------------

    def require(self, column: str, role: str) -> str:
        """The column as the table spells it; a missing one is an error that lists those there are."""
        if self._find(column):
            return column
        if self.is_json and self.files is not None:
            # A key may first appear after the rows that were sampled.
            before = self.query, self.columns
            self.query = f"FROM {json_scan(self.files, sample=-1)}"
            if not before[1].keys() <= self.described().columns.keys():
                # DuckDB takes rows that are no objects, or hold Infinity, as one column called json.
                self.query, self.columns = before
            if self._find(column) or self._find_json_key(column):
                return column
        folded: dict[str, list[str]] = {}
        for name in self.columns:
            folded.setdefault(name.lower(), []).append(name)
        if len(folded.get(column.lower(), [])) == 1:
            return folded[column.lower()][0]
        import difflib

        near = difflib.get_close_matches(column.lower(), folded, n=1, cutoff=0.5)
        names = sorted(self.columns, key=lambda name: name.lower() not in near)
        offer = f" Did you mean {folded[near[0]][0]!r}?" if near else ""
        raise MissingColumn(
            f"{self.name} has no column {column!r} (asked for by {role}=).{offer} It has: {listed(names)}."
        )

    def _find(self, column: str) -> bool:
        """Whether there is such a column, or a field of a nested one by its dotted name (``ad.id``)."""
        if column in self.columns or column in self.fields:
            return True
        for dot in (at for at, letter in enumerate(column) if letter == "."):
            top, path = column[:dot], column[dot + 1 :].split(".")
            if not self.columns.get(top, "").startswith("STRUCT"):
                continue
            expression = ".".join([quoted(top), *map(quoted, path)])
            try:
                kind = self.connection.sql(f"DESCRIBE SELECT {expression} FROM ({self.query})").fetchall()[0][1]
            except Exception:
                continue  # there is no such field
            self.fields[column] = Column(kind, expression, top)
            return True
        return False

    def _find_json_key(self, key: str) -> bool:
        """A key that DuckDB shows under another name, since it differs from an earlier one in case alone."""
        assert self.files is not None
        query = f"SELECT count({quoted(key)}) FROM {json_scan(self.files, {key: 'JSON'})}"
        if not self.fetch(query)[0][0]:
            return False
        self.columns[key] = "JSON"
        return True

    def type_of(self, column: str) -> str:
        return self.fields[column].type if column in self.fields else self.columns[column]

    def kind(self, column: str) -> str:
        """What a column holds: "list", "number", "time", "text" or "nested"."""
        declared = self.type_of(column)
        if declared == "JSON" and self.is_json and column not in self.fields:
            return self._json_kind(column)
        if declared.endswith("]"):
            return "list"
        if NUMBERS.match(declared):
            return "number"
        if MOMENTS.match(declared):
            return "time"
        return "nested" if declared.startswith(("STRUCT", "MAP", "BLOB", "UNION")) else "text"

    def _json_kind(self, column: str) -> str:
        """Of a key whose values are not of one type in the sample: one pass over all of them."""
        assert self.files is not None
        scan = json_scan(self.files, {column: "JSON"})
        sql = f"SELECT json_type({quoted(column)}) AS kind, count(*) FROM {scan} WHERE kind IS NOT NULL GROUP BY kind"
        kinds = {kind: n for kind, n in self.fetch(sql) if kind != "NULL"}
        if "OBJECT" in kinds:
            return "nested"
        if "ARRAY" not in kinds:
            return "text"
        if len(kinds) > 1:
            others = sum(n for kind, n in kinds.items() if kind != "ARRAY")
            raise BadInput(
                f"column {column!r} of {self.name} holds a list in {kinds['ARRAY']:,} rows and something else in "
                f"{others:,}. Write it in one way."
            )
        self.columns[column] = "VARCHAR[]"
        return "list"

    def holds_numbers(self, columns: Iterable[str]) -> list[str]:
        """Which of these columns hold numbers alone, by type, or (where all is text) in the first rows."""
        columns = list(columns)
        texts = [column for column in columns if self.type_of(column) == "VARCHAR"]
        sampled = self.sample([ColumnRequest(column, "text") for column in texts]) if texts else []
        by_text = set()
        for at, column in enumerate(texts):
            values = [row[at].strip() for row in sampled if row[at] is not None and row[at].strip()]
            if values and all(NUMBER_TEXT.fullmatch(value) for value in values):
                by_text.add(column)
        return [column for column in columns if column in by_text or self.kind(column) == "number"]

    # --- rows ---------------------------------------------------------------------------------------------------------

    def batches(
        self, requests: Iterable[ColumnRequest], batch_rows: int = BATCH_ROWS, sort_by: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, with columns c0, c1, ... as requested; "number" and "time" add b0, b1, ...: what could
        not be read; "time" adds n0, n1, ...: bare numbers.

        Rows come in the order of the table; or, with the number of a requested column in ``sort_by``, sorted by its
        value, and rows of equal value in the order of the table.
        """
        requests = list(requests)
        expressions = [
            f"{expression} AS {name}" for at, one in enumerate(requests) for expression, name in self._cast(one, at)
        ]
        sql = f"SELECT {', '.join(expressions)} FROM ({self.scan(requests)})"
        if sort_by is not None:
            # A sort spills whatever the limit. Runs in the order first seen would need a window or a join, and DuckDB's
            # window gave up at 100 MB on 4 million rows that are sorted within as much.
            placed = f"SELECT *, row_number() OVER () AS place FROM ({sql})"
            sql = f"SELECT * EXCLUDE (place) FROM ({placed}) ORDER BY c{sort_by}, place"
        relation, n_bytes = self.run(sql), 0
        most = most_unpacked(self.n_bytes) if self.files is not None and self.files.is_packed else None
        try:
            to_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            for batch in to_reader(batch_rows):
                n_bytes += batch.nbytes
                if most is not None and n_bytes > most:
                    raise too_large(self.name, self.n_bytes)
                yield batch
        except Exception as error:
            raise self.explained(error) from None

    def time_unit(self, request: ColumnRequest) -> str | None:
        """The unit of a column of times given as bare numbers, from all of them; None if it holds none."""
        moment, number = self._moment_and_number(request)
        bare = f"CASE WHEN {moment} IS NULL THEN {number} END"
        sql = f"SELECT min({bare}), max({bare}), count({moment}) FROM ({self.scan([request])})"
        least, most, n_moments = self.fetch(sql)[0]
        return None if least is None else unit_of_numbers(request.column, float(least), float(most), n_moments)

    def sample(self, requests: Iterable[ColumnRequest], n_rows: int = 1000) -> list[tuple[Any, ...]]:
        """The first rows, as Python values."""
        requests = list(requests)
        expressions = [self._cast(one, at)[0][0] for at, one in enumerate(requests)]
        return self.fetch(f"SELECT {', '.join(expressions)} FROM ({self.scan(requests)}) LIMIT {n_rows}")

    def count_rows(self) -> int:
        """How many rows there are; a pass over the rows where no file says so."""
        if self.n_rows is None:
            self.n_rows = int(self.fetch(f"SELECT count(*) FROM ({self.query})")[0][0])
        return self.n_rows

    def scan(self, requests: list[ColumnRequest]) -> str:
        """JSON is read straight into the requested types, so that a value unlike the sampled ones does no harm."""
        if not self.is_json or self.files is None:
            return self.query
        types = {}
        for one in requests:
            if one.column in self.fields:
                top = self.fields[one.column].top
                types[top] = self.columns[top]
            elif one.column in self.files.folders:
                continue
            elif one.kind == "list" and self.columns[one.column] != "VARCHAR":
                types[one.column] = "VARCHAR[]"
            else:
                types[one.column] = {"numbers": "DOUBLE[]", "number": "VARCHAR", "time": "VARCHAR"}.get(
                    one.kind, "JSON"
                )
        return f"FROM {json_scan(self.files, types)}"

    def _cast(self, request: ColumnRequest, at: int) -> list[tuple[str, str]]:
        column = self._expression(request.column)
        if request.kind == "text":
            return [(self.as_text(request.column), f"c{at}")]
        if request.kind == "list" and self.type_of(request.column) == "VARCHAR":
            return [(self._parsed_list(request.column), f"c{at}")]
        if request.kind in ("list", "numbers"):
            return [(f"CAST({column} AS {'VARCHAR' if request.kind == 'list' else 'DOUBLE'}[])", f"c{at}")]
        as_text = f"NULLIF(TRIM(CAST({column} AS VARCHAR)), '')"
        number = f"TRY_CAST({column} AS DOUBLE)"
        if request.kind == "time":
            moment, number = self._moment_and_number(request)
            bad = f"CASE WHEN {moment} IS NULL AND {number} IS NULL THEN {as_text} END"
            return [(f"CAST({moment} AS DOUBLE)", f"c{at}"), (f"CAST({number} AS DOUBLE)", f"n{at}"), (bad, f"b{at}")]
        return [(number, f"c{at}"), (f"CASE WHEN {number} IS NULL THEN {as_text} END", f"b{at}")]

    def _expression(self, column: str) -> str:
        return self.fields[column].expression if column in self.fields else quoted(column)

    def _is_json_value(self, column: str) -> bool:
        folders = self.files.folders if self.files is not None else ()
        return self.is_json and column not in self.fields and column not in folders

    def as_text(self, column: str) -> str:
        """As text; a list or an object among JSON texts is refused rather than spelled out."""
        name = self._expression(column)
        if not self._is_json_value(column):
            return f"CAST({name} AS VARCHAR)"
        said = literal(f"column '{column}' holds text in some rows and in others ")
        return (
            f"CASE WHEN json_type({name}) IN ('ARRAY', 'OBJECT') THEN error({said} || CAST({name} AS VARCHAR)) "
            f"ELSE {name} ->> '$' END"
        )

    def _parsed_list(self, column: str) -> str:
        text = f"({self.as_text(column)})"
        said = literal(f"column '{column}' should hold lists such as ['a', 'b'], and holds ")
        parsed = text_list(text)
        return f"CASE WHEN {text} IS NOT NULL AND {parsed} IS NULL THEN error({said} || {text}) ELSE {parsed} END"

    def _moment_and_number(self, request: ColumnRequest) -> tuple[str, str]:
        """A time as seconds, and as the bare number whose unit is decided later (times.py): one of them is null."""
        name, nothing = self._expression(request.column), "CAST(NULL AS DOUBLE)"
        as_text = f"TRIM(CAST({name} AS VARCHAR))"
        kind = "text" if self._is_json_value(request.column) else self.kind(request.column)  # JSON is read as text
        if kind == "time":
            return f"epoch({name})", nothing
        if request.format is not None:
            return f"epoch(TRY_STRPTIME({as_text}, {literal(request.format)}))", nothing
        if kind == "number":
            return nothing, f"CAST({name} AS DOUBLE)"
        return f"epoch(TRY_CAST({as_text} AS TIMESTAMPTZ))", f"TRY_CAST({as_text} AS DOUBLE)"

    def run_statement(self, sql: str) -> None:
        try:
            self.connection.execute(sql)
        except Exception as error:
            raise self.explained(error) from None

    def run(self, sql: str) -> duckdb.DuckDBPyRelation:
        try:
            return self.connection.sql(sql)
        except Exception as error:
            raise self.explained(error) from None

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a query; many errors show only when rows are fetched."""
        try:
            return self.run(sql).fetchall()
        except Exception as error:
            raise self.explained(error) from None

    def explained(self, error: Exception) -> Exception:
        """DuckDB's error as ours; its first lines say what and where."""
        known = type(error).__module__.startswith(("duckdb", "_duckdb", "pyarrow")) or isinstance(error, OSError)
        if isinstance(error, BadInput | BadSource) or not known:
            return error
        lines = [line for line in str(error).splitlines() if line.strip() and not NOT_FOR_USERS.match(line)]
        said = " ".join(line[:100] if line.startswith("Original Line") else line for line in lines[:4])[:500]
        if self.files is not None and self.files.is_packed and "ompressed" in said:
            return not_unpacked(self.files.paths[0], error)
        if "OutOfMemory" in type(error).__name__:
            advice = "Give it more (memory_mb= of read_batches; 200 or more is advised), or fewer columns."
            return BadSource(f"{self.name} needs more memory than DuckDB may hold: {lines[0]} {advice}")
        if self.files is not None and ("utf-8" in said.lower() or "unicode" in said.lower()):
            return not_utf8(self.files.paths[0], f"{self.name} is not UTF-8: {said}")
        kind = BadInput if "Conversion" in type(error).__name__ or "JSON transform" in said else BadSource
        if said.startswith("Invalid Input Error: column '"):
            kind, said = BadInput, said.removeprefix("Invalid Input Error: ")
        return kind(f"{self.name} cannot be read: {said.removeprefix('Invalid Input Error: ')}")

    def limit_memory(self, megabytes: int) -> None:
        """What DuckDB may hold before it spills to disk; each of its threads needs a share to work in."""
        from shoal.threads import n_threads_available

        self.connection.execute(f"SET memory_limit = '{int(megabytes)}MB'")
        n_threads = min(n_threads_available(), max(1, megabytes // MEGABYTES_PER_THREAD))
        self.connection.execute(f"SET threads = {n_threads}")

    def close(self) -> None:
        self.connection.close()
        shutil.rmtree(self.spool, ignore_errors=True)


def listed(names: Iterable[str], most: int = 30) -> str:
    """Names for a message; of very many, the first ones.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    names = list(names)
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
