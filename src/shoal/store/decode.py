"""The way back: JSON and named arrays -> values. Reads only what :mod:`shoal.store.encode` writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import STORABLE, Estimator
from shoal.store.encode import BIT_GENERATORS, SPARSE, Malformed

CSR = (sp.csr_matrix, sp.csr_array)

# The packages of shoal whose classes a file may name; importing one registers them.
PACKAGES = ("bernoulli", "data", "densities", "families", "kmeans", "roster", "streams", "suggestion")


class Decoder:
    """Builds values from JSON, with arrays taken from ``arrays`` and models built by ``build_model``."""

    def __init__(self, arrays: Mapping[str, np.ndarray], build_model: Callable[[Decoder, dict[str, Any]], Any]) -> None:
        self.arrays = arrays
        self.build_model = build_model

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        read = READERS.get(value.get("$", ""))
        if read is None:
            raise Malformed(f"a value of kind {value.get('$')!r}, which this shoal does not know")
        return read(self, value)

    def array(self, name: str) -> np.ndarray:
        return self.arrays[name]


def _array(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    array = decoder.array(value["name"])
    if "view" not in value:
        return array
    dtype = np.dtype(value["view"])
    if dtype.kind not in "mM":
        raise Malformed("an array of times that is none")
    return array.view(dtype)


def _complex_array(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    pairs = decoder.array(value["name"])
    return pairs.view(np.complex64 if pairs.dtype == np.float32 else np.complex128)[..., 0]


def _bytes_array(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    dtype = np.dtype(value["dtype"])
    if dtype.kind != "S":
        raise Malformed("an array of bytes that is none")
    if dtype.itemsize == 0:
        return np.empty(value["shape"], dtype)
    return np.reshape(decoder.array(value["name"]).view(dtype), value["shape"])


def _texts(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in "UO":
        raise Malformed("an array of text that is none")
    text = decoder.array(value["text"]).tobytes()
    offsets = decoder.array(value["offsets"]).tolist()
    pieces = [text[start:stop].decode("utf-8", "surrogatepass") for start, stop in pairwise(offsets)]
    texts = np.empty(len(pieces), dtype)
    texts[:] = pieces
    return texts.reshape(value["shape"])


def _object_array(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    items = np.empty(len(value["items"]), object)
    for at, item in enumerate(value["items"]):
        items[at] = decoder.decode(item)
    return items.reshape(value["shape"])


def _sparse(decoder: Decoder, value: dict[str, Any]) -> Any:
    shape = tuple(value["shape"])
    data, indices, indptr = (decoder.array(value[part]) for part in ("data", "indices", "indptr"))
    cls = SPARSE[value["class"]]
    n_long, n_wide = shape if issubclass(cls, CSR) else shape[::-1]
    if (
        indices.dtype.kind != "i"
        or indptr.dtype.kind != "i"
        or indptr.shape != (n_long + 1,)
        or indptr[0] != 0
        or not indptr[-1] == indices.size == data.size
        or (np.diff(indptr) < 0).any()
        or (indices.size and not 0 <= indices.min() <= indices.max() < n_wide)
    ):
        raise Malformed("a sparse matrix whose indices point outside it")
    matrix = cls(shape, dtype=data.dtype)
    # Set one by one: the constructor would narrow 64-bit indices that happen to fit into 32.
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    # Mapped arrays are read-only, so scipy must not find out by itself that they need sorting in place.
    matrix.has_sorted_indices = value["sorted"]
    matrix.has_canonical_format = value["canonical"]
    return matrix


def _part(decoder: Decoder, value: dict[str, Any]) -> Any:
    cls = storable_class(value["class"])
    if cls is None or issubclass(cls, Estimator):
        raise Malformed(f"a part called {value['class']!r}, which this shoal does not know")
    fields = {name: decoder.decode(item) for name, item in value["fields"].items()}
    if not dataclasses.is_dataclass(cls):
        return cls(**fields)
    part = cls(
        **{field.name: fields[field.name] for field in dataclasses.fields(cls) if field.init and field.name in fields}
    )
    for field in dataclasses.fields(cls):
        if not field.init and field.name in fields:
            object.__setattr__(part, field.name, fields[field.name])
    return part


def storable_class(name: str) -> type | None:
    """The class of shoal that a file calls by this name; a file can name no other."""
    package = name.partition(".")[0]
    if name not in STORABLE and package in PACKAGES:
        import_module(f"shoal.{package}")
    return STORABLE.get(name)


def _random_state(decoder: Decoder, value: dict[str, Any]) -> np.random.RandomState:
    state = decoder.decode(value["state"])
    random = np.random.RandomState(BIT_GENERATORS[state["bit_generator"]]())
    random.set_state(state)
    return random


def _generator(decoder: Decoder, value: dict[str, Any]) -> np.random.Generator:
    state = decoder.decode(value["state"])
    bits = BIT_GENERATORS[state["bit_generator"]]()
    bits.state = state
    return np.random.Generator(bits)


def _vocabulary(decoder: Decoder, value: dict[str, Any]) -> Any:
    from shoal.data.vocabulary import Vocabulary

    text, offsets = decoder.array(value["text"]), decoder.array(value["offsets"])
    if offsets.dtype != np.int64 or offsets[0] < 0 or offsets[-1] > text.size or (np.diff(offsets) < 0).any():
        raise Malformed("a vocabulary whose names overlap")
    return Vocabulary.from_arrays(text, offsets)


def _items(decoder: Decoder, value: dict[str, Any]) -> list[Any]:
    return [decoder.decode(item) for item in value["items"]]


READERS: dict[str, Callable[[Decoder, dict[str, Any]], Any]] = {
    "float": lambda decoder, value: float(value["value"]),
    "int": lambda decoder, value: int(value["value"], 16),
    "complex": lambda decoder, value: complex(*(decoder.decode(part) for part in value["parts"])),
    "bytes": lambda decoder, value: decoder.array(value["name"]).tobytes(),
    "tuple": lambda decoder, value: tuple(_items(decoder, value)),
    "set": lambda decoder, value: set(_items(decoder, value)),
    "frozenset": lambda decoder, value: frozenset(_items(decoder, value)),
    "dict": lambda decoder, value: {decoder.decode(key): decoder.decode(item) for key, item in value["items"]},
    "scalar": lambda decoder, value: decoder.decode(value["array"])[()],
    "array": _array,
    "transposed": lambda decoder, value: decoder.decode(value["array"]).T,
    "complex array": _complex_array,
    "bytes array": _bytes_array,
    "object array": _object_array,
    "texts": _texts,
    "sparse": _sparse,
    "vocabulary": _vocabulary,
    "part": _part,
    "RandomState": _random_state,
    "Generator": _generator,
    "model": lambda decoder, value: decoder.build_model(decoder, value),
}
