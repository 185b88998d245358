"""Binary hashes by random projections: Hamming distance over length estimates the angle over pi."""

from __future__ import annotations

import numpy as np

from shoal.families.kernels.hashing_kernels import BITS_PER_WORD


def random_signs(n_features: int, n_bits: int, seed: int) -> np.ndarray:
    """(n_features, n_words) int64 of 32 random bits each: the signs of each feature in each random direction."""
    n_words = -(-n_bits // BITS_PER_WORD)
    rng = np.random.default_rng(seed)
    return rng.integers(0, 1 << BITS_PER_WORD, (n_features, n_words), dtype=np.int64)


def cosine_table(n_bits: int, slack: float) -> np.ndarray:
    """(n_bits + 1,) cos(pi z) for each Hamming distance, z lowered by ``slack`` (equation 8; 0 for equation 7)."""
    return np.cos(np.pi * np.maximum(0.0, np.arange(n_bits + 1) / n_bits - slack))


def bound_slack(n_clusters: int, n_bits: int, delta: float = 0.1) -> float:
    """How far an estimated angle may be off, with probability 1 - delta over all clusters (Hoeffding)."""
    return float(np.sqrt(np.log(max(n_clusters, 2) / delta) / (2 * n_bits)))
