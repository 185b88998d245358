"""Text into words: the same words as scikit-learn's vectorizers, cut by a kernel over the UTF-8 bytes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.data.arrow import frozen, string_buffers
from shoal.data.vocabulary import Vocabulary
from shoal.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

NEEDS_NEIGHBOURS = -2  # as in token_kernels
# Lower-casing a letter depends on its neighbours, or gives two, for these alone: rows that hold one go through Python.
SPECIAL = ("\u03a3", "\u0130")  # capital sigma (final or not), capital I with a dot


class Slices(NamedTuple):
    """Features as slices of a byte buffer: row ``r`` owns slices ``row_ends[r - 1]`` to ``row_ends[r]``."""

    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    row_ends: np.ndarray


class Words:
    """Cuts text into words of two letters or more, as ``(?u)\\b\\w\\w+\\b`` does, and optionally pairs of neighbours.

    >>> import pyarrow as pa
    >>> slices = Words(stop_words=["the"], bigrams=True).cut(pa.array(["Hunting the Snark!"]))
    >>> [bytes(slices.data[a:b]).decode() for a, b in zip(slices.starts, slices.stops)]
    ['hunting', 'snark', 'hunting snark']
    """

    def __init__(self, *, lowercase: bool = True, stop_words: Iterable[str] = (), bigrams: bool = False) -> None:
        self.lowercase, self.bigrams = lowercase, bigrams
        self.folded = folded_letters(lowercase)
        stop = Vocabulary(sorted(set(stop_words)))
        stop.find(["a"])  # builds the table
        self.stop_names, self.stop_offsets = map(frozen, stop.to_arrays())
        self.stop_table = stop._table if len(stop) and stop._table is not None else np.full(1, -1, dtype=np.int64)

    def cut(self, strings: pa.Array) -> Slices:
        from shoal.data.token_kernels import add_pairs, cut_words

        text, offsets = string_buffers(strings)
        # A letter grows by half at most when lower-cased (two bytes to three), and each word is followed by a space.
        words = np.empty(2 * text.size + 8, dtype=np.uint8)
        most = text.size // 2 + 1
        starts, stops = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
        row_ends = np.empty(len(offsets) - 1, dtype=np.int64)
        stop = (self.stop_table, self.stop_names, self.stop_offsets)
        n_words = cut_words(frozen(text), offsets, self.folded, *stop, words, starts, stops, row_ends)
        if n_words < 0:
            return self.cut(lower_special(strings))
        if not self.bigrams:
            return Slices(words, starts[:n_words], stops[:n_words], row_ends)
        all_starts, all_stops = np.empty(2 * n_words, dtype=np.int64), np.empty(2 * n_words, dtype=np.int64)
        all_ends = np.empty_like(row_ends)
        n_all = add_pairs(starts, stops, row_ends, all_starts, all_stops, all_ends)
        return Slices(words, all_starts[:n_all], all_stops[:n_all], all_ends)


@lru_cache(maxsize=2)
def folded_letters(lowercase: bool) -> np.ndarray:
    """For every code point, the letter it becomes, -1 where it is no part of a word, -2 for SPECIAL letters."""
    # Surrogates cannot stand in UTF-8; 0x130 would become two letters and shift the rest.
    letters = np.arange(sys.maxunicode + 1, dtype=np.uint32)
    letters = letters[(letters < 0xD800) | (letters > 0xDFFF)]
    letters = letters[letters != 0x130]
    text = letters.tobytes().decode("utf-32-le")
    text = text.lower() if lowercase else text
    lowered = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    folded = np.full(sys.maxunicode + 1, -1, dtype=np.int32)
    for run in re.finditer(r"\w+", text):
        folded[letters[run.start() : run.end()]] = lowered[run.start() : run.end()]
    if lowercase:
        folded[[ord(letter) for letter in SPECIAL]] = NEEDS_NEIGHBOURS
    else:
        folded[0x130] = 0x130
    return folded


def lower_special(strings: pa.Array) -> pa.Array:
    """Lower-case, by Python's own rules, the few rows that hold a letter a table cannot do justice to."""
    import pyarrow as pa
    import pyarrow.compute as pc

    affected = pc.match_substring(strings, SPECIAL[0])
    affected = pc.fill_null(pc.or_(affected, pc.match_substring(strings, SPECIAL[1])), False)
    if not pc.any(affected).as_py():
        return strings
    lowered = [text.lower() for text in strings.filter(affected).to_pylist()]
    return pc.replace_with_mask(strings, affected, pa.array(lowered, strings.type))


def list_slices(lists: pa.Array) -> Slices:
    """The strings of a list column; a null list is an empty row, and a null or empty string is no feature."""
    import pyarrow.compute as pc

    row_ends = np.cumsum(np.asarray(pc.fill_null(pc.list_value_length(lists), 0)), dtype=np.int64)
    data, offsets = string_buffers(lists.flatten())  # flatten leaves out what null lists hide
    return Slices(data, offsets[:-1], offsets[1:], row_ends)


def delimited_slices(strings: pa.Array, delimiter: str | None) -> Slices:
    """The pieces between delimiters, without the blanks around them; no delimiter: the whole value is one feature."""
    from shoal.data.token_kernels import cut_at

    data, offsets = string_buffers(strings)
    separator = np.frombuffer((delimiter or "").encode(), dtype=np.uint8)
    most = data.size // max(1, separator.size) + len(strings) + 1
    starts, stops = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    row_ends = np.empty(len(strings), dtype=np.int64)
    if not separator.size:
        return Slices(data, offsets[:-1], offsets[1:], np.arange(1, len(strings) + 1))
    n_pieces = cut_at(frozen(data), offsets, frozen(separator), starts, stops, row_ends)
    return Slices(data, starts[:n_pieces], stops[:n_pieces], row_ends)


def as_stop_words(stop_words: str | Iterable[str] | None) -> tuple[str, ...]:
    """None, "english" (scikit-learn's list), or the words themselves."""
    if stop_words is None:
        return ()
    if isinstance(stop_words, str):
        if stop_words != "english":
            raise BadInput(f'stop_words is {stop_words!r}; give "english", None, or the words themselves as a list.')
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return tuple(sorted(ENGLISH_STOP_WORDS))
    return tuple(sorted(set(map(str, stop_words))))
