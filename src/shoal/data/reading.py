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
from shoal.data.columns import ROLES, Choice, choose_columns, fit_columns
from shoal.data.dataset import Dataset
from shoal.data.long_tables import read_long
from shoal.data.options import Options, as_options
from shoal.data.recipe import Recipe
from shoal.data.shapes import blocks, check_weights, layout_of
from shoal.data.sources import Matrix, opened
from shoal.data.tables import Table
from shoal.data.vocabulary import Vocabulary
from shoal.data.weighting import items_per_feature, keep_columns, smooth_idf, weigh
from shoal.errors import BadInput
from shoal.progress import say, task


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
    recipe = options.completed(choice.recipe)
    if recipe.shape == "long":
        X, beside, assembly = read_long(table, recipe, options.vocabulary)
    else:
        layout = layout_of(recipe)
        beside, assembly = Beside(recipe, layout), Assembly(options.vocabulary, fixed=options.vocabulary is not None)
        with task("reading") as reading:
            for batch, block in blocks(table.batches(layout.wanted), recipe, layout):
                assembly.add(block)
                beside.add(batch)
                reading.advance(batch.num_rows, rows=beside.n_rows)
        X = assembly.matrix()
    if not X.shape[0]:
        raise BadInput(f"{table.name} has columns ({', '.join(table.columns)}) but no rows.")
    choice.recipe = recipe
    columns = {"ids": beside.text("item"), "owners": beside.text("owner"), "labels": beside.text("label")}
    seconds = beside.seconds()
    if beside.times is not None and beside.times.unit is not None:
        if recipe.time_unit is None:
            choice.guess(f"times in column {recipe.time!r} are numbers, taken as {beside.times.unit} since 1970")
        choice.recipe = replace(recipe, time_unit=beside.times.unit)
    return finish(X, assembly, choice, options, {**columns, "times": seconds})


def read_matrix(matrix: Matrix, options: Options) -> Dataset:
    wrong = (
        {role: name for role in ROLES if (name := getattr(options.asked, role)) is not None}
        if not options.known
        else {}
    )
    if wrong:
        role, name = next(iter(wrong.items()))
        raise BadInput(
            f"{matrix.name} is a matrix and has no columns by name, but {role}={name!r} is given. Leave it out."
        )
    X = matrix.X
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    check_weights(X.data, lambda at: f"row {rows[at]}, column {X.indices[at]} of {matrix.name}")
    X.eliminate_zeros()
    given = options.vocabulary
    if given is not None and len(given) < X.shape[1]:
        raise BadInput(
            f"{matrix.name} has {X.shape[1]:,} columns, but the vocabulary names {len(given):,}. A matrix carries no names, "
            "so its columns must be those of the vocabulary."
        )
    if given is not None:
        X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], len(given)))
    names = given if given is not None else Vocabulary([str(column) for column in range(X.shape[1])])
    choice = Choice(options.completed(replace(options.asked, shape="matrix")))
    return finish(X, Assembly(names, fixed=True), choice, options, {"labels": matrix.labels})


def choose(table: Table, options: Options) -> Choice:
    if options.known:
        return fit_columns(table, options.asked, options.columns)
    return choose_columns(table, options.asked, one_feature=options.feature)


def finish(
    X: sp.csr_matrix, assembly: Assembly, choice: Choice, options: Options, beside: dict[str, np.ndarray | None]
) -> Dataset:
    """Leave out what was asked to be left out, weigh the cells, and say what was done."""
    recipe, vocabulary = choice.recipe, assembly.vocabulary
    items_dropped = features_dropped = 0
    if options.max_features is not None:
        stay = np.flatnonzero(np.diff(X.indptr) <= options.max_features)
        items_dropped = X.shape[0] - stay.size
        if items_dropped:
            X = X[stay]
            beside = {name: None if values is None else values[stay] for name, values in beside.items()}
    items_with = items_per_feature(X)
    if options.vocabulary is None:
        kept = np.flatnonzero(items_with >= options.min_items)
        features_dropped = len(vocabulary) - kept.size
        if features_dropped and recipe.shape != "matrix":
            X, vocabulary, items_with = keep_columns(X, kept), vocabulary.keep(kept), items_with[kept]
    if recipe.weighting == "tfidf" and recipe.idf is None:
        recipe = replace(recipe, idf=smooth_idf(items_with, X.shape[0]))
    if not X.nnz and not options.known:
        raise BadInput(
            f"not one of the {X.shape[0] + items_dropped:,} items has a feature left ({features_dropped:,} features and "
            f"{items_dropped:,} items were left out). Check the column, min_items= and max_features=."
        )
    form = {"sublinear": recipe.sublinear, "unit_length": recipe.unit_length, "dtype": recipe.dtype}
    X = weigh(X, recipe.weighting, idf=recipe.idf, **form)  # type: ignore[arg-type]
    times = beside.get("times")
    summary: dict[str, Any] = {
        "rows": X.shape[0],
        "features": X.shape[1],
        "non_zeros": int(X.nnz),
        "empty_rows": int((np.diff(X.indptr) == 0).sum()),
        "features_dropped": features_dropped,
        "items_dropped": items_dropped,
        "unknown_features": assembly.unknown,
        "missing_times": 0 if times is None else int(np.isnan(times).sum()),
        "guessed": choice.guessed,
    }
    return Dataset(X, vocabulary, recipe=recipe, summary=summary, **beside)


def report(dataset: Dataset) -> None:
    """Say what a person would want to know about the reading."""
    facts = dataset.summary
    told = {
        "empty_rows": "items have no features; they are kept as empty rows",
        "features_dropped": "features were left out, being in too few items (min_items)",
        "items_dropped": "items were left out, having too many features (max_features)",
        "unknown_features": "times a feature was not in the vocabulary, and ignored",
        "missing_times": "items have no time",
    }
    for fact, words in told.items():
        if facts.get(fact):
            say(f"{facts[fact]:,} {words}")
