"""Strings as slices of one byte buffer, found and numbered through an open-addressing hash table.

A slot of the table holds -1, or a name's id in its low 40 bits with 23 bits of the name's hash above them, so that
most unequal names are distinguished without reading their bytes. Equal hashes are always checked byte by byte.
"""

# mypy: ignore-errors
import numpy as np

from shoal.jit import kernel

# FNV-1a cut to 38 bits: the product stays under 2**63, so the same numbers come out compiled and uncompiled.
FNV_START = np.int64(2166136261)
FNV_PRIME = np.int64(16777619)
HASH_MASK = np.int64((1 << 38) - 1)
TAG_SHIFT = np.int64(15)  # of the hash: 23 bits are left
ID_BITS = np.int64(40)
ID_MASK = np.int64((1 << 40) - 1)
FOLD = np.int64(19)
STRIDE = 2048  # keys settled at a time: what they touch stays in the cache


@kernel
def hash_bytes(data, start, stop):
    hashed = FNV_START
    for at in range(start, stop):
        hashed = ((hashed ^ np.int64(data[at])) * FNV_PRIME) & HASH_MASK
    return hashed ^ (hashed >> FOLD)  # the low bits, which choose the slot, hear of the high ones


@kernel
def same_bytes(a, a_start, b, b_start, length):
    for at in range(length):  # noqa: SIM110 - a generator would not compile
        if a[a_start + at] != b[b_start + at]:
            return False
    return True


@kernel
def find_slot(table, names, offsets, key, start, stop, hashed):
    """The slot that holds the name equal to key[start:stop], or the empty slot where it would go."""
    mask = table.size - 1
    slot = hashed & mask
    tag = hashed >> TAG_SHIFT
    while table[slot] >= 0:  # ends: the table is never more than half full
        if table[slot] >> ID_BITS == tag:
            name = table[slot] & ID_MASK
            if offsets[name + 1] - offsets[name] == stop - start and same_bytes(
                names, offsets[name], key, start, stop - start
            ):
                return slot
        slot = (slot + 1) & mask
    return slot


@kernel
def build_table(names, offsets, n_names, table):
    """Fill an empty table; returns the number of distinct names (a repeated one keeps its first id)."""
    distinct = 0
    for name in range(n_names):
        hashed = hash_bytes(names, offsets[name], offsets[name + 1])
        slot = find_slot(table, names, offsets, names, offsets[name], offsets[name + 1], hashed)
        if table[slot] < 0:
            table[slot] = ((hashed >> TAG_SHIFT) << ID_BITS) | np.int64(name)
            distinct += 1
    return distinct


@kernel
def settle(table, names, offsets, keys, key_offsets, first, last, hashes, ids):
    """Number the keys from first to last that the table holds already, as far as that is quickly told; -1 for the rest.

    Three short loops rather than one long one: the reads of each do not wait for one another, so that the processor
    fetches many of them from memory at once. Numbering millions of names spends its time on just that.
    """
    mask = table.size - 1
    for at in range(last - first):
        hashes[at] = hash_bytes(keys, key_offsets[first + at], key_offsets[first + at + 1])
    for at in range(last - first):
        ids[first + at] = table[hashes[at] & mask]
    for at in range(last - first):
        slot = hashes[at] & mask
        tag = hashes[at] >> TAG_SHIFT
        entry = ids[first + at]
        while entry >= 0 and entry >> ID_BITS != tag:
            slot = (slot + 1) & mask
            entry = table[slot]
        name = entry & ID_MASK
        length = key_offsets[first + at + 1] - key_offsets[first + at]
        ids[first + at] = name if entry >= 0 and offsets[name + 1] - offsets[name] == length else -1
    for key in range(first, last):
        start, stop = key_offsets[key], key_offsets[key + 1]
        if ids[key] >= 0 and not same_bytes(names, offsets[ids[key]], keys, start, stop - start):
            ids[key] = -1


@kernel
def find_all(table, names, offsets, keys, key_offsets, ids):
    hashes = np.empty(STRIDE, np.int64)
    for first in range(0, ids.size, STRIDE):
        last = min(first + STRIDE, ids.size)
        settle(table, names, offsets, keys, key_offsets, first, last, hashes, ids)
        for key in range(first, last):
            if ids[key] < 0:
                start, stop = key_offsets[key], key_offsets[key + 1]
                entry = table[find_slot(table, names, offsets, keys, start, stop, hashes[key - first])]
                ids[key] = entry & ID_MASK if entry >= 0 else -1


@kernel
def insert_all(table, names, offsets, n_names, keys, key_offsets, ids):
    """Number every key, appending those not seen before. The caller has made room; returns the new number of names."""
    hashes = np.empty(STRIDE, np.int64)
    for first in range(0, ids.size, STRIDE):
        last = min(first + STRIDE, ids.size)
        settle(table, names, offsets, keys, key_offsets, first, last, hashes, ids)
        for key in range(first, last):
            if ids[key] >= 0:
                continue
            start, stop = key_offsets[key], key_offsets[key + 1]
            hashed = hashes[key - first]
            slot = find_slot(table, names, offsets, keys, start, stop, hashed)
            if table[slot] < 0:
                end = offsets[n_names]
                for at in range(stop - start):
                    names[end + at] = keys[start + at]
                offsets[n_names + 1] = end + stop - start
                table[slot] = ((hashed >> TAG_SHIFT) << ID_BITS) | np.int64(n_names)
                n_names += 1
            ids[key] = table[slot] & ID_MASK
    return n_names
