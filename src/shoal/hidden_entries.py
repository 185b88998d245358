"""``hidden=``: how many entries of a set are not given, on average, when so many are."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.stats import binom

from shoal.errors import BadInput

LEAST = 0.02  # expected hidden entries are kept above this, for the logarithm
PROTOCOLS = ("third", "one")

Hidden = str | float


def check_hidden(hidden: object) -> Hidden:
    """``hidden`` as a protocol or a positive number."""
    if isinstance(hidden, str) and hidden in PROTOCOLS:
        return hidden
    if isinstance(hidden, Real) and not isinstance(hidden, bool) and 0 < float(hidden) < np.inf:
        return float(hidden)
    raise BadInput(
        f"hidden is {hidden!r}; it must be 'third', 'one', the share of entries that are hidden (above 0, below 1), "
        "or how many are (1 or more)."
    )


def expected_hidden(lengths: np.ndarray, n_rows: np.ndarray, n_given: np.ndarray, hidden: Hidden) -> np.ndarray:
    """Expected number of hidden entries of rows of which ``n_given`` entries are seen.

    ``n_rows`` is how many rows, or which share of them, have each of the ``lengths``. The posterior of the length m is
    exact: P(m | n) is proportional to ``n_rows`` times the probability that n of m are seen.

    >>> expected_hidden(np.array([2, 3]), np.array([1, 1]), np.array([2]), "one")
    array([1.])
    >>> expected_hidden(np.array([2, 3]), np.array([1, 1]), np.array([2]), 0.5).round(2)  # 1 in 4 against 3 in 8
    array([0.6])
    """
    seen, back = np.unique(n_given, return_inverse=True)
    if not isinstance(hidden, str) and hidden >= 1:
        expected = np.full(seen.size, hidden, dtype=float)
    else:
        expected = np.array([_expected(lengths, n_rows, int(n), hidden) for n in seen], dtype=float)
    return np.maximum(expected, LEAST)[back.reshape(-1)]


def _expected(lengths: np.ndarray, n_rows: np.ndarray, n_given: int, hidden: Hidden) -> float:
    if hidden == "one":
        return 1.0
    if isinstance(hidden, str):
        chance = n_rows * ((lengths - np.maximum(1, lengths // 3) == n_given) & (lengths > 0))
        beyond = max(1.0, n_given / 2)
    else:
        chance = n_rows * binom.pmf(n_given, lengths, 1 - hidden)
        beyond = n_given * hidden / (1 - hidden)
    total = chance.sum()
    # No row is long enough to show so many: scale up instead.
    return float(chance @ (lengths - n_given) / total) if total > 0 else beyond
