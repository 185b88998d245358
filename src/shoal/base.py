"""What every estimator keeps: scikit-learn's contract, one judge of input, a state that can be stored, stable ids.

Each room writes its model as three functions on plain statistics, and every back end is a way of folding them::

    stats = accumulate(block, model)     # what one pass over some rows must remember
    stats = merge(stats, other_stats)    # associative, so blocks, threads, days and machines can be added up
    model = update(model, stats)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from shoal.errors import BadInput

Class = TypeVar("Class", bound=type)

# Classes that a model file may name: parts of models (kernels over time, families, rosters) that are dataclasses or
# named tuples. A file can name nothing else, so loading one never runs foreign code.
STORABLE: dict[str, type] = {}


def storable(cls: Class) -> Class:
    """Let ``shoal.save`` write instances of this dataclass, named tuple or estimator, and ``shoal.load`` build them."""
    STORABLE[cls.__name__] = cls
    return cls


class TopFeatures(NamedTuple):
    """The features that describe a cluster, most telling first."""

    features: np.ndarray  # (n,) column numbers
    values: np.ndarray  # (n,) the number behind each
    meaning: str  # what the number is, in words: "weight in the centre", "effective ads"
    low: np.ndarray | None = None  # (n,) credible interval, where the model has one
    high: np.ndarray | None = None
    bounded: str = ""  # what low and high bound, in words, when it is not the value itself: "share of rows"


class Assignment(NamedTuple):
    """Where items belong, and how well they fit there."""

    labels: np.ndarray  # (n,) cluster ids; -1 belongs nowhere
    scores: np.ndarray  # (n,) larger is better; NaN where the model has no such number


class Estimator(ClusterMixin, BaseEstimator):
    """The base of every shoal model."""

    # Fitted attributes the store would not find by their trailing underscore.
    _private_state: ClassVar[tuple[str, ...]] = ()
    # What `typicality` measures, for axes and table heads.
    typicality_meaning: ClassVar[str] = "similarity to the centre"

    def fitted_state(self) -> dict[str, Any]:
        """Everything ``fit`` learned, by attribute name: arrays, CSR matrices, numbers, text, storable parts."""
        learned = {name: value for name, value in vars(self).items() if name.endswith("_") and not name.startswith("_")}
        return learned | {name: getattr(self, name) for name in self._private_state if hasattr(self, name)}

    def restore_state(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`fitted_state`."""
        for name, value in state.items():
            setattr(self, name, value)

    def assign(self, X: Any) -> Assignment:
        """The cluster of each row, with how well it fits: here its probability, if the model has one."""
        labels = self.predict(X)  # type: ignore[attr-defined]
        if hasattr(self, "predict_proba"):
            return Assignment(labels, self.predict_proba(X).max(axis=1))
        return Assignment(labels, np.full(len(labels), np.nan))

    # What a cluster card needs; a model overrides what it can say.

    def ids_of_clusters(self) -> np.ndarray:
        """Stable ids of the live clusters, in the order of the model's rows."""
        roster = getattr(self, "roster_", None)
        return roster.ids if roster is not None else np.arange(self.n_clusters)  # type: ignore[attr-defined,no-any-return]

    def ids_to_tell(self) -> np.ndarray:
        """Ids of the clusters worth a card in a report: the live ones first, then any that are gone."""
        return self.ids_of_clusters()

    def top_features(self, cluster: int, n: int = 10) -> TopFeatures:
        """The features that describe the cluster with this id."""
        raise NotImplementedError(f"{type(self).__name__} does not describe its clusters by features")

    def typicality(self) -> np.ndarray | None:
        """For each fitted item, how typical it is of its cluster (larger is more so), or None."""
        return None

    def cluster_uncertainty(self) -> np.ndarray | None:
        """For each live cluster, how unsure the model is about who belongs (0 = certain, 1 = no idea), or None."""
        return None

    def figures(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """Pictures of this model for its report: a title, a sentence to read it by, and what draws the figure."""
        return iter(())

    def name_features(self, features: np.ndarray) -> list[str]:
        """Column numbers in words, when a vocabulary came with the data."""
        vocabulary = getattr(self, "vocabulary_", None)
        if vocabulary is not None:
            return [str(vocabulary[int(feature)]) for feature in features]
        names = getattr(self, "feature_names_in_", None)
        return [str(names[feature]) if names is not None else f"feature {feature}" for feature in features]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def as_rows(estimator: Estimator, X: Any, *, fitting: bool, nonnegative: bool = False) -> sp.csr_matrix:
    """Judge ``X`` and give it back as canonical CSR of float32 or float64; the caller's arrays are never changed.

    ``X`` may also be a :class:`shoal.Dataset`; when ``fitting``, its vocabulary and item ids are remembered as
    ``vocabulary_`` and ``item_ids_``, so that clusters can be described in words.
    """
    dataset = X if hasattr(X, "X") and hasattr(X, "vocabulary") else None
    if dataset is not None:
        X = dataset.X
    try:
        X = validate_data(estimator, X, reset=fitting, accept_sparse="csr", dtype=[np.float64, np.float32])
    except ValueError as error:
        raise BadInput(str(error)) from None
    if fitting:
        for name in ("vocabulary_", "item_ids_"):
            estimator.__dict__.pop(name, None)
        if dataset is not None:
            estimator.vocabulary_ = dataset.vocabulary  # type: ignore[attr-defined]
            if dataset.ids is not None:
                estimator.item_ids_ = dataset.ids  # type: ignore[attr-defined]
    rows = sp.csr_matrix(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if nonnegative and rows.nnz and rows.data.min() < 0:
        at = int(np.argmin(rows.data))
        row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise BadInput(
            f"Negative values in data passed to {type(estimator).__name__}: row {row}, column {rows.indices[at]} "
            f"holds {rows.data[at]:g}. Counts and weights must be 0 or more."
        )
    return rows


def as_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Judge ``sample_weight``: one finite number, 0 or more, for each row; None means 1 each."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise BadInput(f"sample_weight has shape {weights.shape}; it needs one number for each of the {n_rows} rows.")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        raise BadInput(
            f"sample_weight[{wrong[0]}] is {weights[wrong[0]]:g}, and {wrong.size} of {n_rows} weights are negative or "
            "not finite. Weights must be 0 or more."
        )
    return weights


@storable
@dataclass
class Roster:
    """Stable cluster ids: a removed id is never used again; births, merges and deaths are written down.

    >>> roster = Roster.of(3)
    >>> roster.remove([1], kind="merge", into=0)
    >>> roster.add(2).tolist(), roster.ids.tolist()
    ([3, 4], [0, 2, 3, 4])
    >>> roster.events[0]
    {'kind': 'merge', 'id': 1, 'into': 0, 'at': None}
    """

    ids: np.ndarray  # ids of the live clusters, in the order of the model's rows
    next_id: int = 0
    names: dict[int, str] = field(default_factory=dict)  # given by the user
    pinned: list[int] = field(default_factory=list)  # never removed or merged by the model itself
    events: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, n_clusters: int) -> Roster:
        return cls(ids=np.arange(n_clusters, dtype=np.int64), next_id=n_clusters)

    def add(self, n: int, at: float | None = None) -> np.ndarray:
        """``n`` new clusters at the end of the rows; their ids."""
        fresh = np.arange(self.next_id, self.next_id + n, dtype=np.int64)
        self.ids = np.concatenate([self.ids, fresh])
        self.next_id += n
        self.events += [{"kind": "birth", "id": int(id_), "into": None, "at": at} for id_ in fresh]
        return fresh

    def remove(self, ids: Any, *, kind: str = "death", into: int | None = None, at: float | None = None) -> None:
        """Take clusters off; ``kind`` and ``into`` say what became of them."""
        gone = np.atleast_1d(np.asarray(ids, dtype=np.int64))
        self.ids = self.ids[~np.isin(self.ids, gone)]
        self.pinned = [id_ for id_ in self.pinned if id_ not in gone]
        self.events += [{"kind": kind, "id": int(id_), "into": into, "at": at} for id_ in gone]

    def row_of(self, id_: int) -> int:
        """The model's row that holds this id."""
        rows = np.flatnonzero(self.ids == id_)
        if not rows.size:
            known = f"ids run from {self.ids.min()} to {self.ids.max()}" if self.ids.size else "there are no clusters"
            raise BadInput(f"no cluster has id {id_}; {known}, and removed ids are not used again.")
        return int(rows[0])
