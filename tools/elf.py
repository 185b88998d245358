"""The symbols that an object file refers to and does not define."""

from __future__ import annotations

import struct

SYMBOL_TABLE = 2  # SHT_SYMTAB


def undefined_symbols(code: bytes) -> set[str]:
    """Names from the symbol table of a 64-bit little-endian ELF file (https://refspecs.linuxfoundation.org/elf/elf.pdf)."""
    if code[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (sections_at,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, sections_at + at * size) for at in range(count)]
    names = set()
    for _, kind, _, _, offset, length, link, _, _, entry_size in sections:
        if kind == SYMBOL_TABLE:
            names_at = sections[link][4]
            for at in range(offset, offset + length, entry_size):
                name, _, _, section = struct.unpack_from("<IBBH", code, at)
                if section == 0 and name:
                    names.add(code[names_at + name : code.index(b"\0", names_at + name)].decode())
    return names
