"""``shoal.read``: from a file, a query or a table to a sparse matrix and what its rows and columns stand for."""

from __future__ import annotations

import time as clock
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.data.assembly import Assembly
from shoal.data.beside import Beside
from shoal.data.columns import Choice, choose_columns, fit_columns
from shoal.data.dataset import Dataset
from shoal.data.finishing import columns_beside, finish, refuse_empty, report
from shoal.data.long_tables import read_long
from shoal.data.options import Options, as_options
from shoal.data.recipe import Recipe
from shoal.data.shapes import blocks, check_weights, layout_of
from shoal.data.sources import Matrix, opened
from shoal.data.tables import Table
from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput
from shoal.progress import task


def read(
    source: Any,
    *,
    item: str | None = None,
    features: str | None = None,
    text: str | None = None,
    feature: str | None = None,
    weight: str | None = None,
    time: str | None = None,
    owner: str | None = None,
    label: str | None = None,
    delimiter: str | None = None,
    weighting: str = "auto",
    sublinear: bool | None = None,
    unit_length: bool | None = None,
    min_items: int = 1,
    max_features: int | None = None,
    lowercase: bool = True,
    stop_words: str | Iterable[str] | None = None,
    bigrams: bool = False,
    vocabulary: Any = None,
    recipe: Any = None,
    time_unit: str | None = None,
    format: str | None = None,
    quote: str | None = None,
    dtype: Any = None,
) -> Dataset:
    """Turn a source of items into a sparse matrix with names.

    Parameters
    ----------
    source : a path (.parquet, .csv, .tsv, .jsonl, .ndjson, .json, .npz, .svm, .svmlight, .libsvm; also .gz, .zst, .xz),
        a pattern (``logs/*.parquet``), ``-`` for standard input, a ``SELECT``, ``WITH`` or ``FROM`` query in DuckDB's
        SQL, a pandas, polars or Arrow table, or a scipy or numpy matrix. CSV and TSV files begin with a line of names;
        TSV is read without quoting.
    item : the column that names the items
    features : a column of lists, or of text to be cut at ``delimiter``
    text : a column of text, cut into words of two letters or more
    feature : a column with one feature a row; the rows of an ``item`` are gathered (a long table)
    weight : a long table's column of weights, added up; or a column of lists beside ``features``
    time, owner, label : columns kept beside the matrix. Times may be ISO text, timestamps, or numbers since 1970 in
        ``time_unit`` ("s", "ms", "us", "ns"; told by magnitude if not given); without a zone they are UTC.
    weighting : "binary", "count" or "tfidf"; "auto" is tfidf for text, binary for lists and delimited text, and count
        (weights as they are) for long tables and matrices
    sublinear : use 1 + log(count) for the count
    unit_length : divide each row by its Euclidean length; the default is to do so for tfidf
    min_items : leave out features that fewer items have
    max_features : leave out items that have more features (counted before features are left out)
    lowercase, stop_words, bigrams : for text; ``stop_words`` is "english" or the words themselves
    vocabulary : the columns to use, in this order; other features are ignored and counted
    recipe : a Dataset, a loaded model or a Recipe (then with ``vocabulary``): read new rows into the same columns
    format, quote : override what the file's name says; ``quote=""`` reads CSV without quoting
    dtype : float64 (default) or float32

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> talks = pa.table({"title": ["Fast k-means", "Fast sampling", "Sampling of means"]})
    >>> dataset = shoal.read(talks, text="title", weighting="count")
    >>> list(dataset.vocabulary), dataset.X.toarray().astype(int).tolist()
    (['fast', 'means', 'sampling', 'of'], [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]])
    >>> more = shoal.read(pa.table({"title": ["Fast cars"]}), recipe=dataset)
    >>> more.X.toarray().astype(int).tolist(), more.summary["unknown_features"]
    ([[1, 0, 0, 0]], 1)
    """
    options = as_options(dict(locals()))
    began = clock.perf_counter()
    with opened(source, format=options.format, quote=options.quote) as table:
        dataset = read_matrix(table, options) if isinstance(table, Matrix) else read_table(table, options)
        dataset.summary["bytes_read"] = table.n_bytes
    dataset.summary["seconds"] = clock.perf_counter() - began
    report(dataset)
    return dataset


def read_table(table: Table, options: Options) -> Dataset:
    choice = choose(table, options)
    fixed = options.vocabulary is not None
    if choice.recipe.shape == "long":
        X, beside, assembly = read_long(table, choice.recipe, options.vocabulary)
    else:
        X, beside, assembly = read_rows(table, choice.recipe, options.vocabulary)
    if not X.shape[0]:
        raise BadInput(f"{table.name} has columns ({', '.join(table.columns)}) but no rows.")
    dataset = finish(X, assembly.vocabulary, choice, options, columns_beside(beside, choice), fixed=fixed)
    refuse_empty(dataset, options)
    dataset.summary |= {"unknown_features": assembly.unknown, "guessed": choice.guessed}
    return dataset


def read_rows(table: Table, recipe: Recipe, vocabulary: Vocabulary | None) -> tuple[sp.csr_matrix, Beside, Assembly]:
    """One row of the table is one item."""
    layout = layout_of(recipe)
    beside, assembly = Beside(recipe, layout), Assembly(vocabulary, fixed=vocabulary is not None)
    with task("reading", table.n_rows) as reading:
        for batch, block in blocks(table.batches(layout.wanted), recipe, layout):
            assembly.add(block)
            beside.add(batch)
            reading.advance(batch.num_rows, rows=beside.n_rows)
    return assembly.matrix(), beside, assembly


def read_matrix(matrix: Matrix, options: Options) -> Dataset:
    """A matrix has no columns by name; its features are called by their numbers unless a vocabulary is given."""
    if options.columns:
        role, name = next(iter(options.columns.items()))
        raise BadInput(f"{matrix.name} is a matrix without column names, but {role}={name!r} is given. Leave it out.")
    X, given = checked_cells(matrix), options.vocabulary
    if given is not None and len(given) < X.shape[1]:
        raise BadInput(
            f"{matrix.name} has {X.shape[1]:,} columns, but the vocabulary names {len(given):,}. A matrix is nameless, "
            "so its columns must be those of the vocabulary."
        )
    names = given if given is not None else Vocabulary([str(column) for column in range(X.shape[1])])
    X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], len(names)))
    choice = Choice(options.completed(replace(options.asked, shape="matrix")))
    # Columns are known by number outside, so empty ones stay unless min_items asks otherwise.
    fixed = given is not None or options.min_items <= 1
    dataset = finish(X, names, choice, options, {"labels": matrix.labels}, fixed=fixed)
    refuse_empty(dataset, options)
    dataset.summary |= {"unknown_features": 0, "guessed": []}
    return dataset


def checked_cells(matrix: Matrix) -> sp.csr_matrix:
    X = matrix.X
    if not X.shape[0]:
        raise BadInput(f"{matrix.name} has no rows (its shape is {X.shape}).")
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    check_weights(X.data, lambda at: f"row {rows[at]}, column {X.indices[at]} of {matrix.name}")
    X.eliminate_zeros()
    return X


def choose(table: Table, options: Options) -> Choice:
    """Columns, shape and weighting for this table, guessed where nothing was asked."""
    if options.known:
        choice = fit_columns(table, options.asked, options.columns)
    else:
        choice = choose_columns(table, options.asked, one_feature=options.feature)
    choice.recipe = options.completed(choice.recipe)
    return choice
