"""Were the hidden things suggested, and early?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput
from shoal.metrics.tables import is_sparse


def recall_at(relevant: Any, ranked: Any, n: int, *, capped: bool = False) -> float:
    """Recall at ``n``: share of relevant features among the first ``n`` suggestions, averaged over queries with any.

    Parameters
    ----------
    relevant : list of collections, or CSR matrix
        For each query, what was hidden from the model.
    ranked : list of sequences, or array
        For each query, suggestions in descending order; -1 in an array means no suggestion.
    n : int
        Number of suggestions that count.
    capped : bool
        Divide by at most ``n``, so that 1 can be reached with more than ``n`` relevant features.

    Examples
    --------
    >>> recall_at([{"jazz", "blues"}, {"folk"}], [["blues", "rock", "jazz"], ["rock", "pop", "metal"]], 2)
    0.25
    """
    hits, n_relevant = _hits(relevant, ranked, n)
    asked = n_relevant > 0
    possible = np.minimum(n_relevant, n) if capped else n_relevant
    return float((hits.sum(axis=1)[asked] / possible[asked]).mean()) if asked.any() else float("nan")


def ndcg_at(relevant: Any, ranked: Any, n: int) -> float:
    """Normalized discounted cumulative gain at ``n``, with the weight 1 / log2(1 + rank) of a hit.

    Parameters
    ----------
    relevant : list of collections, or CSR matrix
        For each query, what was hidden from the model.
    ranked : list of sequences, or array
        For each query, suggestions in descending order; -1 in an array means no suggestion.
    n : int
        Number of suggestions that count.

    Examples
    --------
    >>> round(ndcg_at([{"jazz", "blues"}], [["rock", "jazz", "blues"]], 3), 3)
    0.693
    """
    hits, n_relevant = _hits(relevant, ranked, n)
    asked = n_relevant > 0
    if not asked.any():
        return float("nan")
    gain = 1 / np.log2(np.arange(n) + 2)
    best = np.cumsum(gain)[np.minimum(n_relevant[asked], n) - 1]
    return float((hits[asked] @ gain / best).mean())


def _hits(relevant: Any, ranked: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether each of the first ``n`` suggestions of each query is relevant (and new), and how many are relevant."""
    if n < 1:
        raise BadInput(f"n is {n}; ask for at least 1 suggestion.")
    if is_sparse(relevant):
        rows = sp.csr_matrix(relevant)
        relevant = [
            row[values != 0] for row, values in zip(_split(rows.indices, rows), _split(rows.data, rows), strict=True)
        ]
    if len(relevant) != len(ranked):
        raise BadInput(f"relevant has {len(relevant):,} queries and ranked {len(ranked):,}; they need one of each.")
    hits = np.zeros((len(ranked), n), bool)
    n_relevant = np.zeros(len(ranked), np.int64)
    for query, (wanted, suggested) in enumerate(zip(relevant, ranked, strict=True)):
        left = set(_listed(wanted, "relevant", query))
        n_relevant[query] = len(left)
        for rank, suggestion in enumerate(_listed(suggested, "ranked", query)[:n]):
            if suggestion in left:
                hits[query, rank] = True
                left.remove(suggestion)  # a thing suggested twice is found once
    return hits, n_relevant


def _split(values: np.ndarray, rows: sp.csr_matrix) -> Sequence[np.ndarray]:
    return np.split(values, rows.indptr[1:-1])


def _listed(things: Any, what: str, query: int) -> list[Any]:
    if isinstance(things, str) or not isinstance(things, Collection | np.ndarray):
        raise BadInput(
            f"{what}[{query}] is {things!r}; give a collection of things for each query, as in [['jazz', 'folk']]."
        )
    return things.tolist() if isinstance(things, np.ndarray) else list(things)
