"""What a fitted model of profiles answers: assignments, probabilities, suggestions, descriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from shoal.base import (
    Assignment,
    Estimator,
    Roster,
    TopFeatures,
    check_int,
    check_random_state,
    validate_rows,
)
from shoal.bernoulli import inspection, suggestion
from shoal.bernoulli.calibration import Calibration
from shoal.bernoulli.profiles import Profiles
from shoal.bernoulli.scoring import as_presence, log_likelihoods, memberships_of, scored
from shoal.errors import BadInput
from shoal.hidden_entries import Hidden
from shoal.suggestion_records import Reason, Suggestion, Suggestions


class FittedProfiles(Estimator):
    """Profiles with the ids of their clusters, however they were learned."""

    typicality_meaning: ClassVar[str] = "gain over the background (nats a feature)"

    profiles_: Profiles
    roster_: Roster
    calibration_: Calibration
    typicality_: np.ndarray
    uncertainty_: np.ndarray
    n_threads: int | None
    random_state: Any

    # --- asking -------------------------------------------------------------------------------------------------------

    def _rows(self, X: Any) -> sp.csr_matrix:
        check_is_fitted(self)
        return as_presence(validate_rows(self, X, mode="predict").matrix)

    def _asked(self, X: Any) -> tuple[Profiles, sp.csr_matrix]:
        """The fitted profiles and valid rows."""
        rows = self._rows(X)
        return self.profiles_, rows

    def predict(self, X: Any) -> np.ndarray:
        """Id of each row's most likely cluster; -1: unassigned."""
        return self._ids_of(scored(*self._asked(X), self.n_threads).rows)

    def assign(self, X: Any) -> Assignment:
        """The cluster of each row and its probability, in one pass."""
        found = scored(*self._asked(X), self.n_threads)
        return Assignment(self._ids_of(found.rows), found.shares)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each cluster, (n_rows, n); columns follow ``cluster_ids_``, the clutter's comes last."""
        shares = memberships_of(*self._asked(X), self.n_threads)
        return np.roll(shares, -self.profiles_.n_clutter, axis=1)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log probability of each row under the model."""
        return log_likelihoods(*self._asked(X), self.n_threads)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log probability of the rows."""
        return float(self.score_samples(X).mean())

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.Generator | None = None
    ) -> tuple[sp.csr_matrix, np.ndarray]:  # fmt: skip
        """Rows drawn from the model, and the ids of the clusters they were drawn from (-1: clutter)."""
        check_is_fitted(self)
        n = check_int("n_samples", n_samples)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        X, rows = inspection.sampled(self.profiles_, n, rng)
        return X, self._ids_of(rows)

    # --- suggestion ---------------------------------------------------------------------------------------------------

    def suggest(
        self, observed: Iterable[Any], rejected: Iterable[Any] = (), n: int = 10, *, hidden: Hidden = "third"
    ) -> Suggestions:
        """The ``n`` features that most probably go with ``observed``, each with its reasons.

        To refine, call again: a suggestion the user accepts joins ``observed``, one the user rejects joins ``rejected``
        and counts as absent. All other features are unknown, not absent.

        Parameters
        ----------
        observed, rejected : iterables of features
            By name when the model was fitted to a Dataset, or by column number.
        n : int
        hidden : {"third", "one"} or float
            How much of the row is not in ``observed``, which the probabilities depend on: "third": a third of it;
            "one": exactly one feature; a number below 1: each feature, with this probability; a number of 1 or more:
            so many.
        """
        check_is_fitted(self)
        given, refused = self._columns("observed", observed), self._columns("rejected", rejected)
        both = np.intersect1d(given, refused)
        if both.size:
            raise BadInput(
                f"{self.name_features(both[:1])[0]!r} is both observed and rejected; keep it in one of them."
            )
        width = self.profiles_.n_features
        row, no = suggestion.one_row(given, width), suggestion.one_row(refused, width)
        features, raw = suggestion.suggested(self.profiles_, row, no, check_int("n", n), 1)
        probabilities = self.calibration_.probability(raw, np.array([given.size]), hidden)
        shares = suggestion.memberships(self.profiles_, given, refused)
        whole = features[0] >= 0
        columns = features[0][whole]
        names, reasons = self.name_features(columns), self._reasons(columns, given, shares)
        each = zip(columns.tolist(), names, probabilities[0][whole].tolist(), reasons, strict=True)
        return Suggestions([Suggestion(*one) for one in each])

    def _columns(self, what: str, features: Iterable[Any]) -> np.ndarray:
        names, vocabulary = getattr(self, "feature_names_in_", None), getattr(self, "vocabulary_", None)
        return suggestion.columns_of(what, features, self.profiles_.n_features, vocabulary, names)

    def _reasons(self, features: np.ndarray, given: np.ndarray, shares: np.ndarray) -> list[list[Reason]]:
        names = self.name_features(given)

        def reason(row: int, share: float, led: np.ndarray) -> Reason:
            id_ = int(self._ids_of(np.array([row]))[0])
            name = self.roster_.names.get(id_, "clutter" if id_ == -1 else f"cluster {id_}")
            return Reason(id_, name, share, [names[at] for at in led])

        found = suggestion.reasons_for(self.profiles_, features, given, shares)
        return [[reason(*one) for one in each] for each in found]

    def suggest_batch(
        self, X: Any, rejected: Any = None, n: int = 10, *, hidden: Hidden = "third"
    ) -> tuple[np.ndarray, np.ndarray]:
        """For every row of ``X``, the ``n`` likeliest features it does not have, and their probabilities, on threads.

        Both are (n_rows, n), padded with feature -1. ``rejected`` is a matrix like ``X``, above 0 where refused.
        """
        rows = self._rows(X)
        no = None if rejected is None else self._rows(rejected)
        if no is not None and no.shape[0] != rows.shape[0]:
            raise BadInput(f"rejected has {no.shape[0]} rows, X has {rows.shape[0]}; give one row for each.")
        features, raw = suggestion.suggested(self.profiles_, rows, no, check_int("n", n), self.n_threads)
        probabilities = self.calibration_.probability(raw, np.diff(rows.indptr), hidden)
        return features, np.where(features >= 0, probabilities, 0.0)

    # --- describing ---------------------------------------------------------------------------------------------------

    def _ids_of(self, rows: np.ndarray) -> np.ndarray:
        """Stable ids of rows of the model; -1 for the clutter."""
        return np.asarray(np.concatenate([self.roster_.ids, [-1]])[rows - self.profiles_.n_clutter])

    def _row_of(self, cluster: int) -> int:
        if cluster == -1 and self.profiles_.n_clutter:
            return 0
        return self.roster_.row_of(cluster) + self.profiles_.n_clutter

    @property
    def n_clusters_(self) -> int:
        """Number of clusters found."""
        return self.profiles_.n_clusters

    @property
    def cluster_sizes_(self) -> np.ndarray:
        """Effective number of rows of each cluster, in the order of ``cluster_ids_``."""
        return self.profiles_.mass[self.profiles_.n_clutter :].copy()

    @property
    def strength_(self) -> float:
        """How many rows the prior is worth."""
        return self.profiles_.strength

    def top_features(self, cluster: int, n: int = 10, by: str = "alpha", level: float = 0.9) -> TopFeatures:
        """The features that describe a cluster.

        ``by="alpha"`` sorts by the effective number of rows that have the feature, and cannot be fooled by a feature
        that few rows happen to share; ``by="mean"`` sorts by the mean share of rows. ``low`` and ``high`` bound the
        share of rows with probability ``level``.
        """
        check_is_fitted(self)
        if by not in ("alpha", "mean"):
            raise BadInput(f"by is {by!r}; choose 'alpha' (effective number of rows) or 'mean' (share of rows).")
        n = check_int("n", n, minimum=0)
        return inspection.top_features(self.profiles_, self._row_of(cluster), n, by, level)

    def typicality(self) -> np.ndarray:
        """For each row learned last, how much likelier the model makes it than the background, in nats a feature."""
        check_is_fitted(self)
        return self.typicality_

    def cluster_uncertainty(self) -> np.ndarray:
        """For each live cluster, the mean probability that a row labelled with it belongs elsewhere."""
        check_is_fitted(self)
        return self.uncertainty_

    def figures(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """For the report: what goes with the features of the largest clusters."""
        from shoal.bernoulli.plots import suggestions_table

        caption = "Given the features on the left, those on the right are the most probable."
        yield "What goes with what", caption, lambda: suggestions_table(self)
