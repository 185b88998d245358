"""Log lines into features: what is variable is masked, and each word stands at its place in lines of its kind.

A line is cut at blanks. A word with a digit or a slash (a number, an address, a path, an id) becomes ``<*>``, and of
``key=value`` the value does. Every word is then a feature together with its place, the number of words in the line, and
the line's first two words (the upper levels of Drain's tree, He et al. 2017): lines of other kinds share nothing. The
masked line as a whole counts for a quarter of its words, so that kinds that differ in one word stay apart, unless that
word takes many values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.data.arrow import frozen, string_buffers
from shoal.data.tokens import Slices

if TYPE_CHECKING:
    import pyarrow as pa

PLACED = re.compile(r".* ([0-9]+)/([0-9]+): (\S+)")  # no masked line has a digit
VARIABLE = "<*>"
FIXED_SHARE = 0.9  # a place belongs to the template if so many of the lines have the same word there


class LogLines:
    """Cuts log lines into features.

    >>> import pyarrow as pa
    >>> slices = LogLines().cut(pa.array(["Received block blk_38 of size 67108864"]))
    >>> names = [bytes(slices.data[a:b]).decode() for a, b in zip(slices.starts, slices.stops)]
    >>> names[0], names[2], names[-1]
    ('Received block 1/6: Received', 'Received block 3/6: <*>', 'Received block <*> of size <*>')
    """

    def cut(self, strings: pa.Array) -> Slices:
        from shoal.data.log_token_kernels import mask_lines, place_words

        text, offsets = string_buffers(strings)
        most = text.size // 2 + len(offsets)
        # a word of one byte that is masked grows to three; it has a blank at each side
        masked = np.empty(2 * text.size + 4, dtype=np.uint8)
        starts, stops = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
        ends, row_ends = np.empty(len(offsets) - 1, dtype=np.int64), np.empty(len(offsets) - 1, dtype=np.int64)
        mask_lines(frozen(text), offsets, masked, starts, stops, ends)
        nothing, none = np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int64)
        size, n_features = place_words(masked, starts, stops, ends, nothing, none, none, row_ends)
        names = np.empty(size, dtype=np.uint8)
        first, last = np.empty(n_features, dtype=np.int64), np.empty(n_features, dtype=np.int64)
        place_words(masked, starts, stops, ends, names, first, last, row_ends)
        return Slices(names, first, last, row_ends)


def features_of_line(line: str) -> list[str]:
    """The features of one line, as :class:`LogLines` cuts it.

    >>> features_of_line("bye")
    ['bye 1/1: bye', 'bye']
    """
    import pyarrow as pa

    slices = LogLines().cut(pa.array([line], pa.string()))
    return [bytes(slices.data[a:b]).decode() for a, b in zip(slices.starts, slices.stops, strict=True)]


def template_of(names: Sequence[str], amounts: Sequence[float]) -> str | None:
    """The lines of a cluster as one template, from its features and their counts; None if they are no log lines.

    >>> template_of(["a b 1/3: a", "a b 2/3: b", "a b 3/3: x", "a b 3/3: y", "a b x"], [4, 4, 2, 2, 1])
    'a b <*>'
    """
    lines: Counter[int] = Counter()  # of each length
    words: dict[tuple[int, int], Counter[str]] = {}
    for name, amount in zip(names, amounts, strict=True):
        found = PLACED.fullmatch(name)
        if found:
            place, length = int(found[1]), int(found[2])
            words.setdefault((length, place), Counter())[found[3]] += amount  # type: ignore[assignment]
            lines[length] += amount if place == 1 else 0  # type: ignore[assignment]
    if not lines:
        return None
    length = lines.most_common(1)[0][0]
    parts = []
    for place in range(1, length + 1):
        (word, amount), *_ = words.get((length, place), Counter()).most_common(1) or [(VARIABLE, 0)]
        parts.append(word if amount >= FIXED_SHARE * lines[length] else VARIABLE)
    return " ".join(parts)
