"""Items as they come over the wire, and the rows a model sees of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.data import Dataset, Vocabulary
from shoal.data.log_tokens import features_of_line
from shoal.data.recipe import Recipe
from shoal.errors import BadInput

WORD = re.compile(r"(?u)\b\w\w+\b")  # as shoal.read cuts text
LONGEST_WORD = 1000  # what is longer is no word, and would only fill the vocabulary
Item = Mapping[str, Any]  # "id", "time", and one of "features" (a list or name -> weight), "text", "values"


class Built(NamedTuple):
    """Rows of some items."""

    X: sp.csr_matrix
    n_unknown: np.ndarray  # (n_items,) features of each that the model does not know, which were left out


class RowBuilder:
    """Turns items into rows over a model's vocabulary, weighted as its recipe says.

    Parameters
    ----------
    vocabulary : Vocabulary
        The model's features, by column. It is not changed.
    recipe : Recipe or None
        How the data was read that the model was fitted on; None takes weights as they are.
    n_features : int or None
        The model's width, where it is not the length of the vocabulary.

    Examples
    --------
    >>> builder = RowBuilder(Vocabulary(["sea", "sun"]))
    >>> rows = builder.known([{"features": ["sun", "moon"]}, {"features": {"sea": 2}}])
    >>> rows.X.toarray().tolist(), rows.n_unknown.tolist()
    ([[0.0, 1.0], [2.0, 0.0]], [1, 0])
    >>> list(builder.grown([{"features": ["sun", "moon"]}]).vocabulary)
    ['sea', 'sun', 'moon']
    """

    def __init__(self, vocabulary: Vocabulary, recipe: Recipe | None = None, n_features: int | None = None) -> None:
        self.vocabulary = vocabulary
        self.recipe = recipe if recipe is not None else Recipe(weighting="count")
        self.n_features = len(vocabulary) if n_features is None else n_features
        vocabulary.find(["a"])  # builds the table of names once, before many threads look into it

    @classmethod
    def of(cls, model: Any) -> RowBuilder:
        """For a fitted model; one fitted without names calls its columns by number."""
        vocabulary = getattr(model, "vocabulary_", None)
        n_features = int(getattr(model, "n_features_in_", 0))
        if vocabulary is None:
            names = getattr(model, "feature_names_in_", None)
            vocabulary = Vocabulary([str(name) for name in (range(n_features) if names is None else names)])
        return cls(vocabulary, getattr(model, "recipe_", None), n_features)

    def known(self, items: Sequence[Item]) -> Built:
        """Rows over the features the model has; others are left out and counted."""
        if items and "values" in items[0]:
            return Built(self._vectors(items), np.zeros(len(items), dtype=np.int64))
        names, values, ends = self._cells(items)
        columns = self.vocabulary.find(names) if names else np.zeros(0, dtype=np.int64)
        columns = np.where(columns < self.n_features, columns, -1)
        row_of = np.repeat(np.arange(len(items)), np.diff(ends))
        kept = columns >= 0
        n_unknown = np.bincount(row_of[~kept], minlength=len(items))
        return Built(self._matrix(columns[kept], values[kept], row_of[kept], len(items), self.n_features), n_unknown)

    def grown(self, items: Sequence[Item]) -> Dataset:
        """A dataset whose vocabulary has grown by the features that are new, at its end."""
        times = np.array([float(item.get("time") or item.get("received") or 0.0) for item in items])
        ids = np.array([str(item.get("id", "")) for item in items], dtype=object)
        if items and "values" in items[0]:
            return Dataset(self._vectors(items), self.vocabulary, ids, times, recipe=self.recipe)
        names, values, ends = self._cells(items)
        vocabulary = Vocabulary.from_arrays(*self.vocabulary.to_arrays())
        columns = vocabulary.extend(names) if names else np.zeros(0, dtype=np.int64)
        row_of = np.repeat(np.arange(len(items)), np.diff(ends))
        X = self._matrix(columns, values, row_of, len(items), max(len(vocabulary), self.n_features))
        return Dataset(X, vocabulary, ids, times, recipe=self.recipe)

    def names_of(self, item: Item) -> list[str]:
        """The features of an item, by name, for people."""
        if "values" in item:
            return [f"{value:g}" for value in item["values"]]
        return list(self._features(item))

    # --- one item ---------------------------------------------------------------------------------------------------

    def _features(self, item: Item) -> dict[str, float]:
        features = item.get("features")
        if isinstance(features, Mapping):
            return {str(name): float(weight) for name, weight in features.items()}
        if features is None:
            features = self._words(str(item.get("text", "")))
        return dict(Counter(map(str, features)))

    def _words(self, text: str) -> list[str]:
        recipe = self.recipe
        if recipe.shape == "delimited" and recipe.delimiter:
            return [part.strip() for part in text.split(recipe.delimiter) if part.strip()]
        if recipe.tokens == "log":
            return features_of_line(text)
        stop = set(recipe.stop_words)
        words = WORD.findall(text.lower() if recipe.lowercase else text)
        words = [word for word in words if word not in stop and len(word) <= LONGEST_WORD]
        return words + [f"{a} {b}" for a, b in pairwise(words)] if recipe.bigrams else words

    # --- many items -------------------------------------------------------------------------------------------------

    def _cells(self, items: Sequence[Item]) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Names and values of all cells, one item after another, and where each item ends."""
        cells = [self._features(item) for item in items]
        names = [name for cell in cells for name in cell]
        values = np.array([value for cell in cells for value in cell.values()], dtype=np.float64)
        return names, values, np.cumsum([0, *map(len, cells)])

    def _matrix(
        self, columns: np.ndarray, values: np.ndarray, row_of: np.ndarray, n_rows: int, n_features: int
    ) -> sp.csr_matrix:
        recipe = self.recipe
        if recipe.weighting == "binary":
            values = (values > 0).astype(np.float64)
        elif recipe.sublinear:
            values = np.where(values > 0, 1.0 + np.log(np.maximum(values, 1e-300)), 0.0)
        if recipe.weighting == "tfidf" and recipe.idf is not None and columns.size:
            # A word that came later was in none of the documents read: it is as rare as the rarest of them.
            rarest = float(recipe.idf.max(initial=1.0))
            values = values * np.append(recipe.idf, rarest)[np.minimum(columns, recipe.idf.size)]
        X = sp.csr_matrix((values, (row_of, columns)), shape=(n_rows, n_features))
        X.sum_duplicates()
        if recipe.unit_length:
            lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
            X.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(X.indptr))
        return X

    def _vectors(self, items: Sequence[Item]) -> sp.csr_matrix:
        width = self.n_features or len(items[0]["values"])
        for at, item in enumerate(items):
            found = len(item.get("values", ()))
            if found != width:
                raise BadInput(f"item {at} has {found} values; the model has {width} features, so {width} are needed.")
        return sp.csr_matrix(np.array([item["values"] for item in items], dtype=np.float64))
