"""Everything that can be read: files, folders, standard input, SQL, tables and texts in memory, matrices."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.data.files import find_files
from shoal.data.matrix_source import Matrix, matrix_of, matrix_of_file
from shoal.data.query import is_query
from shoal.data.read_options import BARE_LINES, ReadOptions
from shoal.data.table import Table
from shoal.errors import BadInput, BadSource


@contextmanager
def opened(source: Any, options: ReadOptions | None = None) -> Iterator[Table | Matrix]:
    """The source as a table or a matrix; temporary files and the connection are gone afterwards."""
    import shutil

    spool = Path(tempfile.mkdtemp(prefix="shoal-"))
    table: Table | Matrix | None = None
    try:
        table = open_source(source, spool, options or ReadOptions())
        yield table
    finally:
        if isinstance(table, Table):
            table.close()
        shutil.rmtree(spool, ignore_errors=True)


@contextmanager
def opened_table(source: Any, options: ReadOptions | None = None) -> Iterator[Table]:
    """The source as a table with named columns; a bare matrix is refused."""
    with opened(source, options) as table:
        if isinstance(table, Matrix):
            raise BadInput(f"{table.name} is a matrix without column names; a table with named columns is needed here.")
        yield table


def open_source(source: Any, spool: Path, options: ReadOptions) -> Table | Matrix:
    if isinstance(source, bytes):
        source = os.fsdecode(source)
    if isinstance(source, str) and is_query(source):
        return Table.of_query(source, spool)
    if isinstance(source, str | os.PathLike):
        format = "lines" if options.text == BARE_LINES and options.format is None else options.format
        files = find_files(os.fspath(source), spool, format, options.encoding)
        if files.format in ("npz", "svmlight"):
            return matrix_of_file(files)
        return Table.of_files(files, spool, options.quote)
    if sp.issparse(source) or (isinstance(source, np.ndarray) and source.dtype.kind not in "OUT"):
        return matrix_of(source, "the matrix")
    return Table.of_arrow(as_arrow(source), spool=spool)


def as_arrow(source: Any) -> Any:
    """A pandas, polars or Arrow table, a dict of columns, or texts -> something DuckDB scans without copying."""
    import pyarrow as pa

    package = type(source).__module__.split(".")[0]
    try:
        if package in ("pandas", "polars") and hasattr(source, "to_list") and not hasattr(source, "columns"):
            return _one_column(source.to_list())  # a Series
        if package == "pandas":
            return pa.Table.from_pandas(_with_text_names(source), preserve_index=False)
        if package == "polars":
            return (source.collect() if hasattr(source, "collect") else source).to_arrow()
        if isinstance(source, pa.RecordBatch):
            return pa.Table.from_batches([source])
        if isinstance(source, pa.RecordBatchReader):
            return source.read_all()
        if isinstance(source, pa.Array | pa.ChunkedArray):
            return _one_column(source)
        if package == "pyarrow":
            return source
        if hasattr(source, "__arrow_c_stream__"):
            return pa.table(source)
        if isinstance(source, Mapping):
            return pa.table(dict(source))
        if isinstance(source, list | tuple | np.ndarray):
            return _one_column(list(source))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, UnicodeEncodeError) as error:
        kind = package if package in ("pandas", "polars", "pyarrow") else type(source).__name__
        raise BadInput(f"the {kind} table cannot be read: {error}") from None
    raise BadSource(
        f"a {type(source).__name__} cannot be read. Give a path, a pattern, '-', a SELECT, a pandas, polars or Arrow "
        "table, a list of texts, or a scipy or numpy matrix."
    )


def _one_column(values: Any) -> Any:
    """Texts as a column called "text"; lists of features as one called "features"."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        kind = values.type
    else:
        values = [None if value is None or _is_missing(value) else value for value in values]
        lists = [value for value in values if isinstance(value, list | tuple | set | frozenset | np.ndarray)]
        if len(lists) not in (0, len(values) - values.count(None)):
            raise BadInput("some of the values are lists and some are not. Write all of them in one way.")
        values = [sorted(value) if isinstance(value, set | frozenset) else value for value in values]
        values = pa.array([value if value is None or not lists else list(map(str, value)) for value in values])
        kind = values.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not (is_list or pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)):
        raise BadInput(f"the values are of type {kind}; they must be texts, or lists of features.")
    return pa.table({"features" if is_list else "text": values})


def _is_missing(value: Any) -> bool:
    """NaN, NaT and pandas' NA stand for a value that is not there."""
    return (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")


def _with_text_names(frame: Any) -> Any:
    """Columns called by numbers or tuples get names that can be written."""
    names = [name if isinstance(name, str) else str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"the pandas table has two columns called {twice!r}. Rename one of them.")
    return frame if names == list(frame.columns) else frame.set_axis(names, axis=1)
