"""Projections on random signs, and distances between hashes of 32 bits a word."""

# mypy: ignore-errors
from __future__ import annotations

from shoal.jit import kernel, sum_kernel

BITS_PER_WORD = 32


@kernel
def count_bits(word):
    """How many of 32 bits are set."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) & 0xFFFFFFFF) >> 24


@kernel
def distance(one, two):
    """Hamming distance of two hashes."""
    total = 0
    for word in range(len(one)):
        total += count_bits(one[word] ^ two[word])
    return total


@sum_kernel
def add_signs(projection, signs, value):
    """projection += value * (the feature's signs)"""
    for word in range(len(signs)):
        bits = signs[word]
        base = word * 32
        for bit in range(min(32, len(projection) - base)):
            projection[base + bit] += value * (2.0 * ((bits >> bit) & 1) - 1.0)


@kernel
def sign_words(projection, center, out):
    """The signs of projection - center, 32 to a word."""
    n_bits = len(projection)
    for word in range(len(out)):
        value = 0
        for bit in range(min(32, n_bits - word * 32)):
            if projection[word * 32 + bit] > center[word * 32 + bit]:
                value |= 1 << bit
        out[word] = value
