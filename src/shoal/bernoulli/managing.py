"""A user's hand on the clusters: merge, split, pin, name; learn a day's rows as a difference and forget them again."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from shoal.base import as_rows, as_weights
from shoal.bernoulli import parallel
from shoal.bernoulli.adf import count_shares
from shoal.bernoulli.births import merged_rows
from shoal.bernoulli.describing import Describing
from shoal.bernoulli.joining import appended, matches
from shoal.bernoulli.parallel import Delta
from shoal.bernoulli.profiles import with_features, with_rows
from shoal.bernoulli.scoring import as_presence, labelled
from shoal.bernoulli.training import Learner, Rules
from shoal.errors import BadInput, CannotMerge


class Managing(Describing):
    """Changes to a fitted model that a person or a program asks for."""

    # --- clusters -------------------------------------------------------------------------------------------------

    def name_cluster(self, cluster: int, name: str | None) -> None:
        """Call a cluster by a name of your own."""
        self._row_of(cluster)
        self.roster_.name(cluster, name)

    def pin_cluster(self, cluster: int, pinned: bool = True) -> None:
        """A pinned cluster is never removed, and never merged into another, by learning."""
        self._row_of(cluster)
        kept = [id_ for id_ in self.roster_.pinned if id_ != cluster]
        self.roster_.pinned = [*kept, int(cluster)] if pinned else kept

    def merge_clusters(self, kept: int, gone: int) -> None:
        """Pour the cluster ``gone`` into ``kept``: what both have seen adds up."""
        if kept == gone or -1 in (kept, gone):
            raise BadInput(f"cannot merge cluster {gone} into {kept}; name two different clusters, not the clutter.")
        pair = (self._row_of(kept), self._row_of(gone))
        self.profiles_ = merged_rows(self.profiles_, [pair])
        self.roster_.remove([gone], kind="merge", into=int(kept))
        self.roster_.names.pop(int(gone), None)

    def split_cluster(self, cluster: int, X: Any) -> int:
        """Split a cluster in two by those rows of ``X`` (rows the model has learned) that it holds; the new id."""
        row = self._row_of(cluster)
        rows = self._presence(X)
        inside = np.flatnonzero(labelled(self.profiles_, rows).rows == row)
        if inside.size < 2 or cluster == -1:
            raise BadInput(
                f"cluster {cluster} holds {inside.size} of the rows given. A split needs at least two rows, "
                "and the clutter cannot be split."
            )
        weights = np.ones(rows.shape[0])
        half, shares = Learner.primed(rows, weights, inside, self.profiles_.seen, self._halving_rules())
        second = shares.rows[:, 0] == half.profiles.n_rows - 1
        if second.all() or not second.any():
            second = np.arange(inside.size) % 2 == 1
        moving, one = inside[second], np.ones((int(second.sum()), 1))
        profiles = with_rows(self.profiles_, 1)
        profiles = count_shares(
            profiles, rows, weights, moving, np.full(one.shape, row, dtype=np.int64), one, sign=-1.0
        )
        new = np.full(one.shape, profiles.n_rows - 1, dtype=np.int64)
        self.profiles_ = count_shares(profiles, rows, weights, moving, new, one, sign=1.0)
        return int(self.roster_.add(1)[0])

    def _halving_rules(self) -> Rules:
        rules: Rules = self._rules(np.random.default_rng(self.random_state))  # type: ignore[attr-defined]
        rules.n_clusters, rules.clutter, rules.births, rules.merges = 2, False, False, False
        rules.least_share = 0.0
        return rules

    # --- differences ----------------------------------------------------------------------------------------------

    def accumulate(self, X: Any, sample_weight: Any = None) -> Delta:
        """What these rows would teach the model, which stays as it is. Apply with :meth:`update`."""
        check_is_fitted(self)
        rows = self._presence(X)
        weights = as_weights(sample_weight, rows.shape[0])
        rules = self._rules(np.random.default_rng(0))  # type: ignore[attr-defined]
        order = np.arange(rows.shape[0])
        delta, _ = parallel.accumulate(rows, weights, order, self.profiles_, negligible=rules.negligible)
        per_entry = np.repeat(weights, np.diff(rows.indptr))
        seen = np.append(np.bincount(rows.indices, weights=per_entry, minlength=rows.shape[1]), weights.sum())
        return delta._replace(ids=self.roster_.ids.copy(), seen=seen)

    def update(self, delta: Delta) -> None:
        """Learn a difference that :meth:`accumulate` gave, here or in a copy of this model."""
        self._apply(delta, 1.0)

    def forget(self, delta: Delta) -> None:
        """Take a difference back, exactly: a day, or a customer, that shall not have been seen."""
        self._apply(delta, -1.0)

    def _apply(self, delta: Delta, sign: float) -> None:
        check_is_fitted(self)
        if not np.array_equal(delta.ids, self.roster_.ids):
            raise CannotMerge(
                "the difference was taken when the model had other clusters; clusters were born, merged or removed "
                "since. Accumulate it again from the model as it is."
            )
        self.profiles_ = parallel.update(self.profiles_, delta, sign=sign)
        if delta.seen.size:
            self.profiles_.seen[: delta.seen.size - 1] += sign * delta.seen[:-1]
            self.profiles_.seen[-1] += sign * delta.seen[-1]

    def merge_model(self, other: Managing) -> None:
        """Take in a model that was trained apart, on other rows with the same columns.

        Clusters of the two that are better believed to be one are joined, then the nearest, until ``n_clusters`` are
        left. The beliefs add up; neither model's rows are needed.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        if self.profiles_.n_clutter != other.profiles_.n_clutter:
            raise CannotMerge(
                "one model has a clutter cluster and the other has not; train both with the same clutter."
            )
        width = max(self.profiles_.n_features, other.profiles_.n_features)
        profiles = appended(with_features(self.profiles_, width), with_features(other.profiles_, width))
        self.roster_.add(profiles.n_rows - self.profiles_.n_rows)
        n_clutter = profiles.n_clutter
        while pairs := matches(profiles, self.n_clusters):  # type: ignore[attr-defined]
            ids = self.roster_.ids.copy()
            for kept, gone in pairs:
                self.roster_.remove([ids[gone - n_clutter]], kind="merge", into=int(ids[kept - n_clutter]))
            profiles = merged_rows(profiles, pairs)
        self.profiles_ = profiles
        self.n_features_in_ = width

    def _presence(self, X: Any) -> sp.csr_matrix:
        return as_presence(as_rows(self, X, fitting=False))
