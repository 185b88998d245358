"""Names like a given one, quickly among millions."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

CANDIDATES = 2_000  # compared letter by letter at the end


def close_matches(name: str, strings: pa.Array, n: int) -> list[str]:
    """The names closest to this one.

    Comparing every name letter by letter would take minutes on millions. Arrow finds the few that contain it, share its
    first letters or hold most of its three-letter pieces; only those are compared.
    """
    import pyarrow.compute as pc

    if not len(strings) or not name:
        return []
    if len(strings) <= CANDIDATES:
        candidates = strings.to_pylist()
    else:
        similarity = _shared_pieces(name.lower(), strings)
        exact = pc.match_substring(strings, name, ignore_case=True)
        similarity += 2 * np.asarray(exact)
        best = np.argsort(-similarity, kind="stable")[:CANDIDATES]
        candidates = strings.take(best[similarity[best] > 0]).to_pylist()
    folded = name.lower()
    scored = [(_ratio(folded, candidate.lower()), candidate) for candidate in candidates]
    scored = sorted((pair for pair in scored if pair[0] > 0.6), key=lambda pair: -pair[0])
    return [candidate for _, candidate in scored[:n]]


def _shared_pieces(name: str, strings: pa.Array) -> np.ndarray:
    """For each string, the share of the name's short pieces that it holds (a typing error spoils a few of them)."""
    import pyarrow.compute as pc

    width = min(3, len(name))
    pieces = sorted({name[at : at + width] for at in range(len(name) - width + 1)})[:24]
    hits = np.zeros(len(strings), dtype=np.float32)
    for piece in pieces:
        hits += np.asarray(pc.match_substring(strings, piece, ignore_case=True))
    length = np.asarray(pc.binary_length(strings), dtype=np.float32)
    return np.asarray(hits / len(pieces) / np.sqrt(1 + np.abs(length - len(name.encode()))))


def _ratio(name: str, other: str) -> float:
    if name and (other.startswith(name) or name in other.split()):
        return 0.9
    return difflib.SequenceMatcher(None, name, other).ratio()
