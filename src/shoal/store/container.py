"""One file of named arrays and a text, in the safetensors layout: checksummed, written atomically, read mapped.

    8 bytes      length of the header, little-endian
    header       JSON: {"__metadata__": {"shoal": text, "checksum": hex}, name: {"dtype", "shape", "data_offsets"}, ...}
    arrays       one after another, widest numbers first, so that each lies aligned in the mapped file

The checksum is BLAKE2b over the whole file with its own 64 digits read as zeros.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import IO, Any, NamedTuple

import numpy as np

from shoal.atomic import as_path, atomic_write
from shoal.errors import BadInput, BadModelFile, BadSource

DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "U32": "<u4", "I32": "<i4",
    "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8",
}  # fmt: skip
NAMES = {np.dtype(text): name for name, text in DTYPES.items()}
NO_CHECKSUM = "0" * 64
CHUNK_BYTES = 1 << 23
MOST_DIMENSIONS = 32
LONGEST_HEADER_BYTES = 100_000_000  # what the safetensors library accepts too

# How well-known files begin, for a message that helps.
FOREIGN = {
    b"\x89PNG": "a PNG image", b"\x80\x02": "a pickle", b"\x80\x03": "a pickle", b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle", b"PK\x03\x04": "a zip archive (.npz, .zip)", b"\x1f\x8b": "a gzip file",
    b"\x93NUMPY": "a numpy .npy file", b"\x89HDF": "an HDF5 file", b"PAR1": "a Parquet file", b"%PDF": "a PDF",
    b"SQLite": "an SQLite database", b"\xfd7zXZ": "an xz file", b"(\xb5/\xfd": "a zstd file",
}  # fmt: skip


class Header(NamedTuple):
    """What comes before the arrays."""

    raw: bytes  # length and JSON, as in the file
    text: str  # what the writer gave
    checksum: str
    tensors: dict[str, dict[str, Any]]  # name -> dtype, shape, data_offsets


def write(path: str | os.PathLike[str], text: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Put ``text`` and ``arrays`` at ``path``, so that at every moment either the old file or the new one is there."""
    with atomic_write(path, n_bytes=sum(array.nbytes for array in arrays.values())) as out:
        _write_all(out, text, arrays)


class ModelFile:
    """An open file: the header and the arrays that are read belong to one another, whatever happens to the name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = as_path(path)
        self.file = _open(self.path)
        try:
            self.header = _read_header(self.file, self.path)
            self.n_bytes = os.fstat(self.file.fileno()).st_size
        except OSError as error:
            self.file.close()
            if isinstance(error, BadModelFile):
                raise
            raise BadSource(f"cannot read {self.path}: {error.strerror}.") from error

    def __enter__(self) -> ModelFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def arrays(self, *, in_memory: bool = False) -> dict[str, np.ndarray]:
        """The arrays, mapped and read-only or copied, after one pass that compares the checksum."""
        raw = self.header.raw
        content = self._copied() if in_memory else self._mapped()
        body = content[len(raw) :]
        if content[: len(raw)].tobytes() != raw or _digest(self.header, body) != self.header.checksum:
            raise BadModelFile(
                f"{self.path} is damaged: its checksum is not that of its contents. "
                "Restore it from a copy, or fit and save again."
            )
        arrays = {name: _view(body, entry) for name, entry in self.header.tensors.items()}
        for array in arrays.values():
            if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
                raise BadModelFile(f"{self.path} holds truth values other than 0 and 1. Fit and save again.")
        return arrays

    def _mapped(self) -> np.ndarray:
        try:
            return np.asarray(np.memmap(self.file, mode="r", dtype=np.uint8))
        except (OSError, ValueError) as error:
            raise BadSource(f"cannot map {self.path}: {error}.") from error

    def _copied(self) -> np.ndarray:
        self.file.seek(0)
        content = np.empty(self.n_bytes, np.uint8)
        if self.file.readinto(content.data) != self.n_bytes:
            raise BadModelFile(f"{self.path} became shorter while it was read. Load it again.")
        return content


# --- writing ----------------------------------------------------------------------------------------------------------


def _write_all(out: IO[bytes], text: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Header with an empty checksum, arrays, then the checksum into its place."""
    widest_first = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    tensors, end = {}, 0
    for name in widest_first:
        start, end = end, end + arrays[name].nbytes
        dtype = NAMES[arrays[name].dtype.newbyteorder("<")]
        tensors[name] = {"dtype": dtype, "shape": list(arrays[name].shape), "data_offsets": [start, end]}
    metadata = {"checksum": NO_CHECKSUM, "shoal": text}
    header = json.dumps({"__metadata__": metadata} | tensors, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > LONGEST_HEADER_BYTES:
        raise BadInput(
            f"the model's numbers and text outside arrays take {len(header) / 1e6:,.0f} MB, and a file can hold "
            f"{LONGEST_HEADER_BYTES / 1e6:,.0f} MB of them. Keep long lists as arrays."
        )
    raw = len(header).to_bytes(8, "little") + header
    digest = hashlib.blake2b(raw, digest_size=32)
    out.write(raw)
    for name in widest_first:
        for chunk in _chunks(arrays[name]):
            digest.update(chunk)
            out.write(chunk)
    out.seek(raw.index(NO_CHECKSUM.encode()))
    out.write(digest.hexdigest().encode())


def _chunks(array: np.ndarray) -> Iterator[memoryview]:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    flat = little.reshape(-1).view(np.uint8).data if little.size else memoryview(b"")
    for start in range(0, len(flat), CHUNK_BYTES):
        yield flat[start : start + CHUNK_BYTES]


# --- reading ----------------------------------------------------------------------------------------------------------


def _open(path: str) -> BufferedReader:
    """The file, if it is a plain one: reading from a pipe could wait for ever."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise BadSource(f"there is no file {path}. Check the name and the folder.") from None
    except OSError as error:
        raise BadSource(f"cannot read {path}: {error.strerror}.") from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise BadModelFile(f"{path} is {kind}, not a model file. Give the file that shoal.save wrote.")
    return open(handle, "rb")


def _read_header(file: BufferedReader, path: str) -> Header:
    n_bytes = os.fstat(file.fileno()).st_size
    start = file.read(9)
    if not start:
        raise BadModelFile(f"{path} is empty. Fit and save the model again.")
    length = int.from_bytes(start[:8], "little")
    if len(start) < 9 or start[8:9] != b"{" or length > LONGEST_HEADER_BYTES:
        kind = next((kind for magic, kind in FOREIGN.items() if start.startswith(magic)), None)
        raise BadModelFile(
            f"{path} is not a shoal model{f': it begins like {kind}' if kind else ''}. "
            "Give the file that shoal.save or `shoal fit --out` wrote."
        )
    if 8 + length > n_bytes:
        raise BadModelFile(
            f"{path} is cut short: its header should be {length:,} bytes, and the whole file has {n_bytes:,}. "
            "Copy it again, or fit and save again."
        )
    file.seek(0)
    raw = file.read(8 + length)
    try:
        parsed = json.loads(raw[8:].decode())
        metadata = parsed.pop("__metadata__", {})
        text, checksum = metadata.get("shoal"), metadata.get("checksum")
    except (ValueError, RecursionError, AttributeError):
        raise BadModelFile(f"{path} has a damaged header. Restore it from a copy, or fit and save again.") from None
    if text is None:
        raise BadModelFile(
            f"{path} is a safetensors file, but not one that shoal wrote: it holds arrays without a model. "
            "Give the file that shoal.save or `shoal fit --out` wrote."
        )
    if not isinstance(text, str) or not isinstance(checksum, str) or len(checksum) != len(NO_CHECKSUM):
        raise BadModelFile(f"{path} has a damaged header. Restore it from a copy, or fit and save again.")
    _check_tensors(parsed, n_bytes - len(raw), path)
    return Header(raw, text, checksum, parsed)


def _check_tensors(tensors: dict[str, Any], n_bytes: int, path: str) -> None:
    """Each array lies inside the file, right after the one before, and is as long as its shape says."""
    end = 0
    try:
        for entry in sorted(tensors.values(), key=lambda entry: tuple(entry["data_offsets"])):
            shape, (start, stop) = entry["shape"], entry["data_offsets"]
            size = np.dtype(DTYPES[entry["dtype"]]).itemsize
            if not all(type(n) is int and n >= 0 for n in (*shape, start, stop)) or len(shape) > MOST_DIMENSIONS:
                raise ValueError
            if start != end or stop - start != size * math.prod(shape):
                raise ValueError
            end = stop
    except (KeyError, TypeError, ValueError):
        raise BadModelFile(f"{path} has a damaged header. Restore it from a copy, or fit and save again.") from None
    if end > n_bytes:
        raise BadModelFile(
            f"{path} is cut short: {end:,} bytes of arrays should follow its header, and {n_bytes:,} are there. "
            "Copy it again, or fit and save again."
        )
    if end < n_bytes:
        raise BadModelFile(f"{path} has {n_bytes - end:,} bytes too many after its arrays. Copy it again.")


def _digest(header: Header, body: np.ndarray) -> str:
    blank = header.raw.replace(header.checksum.encode(), NO_CHECKSUM.encode(), 1)
    digest = hashlib.blake2b(blank, digest_size=32)
    for start in range(0, body.size, CHUNK_BYTES):
        digest.update(body[start : start + CHUNK_BYTES].data)
    return digest.hexdigest()


def _view(body: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    start, stop = entry["data_offsets"]
    return body[start:stop].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
