"""How a source was turned into columns, so that new rows can be turned into the same ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.base import storable

SHAPES = ("list", "delimited", "text", "long", "numeric", "matrix", "table")
WEIGHTINGS = ("binary", "count", "tfidf")
TOKENS = ("words", "log")


@storable
@dataclass(frozen=True, eq=False)
class Recipe:
    """Everything needed, with the vocabulary, to read new data as the old was read.

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
    time_format: str | None = None  # of times given as text in another form than ISO's, as strptime has it
    numeric: tuple[str, ...] = ()  # of shape "numeric": the columns that are features
    tokens: str = "words"  # how text is cut: one of TOKENS
    title: str | None = None
    columns: tuple[str, ...] = ()  # of shape "table": the columns that describe a row
    kinds: tuple[str, ...] = ()  # and what each holds: number, time, text or list

    def __repr__(self) -> str:
        plain = Recipe.__dataclass_fields__
        shown = {
            name: getattr(self, name)
            for name in plain
            if name not in ("idf", "numeric", "stop_words", "columns", "kinds")
        }
        changed = [f"{name}={value!r}" for name, value in shown.items() if value != plain[name].default]
        names = {name: len(getattr(self, name)) for name in ("numeric", "stop_words", "columns")}
        changed += [f"{name}=<{n:,} names>" for name, n in names.items() if n]
        if self.idf is not None:
            changed.append(f"idf=<{self.idf.size:,} numbers>")
        return f"Recipe({', '.join(changed)})"
