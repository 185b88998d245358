"""Everything that can be read: files, patterns, standard input, SQL, tables in memory, matrices."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.data.files import Files, find_files
from shoal.data.tables import Table
from shoal.errors import BadInput, BadSource

SQL = re.compile(r"\s*(SELECT|WITH|FROM)\s", re.IGNORECASE)


@dataclass
class Matrix:
    """A source that is a matrix already."""

    X: sp.csr_matrix
    name: str
    labels: np.ndarray | None = None
    n_bytes: int = 0


@contextmanager
def opened(source: Any, *, format: str | None = None, quote: str | None = None) -> Iterator[Table | Matrix]:
    """The source as a table or a matrix; temporary files and the connection are gone afterwards."""
    spool = Path(tempfile.mkdtemp(prefix="shoal-"))
    table: Table | Matrix | None = None
    try:
        table = open_source(source, spool, format, quote)
        yield table
    finally:
        import shutil

        if isinstance(table, Table):
            table.close()
        shutil.rmtree(spool, ignore_errors=True)


def open_source(source: Any, spool: Path, format: str | None, quote: str | None) -> Table | Matrix:
    if isinstance(source, str) and SQL.match(source):
        return Table.of_query(source)
    if isinstance(source, str | Path):
        files = find_files(str(source), spool, format)
        if files.format in ("npz", "svmlight"):
            return matrix_of_file(files)
        return Table.of_files(files, spool, quote)
    if sp.issparse(source) or isinstance(source, np.ndarray):
        return matrix_of(source, "the matrix")
    return Table.of_arrow(as_arrow(source))


def as_arrow(source: Any) -> Any:
    """pandas, polars or Arrow -> something DuckDB scans without copying."""
    import pyarrow as pa

    package = type(source).__module__.split(".")[0]
    try:
        if package == "pandas":
            return pa.Table.from_pandas(source, preserve_index=False)
        if package == "polars":
            return (source.collect() if hasattr(source, "collect") else source).to_arrow()
        if isinstance(source, pa.RecordBatch):
            return pa.Table.from_batches([source])
        if isinstance(source, pa.RecordBatchReader):
            return source.read_all()
        if package == "pyarrow":
            return source
        if hasattr(source, "__arrow_c_stream__"):
            return pa.table(source)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadInput(f"the {package} table cannot be read: {error}") from None
    raise BadSource(
        f"a {type(source).__name__} cannot be read. Give a path, a pattern, '-', a SELECT, a pandas, polars or Arrow "
        "table, or a scipy or numpy matrix."
    )


def matrix_of_file(files: Files) -> Matrix:
    parts = [_load_npz(path) if files.format == "npz" else _load_svmlight(path) for path in files.paths]
    labels = None if parts[0][1] is None else np.concatenate([part[1] for part in parts])
    width = max(part[0].shape[1] for part in parts)
    X = sp.vstack([sp.csr_matrix((p.data, p.indices, p.indptr), shape=(p.shape[0], width)) for p, _ in parts], "csr")
    matrix = matrix_of(X, files.name)
    matrix.labels, matrix.n_bytes = labels, files.n_bytes
    return matrix


def _load_npz(path: str) -> tuple[sp.csr_matrix, None]:
    try:
        return sp.csr_matrix(sp.load_npz(path)), None
    except Exception as error:
        raise BadSource(
            f"{path} is not a sparse matrix in scipy's .npz form ({error}). Write one with scipy.sparse.save_npz."
        ) from None


def _load_svmlight(path: str) -> tuple[sp.csr_matrix, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(path)
    except Exception as error:
        raise BadSource(
            f"{path} is not in svmlight form ({error}). Each line is: label index:value index:value ..."
        ) from None
    whole = np.array([str(int(value)) if float(value).is_integer() else f"{value:g}" for value in y], dtype=object)
    return sp.csr_matrix(X), whole


def matrix_of(source: Any, name: str) -> Matrix:
    if isinstance(source, np.ndarray) and (source.ndim != 2 or source.dtype.kind not in "biuf"):
        raise BadInput(
            f"{name} has shape {source.shape} and type {source.dtype}; it must be rows by columns of numbers."
        )
    X = sp.csr_matrix(source, dtype=np.float64, copy=True)
    X.sum_duplicates()
    return Matrix(X, name, n_bytes=int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes))
