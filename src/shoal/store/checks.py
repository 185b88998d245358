"""What a file must not say: structures that contradict themselves are refused before anything uses them.

The checksum of a file keeps out accidents and no enemy, who can compute it as well. Kernels follow indices without
looking, so every index that the store itself understands is checked here; what only a model understands is checked by
the ``check_state`` of its parts.
"""

from __future__ import annotations

import functools
import types
import typing
from typing import Any

import numpy as np

from shoal.store.encode import Malformed

BLOCK = 1 << 22  # entries looked at together
MOST_DIMENSIONS = 32
MT19937_WORDS = 624
WRONG_PART = "a part whose fields are of the wrong kind"


def check_shape(shape: Any) -> tuple[int, ...]:
    """A tuple of whole numbers that can be a shape."""
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS:
        raise Malformed("a shape that is none")
    for n in shape:
        if type(n) is not int or not 0 <= n < 2**62:
            raise Malformed("a shape that is none")
    return tuple(shape)


def check_offsets(offsets: np.ndarray, n_bytes: int, what: str) -> None:
    """Offsets begin at 0, never fall, and end at the number of bytes: no byte is read twice."""
    if (
        offsets.ndim != 1
        or offsets.dtype != np.int64
        or not offsets.size
        or offsets[0] != 0
        or offsets[-1] != n_bytes
        or (offsets[1:] < offsets[:-1]).any()
    ):
        raise Malformed(what)


def check_names(text: np.ndarray, offsets: np.ndarray) -> None:
    """UTF-8 names, end to end; no name begins inside a letter."""
    what = "a vocabulary whose names are not text or overlap"
    if text.ndim != 1 or text.dtype != np.uint8:
        raise Malformed(what)
    check_offsets(offsets, text.size, what)
    try:
        text.tobytes().decode()
    except UnicodeDecodeError:
        raise Malformed(what) from None
    starts = offsets[:-1][offsets[:-1] < text.size]
    if ((text[starts] & 0xC0) == 0x80).any():
        raise Malformed(what)


def check_sparse(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    n_long: int,
    n_wide: int,
    *,
    is_sorted: bool,
    is_canonical: bool,
) -> None:
    """The three arrays of a compressed matrix fit together, in 64-bit arithmetic, and are in the order they claim."""
    what = "a sparse matrix whose indices point outside it"
    for part in (indices, indptr):
        if part.ndim != 1 or part.dtype not in (np.int32, np.int64):
            raise Malformed(what)
    if data.ndim != 1 or data.size != indices.size or indptr.size != n_long + 1:
        raise Malformed(what)
    if int(indptr[0]) != 0 or int(indptr[-1]) != indices.size or (indptr[1:] < indptr[:-1]).any():
        raise Malformed(what)
    for start in range(0, indices.size, BLOCK):
        block = indices[start : start + BLOCK]
        if int(block.min()) < 0 or int(block.max()) >= n_wide:
            raise Malformed(what)
    if (is_sorted or is_canonical) and not _rises_in_rows(indices, indptr, strictly=is_canonical):
        raise Malformed("a sparse matrix in another order than it says")


def _rises_in_rows(indices: np.ndarray, indptr: np.ndarray, *, strictly: bool) -> bool:
    """Whether the columns of every row rise; in scipy's words, a sorted matrix may have a column twice."""
    for start in range(0, indices.size - 1, BLOCK):
        stop = min(start + BLOCK, indices.size - 1)
        before, after = indices[start:stop], indices[start + 1 : stop + 1]
        falls = start + 1 + np.flatnonzero(after <= before if strictly else after < before)
        if not np.isin(falls, indptr).all():
            return False
    return True


def check_random_state(state: dict[str, Any]) -> None:
    """The state of a bit generator, whose C code follows its positions without looking."""
    what = "a state of random numbers that is none"
    inner = state["state"]
    if state["bit_generator"] == "MT19937":
        key, position = inner["key"], inner["pos"]
        if not (isinstance(key, np.ndarray) and key.shape == (MT19937_WORDS,) and key.dtype.kind in "ui"):
            raise Malformed(what)
        if type(position) is not int or not 0 <= position <= MT19937_WORDS:
            raise Malformed(what)
    limits = {"buffer_pos": 4, "has_gauss": 1, "has_uint32": 1, "uinteger": 2**32 - 1}
    for name, most in limits.items():
        if name in state and not (type(state[name]) is int and 0 <= state[name] <= most):
            raise Malformed(what)
    if not isinstance(state.get("gauss", 0.0), float | int) or not np.isfinite(state.get("gauss", 0.0)):
        raise Malformed(what)


def check_fields(cls: type, fields: dict[str, Any]) -> None:
    """The fields of a part are those of its class, and of the kinds that the class says."""
    hints = _hints(cls)
    for name, value in fields.items():
        if name in hints and not _is_a(value, hints[name]):
            raise Malformed(f"{WRONG_PART}: {name} of {cls.__name__} is a {type(value).__name__}")


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError):  # a name imported for type checkers only
        return {}


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of a kind; a kind that is not understood here is anything."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_is_a(value, one) for one in arguments)
    if origin is typing.Literal:
        return value in arguments
    if hint is Any:
        return True
    if hint is None or hint is types.NoneType:
        return value is None
    if hint is float:
        return isinstance(value, float | int | np.floating | np.integer)
    if hint is int:
        return isinstance(value, int | np.integer)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if origin in (list, tuple, dict, set, frozenset):
        return isinstance(value, origin) and _are(value, origin, arguments)
    if isinstance(hint, type) and not getattr(hint, "_is_protocol", False):
        return isinstance(value, hint)
    return True


def _are(values: Any, origin: type, arguments: tuple[Any, ...]) -> bool:
    if not arguments:
        return True
    if origin is dict:
        return all(_is_a(key, arguments[0]) and _is_a(item, arguments[1]) for key, item in values.items())
    if origin is tuple and Ellipsis not in arguments:
        return len(values) == len(arguments) and all(map(_is_a, values, arguments))
    return all(_is_a(item, arguments[0]) for item in values)


def check_part(part: Any) -> None:
    """What the part says about itself, if it looks: arrays whose shapes and indices belong together."""
    check_state = getattr(part, "check_state", None)
    if check_state is not None:
        check_state()


def check_model(model: Any) -> None:
    """What holds for every estimator."""
    state = vars(model)
    n_features = state.get("n_features_in_", 0)
    if type(n_features) is not int or n_features < 0:
        raise Malformed("a number of features that is none")
    vocabulary = state.get("vocabulary_")
    if vocabulary is not None and not hasattr(vocabulary, "to_arrays"):
        raise Malformed("a vocabulary that is none")
    if not isinstance(state.get("provenance_", {}), dict):
        raise Malformed("an origin that is none")
    labels = state.get("labels_")
    if labels is not None and not (isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "iu"):
        raise Malformed("labels that are none")
    sizes = state.get("cluster_sizes_")
    if sizes is not None and not (isinstance(sizes, np.ndarray) and sizes.ndim == 1 and sizes.dtype.kind in "iuf"):
        raise Malformed("cluster sizes that are none")
    check_part(model)
