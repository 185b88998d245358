"""Which cluster of a new fit is which of an old one: ids, names and pins carried from yesterday's model to today's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import Estimator, check_real
from shoal.errors import BadInput
from shoal.roster import Roster


@dataclass(frozen=True)
class ClusterMatch:
    """How the clusters of two models correspond.

    Attributes
    ----------
    pairs : (n, 2) old id and new id of clusters that are the same
    overlap : (n,) for each pair, the Jaccard coefficient of their rows (or the cosine of their features)
    splits : (new id, old id) of clusters that are a part of an old one
    merges : (old id, new id) of clusters that went into a new one
    births, deaths : new ids without an old cluster, old ids without a new one
    """

    pairs: np.ndarray
    overlap: np.ndarray
    splits: tuple[tuple[int, int], ...]
    merges: tuple[tuple[int, int], ...]
    births: tuple[int, ...]
    deaths: tuple[int, ...]

    def carry(self, old: Estimator, new: Estimator) -> Estimator:
        """Give the clusters of ``new`` the ids, names and pins of those of ``old`` that they match; returns ``new``.

        Clusters without a match get ids that neither model has used. What became of the others is written to the
        roster's events.
        """
        before, after = _roster_of(old), _roster_of(new)
        known = dict(zip(self.pairs[:, 1].tolist(), self.pairs[:, 0].tolist(), strict=True))
        next_id = max(before.next_id, after.next_id)
        renamed: dict[int, int] = {}
        for id_ in after.ids.tolist():
            renamed[id_] = known.get(id_, next_id)
            next_id += id_ not in known
        carried = Roster(np.array([renamed[id_] for id_ in after.ids.tolist()], dtype=np.int64), next_id)
        carried.names = {id_: name for id_, name in before.names.items() if id_ in carried.ids}
        carried.names |= {renamed[id_]: name for id_, name in after.names.items() if id_ in renamed}
        carried.pinned = [id_ for id_ in before.pinned if id_ in carried.ids]
        carried.events = [*before.events, *self._events(renamed)]
        labels = np.asarray(new.labels_)  # type: ignore[attr-defined]
        new.roster_ = carried  # type: ignore[attr-defined]
        new.labels_ = _mapped(labels, renamed)  # type: ignore[attr-defined]
        return new

    def _events(self, renamed: dict[int, int]) -> list[dict[str, Any]]:
        parts = [("split", renamed[new], old) for new, old in self.splits]
        gone = [("merge", old, renamed[new]) for old, new in self.merges]
        others = [("birth", renamed[new], None) for new in self.births] + [("death", old, None) for old in self.deaths]
        return [{"kind": kind, "id": id_, "into": into, "at": None} for kind, id_, into in (*parts, *gone, *others)]


def match_clusters(old: Estimator, new: Estimator, X: Any = None, *, least_overlap: float = 0.3) -> ClusterMatch:
    """Match the clusters of two fitted models, each with at most one of the other.

    Parameters
    ----------
    old, new : Estimator
        Fitted models, of the same kind or not.
    X : matrix, Dataset or table, optional
        Rows that both models can be asked about; clusters match by the rows they share. Without it they match by their
        features, which both must have names for.
    least_overlap : float
        Smaller overlaps (Jaccard coefficients of rows, or cosines of features) do not count as the same cluster.

    Returns
    -------
    ClusterMatch
        ``match.carry(old, new)`` then gives the new model the old ids, names and pins.

    Examples
    --------
    >>> from shoal import SphericalKMeans
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1.]])
    >>> old, new = (SphericalKMeans(2, random_state=seed).fit(X) for seed in (0, 1))
    >>> old.name_cluster(old.labels_[0], "fish")
    >>> new = match_clusters(old, new, X).carry(old, new)
    >>> new.labels_.tolist() == old.labels_.tolist(), list(new.roster_.names.values())
    (True, ['fish'])
    """
    least_overlap = check_real("least_overlap", least_overlap, minimum=0.0, maximum=1.0)
    old_ids, new_ids = np.asarray(old.cluster_ids_), np.asarray(new.cluster_ids_)
    if X is not None:
        together = _shared_rows(old, new, X)
        old_sizes, new_sizes = (np.asarray(together.sum(axis=axis)).ravel() for axis in (1, 0))
        at = together.tocoo()
        jaccard = at.data / (old_sizes[at.row] + new_sizes[at.col] - at.data)
        inside_old, inside_new = at.data / old_sizes[at.row], at.data / new_sizes[at.col]
    else:
        at = _shared_features(old, new).tocoo()
        jaccard = inside_old = inside_new = at.data
    pairs = _best_pairs(at.row, at.col, jaccard, least_overlap)
    old_taken, new_taken = set(at.row[pairs].tolist()), set(at.col[pairs].tolist())
    splits = {n: o for o, n, share in _by_share(at, inside_new) if n not in new_taken and share > 0.5}
    merges = {o: n for o, n, share in _by_share(at, inside_old) if o not in old_taken and share > 0.5}
    return ClusterMatch(
        pairs=np.column_stack([old_ids[at.row[pairs]], new_ids[at.col[pairs]]]),
        overlap=jaccard[pairs],
        splits=tuple((int(new_ids[n]), int(old_ids[o])) for n, o in splits.items()),
        merges=tuple((int(old_ids[o]), int(new_ids[n])) for o, n in merges.items()),
        births=tuple(int(new_ids[n]) for n in range(new_ids.size) if n not in new_taken and n not in splits),
        deaths=tuple(int(old_ids[o]) for o in range(old_ids.size) if o not in old_taken and o not in merges),
    )


def _roster_of(model: Estimator) -> Roster:
    roster = vars(model).get("roster_")
    if roster is None:
        raise BadInput(f"the ids of a {type(model).__name__} are part of its state and cannot be carried over.")
    return roster  # type: ignore[no-any-return]


def _mapped(labels: np.ndarray, renamed: dict[int, int]) -> np.ndarray:
    known, places = np.unique(labels, return_inverse=True)
    return np.array([renamed.get(id_, id_) for id_ in known.tolist()], dtype=np.int64)[places.reshape(labels.shape)]


def _shared_rows(old: Estimator, new: Estimator, X: Any) -> sp.csr_matrix:
    """Rows in each old cluster and each new one, unassigned rows left out."""
    places = []
    for model in (old, new):
        ids = np.asarray(model.cluster_ids_)
        order = np.argsort(ids)
        labels = model.predict(X)  # type: ignore[attr-defined]
        found = np.searchsorted(ids, labels, sorter=order)
        known = np.isin(labels, ids)
        places.append(np.where(known, order[np.minimum(found, max(ids.size - 1, 0))], -1))
    both = (places[0] >= 0) & (places[1] >= 0)
    shape = (len(old.cluster_ids_), len(new.cluster_ids_))
    counts = sp.coo_matrix((np.ones(int(both.sum())), (places[0][both], places[1][both])), shape=shape).tocsr()
    counts.sum_duplicates()
    return counts


def _shared_features(old: Estimator, new: Estimator, n: int = 50) -> sp.csr_matrix:
    """Cosines of the clusters' features, which are matched by name."""
    place: dict[str, int] = {}
    rows = []
    for model in (old, new):
        tops = [model.top_features(id_, n=n) for id_ in np.asarray(model.cluster_ids_).tolist()]
        named = [model.name_features(np.asarray(top.features)) for top in tops]
        columns = [[place.setdefault(name, len(place)) for name in names] for names in named]
        rows.append((columns, [np.abs(np.asarray(top.values, dtype=float)) for top in tops]))
    matrices = []
    for columns, values in rows:
        indptr = np.cumsum([0, *(len(each) for each in columns)])
        flat = np.array([column for each in columns for column in each], dtype=np.int64)
        matrix = sp.csr_matrix((np.concatenate(values), flat, indptr), shape=(len(columns), len(place)))
        lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
        matrices.append(sp.diags(1 / np.maximum(lengths, 1e-300)) @ matrix)
    return sp.csr_matrix(matrices[0] @ matrices[1].T)


def _best_pairs(rows: np.ndarray, columns: np.ndarray, overlap: np.ndarray, least: float) -> np.ndarray:
    """Places of the entries taken, the largest overlap first, each row and column once.

    Above one half the Jaccard coefficient leaves no choice; below, the greedy choice is stable: no two clusters
    would both rather have one another.
    """
    order = np.lexsort((columns, rows, -overlap))
    old_taken, new_taken, taken = set(), set(), []
    for at in order.tolist():
        if overlap[at] < least:
            break
        if rows[at] not in old_taken and columns[at] not in new_taken:
            old_taken.add(rows[at])
            new_taken.add(columns[at])
            taken.append(at)
    return np.array(taken, dtype=np.int64)


def _by_share(at: sp.coo_matrix, share: np.ndarray) -> list[tuple[int, int, float]]:
    return list(zip(at.row.tolist(), at.col.tolist(), share.tolist(), strict=True))
