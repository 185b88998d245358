"""From two columns of labels to the table of how often each pair of labels meets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput

OUTLIERS = ("cluster", "singletons", "drop")


class Contingency(NamedTuple):
    """How many items carry label ``rows[r]`` in the first and ``columns[c]`` in the second clustering."""

    counts: sp.csr_matrix  # (len(rows), len(columns)) of int64, only pairs that occur are stored
    rows: np.ndarray
    columns: np.ndarray


class PairCounts(NamedTuple):
    """The same without names, ready for sums: one entry for each pair of labels that meet."""

    together: np.ndarray  # items with this pair of labels
    in_a: np.ndarray  # items with the pair's first label
    in_b: np.ndarray  # items with the pair's second label
    sizes_a: np.ndarray  # items of each label of a
    sizes_b: np.ndarray
    at_b: np.ndarray  # the pair's second label, by number
    n: int


def contingency(a: Any, b: Any, *, outliers: str = "cluster") -> Contingency:
    """Sparse contingency table of two clusterings.

    Parameters
    ----------
    a, b : array-like of shape (n_items,)
        Two clusterings: labels of any type, -1 or missing for unassigned items.
    outliers : {"cluster", "singletons", "drop"}
        How unassigned items count: as one more cluster, as clusters of their own, or not at all.

    Examples
    --------
    >>> table = contingency(["cat", "cat", "dog"], [1, 0, 0])
    >>> table.rows.tolist(), table.columns.tolist(), table.counts.toarray().tolist()
    (['cat', 'dog'], [0, 1], [[1, 1], [1, 0]])
    """
    (codes_a, names_a), (codes_b, names_b) = coded_pair(a, b, outliers)
    return Contingency(_counts(codes_a, codes_b, len(names_a), len(names_b)), names_a, names_b)


def pair_counts(a: Any, b: Any, outliers: str) -> PairCounts:
    """What every partition measure needs."""
    counts = contingency(a, b, outliers=outliers).counts
    sizes_a = np.asarray(counts.sum(axis=1)).ravel()
    sizes_b = np.asarray(counts.sum(axis=0)).ravel()
    in_a = np.repeat(sizes_a, np.diff(counts.indptr))
    return PairCounts(counts.data, in_a, sizes_b[counts.indices], sizes_a, sizes_b, counts.indices, int(sizes_a.sum()))


def coded_pair(a: Any, b: Any, outliers: str) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Both label columns as numbers 0, 1, ... with their names, after items that are unassigned were dealt with."""
    if outliers not in OUTLIERS:
        raise BadInput(f"outliers is {outliers!r}; choose one of {', '.join(map(repr, OUTLIERS))}.")
    (codes_a, names_a), (codes_b, names_b) = coded(a, "the first labels"), coded(b, "the second labels")
    if codes_a.size != codes_b.size:
        raise BadInput(
            f"the first labels are {codes_a.size:,} and the second {codes_b.size:,}; both need one for each item."
        )
    if outliers == "drop":
        kept = (codes_a >= 0) & (codes_b >= 0)
        return _renumbered(codes_a[kept], names_a), _renumbered(codes_b[kept], names_b)
    return _placed(codes_a, names_a, outliers), _placed(codes_b, names_b, outliers)


def coded(labels: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels as numbers into their distinct names (sorted where they can be); -1 for an item that is unassigned."""
    values = np.asarray(labels)
    if values.ndim != 1:
        raise BadInput(f"{what} have shape {values.shape}; they need one label for each item, in one dimension.")
    if values.dtype.kind in "biu":
        return _coded_integers(values)
    if values.dtype.kind == "f":
        names, codes = np.unique(values, return_inverse=True)
        unassigned = np.isnan(values) | (values == -1)
        return _renumbered(np.where(unassigned, -1, codes), names)
    number: dict[Any, int] = {}
    listed = values.tolist()
    codes = np.fromiter(
        (-1 if _missing(value) else number.setdefault(value, len(number)) for value in listed), np.int64
    )
    names = np.empty(len(number), object)
    names[:] = list(number)
    return _sorted_by_name(codes, names if values.dtype.kind == "O" else names.astype(values.dtype))


def _coded_integers(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values = values.astype(np.int64, copy=False)
    if not values.size:
        return values, values
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * values.size + 1024:  # spread out: sort instead of counting
        names, codes = np.unique(values, return_inverse=True)
        return _renumbered(np.where(values == -1, -1, codes), names)
    seen = np.bincount(values - low, minlength=1) > 0
    if low <= -1 <= high:
        seen[-1 - low] = False
    number = np.where(seen, np.cumsum(seen) - 1, -1)
    return number[values - low], np.flatnonzero(seen) + low


def _missing(value: Any) -> bool:
    """None, NaN or the number -1."""
    return value is None or (isinstance(value, int | float) and (value == -1 or value != value))


def _sorted_by_name(codes: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    try:
        order = np.argsort(names, kind="stable")
    except TypeError:  # names of several kinds have no order: keep that of first appearance
        return codes, names
    place = np.empty(names.size + 1, np.int64)
    place[order], place[-1] = np.arange(names.size), -1
    return place[codes], names[order]


def _renumbered(codes: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without the names that no item carries."""
    used = np.bincount(codes[codes >= 0], minlength=len(names)) > 0
    number = np.append(np.cumsum(used) - 1, -1)
    return number[codes], names[used]


def _placed(codes: np.ndarray, names: np.ndarray, outliers: str) -> tuple[np.ndarray, np.ndarray]:
    """Items that are unassigned in one further cluster, or in one each; all are named -1."""
    unassigned = np.flatnonzero(codes < 0)
    if not unassigned.size:
        return codes, names
    codes = codes.copy()
    codes[unassigned] = len(names) + (np.arange(unassigned.size) if outliers == "singletons" else 0)
    more = unassigned.size if outliers == "singletons" else 1
    if names.dtype.kind in "US":
        names = names.astype(object)
    return codes, np.concatenate([names, np.full(more, -1, dtype=names.dtype)])


def is_sparse(value: Any) -> bool:
    """Whether it is one of scipy's sparse matrices or arrays."""
    return bool(sp.issparse(value))


def _counts(codes_a: np.ndarray, codes_b: np.ndarray, n_a: int, n_b: int) -> sp.csr_matrix:
    ones = np.ones(codes_a.size, np.int64)
    counts = sp.coo_matrix((ones, (codes_a, codes_b)), shape=(n_a, n_b)).tocsr()
    counts.sum_duplicates()
    return counts
