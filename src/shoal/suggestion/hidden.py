"""How many entries of a set are hidden, on average, given how many are seen."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.stats import binom

from shoal.errors import BadInput

LEAST = 0.02  # expected hidden entries are kept above this, for the logarithm
PROTOCOLS = ("third", "one")


def check_hidden(hidden: object) -> str | float:
    """``hidden`` as a protocol or a positive number."""
    if isinstance(hidden, str) and hidden in PROTOCOLS:
        return hidden
    if isinstance(hidden, Real) and not isinstance(hidden, bool) and 0 < float(hidden) < np.inf:
        return float(hidden)
    raise BadInput(
        f"hidden is {hidden!r}; it must be 'third', 'one', the share of entries that are seen (above 0, below 1), "
        "or the number of entries that are hidden (1 or more)."
    )


def expected_hidden(lengths: np.ndarray, n_given: np.ndarray, hidden: str | float) -> np.ndarray:
    """Expected number of hidden entries of rows of which ``n_given`` entries are seen.

    ``lengths[m]`` is how many rows have m entries. The posterior of m is exact: P(m | n) is proportional to
    ``lengths[m]`` times the probability that n of m are seen.
    """
    seen, back = np.unique(n_given, return_inverse=True)
    if not isinstance(hidden, str) and hidden >= 1:
        expected = np.full(seen.size, hidden)
    else:
        expected = np.array([_expected(lengths, int(n), hidden) for n in seen], dtype=float)
    return np.maximum(expected, LEAST)[back.reshape(-1)]


def _expected(lengths: np.ndarray, n_given: int, hidden: str | float) -> float:
    if hidden == "one":
        return 1.0
    length = np.arange(lengths.size)
    if hidden == "third":
        chance = lengths * ((length - np.maximum(1, length // 3) == n_given) & (length > 0))
        beyond = max(1.0, n_given / 2)
    else:
        chance = lengths * binom.pmf(n_given, length, hidden)
        beyond = n_given * (1 - float(hidden)) / float(hidden)
    total = chance.sum()
    # No row is long enough to show so many: scale up instead.
    return float(chance @ (length - n_given) / total) if total > 0 else beyond
