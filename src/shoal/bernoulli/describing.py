"""What a fitted model says of its clusters, and rows drawn from it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.stats import beta as beta_distribution
from sklearn.utils.validation import check_is_fitted

from shoal.base import Estimator, Roster, TopFeatures
from shoal.bernoulli.profiles import Profiles
from shoal.errors import BadInput


class Describing(Estimator):
    """Top features with credible intervals, uncertainty, typical rows, generation."""

    typicality_meaning: ClassVar[str] = "gain over the background (nats a feature)"

    profiles_: Profiles
    roster_: Roster
    random_state: Any

    def _ids_of(self, rows: np.ndarray) -> np.ndarray:
        """Stable ids of rows of the model; -1 for the clutter."""
        ids = self.roster_.ids
        return np.asarray(np.concatenate([ids, [-1]])[rows - self.profiles_.n_clutter])

    def _row_of(self, cluster: int) -> int:
        if cluster == -1 and self.profiles_.n_clutter:
            return 0
        return self.roster_.row_of(cluster) + self.profiles_.n_clutter

    def top_features(self, cluster: int, n: int = 10, by: str = "alpha", level: float = 0.9) -> TopFeatures:
        """The features that describe a cluster.

        ``by="alpha"`` sorts by the effective number of rows that have the feature, and cannot be fooled by a feature
        that few rows happen to share; ``by="mean"`` sorts by the mean share of rows. ``low`` and ``high`` bound the
        share of rows with probability ``level``.
        """
        check_is_fitted(self)
        if by not in ("alpha", "mean"):
            raise BadInput(f"by is {by!r}; choose 'alpha' (effective number of rows) or 'mean' (share of rows).")
        profiles, row = self.profiles_, self._row_of(cluster)
        slots = np.flatnonzero(profiles.cluster[: profiles.n_entries] == row)
        alpha, totals = profiles.alphas()[slots], profiles.totals()[slots]
        values = alpha if by == "alpha" else alpha / totals
        best = np.argsort(-values, kind="stable")[:n]
        a, b = np.maximum(alpha[best], 1e-9), np.maximum(totals[best] - alpha[best], 1e-9)
        return TopFeatures(
            features=profiles.feature[slots[best]].astype(np.int64),
            values=values[best],
            meaning="effective rows" if by == "alpha" else "share of rows",
            low=beta_distribution.ppf((1 - level) / 2, a, b),
            high=beta_distribution.ppf((1 + level) / 2, a, b),
            bounded="share of rows" if by == "alpha" else "",
        )

    def cluster_sizes(self) -> np.ndarray:
        """Effective number of rows of each live cluster, in the order of ``roster_.ids``."""
        check_is_fitted(self)
        return self.profiles_.mass[self.profiles_.n_clutter :].copy()

    def typicality(self) -> np.ndarray:
        """For each fitted row, how much likelier the model makes it than the background, in nats for each feature."""
        check_is_fitted(self)
        return self.typicality_  # type: ignore[attr-defined,no-any-return]

    def cluster_uncertainty(self) -> np.ndarray:
        """For each live cluster, the mean probability that a row labelled with it belongs elsewhere."""
        check_is_fitted(self)
        return self.uncertainty_  # type: ignore[attr-defined,no-any-return]

    def sample(self, n_samples: int = 1) -> tuple[sp.csr_matrix, np.ndarray]:
        """Rows drawn from the model, and the ids of the clusters they were drawn from (-1 for the clutter)."""
        check_is_fitted(self)
        rng = np.random.default_rng(self.random_state)
        profiles = self.profiles_
        rows = rng.choice(profiles.n_rows, size=n_samples, p=profiles.weights())
        parts = [_drawn(profiles, row, np.flatnonzero(rows == row), rng) for row in np.unique(rows)]
        at = np.concatenate([spot for spot, _ in parts]) if parts else np.zeros(0, dtype=np.int64)
        features = np.concatenate([feature for _, feature in parts]) if parts else np.zeros(0, dtype=np.int64)
        X = sp.csr_matrix((np.ones(at.size), (at, features)), shape=(n_samples, profiles.n_features))
        X.sum_duplicates()
        X.data[:] = 1.0
        return X, self._ids_of(rows)


def _drawn(profiles: Profiles, row: int, spots: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw the rows at ``spots`` from one cluster: (row, feature) pairs."""
    slots = np.flatnonzero(profiles.cluster[: profiles.n_entries] == row)
    means = np.clip((profiles.alphas() / profiles.totals())[slots], 0.0, 1.0)
    own = profiles.feature[slots].astype(np.int64)
    at, feature = [], []
    for spot in spots:  # one ad at a time: memory stays that of one profile
        hit = own[rng.random(means.size) < means]
        at.append(np.full(hit.size, spot))
        feature.append(hit)
    # Keywords without entry are many and rare: their number is Poisson, and each is drawn by the background.
    rest = profiles.background * np.where(profiles.shared, 1.0, profiles.ratio[row])
    rest[own] = 0.0
    total = rest.sum()
    if total > 0:
        n_each = rng.poisson(total, size=spots.size)
        ends = np.cumsum(rest) / total
        at.append(np.repeat(spots, n_each))
        feature.append(np.minimum(np.searchsorted(ends, rng.random(n_each.sum())), rest.size - 1))
    return np.concatenate(at), np.concatenate(feature)
