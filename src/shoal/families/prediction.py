"""What a fitted mixture says of rows: clusters, probabilities, densities, and new rows like them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from shoal.base import Assignment, Estimator, Roster, Rows, check_int, check_random_state, validate_rows
from shoal.families.distributions.counts import Best
from shoal.families.distributions.gaussian import Gaussian
from shoal.families.distributions.registry import COUNTS, family_class, table_families
from shoal.families.distributions.table import TableFamily, TableRows
from shoal.families.hierarchy import Hierarchy
from shoal.families.statistics import Model
from shoal.families.stored_state import check_state
from shoal.row_sources import Mode, ids_of_rows
from shoal.threads import ordered_map, row_blocks

BLOCK_ROWS, BLOCK_SCORES = 1024, 4_000_000


class ScoringMixture(Estimator):
    """A fitted mixture as a function of rows."""

    typicality_meaning: ClassVar[str] = "gain over an empty cluster (nats a unit of length)"

    family: Any
    covariance: str
    n_clusters: int | str
    n_sweeps: int
    n_iter_: int
    n_threads: int | None
    weights: str
    stats_: Any
    family_: Any
    hyperparameters_: dict[str, Any]
    roster_: Roster
    labels_: np.ndarray
    samples_: np.ndarray
    draws_: list[Any]
    typicality_: np.ndarray
    agreement_: np.ndarray
    n_clusters_: int
    n_rows_: int
    n_features_in_: int
    vocabulary_: Any
    chain_: Any
    log_joint_history_: list[float]
    _tree: Hierarchy | None = None

    def _model(self) -> Model:
        raise NotImplementedError

    def check_state(self) -> None:
        """Refuse a state from a file that contradicts itself."""
        check_state(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = isinstance(self.family, str) and self.family in COUNTS
        return tags

    # --- new rows -----------------------------------------------------------------------------------------------------

    def _best(self, rows: sp.csr_matrix, most: int = 1) -> Best:
        """The best clusters of each row by log weight + log predictive; ``fresh`` is for a cluster not seen yet."""
        log_weights, log_fresh = self._model().log_weights()
        scorer, most = self.family_.scorer(self.stats_, log_weights), min(most, len(log_weights))
        blocks = row_blocks(rows.shape[0], max(1, min(BLOCK_ROWS, BLOCK_SCORES // len(log_weights)))) or [(0, 0)]
        found = list(ordered_map(lambda block: scorer.best(rows[block[0] : block[1]], most), blocks, self.n_threads))
        best = Best(*(np.concatenate(part) for part in zip(*found, strict=True)))
        return best._replace(fresh=best.fresh + log_fresh)

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, n_clusters_) probability of each live cluster, given that the row belongs to one of them.

        With many clusters ask for :meth:`memberships`, which is sparse."""
        rows = self._rows(X)
        scorer = self.family_.scorer(self.stats_, self._model().log_weights()[0])
        out = np.zeros((rows.shape[0], len(self.stats_.size)))

        def fill(block: tuple[int, int]) -> None:
            scores = scorer.all(rows[block[0] : block[1]])
            out[block[0] : block[1]] = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))

        list(ordered_map(fill, row_blocks(rows.shape[0], BLOCK_ROWS), self.n_threads))
        return out

    def memberships(self, X: Any, top: int = 5) -> sp.csr_matrix:
        """(n, n_clusters_) probabilities of each row's ``top`` likeliest clusters, the mass of the others left out."""
        check_int("top", top)
        rows = self._rows(X)
        best = self._best(rows, top)
        probability = np.exp(best.scores - best.total[:, None])
        at = np.arange(rows.shape[0] + 1) * best.clusters.shape[1]
        out = sp.csr_matrix(
            (probability.ravel(), best.clusters.ravel(), at), shape=(rows.shape[0], len(self.stats_.size))
        )
        out.sort_indices()
        return out

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest cluster's id for each row."""
        best = self._best(self._rows(X))
        return np.asarray(self.roster_.ids[best.clusters[:, 0]])

    def assign(self, X: Any) -> Assignment:
        """The likeliest cluster's id for each row, and its probability."""
        best = self._best(self._rows(X))
        return Assignment(self.roster_.ids[best.clusters[:, 0]], np.exp(best.scores[:, 0] - best.total))

    def _rows(self, X: Any) -> Any:
        """Rows to be scored, in the columns of the model."""
        check_is_fitted(self)
        return self._validated(X, mode="predict").matrix

    def _validated(self, X: Any, *, mode: Mode) -> Rows:
        kind = family_class(self.family, self.covariance)
        if kind is not TableFamily:
            is_gaussian = issubclass(kind, Gaussian)
            return validate_rows(self, X, mode=mode, nonnegative=kind.nonnegative, measurements=is_gaussian)
        if isinstance(X, TableRows):
            rows = X
        elif mode == "fit" or not hasattr(self, "family_"):
            families = table_families(self.family, self.covariance)
            rows = kind.for_table(X, families).encode(X)
        else:
            rows = self.family_.encode(X)
        names = np.array([column.name for column in rows.family.columns], dtype=object)
        return Rows(rows, feature_names=names, item_ids=ids_of_rows(X))  # type: ignore[arg-type]

    def _typicality(self, X: Any, labels: np.ndarray) -> np.ndarray:
        """How much better a row's cluster explains it than an empty one does, in nats for each unit of its length."""
        own = self.family_.log_predictive_at(self.stats_, X, labels)
        alone = self.family_.log_predictive_at(self.stats_, X, np.full(X.shape[0], -1))
        return np.asarray((own - alone) / np.maximum(self.family_.row_lengths(X), 1.0))

    def _places(self, labels: np.ndarray) -> np.ndarray:
        """Ids of clusters as rows of the model; ids taken over from an older model are in no order."""
        order = np.argsort(self.roster_.ids)
        return np.asarray(order[np.searchsorted(self.roster_.ids, labels, sorter=order)])

    def score_samples(self, X: Any) -> np.ndarray:
        """log p(row) for each row, over known clusters and one not seen yet; for counts, without log x!."""
        best = self._best(self._rows(X))
        return np.asarray(np.logaddexp(best.total, best.fresh))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log likelihood of a row."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, *, length: int = 20, random_state: Any = None) -> tuple[Any, np.ndarray]:
        """(rows, their clusters' ids): new rows as the model imagines them; documents get ``length`` words."""
        check_is_fitted(self)
        n = check_int("n_samples", n_samples, minimum=0)
        rng = check_random_state(random_state)
        weights = np.exp(self._model().log_weights()[0])
        clusters = np.sort(rng.choice(len(weights), n, p=weights / weights.sum()))
        drawn = [
            self.family_.draw(self.stats_, int(cluster), int(count), np.full(count, length), rng)
            for cluster, count in zip(*np.unique(clusters, return_counts=True), strict=True)
        ]
        return joined(drawn), self.roster_.ids[clusters]


def joined(drawn: list[Any]) -> Any:
    """Rows of several clusters together: matrices, or tables by column."""
    if not isinstance(drawn[0], dict):
        return sp.vstack(drawn, format="csr") if sp.issparse(drawn[0]) else np.concatenate(drawn)
    is_array = {name: isinstance(values, np.ndarray) for name, values in drawn[0].items()}
    return {
        name: np.concatenate(parts) if array else [value for part in parts for value in part]
        for name, array in is_array.items()
        if (parts := [part[name] for part in drawn])
    }
