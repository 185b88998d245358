"""``ReadOptions``: everything that can be asked of ``read`` and ``read_batches``, validated once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from shoal.data.files import check_encoding
from shoal.data.recipe import TOKENS, WEIGHTINGS, Recipe
from shoal.data.times import as_strptime, check_unit
from shoal.data.tokens import as_stop_words
from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput

ROLES = ("item", "features", "text", "weight", "time", "owner", "label", "title")
AUTO_WEIGHTING = {
    "text": "tfidf",
    "list": "binary",
    "delimited": "binary",
    "long": "count",
    "matrix": "count",
    "numeric": "count",
    "table": "binary",
}
BARE_LINES = "-"  # as text=: each line of the file is a text


@dataclass(frozen=True)
class ReadOptions:
    """How to turn a source into rows and columns.

    Every field may also be given to :func:`shoal.read` and :func:`shoal.read_batches` by name; an object of this class
    is for options that are kept and used again.

    Parameters
    ----------
    item : the column that names the items
    features : a column of lists (real ones, or spelled out as ``['a', 'b']``), or of text to be cut at ``delimiter``
    text : a column of text, cut into words of two letters or more; ``"-"``: every line of the file is a text
    feature : a column with one feature per row; the rows of an ``item`` are gathered (a long table)
    weight : a long table's column of weights, added up; or a column of lists that goes with ``features``
    time, owner, label, title : columns kept with the matrix; titles (or the first words of texts without ids) stand
        for the items on cards. Times may be ISO text, timestamps, text in ``time_format``, or
        numbers since 1970 in ``time_unit``; without a zone they are UTC
    recipe : a Dataset, a loaded model or a Recipe (then with ``vocabulary``): read new rows into the same columns
    vocabulary : the columns to use, in this order; other features are ignored and counted
    numeric : True: every column of numbers is a feature and its number the value; or the names of those columns
    table : True: the columns as they are (numbers, categories, dates, lists, with gaps), for
        ``ExponentialFamilyMixture(family="mixed")``; or the names of those columns. The matrix then says what is there
    delimiter : what separates the features of a text column
    weighting : "binary", "count" or "tfidf"; "auto" is tfidf for text, binary for lists and delimited text, and count
        (weights as they are) for long tables, numbers and matrices
    sublinear : use 1 + log(count) for the count
    unit_length : divide each row by its Euclidean length; the default is to do so for tfidf
    min_items : leave out features that fewer items have
    max_features : leave out items that have more features (counted before features are left out; with a vocabulary or
        recipe, only its own features count)
    lowercase, stop_words, bigrams : for text; ``stop_words`` is "english" or the words themselves
    tokens : how text is cut: "words", or "log" for log lines, where numbers, addresses, paths and ids are masked and
        words have places (they keep their case; see :mod:`shoal.data.log_tokens`)
    time_unit : "s", "ms", "us" or "ns"; found from their magnitude if not given
    time_format : as in ``"dd/mm/yyyy"`` or ``"%d/%m/%Y %H:%M"``
    format, quote, encoding : override what the file's name says; ``quote=""`` reads CSV without quoting, and
        ``encoding`` ("latin-1", "utf-16") is UTF-8 if not given
    dtype : float64 (default) or float32

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> words = ReadOptions(text="title", weighting="count")
    >>> shoal.read(pa.table({"title": ["fast cars", "fast food"]}), options=words).X.toarray().astype(int).tolist()
    [[1, 1, 0], [1, 0, 1]]
    """

    item: str | None = None
    features: str | None = None
    text: str | None = None
    feature: str | None = None
    weight: str | None = None
    time: str | None = None
    owner: str | None = None
    label: str | None = None
    title: str | None = None
    recipe: Any = None
    vocabulary: Any = None
    numeric: bool | Sequence[str] | None = None
    table: bool | Sequence[str] | None = None
    delimiter: str | None = None
    weighting: str = "auto"
    sublinear: bool | None = None
    unit_length: bool | None = None
    min_items: int = 1
    max_features: int | None = None
    lowercase: bool = True
    stop_words: str | Iterable[str] | None = None
    bigrams: bool = False
    tokens: str = "words"
    time_unit: str | None = None
    time_format: str | None = None
    format: str | None = None
    quote: str | None = None
    encoding: str | None = None
    dtype: Any = None

    def __post_init__(self) -> None:
        for role in (*ROLES, "feature"):
            name = getattr(self, role)
            if name is not None and not isinstance(name, str):
                raise BadInput(f"{role} is {name!r}; it must be the name of a column.")
        if self.feature is not None and self.features is not None:
            raise BadInput("both feature= (one per row) and features= (many per row) are given. Leave one out.")
        if self.weighting not in ("auto", *WEIGHTINGS):
            raise BadInput(f"weighting is {self.weighting!r}; it must be one of auto, {', '.join(WEIGHTINGS)}.")
        if self.tokens not in TOKENS:
            raise BadInput(f"tokens is {self.tokens!r}; it must be one of {', '.join(TOKENS)}.")
        if self.tokens == "log" and (self.bigrams or self.stop_words or self.features or self.feature or self.numeric):
            raise BadInput(
                "tokens='log' cuts lines of text whole: name their column with text= (or '-' for a file of lines), and "
                "leave out features=, feature=, numeric=, stop_words= and bigrams=."
            )
        for name in ("min_items", "max_features"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise BadInput(f"{name} is {value!r}; it must be a whole number, 1 or more.")
        if self.delimiter == "":
            raise BadInput("delimiter is empty; give the text that separates features, such as ','.")
        check_unit(self.time_unit)
        check_encoding(self.encoding)
        if self.numeric and (self.features or self.text or self.feature):
            raise BadInput(
                "numeric= takes columns of numbers, and features=, feature= or text= names. Give one of them."
            )

        if self.table:
            others = {name: getattr(self, name) for name in ("features", "text", "feature", "weight", "numeric")}
            others |= {"max_features": self.max_features, "min_items": self.min_items > 1}
            others["weighting"] = self.weighting not in ("auto", "binary")
            if wrong := [name for name, value in others.items() if value]:
                raise BadInput(f"table= takes columns as they are; leave out {wrong[0]}=.")

    def changed(self, **options: Any) -> ReadOptions:
        """These options with some of them replaced; a name that is no option is refused.

        >>> ReadOptions(text="title").changed(min_item=2)
        Traceback (most recent call last):
        shoal.errors.BadInput: min_item= is not an option of reading. Did you mean 'min_items'?
        """
        known = [field.name for field in fields(self)]
        for name in options:
            if name not in known:
                near = get_close_matches(name, known, 1)
                offer = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(known)}."
                raise BadInput(f"{name}= is not an option of reading. {offer}")
        return replace(self, **options) if options else self

    def __repr__(self) -> str:
        changed = [
            (field.name, value) for field in fields(self) if (value := getattr(self, field.name)) != field.default
        ]
        return f"ReadOptions({', '.join(f'{name}={value!r:.60}' for name, value in changed)})"

    @property
    def columns(self) -> dict[str, str]:
        """The columns named, by role."""
        return {role: name for role in ROLES if (name := getattr(self, role)) is not None}


@dataclass(frozen=True)
class ReadPlan:
    """Options and, if new rows are to be read as old ones were, the recipe of the old."""

    options: ReadOptions
    recipe: Recipe  # the given one, or one that holds the options given
    known: bool  # whether a recipe was given
    vocabulary: Vocabulary | None  # fixed, if given

    @classmethod
    def of(cls, options: ReadOptions) -> ReadPlan:
        recipe, vocabulary = _recipe_and_vocabulary(options.recipe, options.vocabulary)
        if vocabulary is not None and options.min_items > 1:
            raise BadInput(
                "min_items= would leave out columns, but vocabulary= or recipe= fixes them. Leave one of them out."
            )
        return cls(options, _changed(recipe, options) if recipe else _new(options), recipe is not None, vocabulary)

    def completed(self, recipe: Recipe) -> Recipe:
        """The recipe with "auto" decided, now that the shape is known."""
        if self.known:
            return recipe
        weighting = self.options.weighting
        if weighting == "auto":
            counted = recipe.weight is not None or (recipe.shape == "text" and recipe.tokens == "log")
            weighting = "count" if counted else AUTO_WEIGHTING[recipe.shape]
        unit = weighting == "tfidf" if self.options.unit_length is None else self.options.unit_length
        return replace(recipe, weighting=weighting, sublinear=bool(self.options.sublinear), unit_length=unit)


def merged_options(options: ReadOptions | None, given: dict[str, Any]) -> ReadOptions:
    """The object, if there is one, with what was given by name in its place."""
    if options is not None and not isinstance(options, ReadOptions):
        raise BadInput(f"options is a {type(options).__name__}; it must be a ReadOptions.")
    return (options or ReadOptions()).changed(**given)


def _new(options: ReadOptions) -> Recipe:
    numeric = options.numeric
    return Recipe(
        delimiter=options.delimiter,
        lowercase=bool(options.lowercase),
        stop_words=as_stop_words(options.stop_words),
        bigrams=bool(options.bigrams),
        tokens=options.tokens,
        dtype=_dtype(options.dtype or np.float64),
        time_unit=options.time_unit,
        time_format=as_strptime(options.time_format),
        numeric=() if numeric is None or isinstance(numeric, bool) else tuple(numeric),
        columns=() if options.table is None or isinstance(options.table, bool) else tuple(options.table),
        shape="numeric" if numeric else "table" if options.table else "matrix",
        **dict[str, Any](options.columns),
    )


def _changed(recipe: Recipe, options: ReadOptions) -> Recipe:
    """A known recipe, but for what this source has in another form."""
    changes: dict[str, Any] = {
        "delimiter": options.delimiter,
        "time_unit": options.time_unit,
        "time_format": as_strptime(options.time_format),
        "features": options.feature,
    }
    if options.dtype is not None:
        changes["dtype"] = _dtype(options.dtype)
    return replace(recipe, **{name: value for name, value in changes.items() if value is not None})


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
    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    if name not in ("float64", "float32"):
        raise BadInput(f"dtype is {dtype!r}; it must be float64 or float32.")
    return name
