"""A model's state as plain JSON and named arrays, and back. What cannot be written is refused by name.

JSON's own null, true, numbers, text and lists stand for themselves. All else is an object with a ``"$"`` that says
what it is. A file can name only the kinds below and classes that shoal itself registered, so reading one builds data
and runs nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import STORABLE, Estimator, storable_name
from shoal.errors import BadInput
from shoal.store.container import NAMES

DEEPEST = 100
SPARSE = {cls.__name__: cls for cls in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array)}
BIT_GENERATORS = {
    cls.__name__: cls
    for cls in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)
}
PLAIN_NUMBERS = "biuf"  # numpy's letters for bool, int, unsigned, float


class Malformed(Exception):
    """The JSON is not something this module writes."""


# --- writing ----------------------------------------------------------------------------------------------------------


class Encoder:
    """Turns values into JSON, collecting their arrays on the way."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: Any, at: str, depth: int = 0) -> Any:
        """``at`` is the attribute, in words a person can follow: it names arrays and stands in error messages."""
        if depth > DEEPEST:
            raise BadInput(f"cannot save {at}: it is nested more than {DEEPEST} deep, or contains itself.")
        write = WRITERS.get(type(value))
        if write is not None:
            return write(self, value, at, depth)
        if type(value) in (np.ndarray, np.memmap):
            return self.array(np.asarray(value), at, depth)
        if isinstance(value, np.generic):
            return {"$": "scalar", "array": self.array(np.asarray(value), at, depth)}
        if sp.issparse(value):
            return self.sparse(value, at)
        if isinstance(value, Estimator):
            return self.model(value, value.fitted_state(), f"{at}.", depth)
        if STORABLE.get(storable_name(type(value))) is type(value):
            return self.part(value, at, depth)
        if type(value).__name__ == "Vocabulary" and hasattr(value, "to_arrays"):
            text, offsets = value.to_arrays()
            return {
                "$": "vocabulary",
                "text": self.keep(text, f"{at}.text"),
                "offsets": self.keep(offsets, f"{at}.offsets"),
            }
        raise self.refusal(value, at)

    def refusal(self, value: Any, at: str) -> BadInput:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        return BadInput(
            f"cannot save {at}: it is a {kind}, which a model file cannot hold. Models are made of arrays, sparse "
            "matrices, numbers, text, lists, dicts and classes decorated with shoal.base.storable."
        )

    def keep(self, array: np.ndarray, name: str) -> str:
        """Put an array among the file's arrays under a name not yet taken."""
        unique, n = name, 1
        while unique in self.arrays or unique == "__metadata__":
            n += 1
            unique = f"{name}~{n}"
        self.arrays[unique] = array
        return unique

    def array(self, array: np.ndarray, at: str, depth: int) -> dict[str, Any]:
        # A Fortran-ordered matrix is written as its transpose, so that it comes back in the order it had.
        fortran = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
        if fortran:
            return {"$": "transposed", "array": self.array(array.T, at, depth)}
        kind = array.dtype.kind
        if array.dtype.newbyteorder("<") in NAMES:
            return {"$": "array", "name": self.keep(array, at)}
        if kind in "mM":
            return {
                "$": "array",
                "name": self.keep(array.view(np.int64), at),
                "view": array.dtype.newbyteorder("<").str,
            }
        if kind == "c" and array.dtype.itemsize <= 16:
            pairs = np.stack([array.real, array.imag], axis=-1)
            return {"$": "complex array", "name": self.keep(pairs, at)}
        if kind == "S":
            spread = np.frombuffer(array.tobytes(), np.uint8)
            return {"$": "bytes array", "name": self.keep(spread, at), "dtype": array.dtype.str, "shape": array.shape}
        if kind == "U" or (kind == "O" and all(type(item) is str for item in array.flat)):
            return self.texts(array, at)
        if kind == "O":
            items = [self.encode(item, f"{at}.{n}", depth + 1) for n, item in enumerate(array.flat)]
            return {"$": "object array", "items": items, "shape": array.shape}
        raise BadInput(f"cannot save {at}: it is an array of {array.dtype}, which a model file cannot hold.")

    def texts(self, array: np.ndarray, at: str) -> dict[str, Any]:
        """Text as one run of UTF-8 bytes and offsets into it."""
        pieces = [str(item).encode("utf-8", "surrogatepass") for item in array.flat]
        offsets = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
        text = np.frombuffer(b"".join(pieces), np.uint8)
        names = {"text": self.keep(text, f"{at}.text"), "offsets": self.keep(offsets, f"{at}.offsets")}
        return {"$": "texts", **names, "dtype": array.dtype.newbyteorder("<").str, "shape": array.shape}

    def sparse(self, matrix: Any, at: str) -> dict[str, Any]:
        if type(matrix).__name__ not in SPARSE or matrix.dtype.newbyteorder("<") not in NAMES:
            raise BadInput(
                f"cannot save {at}: it is a {type(matrix).__name__} of {matrix.dtype}. Convert it with .tocsr() and to "
                "real numbers first."
            )
        parts = {part: self.keep(getattr(matrix, part), f"{at}.{part}") for part in ("data", "indices", "indptr")}
        order = {"sorted": bool(matrix.has_sorted_indices), "canonical": bool(matrix.has_canonical_format)}
        return {"$": "sparse", "class": type(matrix).__name__, "shape": matrix.shape, **parts, **order}

    def model(self, model: Estimator, state: Mapping[str, Any], inside: str = "", depth: int = 0) -> dict[str, Any]:
        """Its arrays are called params.x and state.x_, with where it is in front if it is inside another model."""
        parts = {"params": model.get_params(deep=False), "state": state}
        encoded = {
            part: {name: self.encode(value, f"{inside}{part}.{name}", depth + 1) for name, value in values.items()}
            for part, values in parts.items()
        }
        return {"$": "model", "class": storable_name(type(model)), **encoded}

    def part(self, value: Any, at: str, depth: int) -> dict[str, Any]:
        if dataclasses.is_dataclass(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        elif hasattr(value, "_asdict"):
            fields = value._asdict()
        else:
            raise self.refusal(value, at)
        encoded = {name: self.encode(item, f"{at}.{name}", depth + 1) for name, item in fields.items()}
        return {"$": "part", "class": storable_name(type(value)), "fields": encoded}


def _write_float(encoder: Encoder, value: float, at: str, depth: int) -> Any:
    return value if math.isfinite(value) else {"$": "float", "value": str(value)}


def _write_int(encoder: Encoder, value: int, at: str, depth: int) -> Any:
    return value if abs(value) < 2**53 else {"$": "int", "value": hex(value)}


def _write_complex(encoder: Encoder, value: complex, at: str, depth: int) -> Any:
    return {"$": "complex", "parts": [_write_float(encoder, part, at, depth) for part in (value.real, value.imag)]}


def _write_bytes(encoder: Encoder, value: bytes, at: str, depth: int) -> Any:
    return {"$": "bytes", "name": encoder.keep(np.frombuffer(value, np.uint8), at)}


def _write_list(encoder: Encoder, value: Any, at: str, depth: int) -> list[Any]:
    return [encoder.encode(item, f"{at}.{n}", depth + 1) for n, item in enumerate(value)]


def _write_tuple(encoder: Encoder, value: tuple, at: str, depth: int) -> Any:
    return {"$": "tuple", "items": _write_list(encoder, value, at, depth)}


def _write_set(encoder: Encoder, value: Any, at: str, depth: int) -> Any:
    return {"$": type(value).__name__, "items": _write_list(encoder, sorted(value, key=repr), at, depth)}


def _write_dict(encoder: Encoder, value: dict, at: str, depth: int) -> Any:
    items = [
        [encoder.encode(key, f"{at}.key {n}", depth + 1), encoder.encode(item, f"{at}.{_short(key, n)}", depth + 1)]
        for n, (key, item) in enumerate(value.items())
    ]
    return {"$": "dict", "items": items}


def _short(key: Any, n: int) -> str:
    return key if isinstance(key, str) and len(key) < 60 and key.isprintable() else str(n)


def _write_random_state(encoder: Encoder, value: np.random.RandomState, at: str, depth: int) -> Any:
    return {"$": "RandomState", "state": encoder.encode(value.get_state(legacy=False), at, depth + 1)}


def _write_generator(encoder: Encoder, value: np.random.Generator, at: str, depth: int) -> Any:
    return {"$": "Generator", "state": encoder.encode(value.bit_generator.state, at, depth + 1)}


WRITERS: dict[type, Callable[[Encoder, Any, str, int], Any]] = {
    type(None): lambda encoder, value, at, depth: None,
    bool: lambda encoder, value, at, depth: value,
    str: lambda encoder, value, at, depth: value,
    int: _write_int,
    float: _write_float,
    complex: _write_complex,
    bytes: _write_bytes,
    list: _write_list,
    tuple: _write_tuple,
    set: _write_set,
    frozenset: _write_set,
    dict: _write_dict,
    np.random.RandomState: _write_random_state,
    np.random.Generator: _write_generator,
}
