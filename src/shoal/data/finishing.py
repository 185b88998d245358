"""The last steps of reading: leave out what was asked to be left out, weigh the cells, say what was done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.data.beside import Beside
from shoal.data.columns import Choice
from shoal.data.dataset import Dataset
from shoal.data.options import Options
from shoal.data.recipe import Recipe
from shoal.data.vocabulary import Vocabulary
from shoal.data.weighting import items_per_feature, keep_columns, smooth_idf, weigh
from shoal.errors import BadInput
from shoal.progress import say

Columns = dict[str, np.ndarray | None]


def columns_beside(beside: Beside, choice: Choice) -> Columns:
    """Ids, owners, labels and times; how bare numbers were taken for times is noted in the recipe and said aloud."""
    columns: Columns = {"ids": beside.text("item"), "owners": beside.text("owner"), "labels": beside.text("label")}
    columns["times"] = beside.seconds()
    unit = beside.times.unit if beside.times is not None else None
    if unit is not None and choice.recipe.time_unit is None:
        note_unit(choice, unit)
    return columns


def note_unit(choice: Choice, unit: str) -> None:
    choice.guess(
        f"times in column {choice.recipe.time!r} are numbers, taken as {unit} since 1970 (say time_unit= to change)"
    )
    choice.recipe = replace(choice.recipe, time_unit=unit)


def finish(
    X: sp.csr_matrix, vocabulary: Vocabulary, choice: Choice, options: Options, beside: Columns, *, fixed: bool
) -> Dataset:
    """A Dataset of counted rows. The columns stay as they are when ``fixed``."""
    recipe = choice.recipe
    n_items, n_features = X.shape
    X, beside = drop_long_items(X, beside, options.max_features)
    items_with = items_per_feature(X)
    if not fixed:
        kept = np.flatnonzero(items_with >= options.min_items)
        if kept.size < n_features:
            X, vocabulary, items_with = keep_columns(X, kept), vocabulary.keep(kept), items_with[kept]
    if recipe.weighting == "tfidf" and recipe.idf is None:
        recipe = replace(recipe, idf=smooth_idf(items_with, X.shape[0]))
    dropped = {"features_dropped": n_features - X.shape[1], "items_dropped": n_items - X.shape[0]}
    return Dataset(weighed(X, recipe), vocabulary, recipe=recipe, summary=facts_of(X, beside) | dropped, **beside)


def refuse_empty(dataset: Dataset, options: Options) -> None:
    """Empty rows are kept, but there is nothing to learn when every row is empty."""
    if dataset.X.nnz or options.known:
        return
    facts = dataset.summary
    raise BadInput(
        f"not one of the {facts['rows'] + facts['items_dropped']:,} items has a feature left "
        f"({facts['features_dropped']:,} features and {facts['items_dropped']:,} items were left out). Check the "
        "column, vocabulary=, min_items= and max_features=."
    )


def drop_long_items(X: sp.csr_matrix, beside: Columns, max_features: int | None) -> tuple[sp.csr_matrix, Columns]:
    """Leave out items with more features than this."""
    if max_features is None:
        return X, beside
    stay = np.flatnonzero(np.diff(X.indptr) <= max_features)
    if stay.size == X.shape[0]:
        return X, beside
    if beside.get("ids") is None:  # or nobody could tell any more which rows these were
        beside = beside | {"ids": np.arange(X.shape[0]).astype(str).astype(object)}
    return X[stay], {name: None if values is None else values[stay] for name, values in beside.items()}


def weighed(X: sp.csr_matrix, recipe: Recipe) -> sp.csr_matrix:
    form: dict[str, Any] = {"sublinear": recipe.sublinear, "unit_length": recipe.unit_length, "dtype": recipe.dtype}
    return weigh(X, recipe.weighting, idf=recipe.idf, **form)


def facts_of(X: sp.csr_matrix, beside: Columns) -> dict[str, Any]:
    times = beside.get("times")
    return {
        "rows": X.shape[0],
        "features": X.shape[1],
        "non_zeros": int(X.nnz),
        "empty_rows": int((np.diff(X.indptr) == 0).sum()),
        "missing_times": 0 if times is None else int(np.isnan(times).sum()),
    }


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
