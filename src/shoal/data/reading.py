"""``shoal.read``: from a file, a query or a table to a sparse matrix and what its rows and columns stand for."""

from __future__ import annotations

import time as clock
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.data.arrow import string_buffers
from shoal.data.build_dataset import build_dataset, refuse_empty, report, side_columns
from shoal.data.column_guess import ColumnChoice, choose_columns, fit_columns
from shoal.data.dataset import Dataset
from shoal.data.index_ids import named_by_index
from shoal.data.layout import blocks, check_weights, layout_of
from shoal.data.long_tables import Rows, read_long
from shoal.data.matrix_builder import MatrixBuilder
from shoal.data.matrix_source import Matrix
from shoal.data.mixed_columns import MixedColumns, presence
from shoal.data.read_options import ReadOptions, ReadPlan, merged_options
from shoal.data.recipe import Recipe
from shoal.data.side_columns import SideColumns
from shoal.data.sources import opened
from shoal.data.table import Table
from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput
from shoal.progress import message, task

MOST_NUMBERED = 20_000_000  # columns of a matrix that are named by their numbers, in about 2 GB


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
    options: ReadOptions | None = None,
    **more: Any,
) -> Dataset:
    """Turn a source of items into a sparse matrix with names.

    Parameters
    ----------
    source : a path (.parquet, .csv, .tsv, .jsonl, .ndjson, .json, .txt, .npz, .svm, .svmlight, .libsvm; also .gz, .zst,
        .xz), a folder of such files (folders called ``name=value`` are columns), a pattern (``logs/*.parquet``), ``-``
        for standard input, a ``SELECT``, ``WITH`` or ``FROM`` query in DuckDB's SQL that reads and nothing else, a
        pandas, polars or Arrow table, a dict of columns, a list or Series of texts (or of lists of features), or a
        scipy or numpy matrix. CSV and TSV files begin with a line of names; TSV is read without quoting. A field of a
        nested column is named with a dot: ``ad.id``. An index of pandas that has a name or holds
        text gives ids, if no column does.
    item, features, text, feature, weight, time, owner, label : the columns, by the part they play; see
        :class:`ReadOptions`. What is not given is guessed where there is no doubt, and reported.
    options : a :class:`ReadOptions`; what is given by name comes before it.
    **more : any other field of :class:`ReadOptions`: ``recipe``, ``vocabulary``, ``numeric``, ``table``, ``delimiter``,
        ``weighting``, ``sublinear``, ``unit_length``, ``min_items``, ``max_features``, ``lowercase``, ``stop_words``,
        ``bigrams``, ``tokens``, ``time_unit``, ``time_format``, ``format``, ``quote``, ``encoding``, ``dtype``.

    Returns
    -------
    Dataset : the matrix with the names of its columns, and ids, times, owners and labels of its rows.

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
    columns = {"item": item, "features": features, "text": text, "feature": feature}
    columns |= {"weight": weight, "time": time, "owner": owner, "label": label}
    given = {role: name for role, name in columns.items() if name is not None}
    plan = ReadPlan.of(merged_options(options, given | more))
    began = clock.perf_counter()
    with opened(source, plan.options) as table:
        dataset = read_matrix(table, plan) if isinstance(table, Matrix) else read_table(table, plan)
        dataset.summary["bytes_read"] = table.n_bytes
    dataset = named_by_index(dataset, source, title=plan.options.title)
    dataset.summary["seconds"] = clock.perf_counter() - began
    report(dataset)
    return dataset


def read_table(table: Table, plan: ReadPlan) -> Dataset:
    choice = choose(table, plan)
    if choice.recipe.shape == "table":
        return read_mixed(table, choice, plan)
    fixed = plan.vocabulary is not None
    if choice.recipe.shape == "long":
        X, side, builder = read_long(table, choice.recipe, plan.vocabulary)
    else:
        X, side, builder = read_rows(table, choice.recipe, plan.vocabulary)
    if not X.shape[0]:
        raise BadInput(f"{table.name} has columns ({', '.join(table.columns)}) but no rows.")
    dataset = build_dataset(X, builder.vocabulary, choice, plan, side_columns(side, choice), fixed=fixed)
    dataset.summary |= {"unknown_features": builder.unknown, "guessed": choice.guessed}
    refuse_empty(dataset, plan)
    return dataset


def read_mixed(table: Table, choice: ColumnChoice, plan: ReadPlan) -> Dataset:
    """Columns as they are, with a matrix of what is there."""
    names = list(choice.recipe.columns if plan.vocabulary is None else plan.vocabulary)
    layout = layout_of(choice.recipe)
    side, columns = SideColumns(choice.recipe, layout), MixedColumns(choice.recipe, len(layout.place))
    with task("reading", table.n_rows) as reading:
        for batch in table.batches(layout.requests):
            columns.add(batch)
            side.add(batch)
            reading.advance(batch.num_rows, rows=side.n_rows)
    if not side.n_rows:
        raise BadInput(f"{table.name} has columns ({', '.join(table.columns)}) but no rows.")
    if columns.n_unread:
        message(f"in columns of numbers and dates, {columns.n_unread:,} values cannot be read: taken as missing")
    held = columns.table(names)
    choice.recipe = replace(choice.recipe, columns=tuple(names))
    dataset = build_dataset(presence(held), Vocabulary(names), choice, plan, side_columns(side, choice), fixed=True)
    dataset.table = held
    dataset.summary |= {"unknown_features": 0, "guessed": choice.guessed}
    refuse_empty(dataset, plan)
    return dataset


def read_rows(table: Table, recipe: Recipe, vocabulary: Vocabulary | None) -> Rows:
    """One row of the table is one item."""
    layout = layout_of(recipe)
    side, builder = SideColumns(recipe, layout), MatrixBuilder(vocabulary, fixed=vocabulary is not None)
    with task("reading", table.n_rows) as reading:
        for batch, block in blocks(table.batches(layout.requests), recipe, layout):
            builder.add(block)
            side.add(batch)
            reading.advance(batch.num_rows, rows=side.n_rows)
    return builder.matrix(), side, builder


def read_matrix(matrix: Matrix, plan: ReadPlan) -> Dataset:
    """A matrix has no columns by name; its features are called by their numbers unless a vocabulary is given."""
    if plan.options.columns:
        role, name = next(iter(plan.options.columns.items()))
        raise BadInput(f"{matrix.name} is a matrix without column names, but {role}={name!r} is given. Leave it out.")
    X, given = checked_cells(matrix), plan.vocabulary
    if given is None and X.shape[1] > MOST_NUMBERED:
        raise BadInput(
            f"{matrix.name} has {X.shape[1]:,} columns, too many to name each by its number. Keep those that are used "
            "(X[:, X.getnnz(axis=0) > 0]), or give the matrix itself to a model."
        )
    if given is not None and len(given) < X.shape[1]:
        raise BadInput(
            f"{matrix.name} has {X.shape[1]:,} columns, but the vocabulary names {len(given):,}. A matrix is nameless, "
            "so its columns must be those of the vocabulary."
        )
    names = given if given is not None else numbered(X.shape[1])
    X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], len(names)))
    choice = ColumnChoice(plan.completed(replace(plan.recipe, shape="matrix")))
    # Columns are known by number outside, so empty ones stay unless min_items asks otherwise.
    fixed = given is not None or plan.options.min_items <= 1
    dataset = build_dataset(X, names, choice, plan, {"labels": matrix.labels}, fixed=fixed)
    refuse_empty(dataset, plan)
    dataset.summary |= {"unknown_features": 0, "guessed": []}
    return dataset


def numbered(n: int) -> Vocabulary:
    """The names of columns that have none: their numbers."""
    import pyarrow as pa

    # Without a Python object for each, and without a search for names that occur twice.
    return Vocabulary.from_arrays(*string_buffers(pa.array(np.arange(n)).cast(pa.large_string())))


def checked_cells(matrix: Matrix) -> sp.csr_matrix:
    X = matrix.X
    if not X.shape[0]:
        raise BadInput(f"{matrix.name} has no rows (its shape is {X.shape}).")
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    check_weights(X.data, lambda at: f"row {rows[at]}, column {X.indices[at]} of {matrix.name}")
    X.eliminate_zeros()
    return X


def choose(table: Table, plan: ReadPlan) -> ColumnChoice:
    """Columns, shape and weighting for this table, guessed where nothing was asked."""
    if plan.known:
        choice = fit_columns(table, plan.recipe, plan.options.columns)
    else:
        choice = choose_columns(table, plan.recipe, one_feature=plan.options.feature)
    choice.recipe = plan.completed(choice.recipe)
    return choice
