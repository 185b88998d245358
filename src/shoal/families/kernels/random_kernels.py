"""Random numbers whose whole state is one array, so that a chain can be stored and taken up again exactly."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from shoal.jit import kernel

MULTIPLIER = np.uint64(4294883355)
LOW = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)


def new_state(seed: int) -> np.ndarray:
    """A generator's state: one 64-bit word of Marsaglia's multiply with carry (never 0)."""
    word = np.random.SeedSequence(seed).generate_state(2, np.uint32)
    # A carry below the multiplier keeps every later step inside 64 bits, also in plain Python.
    return np.array([(int(word[0]) % 4294883000 + 1) << 32 | int(word[1])], dtype=np.uint64)


@kernel
def next_word(state):
    """32 random bits. The product of two 32-bit numbers plus a 32-bit carry cannot overflow."""
    before = state[0]
    state[0] = (before & LOW) * MULTIPLIER + (before >> SHIFT)
    return (before ^ (before >> SHIFT)) & LOW


@kernel
def start_stream(state, stream, number):
    """Begin random numbers of its own for each number of a stream: the finisher of MurmurHash3 spreads the number."""
    word = ((np.uint64(number) & LOW) ^ stream) & LOW
    word = (((word ^ (word >> np.uint64(16))) & LOW) * np.uint64(0x85EBCA6B)) & LOW
    word = ((word ^ (word >> np.uint64(13))) * np.uint64(0xC2B2AE35)) & LOW
    word = word ^ (word >> np.uint64(16))
    carry = ((stream >> SHIFT) ^ (np.uint64(number) >> SHIFT)) % np.uint64(4294883000) + np.uint64(1)
    state[0] = (carry << SHIFT) | word


@kernel
def uniform(state):
    """A number in [0, 1), 53 bits."""
    high = np.int64(next_word(state))
    low = np.int64(next_word(state))
    return ((high << 21) | (low >> 11)) * (1.0 / 9007199254740992.0)


@kernel
def below(state, n):
    """A whole number in 0 .. n - 1."""
    return min(np.int64(uniform(state) * n), n - 1)
