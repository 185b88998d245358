"""Sources that are a matrix already: arrays, sparse matrices, .npz and svmlight files."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.data.files import Files
from shoal.errors import BadInput, BadSource


@dataclass
class Matrix:
    """Rows by columns of numbers, without names."""

    X: sp.csr_matrix
    name: str
    labels: np.ndarray | None = None
    n_bytes: int = 0


def matrix_of_file(files: Files) -> Matrix:
    """Files of one format, one below the other; columns are by number."""
    parts = [_load_npz(path) if files.format == "npz" else _load_svmlight(path) for path in files.paths]
    labels = None if parts[0][1] is None else np.concatenate([part[1] for part in parts])
    width = max(part[0].shape[1] for part in parts)
    X = sp.vstack([sp.csr_matrix((p.data, p.indices, p.indptr), shape=(p.shape[0], width)) for p, _ in parts], "csr")
    matrix = matrix_of(X, files.name)
    matrix.labels, matrix.n_bytes = labels, files.n_bytes
    return matrix


def matrix_of(source: Any, name: str) -> Matrix:
    """A copy in canonical CSR; the caller's arrays are neither kept nor changed."""
    if isinstance(source, np.ndarray) and (source.ndim != 2 or source.dtype.kind not in "biuf"):
        raise BadInput(
            f"{name} has shape {source.shape} and type {source.dtype}; it must be rows by columns of numbers."
        )
    if sp.issparse(source):
        if source.ndim != 2 or source.dtype.kind not in "biuf":
            raise BadInput(
                f"{name} has shape {source.shape} and type {source.dtype}; it must be rows by columns of numbers."
            )
        refuse_broken(source, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # too large a number becomes infinite, and is refused below
        X = sp.csr_matrix(source, dtype=np.float64, copy=True)
        X.sum_duplicates()
    return Matrix(X, name, n_bytes=int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes))


def refuse_broken(X: Any, name: str) -> None:
    """Places outside the matrix: compiled code would follow them out of its memory."""
    if X.format in ("csr", "csc", "bsr"):
        indptr, indices = np.asarray(X.indptr), np.asarray(X.indices)
        height, width = X.shape[::-1] if X.format == "csc" else X.shape
        if X.format == "bsr":
            height, width = height // X.blocksize[0], width // X.blocksize[1]
        rises = indptr.size == height + 1 and indptr[0] == 0 and bool((indptr[1:] >= indptr[:-1]).all())
        if not rises or indptr[-1] > indices.size or X.data.shape[0] < indptr[-1]:
            raise BadInput(f"{name} is broken: its indptr does not rise from 0 to the number of stored cells.")
        _refuse_outside(indices[: indptr[-1]], width, name, "column" if X.format != "csc" else "row")
    elif X.format == "coo":
        _refuse_outside(np.asarray(X.row), X.shape[0], name, "row")
        _refuse_outside(np.asarray(X.col), X.shape[1], name, "column")


def _refuse_outside(indices: np.ndarray, n: int, name: str, what: str) -> None:
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= n):
        at = int(np.argmax((indices < 0) | (indices >= n)))
        raise BadInput(
            f"{name} is broken: stored cell {at} is in {what} {indices[at]}, and there are {n:,}. Build it again from "
            "rows, columns and values."
        )


def _load_npz(path: str) -> tuple[sp.csr_matrix, None]:
    try:
        X = sp.load_npz(path)
    except Exception as error:
        raise BadSource(
            f"{path} is not a sparse matrix in scipy's .npz form ({error}). Write one with scipy.sparse.save_npz."
        ) from None
    matrix = matrix_of(X, path)
    return matrix.X, None


def _load_svmlight(path: str) -> tuple[sp.csr_matrix, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(path)
    except Exception as error:
        raise BadSource(
            f"{path} is not in svmlight form ({error}). Each line is: label index:value index:value ..."
        ) from None
    whole = np.array([str(int(value)) if float(value).is_integer() else f"{value:g}" for value in y], dtype=object)
    X = sp.csr_matrix(X)
    refuse_broken(X, path)
    return X, whole
