"""Reading, done slowly with plain Python and scikit-learn's vectorizers."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

WORD = re.compile(r"(?u)\b\w\w+\b")


def words(text: str, *, lowercase: bool = True, stop_words: Iterable[str] = (), bigrams: bool = False) -> list[str]:
    """The words of a text as scikit-learn's default analyser gives them."""
    found = WORD.findall(text.lower() if lowercase else text)
    stop = set(stop_words)
    found = [word for word in found if word not in stop]
    pairs = [f"{a} {b}" for a, b in itertools.pairwise(found)] if bigrams else []
    return found + pairs


def count_rows(rows: Iterable[Iterable[str]]) -> list[Counter[str]]:
    return [Counter(name for name in row if name) for row in rows]


def filtered(
    rows: Sequence[Counter[str]], min_items: int = 1, max_features: int | None = None
) -> tuple[list[Counter[str]], list[int]]:
    """Items with too many features go first, then features in too few of the items left. Also: which items stayed."""
    stay = [at for at, row in enumerate(rows) if max_features is None or len(row) <= max_features]
    items_with: Counter[str] = Counter(name for at in stay for name in rows[at])
    kept = [Counter({name: n for name, n in rows[at].items() if items_with[name] >= min_items}) for at in stay]
    return kept, stay


def tfidf(rows: Sequence[Counter[str]], *, sublinear: bool = False, unit_length: bool = True) -> list[dict[str, float]]:
    """scikit-learn's smooth tf-idf, cell by cell."""
    items_with: Counter[str] = Counter(name for row in rows for name in row)
    answer = []
    for row in rows:
        cells = {
            name: (1 + math.log(n) if sublinear else n) * (math.log((1 + len(rows)) / (1 + items_with[name])) + 1)
            for name, n in row.items()
        }
        length = math.sqrt(sum(value * value for value in cells.values())) if unit_length else 1.0
        answer.append({name: value / length for name, value in cells.items()})
    return answer


def as_dicts(X: sp.csr_matrix, vocabulary: Any) -> list[dict[str, float]]:
    """A matrix as one dict a row, so that the order of columns does not matter."""
    names = list(vocabulary)
    return [
        {names[column]: float(value) for column, value in zip(row.indices, row.data, strict=True)}
        for row in (X[at] for at in range(X.shape[0]))
    ]


def same_as_sklearn(
    dataset: Any, texts: Sequence[str], *, vectorizer: type[CountVectorizer] = TfidfVectorizer, **options: Any
) -> None:
    """The matrix equals scikit-learn's, up to the order of columns."""
    model = vectorizer(**options)
    theirs = model.fit_transform(texts)
    order = dataset.vocabulary.find(list(model.get_feature_names_out()))
    assert dataset.X.shape == theirs.shape
    assert (order >= 0).all()
    ours = dataset.X[:, order]
    ours.sort_indices()
    theirs.sort_indices()
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.data, theirs.data, rtol=1e-12)
