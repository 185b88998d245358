"""Between Arrow's string buffers and numpy's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE = 1024  # values inspected to decide whether a column has repeated values


def string_buffers(strings: Any) -> tuple[np.ndarray, np.ndarray]:
    """UTF-8 bytes and int64 offsets of a list, numpy or Arrow array of strings; a null is the empty string.

    >>> data, offsets = string_buffers(["ab", "c"])
    >>> bytes(data), offsets.tolist()
    (b'abc', [0, 2, 3])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    array = strings
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        values = array.tolist() if isinstance(array, np.ndarray) else list(array)
        try:
            array = pa.array(values, type=pa.large_string())
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
            raise BadInput(f"names must be text: {error}") from None
    if isinstance(array, pa.ChunkedArray):
        array = (
            pa.concat_arrays(array.cast(pa.large_string()).chunks) if array.num_chunks else pa.array([], pa.string())
        )
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        array = array.cast(pa.large_string())
    if array.null_count:
        array = pc.fill_null(array, "")  # a null may hide bytes; now its slice is empty
    _, offsets, data = array.buffers()
    width = np.dtype(np.int64 if pa.types.is_large_string(array.type) else np.int32)
    if offsets is None or len(array) == 0:
        return np.empty(0, dtype=np.uint8), np.zeros(len(array) + 1, dtype=np.int64)
    places = np.frombuffer(offsets, dtype=width, count=len(array) + 1, offset=array.offset * width.itemsize)
    letters = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    # Slices of a larger array are cut to their own bytes, so that offsets begin at 0.
    return letters[places[0] : places[-1]], (places - places[0]).astype(np.int64)


def objects(array: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """A numpy array of str (None where null); equal strings share one object when there are few of them."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.string())
    if not pa.types.is_dictionary(array.type) and len(array[:SAMPLE].unique()) > SAMPLE // 2:
        return np.asarray(array.to_numpy(zero_copy_only=False))  # mostly different: there is nothing to share
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    few = np.empty(len(encoded.dictionary) + 1, dtype=object)
    few[:-1] = encoded.dictionary.to_pylist()
    return np.asarray(few[np.asarray(encoded.indices.fill_null(len(few) - 1))])


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view, so that mapped, Arrow and owned buffers are one type to the compiler."""
    view = array.view()
    view.flags.writeable = False
    return view
