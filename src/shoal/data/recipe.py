"""How a source was turned into columns, so that new rows can be turned into the same ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.base import storable

SHAPES = ("list", "delimited", "text", "long", "matrix")
WEIGHTINGS = ("binary", "count", "tfidf")


@storable
@dataclass(frozen=True, eq=False)
class Recipe:
    """Everything needed, beside the vocabulary, to read new data as the old was read.

    >>> Recipe(shape="text", text="title", weighting="tfidf", bigrams=True)
    Recipe(shape='text', text='title', bigrams=True, weighting='tfidf')
    """

    shape: str = "matrix"  # one of SHAPES
    item: str | None = None
    features: str | None = None  # the column of features; in a long table, one feature a row
    text: str | None = None
    weight: str | None = None
    time: str | None = None
    owner: str | None = None
    label: str | None = None
    delimiter: str | None = None  # of a delimited column; None: the whole value is one feature
    lowercase: bool = True
    stop_words: tuple[str, ...] = ()
    bigrams: bool = False
    weighting: str = "count"  # one of WEIGHTINGS
    sublinear: bool = False  # 1 + log(count) instead of the count
    unit_length: bool = False  # each row divided by its Euclidean length
    idf: np.ndarray | None = None  # (n_features,) for "tfidf"
    time_unit: str | None = None  # of times given as numbers: "s", "ms", "us" or "ns"
    dtype: str = "float64"

    def __repr__(self) -> str:
        plain = Recipe.__dataclass_fields__
        said = {name: getattr(self, name) for name, field in plain.items() if name != "idf"}
        changed = [f"{name}={value!r}" for name, value in said.items() if value != plain[name].default]
        if self.idf is not None:
            changed.append(f"idf=<{self.idf.size:,} numbers>")
        return f"Recipe({', '.join(changed)})"
