"""Millions of feature names as one Arrow buffer with an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.data.arrow import frozen, string_buffers
from shoal.errors import BadInput, UnknownFeature

if TYPE_CHECKING:
    import pyarrow as pa


class Vocabulary:
    """Feature names, numbered by column: one buffer of bytes, one of offsets, and a hash table over them.

    A million names of ten letters take about 35 MB, with no Python object each. The hash table is built when a name
    is first looked up, so a memory-mapped vocabulary costs nothing until then.

    Parameters
    ----------
    strings : iterable of str, or Arrow array
        Names in the order of the columns.

    Examples
    --------
    >>> vocabulary = Vocabulary(["cat", "dog"])
    >>> vocabulary[1], vocabulary.find(["dog", "cow"]).tolist(), "cat" in vocabulary
    ('dog', [1, -1], True)
    >>> vocabulary.extend(["cow", "dog"]).tolist(), len(vocabulary)
    ([2, 1], 3)
    """

    def __init__(self, strings: Any = ()) -> None:
        data, offsets = string_buffers(strings)
        self._adopt(data, offsets)
        if self._n and self._distinct() < self._n:
            ids = self.find(self.strings)
            twice = int(np.flatnonzero(ids != np.arange(self._n))[0])
            raise BadInput(
                f"duplicate name {self[twice]!r} at {ids[twice]} and {twice} of the vocabulary. Remove one of them."
            )

    @classmethod
    def from_arrays(cls, data: np.ndarray, offsets: np.ndarray) -> Vocabulary:
        """From what :meth:`to_arrays` gave; the arrays may be memory-mapped and are neither copied nor changed."""
        vocabulary = cls.__new__(cls)
        vocabulary._adopt(np.asarray(data), np.asarray(offsets))
        return vocabulary

    def to_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """All names as UTF-8 bytes end to end, and the ``len + 1`` places where they begin and end."""
        return self._data[: self._offsets[self._n]], self._offsets[: self._n + 1]

    def _adopt(self, data: np.ndarray, offsets: np.ndarray) -> None:
        self._data, self._offsets, self._n = data, offsets, len(offsets) - 1
        self._table: np.ndarray | None = None
        self._owned = False  # whether the arrays may be written and have spare room

    def _distinct(self) -> int:
        """Build the hash table; how many different names there are."""
        from shoal.data.vocabulary_kernels import build_table

        self._table = np.full(_table_size(self._n), -1, dtype=np.int64)
        return int(build_table(*map(frozen, self.to_arrays()), self._n, self._table))

    @property
    def strings(self) -> pa.LargeStringArray:
        """The names as an Arrow array, without copying."""
        import pyarrow as pa

        data, offsets = self.to_arrays()
        return pa.LargeStringArray.from_buffers(self._n, pa.py_buffer(offsets), pa.py_buffer(data))

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, feature: int) -> str:
        at = int(feature)
        if not -self._n <= at < self._n:
            raise IndexError(f"feature {at} of a vocabulary of {self._n:,}")
        at %= self._n
        return bytes(self._data[self._offsets[at] : self._offsets[at + 1]]).decode()

    def __iter__(self) -> Iterator[str]:
        return (self[at] for at in range(self._n))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.find([name])[0] >= 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(self.to_arrays(), other.to_arrays(), strict=True))

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        names = [self[at] for at in range(min(self._n, 4))]
        shown = ", ".join(repr(name if len(name) <= 30 else name[:29] + "\u2026") for name in names)
        return f"Vocabulary({self._n:,} features: {shown}{', ...' if self._n > 4 else ''})"

    @property
    def nbytes(self) -> int:
        """Bytes held, the hash table included."""
        return sum(a.nbytes for a in (self._data, self._offsets)) + (0 if self._table is None else self._table.nbytes)

    def find(self, strings: Any) -> np.ndarray:
        """The column of each name, -1 where the vocabulary does not hold it."""
        from shoal.data.vocabulary_kernels import find_all

        if self._table is None:
            self._distinct()
        keys, key_offsets = string_buffers(strings)
        ids = np.empty(len(key_offsets) - 1, dtype=np.int64)
        find_all(self._table, *map(frozen, (*self.to_arrays(), keys, key_offsets)), ids)
        return ids

    def columns(self, names: Iterable[str]) -> np.ndarray:
        """Like :meth:`find`, but a name that is not there is an error that offers near ones.

        >>> Vocabulary(["guitar", "piano"]).columns(["gitar"])
        Traceback (most recent call last):
        shoal.errors.UnknownFeature: no feature is named 'gitar'. Near names: 'guitar'.
        """
        wanted = list(names)
        ids = self.find(wanted)
        for name in (name for name, id_ in zip(wanted, ids, strict=True) if id_ < 0):
            near = ", ".join(map(repr, self.near(name)))
            offer = f"Near names: {near}." if near else f"The vocabulary holds {self._n:,} names, none like it."
            raise UnknownFeature(f"no feature is named {name!r}. {offer}")
        return ids

    def extend(self, strings: Any) -> np.ndarray:
        """The column of each name; names not seen before are appended in the order given."""
        from shoal.data.vocabulary_kernels import insert_all

        keys, key_offsets = string_buffers(strings)
        ids = np.empty(len(key_offsets) - 1, dtype=np.int64)
        self._make_room(ids.size, int(key_offsets[-1] - key_offsets[0]))
        arrays = (self._table, self._data, self._offsets, self._n)
        self._n = int(insert_all(*arrays, frozen(keys), frozen(key_offsets), ids))
        return ids

    def _make_room(self, n_strings: int, n_bytes: int) -> None:
        used = int(self._offsets[self._n])
        self._data = _with_room(self._data, used, n_bytes, owned=self._owned)
        self._offsets = _with_room(self._offsets, self._n + 1, n_strings, owned=self._owned)
        self._owned = True
        needed = _table_size(self._n + n_strings)
        if self._table is None or self._table.size < needed:
            from shoal.data.vocabulary_kernels import build_table

            self._table = np.full(needed, -1, dtype=np.int64)
            build_table(*map(frozen, self.to_arrays()), self._n, self._table)

    def keep(self, columns: np.ndarray) -> Vocabulary:
        """A new vocabulary of these columns, in this order."""
        import pyarrow as pa

        return Vocabulary.from_arrays(*string_buffers(self.strings.take(pa.array(columns))))

    def copy(self) -> Vocabulary:
        """One that can grow without changing this one."""
        return Vocabulary.from_arrays(*(array.copy() for array in self.to_arrays()))

    def near(self, name: str, n: int = 5) -> list[str]:
        """Names like this one, closest first: for a message that offers them.

        >>> Vocabulary(["guitar", "piano", "guitars", "drum"]).near("gutar", n=2)
        ['guitar', 'guitars']
        """
        from shoal.data.close_matches import close_matches

        return close_matches(name, self.strings, n)


def _table_size(n_names: int) -> int:
    """A power of two at least twice the number of names."""
    return 1 << max(4, (2 * n_names - 1).bit_length() if n_names else 0)


def _with_room(array: np.ndarray, used: int, extra: int, *, owned: bool) -> np.ndarray:
    if owned and array.size >= used + extra:
        return array
    larger = np.zeros(max(used + extra, 2 * used if owned else used), dtype=array.dtype)
    larger[:used] = array[:used]
    return larger
