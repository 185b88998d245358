"""The last steps of reading: leave out what was asked to be left out, weigh the cells, report what was done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.data.column_guess import ColumnChoice
from shoal.data.dataset import Dataset
from shoal.data.read_options import ReadPlan
from shoal.data.recipe import Recipe
from shoal.data.side_columns import SideColumns
from shoal.data.vocabulary import Vocabulary
from shoal.data.weighting import items_per_feature, keep_columns, smooth_idf, weigh
from shoal.errors import BadInput
from shoal.progress import message

Columns = dict[str, np.ndarray | None]


def side_columns(side: SideColumns, choice: ColumnChoice) -> Columns:
    """Ids, owners, labels and times; how bare numbers were taken for times is noted in the recipe and reported."""
    columns: Columns = {"ids": side.text("item"), "owners": side.text("owner"), "labels": side.text("label")}
    columns |= {"titles": side.text("title"), "times": side.seconds()}
    unit = side.times.unit if side.times is not None else None
    if unit is not None and choice.recipe.time_unit is None:
        note_unit(choice, unit)
    return columns


def note_unit(choice: ColumnChoice, unit: str) -> None:
    choice.guess(
        f"times in column {choice.recipe.time!r} are numbers, taken as {unit} since 1970 (pass time_unit= to change)"
    )
    choice.recipe = replace(choice.recipe, time_unit=unit)


def build_dataset(
    X: sp.csr_matrix, vocabulary: Vocabulary, choice: ColumnChoice, plan: ReadPlan, side: Columns, *, fixed: bool
) -> Dataset:
    """A Dataset of counted rows. The columns stay as they are when ``fixed``."""
    recipe = choice.recipe
    n_items, n_features = X.shape
    X, side = drop_long_items(X, side, plan.options.max_features)
    items_with = items_per_feature(X)
    if not fixed:
        kept = np.flatnonzero(items_with >= plan.options.min_items)
        if kept.size < n_features:
            X, vocabulary, items_with = keep_columns(X, kept), vocabulary.keep(kept), items_with[kept]
    if recipe.weighting == "tfidf" and recipe.idf is None:
        recipe = replace(recipe, idf=smooth_idf(items_with, X.shape[0]))
    dropped = {"features_dropped": n_features - X.shape[1], "items_dropped": n_items - X.shape[0]}
    return Dataset(weighed(X, recipe), vocabulary, recipe=recipe, summary=facts_of(X, side) | dropped, **side)


def refuse_empty(dataset: Dataset, plan: ReadPlan) -> None:
    """Empty rows are kept, but when every row is empty there is nothing to learn, or to ask of a model."""
    facts = dataset.summary
    if dataset.X.nnz:
        return
    if plan.known and facts.get("unknown_features"):
        recipe = dataset.recipe
        cut = f", cut at {recipe.delimiter!r}" if recipe.shape == "delimited" and recipe.delimiter else ""
        raise BadInput(
            f"no row has a known feature: all {facts['unknown_features']:,} features of {facts['rows']:,} rows (column "
            f"{recipe.features or recipe.text!r}{cut}) are missing from the model's {len(dataset.vocabulary):,}. Check "
            "that it is the right column, and delimiter= if this source separates its features otherwise."
        )
    if not plan.known and dataset.recipe.shape != "numeric":
        words = " A word has two letters or more." if dataset.recipe.shape == "text" else ""
        raise BadInput(
            f"not one of the {facts['rows'] + facts['items_dropped']:,} items has a feature left "
            f"({facts['features_dropped']:,} features and {facts['items_dropped']:,} items were left out). Check the "
            f"column, vocabulary=, min_items= and max_features=.{words}"
        )


def drop_long_items(X: sp.csr_matrix, side: Columns, max_features: int | None) -> tuple[sp.csr_matrix, Columns]:
    """Leave out items with more features than this."""
    if max_features is None:
        return X, side
    stay = np.flatnonzero(np.diff(X.indptr) <= max_features)
    if stay.size == X.shape[0]:
        return X, side
    if side.get("ids") is None:  # otherwise rows could not be identified any more
        side = side | {"ids": np.arange(X.shape[0]).astype(str).astype(object)}
    return X[stay], {name: None if values is None else values[stay] for name, values in side.items()}


def weighed(X: sp.csr_matrix, recipe: Recipe) -> sp.csr_matrix:
    """The cells as the recipe wants them; what does not fit into its numbers is refused by row."""
    _refuse_cells(X, ~np.isfinite(X.data), "inf, too large a sum of weights")
    form: dict[str, Any] = {"sublinear": recipe.sublinear, "unit_length": recipe.unit_length, "dtype": recipe.dtype}
    with np.errstate(over="ignore"):
        weighed = weigh(X, recipe.weighting, idf=recipe.idf, **form)
    _refuse_cells(X, ~np.isfinite(weighed.data), f"a number too large for {recipe.dtype}")
    if recipe.sublinear and recipe.weighting != "binary":
        _refuse_cells(X, weighed.data < 0, "a weight so small that sublinear=True makes it negative")
    return weighed


def _refuse_cells(X: sp.csr_matrix, wrong: np.ndarray, what: str) -> None:
    places = np.flatnonzero(wrong)
    if places.size:
        row = int(np.searchsorted(X.indptr, places[0], side="right"))
        raise BadInput(
            f"row {row} holds {what} ({X.data[places[0]]:g} in column {X.indices[places[0]]}), and {places.size:,} "
            "cells do. Scale the weights, or drop those rows."
        )


def facts_of(X: sp.csr_matrix, side: Columns) -> dict[str, Any]:
    times, ids = side.get("times"), side.get("ids")
    return {
        "rows": X.shape[0],
        "features": X.shape[1],
        "non_zeros": int(X.nnz),
        "empty_rows": int((np.diff(X.indptr) == 0).sum()),
        "missing_times": 0 if times is None else int(np.isnan(times).sum()),
        "missing_ids": 0 if ids is None else sum(id_ is None for id_ in ids),
    }


def report(dataset: Dataset) -> None:
    """Report what a person would want to know about the reading."""
    facts = dataset.summary
    reported = {
        "empty_rows": "items have no feature that is known; they are kept as empty rows"
        if facts.get("unknown_features")
        else "items have no features; they are kept as empty rows",
        "features_dropped": "features were left out, being in too few items (min_items)",
        "items_dropped": "items were left out, having too many features (max_features)",
        "unknown_features": "features of items are not in the vocabulary and were ignored",
        "missing_times": "items have no time",
        "missing_ids": "items have no id",
    }
    if dataset.recipe.shape == "numeric":
        del reported["empty_rows"]  # a row of zeros is a measurement like others
    for fact, words in reported.items():
        if facts.get(fact):
            message(f"{facts[fact]:,} {words}")
    delimiter = dataset.recipe.delimiter if dataset.recipe.shape == "delimited" else None
    if delimiter and len(dataset) > 1 and dataset.X.nnz and np.diff(dataset.X.indptr).max() == 1:
        message(f"{delimiter!r} cuts no value of column {dataset.recipe.features!r}: each is one feature")
