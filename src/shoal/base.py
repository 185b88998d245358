"""What every estimator keeps: scikit-learn's contract, one validation of input, a state that can be stored, stable ids.

Each package writes its model as three pure functions in ``statistics.py``, folded over blocks by :mod:`shoal.engine`::

    stats, memory = accumulate(block, model, memory)   # what one pass over some rows must remember
    stats = merge(stats, other_stats)                  # associative, so blocks, threads, days and machines add up
    model = update(model, stats)                       # a new model; the old one stays as it was
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from shoal.errors import BadInput, CannotMerge
from shoal.roster import Roster
from shoal.row_sources import Mode
from shoal.storable import STORABLE, storable, storable_name
from shoal.validation import (
    Rows,
    check_choice,
    check_int,
    check_random_state,
    check_real,
    remember_rows,
    validate_rows,
    validate_weights,
)

__all__ = [
    "STORABLE",
    "Assignment",
    "CenterEstimator",
    "Estimator",
    "Roster",
    "Rows",
    "TopFeatures",
    "check_choice",
    "check_int",
    "check_random_state",
    "check_real",
    "storable",
    "storable_name",
    "transaction",
    "validate_rows",
    "validate_weights",
]


class TopFeatures(NamedTuple):
    """The features that describe a cluster, the most salient first."""

    features: np.ndarray  # (n,) column numbers
    values: np.ndarray  # (n,) the number behind each
    meaning: str  # what the number is, in words: "weight in the center", "effective ads"
    low: np.ndarray | None = None  # (n,) credible interval, where the model has one
    high: np.ndarray | None = None
    bounded: str = ""  # what low and high bound, in words, when it is not the value itself: "share of rows"
    levels: np.ndarray | None = None  # (n,) of measurements: True for the level of a number, False for a share of rows


class Assignment(NamedTuple):
    """The cluster of each row, and how well the row fits there."""

    labels: np.ndarray  # (n,) cluster ids; -1: unassigned
    scores: np.ndarray  # (n,) larger is better; NaN where the model has no such number


@contextmanager
def transaction(estimator: Estimator) -> Iterator[None]:
    """All or nothing: if the body raises, Ctrl-C included, the estimator is as it was before.

    Learning never changes a model's arrays in place (``update`` returns new ones), so it is enough to remember the
    attributes, and a copy of the roster, which is edited in place.
    """
    before = dict(vars(estimator))
    if isinstance(before.get("roster_"), Roster):
        before["roster_"] = before["roster_"].copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


class Estimator(ClusterMixin, BaseEstimator):
    """The base of every shoal model."""

    # Fitted attributes the store would not find by their trailing underscore.
    _private_state: ClassVar[tuple[str, ...]] = ()
    # What `typicality` measures, for axes and table heads.
    typicality_meaning: ClassVar[str] = "similarity to the center"
    # How text and lists are weighted when they are read for this model.
    preferred_weighting: ClassVar[str] = "count"

    def fitted_state(self) -> dict[str, Any]:
        """Everything ``fit`` learned, by attribute name: arrays, CSR matrices, numbers, text, storable parts."""
        learned = {name: value for name, value in vars(self).items() if name.endswith("_") and not name.startswith("_")}
        return learned | {name: getattr(self, name) for name in self._private_state if hasattr(self, name)}

    def restore_state(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`fitted_state`."""
        for name, value in state.items():
            setattr(self, name, value)

    def check_state(self) -> None:
        """Refuse a state from a file that contradicts itself: kernels would follow its indices. Called by ``load``."""

    def _remember_rows(self, rows: Rows, *, mode: Mode) -> None:
        remember_rows(self, rows, mode=mode)

    # --- asking -------------------------------------------------------------------------------------------------------

    def assign(self, X: Any) -> Assignment:
        """The cluster of each row and how well it fits: here its probability, if the model has one."""
        if hasattr(self, "predict_proba"):
            best = self.memberships(X, top=1)
            filled = np.diff(best.indptr) > 0
            labels = np.full(best.shape[0], -1, dtype=np.int64)
            scores = np.zeros(best.shape[0])
            labels[filled], scores[filled] = self.cluster_ids_[best.indices], best.data
            return Assignment(labels, scores)
        if not hasattr(self, "predict"):
            raise BadInput(f"{type(self).__name__} has no clusters that rows could be assigned to; use suggest.")
        labels = self.predict(X)
        return Assignment(labels, np.full(len(labels), np.nan))

    def memberships(self, X: Any, top: int = 5) -> sp.csr_matrix:
        """The ``top`` largest probabilities of each row, over :attr:`cluster_ids_`; what is left out is not stored.

        Rows are scored in blocks, so nothing of size rows x clusters is made.
        """
        top = check_int("top", top)
        if not hasattr(self, "predict_proba"):
            raise BadInput(f"{type(self).__name__} gives no probabilities; use predict or assign.")
        check_is_fitted(self)
        n_clusters = len(self.cluster_ids_)
        parts = []
        for start in range(0, max(len_of(X), 1), step := max(1, 4_000_000 // max(n_clusters, 1))):
            parts.append(_largest(self.predict_proba(rows_of(X, start, start + step))[:, :n_clusters], top))
        return sp.vstack(parts, format="csr")

    def same_cluster_probability(self, X: Any, Y: Any, **asked: Any) -> np.ndarray:
        """(n,) probability, for each row of ``X`` with its row of ``Y``, that both belong to one of the clusters."""
        if not hasattr(self, "predict_proba"):
            raise BadInput(f"{type(self).__name__} gives no probabilities; compare the labels that predict gives.")
        if len_of(X) != len_of(Y):
            raise BadInput(f"X has {len_of(X)} rows and Y has {len_of(Y)}; pairs need as many of one as of the other.")
        check_is_fitted(self)
        n_clusters, parts = len(self.cluster_ids_), []
        for start in range(0, max(len_of(X), 1), step := max(1, 4_000_000 // max(n_clusters, 1))):
            a, b = (self.predict_proba(rows_of(rows, start, start + step), **asked)[:, :n_clusters] for rows in (X, Y))
            parts.append(np.einsum("rc,rc->r", a, b))
        return np.concatenate(parts)

    def name_features(self, features: np.ndarray) -> list[str]:
        """Column numbers in words, when a vocabulary came with the data."""
        vocabulary = getattr(self, "vocabulary_", None)
        if vocabulary is not None:
            return [str(vocabulary[int(feature)]) for feature in features]
        names = getattr(self, "feature_names_in_", None)
        return [str(names[feature]) if names is not None else f"feature {feature}" for feature in features]

    # --- what a cluster card needs; a model overrides what it can give ------------------------------------------------

    @property
    def cluster_ids_(self) -> np.ndarray:
        """Stable ids of the live clusters, in the order of the model's rows."""
        roster = vars(self).get("roster_")
        if roster is not None:
            return np.asarray(roster.ids)
        centers = vars(self).get("cluster_centers_")
        if centers is None:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: it has no clusters")
        return np.arange(centers.shape[0])

    def reported_cluster_ids(self) -> np.ndarray:
        """Ids of the clusters that get a card in a report: the live ones first, then any that are gone."""
        return self.cluster_ids_

    def _html_repr(self) -> str:
        """For notebooks: scikit-learn's box of parameters, and below it the largest clusters of a fitted model."""
        box = str(estimator_html_repr(self))
        if not hasattr(self, "labels_"):
            return box
        from shoal.report.table import clusters_table  # only here: models know nothing of reports

        return box + clusters_table(self)

    _repr_html_inner = _html_repr

    def top_features(self, cluster: int, n: int = 10) -> TopFeatures:
        """The features that describe the cluster with this id."""
        raise NotImplementedError(f"{type(self).__name__} does not describe its clusters by features")

    def cluster_title(self, cluster: int) -> str | None:
        """What says more about a cluster than the names of its features, such as the template of its lines; or None."""
        return None

    def cluster_notes(self, cluster: int) -> list[str]:
        """What else the model knows of a cluster, a sentence each, for its card."""
        return []

    def typicality(self) -> np.ndarray | None:
        """For each fitted item, how typical it is of its cluster (larger is more so), or None."""
        return None

    def cluster_uncertainty(self) -> np.ndarray | None:
        """For each live cluster, how unsure the model is about who belongs (0 = certain, 1 = no idea), or None."""
        return None

    def figures(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """Pictures of this model for its report: a title, a sentence to read it by, and what draws the figure."""
        return iter(())

    # --- editing and combining ----------------------------------------------------------------------------------------

    def name_cluster(self, cluster: int, name: str | None) -> None:
        """Give a cluster a name, which stays with its id; None takes the name away."""
        check_is_fitted(self)
        self._roster().name(cluster, name)

    def pin_cluster(self, cluster: int, pinned: bool = True) -> None:
        """A pinned cluster is never removed, nor merged into another, by learning."""
        check_is_fitted(self)
        self._roster().pin(cluster, pinned)

    def _roster(self) -> Roster:
        return self.roster_  # type: ignore[attr-defined,no-any-return]

    def merge_clusters(self, clusters: Any, into: int) -> Any:
        """The rows of ``clusters`` (one id or several) belong to the cluster ``into`` from now on."""
        raise NotImplementedError(f"{type(self).__name__} cannot merge clusters")

    def split_cluster(self, cluster: int, *args: Any) -> Any:
        """Split a cluster in two; the id of the new one."""
        raise NotImplementedError(f"{type(self).__name__} cannot split clusters")

    def _identified(self, old: Any, X: Any) -> Any:
        """This model with the ids, names and pins of those clusters of ``old`` that it found again."""
        if old is None:
            return self
        from shoal.selection import match_clusters  # compares models of any kind, so it stands above them

        with transaction(self):
            self.roster_: Roster = self._roster().copy()
            is_table = (hasattr(X, "shape") and len(X.shape) == 2) or hasattr(X, "vocabulary") or hasattr(X, "columns")
            match_clusters(old, self, X if is_table else None).carry(old, self)
        return self

    def merge(self, other: Any) -> Any:
        """Take in a model that was fitted on other rows from the same start."""
        raise CannotMerge(f"{type(self).__name__} models cannot be merged.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class CenterEstimator(TransformerMixin, ClassNamePrefixFeaturesOutMixin, Estimator):
    """The base of models whose clusters are the rows of ``cluster_centers_``; ``transform`` has a column for each."""

    @property
    def n_clusters_(self) -> int:
        """Current number of clusters."""
        check_is_fitted(self, "cluster_centers_")
        return int(self.cluster_centers_.shape[0])

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_


def len_of(X: Any) -> int:
    """Rows of a matrix, a table or a Dataset."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def rows_of(X: Any, start: int, stop: int) -> Any:
    """Some rows of a matrix, a table or a Dataset."""
    if hasattr(X, "iloc"):
        return X.iloc[start:stop]
    if hasattr(X, "column_names") and hasattr(X, "slice"):
        return X.slice(start, stop - start)
    return X[start:stop]


def _largest(probabilities: np.ndarray, top: int) -> sp.csr_matrix:
    """The largest entries of each row, as a sparse matrix; ties go to the smaller column."""
    n_rows, n_columns = probabilities.shape
    top = min(top, n_columns)
    columns = np.argsort(-probabilities, axis=1, kind="stable")[:, :top]
    values = np.take_along_axis(probabilities, columns, axis=1)
    order = np.argsort(columns, axis=1)
    columns, values = (np.take_along_axis(part, order, axis=1) for part in (columns, values))
    indptr = np.arange(0, n_rows * top + 1, max(top, 1)) if top else np.zeros(n_rows + 1, dtype=np.int64)
    matrix = sp.csr_matrix((values.ravel(), columns.ravel(), indptr), shape=(n_rows, n_columns))
    matrix.eliminate_zeros()
    return matrix
