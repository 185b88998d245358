"""The way back: JSON and named arrays -> values. Reads only what :mod:`shoal.store.encode` writes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import STORABLE, Estimator
from shoal.store.checks import (
    check_fields,
    check_names,
    check_offsets,
    check_part,
    check_random_state,
    check_shape,
    check_sparse,
)
from shoal.store.encode import BIT_GENERATORS, SPARSE, Malformed

MOST_EMPTY = 1 << 20  # bytes that an array may take beyond what is in the file
MOST_PADDING = 64  # times as long as its content
CSR = (sp.csr_matrix, sp.csr_array)

# The packages of shoal whose classes a file may name; importing one registers them.
PACKAGES = ("bernoulli", "data", "densities", "families", "kmeans", "roster", "streams", "suggestion")


class Decoder:
    """Builds values from JSON, with arrays taken from ``arrays`` and models built by ``build_model``."""

    def __init__(self, arrays: Mapping[str, np.ndarray], build_model: Callable[[Decoder, dict[str, Any]], Any]) -> None:
        self.arrays = dict(arrays)
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
        """Each array is used once, so that what is built is not larger than the file."""
        if not isinstance(name, str) or name not in self.arrays:
            raise Malformed(f"a reference to an array {name!r} that is not there, or used already")
        return self.arrays.pop(name)


def _array(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    array = decoder.array(value["name"])
    if "view" not in value:
        return array
    dtype = np.dtype(value["view"])
    if dtype.kind not in "mM" or array.dtype != np.int64:
        raise Malformed("an array of times that is none")
    return array.view(dtype)


def _scalar(decoder: Decoder, value: dict[str, Any]) -> Any:
    array = decoder.decode(value["array"])
    if not isinstance(array, np.ndarray) or array.ndim:
        raise Malformed("a number that is an array")
    return array[()]


def _transposed(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    array = decoder.decode(value["array"])
    if not isinstance(array, np.ndarray):
        raise Malformed("an array that is none")
    return array.T


def _complex_array(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    pairs = decoder.array(value["name"])
    if pairs.dtype not in (np.float32, np.float64) or not pairs.ndim or pairs.shape[-1] != 2:
        raise Malformed("an array of complex numbers that is none")
    return pairs.view(np.complex64 if pairs.dtype == np.float32 else np.complex128)[..., 0]


def _bytes_array(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    dtype, shape, content = np.dtype(value["dtype"]), check_shape(value["shape"]), decoder.array(value["name"])
    if dtype.kind != "S" or content.dtype != np.uint8 or math.prod(shape) * dtype.itemsize != content.size:
        raise Malformed("an array of bytes that is none")
    if dtype.itemsize:
        return content.view(dtype).reshape(shape)
    if math.prod(shape) > MOST_EMPTY:
        raise Malformed("an array of nothing")
    return np.empty(shape, dtype)


def _texts(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    dtype, shape = np.dtype(value["dtype"]), check_shape(value["shape"])
    text, offsets = decoder.array(value["text"]), decoder.array(value["offsets"])
    what = "an array of text that is none"
    if dtype.kind not in "UO" or text.dtype != np.uint8 or text.ndim != 1:
        raise Malformed(what)
    check_offsets(offsets, text.size, what)
    if math.prod(shape) != offsets.size - 1:
        raise Malformed(what)
    content = text.tobytes()
    pieces = [content[start:stop].decode("utf-8", "surrogatepass") for start, stop in pairwise(offsets.tolist())]
    # One long text among many short ones would make each as long: such an array comes back as one of objects.
    if dtype.kind == "U" and dtype.itemsize * len(pieces) > MOST_PADDING * (text.size + offsets.size) + MOST_EMPTY:
        dtype = np.dtype(object)
    texts = np.empty(len(pieces), dtype)
    texts[:] = pieces
    return texts.reshape(shape)


def _object_array(decoder: Decoder, value: dict[str, Any]) -> np.ndarray:
    items = np.empty(len(value["items"]), object)
    for at, item in enumerate(value["items"]):
        items[at] = decoder.decode(item)
    return items.reshape(check_shape(value["shape"]))


def _sparse(decoder: Decoder, value: dict[str, Any]) -> Any:
    shape = check_shape(value["shape"])
    data, indices, indptr = (decoder.array(value[part]) for part in ("data", "indices", "indptr"))
    cls = SPARSE[value["class"]]
    if len(shape) != 2 or type(value["sorted"]) is not bool or type(value["canonical"]) is not bool:
        raise Malformed("a sparse matrix that is none")
    n_long, n_wide = shape if issubclass(cls, CSR) else shape[::-1]
    check_sparse(data, indices, indptr, n_long, n_wide, is_sorted=value["sorted"], is_canonical=value["canonical"])
    matrix = cls(shape, dtype=data.dtype)
    # Set one by one: the constructor would narrow 64-bit indices that happen to fit into 32.
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    # Mapped arrays are read-only, so scipy must not find out by itself that they need sorting in place.
    matrix.has_sorted_indices = value["sorted"]
    matrix.has_canonical_format = value["canonical"]
    return matrix


def _part(decoder: Decoder, value: dict[str, Any]) -> Any:
    cls: Any = storable_class(value["class"])
    if cls is None or issubclass(cls, Estimator):
        raise Malformed(f"a part called {value['class']!r}, which this shoal does not know")
    fields = {name: decoder.decode(item) for name, item in value["fields"].items()}
    is_dataclass = dataclasses.is_dataclass(cls)
    names = {field.name for field in dataclasses.fields(cls)} if is_dataclass else set(getattr(cls, "_fields", ()))
    if not names >= fields.keys():
        raise Malformed(f"a {cls.__name__} with fields that it does not have")
    part = _build_dataclass(cls, fields) if is_dataclass else cls(**fields)
    check_fields(cls, {name: getattr(part, name) for name in names})
    check_part(part)
    return part


def _build_dataclass(cls: Any, fields: dict[str, Any]) -> Any:
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
    check_random_state(state)
    random = np.random.RandomState(BIT_GENERATORS[state["bit_generator"]]())
    random.set_state(state)
    return random


def _generator(decoder: Decoder, value: dict[str, Any]) -> np.random.Generator:
    state = decoder.decode(value["state"])
    check_random_state(state)
    bits = BIT_GENERATORS[state["bit_generator"]]()
    bits.state = state
    return np.random.Generator(bits)


def _vocabulary(decoder: Decoder, value: dict[str, Any]) -> Any:
    from shoal.data.vocabulary import Vocabulary

    text, offsets = decoder.array(value["text"]), decoder.array(value["offsets"])
    check_names(text, offsets)
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
    "scalar": _scalar,
    "array": _array,
    "transposed": _transposed,
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
