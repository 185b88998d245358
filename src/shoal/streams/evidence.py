"""Evidence other than words: who wrote, who was addressed, which list. Each kind is a block of features with a weight.

A message is then drawn from one Dirichlet-multinomial for its words and one for each other kind of evidence. The weight
is how much a kind counts: 1 is what the model itself implies, 2 counts it double.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import check_real, storable
from shoal.data import Vocabulary
from shoal.errors import BadInput


@storable
@dataclass(frozen=True)
class Evidence:
    """A kind of evidence in addition to words, such as the author or the recipients.

    Parameters
    ----------
    prefix : str
        Columns whose name starts with it form the block.
    weight : float
        Weight of the block's log likelihood relative to the words.
    strength : float
        Pseudo-counts of the block's prior; with a small value few names are strong evidence.

    Examples
    --------
    >>> Evidence("owner:", weight=2.0).prefix
    'owner:'
    """

    prefix: str
    weight: float = 1.0
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.prefix, str):
            raise BadInput(f"prefix is {self.prefix!r}; it must be the text that column names begin with.")
        for name in ("weight", "strength"):
            check_real(name, getattr(self, name), minimum=0, strict=True)


def as_evidence(given: Any) -> tuple[Evidence, ...]:
    """A sequence of kinds of evidence."""
    kinds = tuple(given) if isinstance(given, Iterable) else (given,)
    wrong = next((kind for kind in kinds if not isinstance(kind, Evidence)), None)
    if wrong is not None or not isinstance(given, Iterable):
        raise BadInput(f"evidence is {given!r:.80}; it must be a list of Evidence, such as [Evidence('owner:')].")
    return kinds


def with_evidence(
    X: sp.csr_matrix, vocabulary: Iterable[str], kinds: Mapping[str, Any]
) -> tuple[sp.csr_matrix, Vocabulary]:
    """Append columns such as ``owner:anna`` to the words of ``X``.

    ``kinds`` maps a kind to what each row holds of it: one value, a list of values, or None.

    Parameters
    ----------
    X : CSR matrix of shape (n_rows, n_words)
        Words of each row.
    vocabulary : iterable of str
        Names of the columns of ``X``.
    kinds : mapping
        For each kind, the value of each row: one value, a list of values, or None.

    Examples
    --------
    >>> X = sp.csr_matrix(np.eye(2))
    >>> wider, names = with_evidence(X, ["hello", "bye"], {"owner": ["anna", None], "to": [["ben", "cy"], []]})
    >>> list(names), wider.toarray().astype(int).tolist()
    (['hello', 'bye', 'owner:anna', 'to:ben', 'to:cy'], [[1, 0, 1, 1, 1], [0, 1, 0, 0, 0]])
    """
    names = Vocabulary(list(vocabulary))
    rows: list[int] = []
    columns: list[str] = []
    for kind, values in kinds.items():
        if len(values) != X.shape[0]:
            raise BadInput(f"evidence {kind!r} has {len(values)} entries for {X.shape[0]} rows; give one for each row.")
        for row, value in enumerate(values):
            several = value if isinstance(value, list | tuple | set) else [] if value is None else [value]
            rows += [row] * len(several)
            columns += [f"{kind}:{each}" for each in several]
    if columns:
        names.extend(list(dict.fromkeys(columns)))
    at = names.find(columns) if columns else np.zeros(0, dtype=np.int64)
    extra = sp.csr_matrix((np.ones(len(rows)), (rows, at)), shape=(X.shape[0], len(names)))
    wider = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], len(names)))
    return sp.csr_matrix(wider + extra), names


def blocks_of(names: Iterable[str] | None, n_features: int, evidence: tuple[Evidence, ...]) -> np.ndarray:
    """The block of each column: 0 for words, 1 and on for the kinds of evidence."""
    blocks = np.zeros(n_features, dtype=np.int64)
    if not evidence:
        return blocks
    if names is None:
        raise BadInput("evidence is found by column names, and these rows have none; fit a Dataset with a vocabulary.")
    for column, name in enumerate(names):
        for block, kind in enumerate(evidence, start=1):
            if str(name).startswith(kind.prefix):
                blocks[column] = block
    return blocks
