"""The options of ``read`` and ``read_batches``, judged once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.data.recipe import WEIGHTINGS, Recipe
from shoal.data.times import check_unit
from shoal.data.tokens import as_stop_words
from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput

COLUMNS = ("item", "features", "text", "weight", "time", "owner", "label")
AUTO_WEIGHTING = {"text": "tfidf", "list": "binary", "delimited": "binary", "long": "count", "matrix": "count"}


@dataclass(frozen=True)
class Options:
    """What the caller asked for."""

    asked: Recipe  # the given recipe, or one that holds the options given
    columns: dict[str, str]  # columns named in this call
    known: bool  # whether a recipe was given
    feature: str | None
    vocabulary: Vocabulary | None  # fixed, if given
    weighting: str
    sublinear: bool | None
    unit_length: bool | None
    min_items: int
    max_features: int | None
    format: str | None
    quote: str | None

    def completed(self, recipe: Recipe) -> Recipe:
        """The recipe with "auto" decided, now that the shape is known."""
        if self.known:
            return recipe
        weighting = AUTO_WEIGHTING[recipe.shape] if self.weighting == "auto" else self.weighting
        if weighting == "auto" or (recipe.weight is not None and self.weighting == "auto"):
            weighting = "count"
        unit = weighting == "tfidf" if self.unit_length is None else self.unit_length
        return replace(recipe, weighting=weighting, sublinear=bool(self.sublinear), unit_length=unit)


def as_options(given: dict[str, Any]) -> Options:
    """Judge the keyword arguments of ``read``."""
    columns = {role: given[role] for role in COLUMNS if given[role] is not None}
    for role, name in columns.items():
        if not isinstance(name, str):
            raise BadInput(f"{role} is {name!r}; it must be the name of a column.")
    if given["feature"] is not None and given["features"] is not None:
        raise BadInput("both feature= (one a row) and features= (many a row) are given. Leave one out.")
    if given["weighting"] not in ("auto", *WEIGHTINGS):
        raise BadInput(f"weighting is {given['weighting']!r}; it must be one of auto, {', '.join(WEIGHTINGS)}.")
    for name in ("min_items", "max_features"):
        value = given[name]
        if value is not None and (not isinstance(value, int | np.integer) or value < 1):
            raise BadInput(f"{name} is {value!r}; it must be a whole number, 1 or more.")
    recipe, vocabulary = _recipe_and_vocabulary(given["recipe"], given["vocabulary"])
    if vocabulary is not None and given["min_items"] > 1:
        raise BadInput(
            "min_items= would leave out columns, but vocabulary= or recipe= fixes them. Leave one of them out."
        )
    known = recipe is not None
    unit = check_unit(given["time_unit"])
    if recipe is None:
        recipe = Recipe(
            delimiter=given["delimiter"],
            lowercase=bool(given["lowercase"]),
            stop_words=as_stop_words(given["stop_words"]),
            bigrams=bool(given["bigrams"]),
            dtype=_dtype(given["dtype"] or np.float64),
            time_unit=unit,
            **columns,
        )
    else:
        changes = {"delimiter": given["delimiter"], "time_unit": unit, "features": given["feature"]}
        if given["dtype"] is not None:
            changes["dtype"] = _dtype(given["dtype"])
        recipe = replace(recipe, **{name: value for name, value in changes.items() if value is not None})
    kept = ("feature", "weighting", "sublinear", "unit_length", "min_items", "max_features", "format", "quote")
    return Options(recipe, columns, known, vocabulary=vocabulary, **{name: given[name] for name in kept})


def _recipe_and_vocabulary(recipe: Any, vocabulary: Any) -> tuple[Recipe | None, Vocabulary | None]:
    """From a Recipe, or from a Dataset or model that carries both."""
    found = recipe
    if recipe is not None and not isinstance(recipe, Recipe):
        found = _first_of(recipe, "recipe", "recipe_")
        if not isinstance(found, Recipe):
            raise BadInput(
                f"recipe is a {type(recipe).__name__} that carries no recipe. Give a Dataset, a Recipe, or a model "
                "saved with dataset=."
            )
        if vocabulary is None:
            vocabulary = _first_of(recipe, "vocabulary", "vocabulary_")
    if vocabulary is not None and not isinstance(vocabulary, Vocabulary):
        vocabulary = Vocabulary(vocabulary)
    if found is not None and vocabulary is None:
        raise BadInput(
            "a Recipe alone does not name the columns. Give vocabulary= too, or the Dataset or model itself."
        )
    return found, vocabulary


def _first_of(thing: Any, *names: str) -> Any:
    return next((value for name in names if (value := getattr(thing, name, None)) is not None), None)


def _dtype(dtype: Any) -> str:
    name = str(np.dtype(dtype).name)
    if name not in ("float64", "float32"):
        raise BadInput(f"dtype is {dtype!r}; it must be float64 or float32.")
    return name
