"""Packs: entries compiled when the wheel was built, in one read-only file of the package.

A pack is made for one set of versions and one level of CPU. It is used when the versions are those of this process, the
CPU has every feature of the level, and the process knows every symbol that the code refers to (LLVM ends a process that
lacks one). Otherwise the kernels are compiled, as without a pack.

    19 bytes     b"shoal machine code" and a NUL
    8 bytes      length of the index, little-endian
    32 bytes     SHA-256 of the index
    index        JSON: versions, level, symbols, entries: key -> [offset, length, SHA-256]
    entries      one after another, each compressed by zlib
"""

from __future__ import annotations

import functools
import hashlib
import json
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba.core import config
from numba.core.registry import cpu_target

from shoal.machine_code import keys
from shoal.machine_code.storage import MAGIC

PACKS = Path(__file__).parent / "shipped"
INDEX_START = len(MAGIC) + 8 + 32

# What the code for a level may use, in LLVM's names; https://gitlab.com/x86-psABIs/x86-64-ABI defines the levels.
LEVELS = {
    "x86-64-v3": (
        "64bit avx avx2 bmi bmi2 cmov cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 "
        "ssse3 xsave"
    ),
    "x86-64-v2": "64bit cmov cx16 cx8 fxsr mmx popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3",
}


class Pack:
    """The entries of one file. Raises an exception of any kind when the file is not a whole pack."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as file:
            self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self.content[: len(MAGIC)] != MAGIC:
            raise ValueError("not a pack")
        (length,) = struct.unpack_from("<Q", self.content, len(MAGIC))
        index = self.content[INDEX_START : INDEX_START + length]
        if hashlib.sha256(index).digest() != self.content[INDEX_START - 32 : INDEX_START]:
            raise ValueError("the index does not match its checksum")
        self.index = json.loads(index)
        self.entries_start = INDEX_START + length

    def get(self, key: str) -> bytes | None:
        """An entry, or None if it is not there or damaged."""
        found = self.index["entries"].get(key)
        if found is None:
            return None
        offset, length, digest = found
        packed = self.content[self.entries_start + offset : self.entries_start + offset + length]
        return zlib.decompress(packed) if hashlib.sha256(packed).hexdigest() == digest else None

    def runs_here(self) -> bool:
        """Whether this process would have compiled the same code, but for the CPU, and can run it."""
        return (
            self.index["versions"] == keys.versions()
            and _cpu_has(LEVELS[self.index["level"]].split())
            and _knows(self.index["symbols"])
        )


def write_pack(path: Path, entries: Mapping[str, bytes], **facts: Any) -> None:
    """Write a pack of the entries, which are found again by their keys."""
    places, packed = {}, []
    offset = 0
    for key, payload in sorted(entries.items()):
        packed.append(zlib.compress(payload, 9))
        places[key] = (offset, len(packed[-1]), hashlib.sha256(packed[-1]).hexdigest())
        offset += len(packed[-1])
    index = json.dumps({**facts, "entries": places}, sort_keys=True).encode()
    head = MAGIC + struct.pack("<Q", len(index)) + hashlib.sha256(index).digest()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + index + b"".join(packed))


@functools.cache
def shipped_pack() -> Pack | None:
    """The pack of the wheel that this process can run, if there is one."""
    if os.environ.get("SHOAL_MACHINE_CODE", "").lower() in ("off", "kept"):
        return None
    if config.CPU_NAME or config.CPU_FEATURES is not None:  # the user asked for code for this very CPU
        return None
    paths = list(PACKS.glob("*.pack"))
    for level in LEVELS:  # best first
        for path in sorted(paths):
            try:
                pack = Pack(path)
                if pack.index["level"] == level and pack.runs_here():
                    return pack
            except Exception:  # damaged, or not for this version
                continue
    return None


def _knows(symbols: list[str]) -> bool:
    cpu_target.target_context.codegen()  # adds numba's own symbols
    return all(llvm.address_of_symbol(name) for name in symbols)


def _cpu_has(features: list[str]) -> bool:
    return {name for name, has in llvm.get_host_cpu_features().items() if has}.issuperset(features)
