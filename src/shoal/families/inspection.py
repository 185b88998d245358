"""What a fitted mixture can say: of new rows, of its clusters, and of how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from shoal.base import (
    Assignment,
    Estimator,
    Roster,
    Rows,
    TopFeatures,
    check_int,
    check_random_state,
    check_real,
    validate_rows,
)
from shoal.errors import BadInput
from shoal.families import posterior, statistics
from shoal.families.consensus import consensus
from shoal.families.distributions import descriptions
from shoal.families.distributions.counts import Best, CountFamily
from shoal.families.distributions.descriptions import Imputed
from shoal.families.distributions.gaussian import Gaussian
from shoal.families.distributions.registry import COUNTS, family_class, table_families
from shoal.families.distributions.table import TableFamily, TableRows
from shoal.families.hierarchy import Hierarchy, build
from shoal.families.statistics import Model
from shoal.families.stored_state import check_state
from shoal.threads import ordered_map, row_blocks
from shoal.validation import Mode

BLOCK_ROWS, BLOCK_SCORES = 1024, 4_000_000
MATTERS = 0.1  # nats a row
COLLAPSED, SHARED, MUCH = 0.95, 0.5, 0.2  # shares of rows, of counts a row, and of all counts


class FittedMixture(Estimator):
    """Reading a fitted :class:`ExponentialFamilyMixture`."""

    typicality_meaning: ClassVar[str] = "gain over an empty cluster (nats a unit of length)"

    family: Any
    covariance: str
    n_clusters: int | str
    n_threads: int | None
    weights: str
    stats_: Any
    family_: Any
    hyperparameters_: dict[str, Any]
    roster_: Roster
    labels_: np.ndarray
    samples_: np.ndarray
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
            return validate_rows(self, X, mode=mode, nonnegative=kind.nonnegative)
        if isinstance(X, TableRows):
            rows = X
        elif mode == "fit" or not hasattr(self, "family_"):
            families = table_families(self.family, self.covariance)
            rows = kind.for_table(X, families).encode(X)
        else:
            rows = self.family_.encode(X)
        names = np.array([column.name for column in rows.family.columns], dtype=object)
        return Rows(rows, feature_names=names)  # type: ignore[arg-type]

    def _typicality(self, X: Any, labels: np.ndarray) -> np.ndarray:
        """How much better a row's cluster explains it than an empty one does, in nats for each unit of its length."""
        own = self.family_.log_predictive_at(self.stats_, X, labels)
        alone = self.family_.log_predictive_at(self.stats_, X, np.full(X.shape[0], -1))
        return np.asarray((own - alone) / np.maximum(self.family_.row_lengths(X), 1.0))

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

    # --- parameters ---------------------------------------------------------------------------------------------------

    @property
    def relabeled_samples_(self) -> np.ndarray:
        """The kept labelings in the numbers of the best one, so that averages over draws are over the same cluster."""
        check_is_fitted(self)
        return posterior.relabeled(self.samples_, self.trace_labels())

    def trace_labels(self) -> np.ndarray:
        """Labels of the fitted rows as rows of the model."""
        if self.samples_.shape[1] != len(self.labels_):
            raise BadInput("the kept samples are of the rows of the last fit; rows have been learned since.")
        return np.searchsorted(self.roster_.ids, self.labels_)

    def credible_intervals(self, share: float = 0.9) -> dict[str, posterior.Interval]:
        """Posterior means with central intervals: ``weights`` (over the kept draws), ``means`` of each feature given
        the labels, and ``variances`` of diagonal and spherical measurements."""
        check_is_fitted(self)
        check_real("share", share, minimum=0.0, maximum=1.0, strict=True)
        model, samples = self._model(), None
        if self.samples_.shape[1] == len(self.labels_) == int(self.stats_.size.sum()):
            samples = self.relabeled_samples_
        alpha = 0.0 if model.is_dirichlet_process else model.concentration
        found = {"weights": posterior.weights_of(self.stats_.size, samples, alpha, model.n_clusters, share)}
        if not isinstance(self.family_, TableFamily):
            found["means"] = posterior.means_of(self.family_, self.stats_, share)
        if isinstance(self.family_, Gaussian):
            found["variances"] = posterior.variances_of(self.family_, self.stats_, share)
        return found

    @property
    def weights_(self) -> np.ndarray:
        """(n_clusters_,) posterior mean of each cluster's weight."""
        return self.credible_intervals()["weights"].mean

    @property
    def means_(self) -> np.ndarray:
        """(n_clusters_, n_features) posterior mean of each feature; of a table, of each entry a card can name."""
        check_is_fitted(self)
        if isinstance(self.family_, TableFamily):
            return self.family_.means(self.stats_)
        return np.array([self.family_.expected(self.stats_, row) for row in range(len(self.stats_.size))])

    @property
    def covariances_(self) -> np.ndarray:
        """Posterior mean of the clusters' covariances: (k, d) diagonal, (k,) spherical, (k, d, d) full, (d, d) tied."""
        check_is_fitted(self)
        if isinstance(self.family_, TableFamily):
            return self.family_.covariances(self.stats_)
        if not isinstance(self.family_, Gaussian):
            raise AttributeError("covariances_ are of measurements; fit with family='gaussian'.")
        variances = posterior.variances_of(self.family_, self.stats_, 0.9).mean
        return variances[:, 0] if self.family_.spherical else variances

    @property
    def n_parameters_(self) -> int:
        """Free parameters of the live clusters and their weights."""
        check_is_fitted(self)
        return int(len(self.stats_.size) * (self.family_.n_parameters() + 1) - 1)

    def bic(self, X: Any) -> float:
        """Bayesian information criterion of these rows, the smaller the better; for counts without log x!."""
        scores = self.score_samples(X)
        return float(-2 * scores.sum() + self.n_parameters_ * np.log(max(len(scores), 1)))

    def aic(self, X: Any) -> float:
        """Akaike's information criterion of these rows, the smaller the better; for counts without log x!."""
        return float(-2 * self.score_samples(X).sum() + 2 * self.n_parameters_)

    # --- tables -------------------------------------------------------------------------------------------------------

    def name_features(self, features: np.ndarray) -> list[str]:
        """Features in words; of a table, its columns and their levels."""
        if isinstance(getattr(self, "family_", None), TableFamily):
            labels = descriptions.entries(self.family_)
            return [labels[int(feature)].label for feature in features]
        return super().name_features(features)

    def column_evidence(self, cluster: int) -> dict[str, float]:
        """By column, how many nats a row the cluster's own distribution explains its rows better than that of all rows.

        Columns near 0 do not matter for what sets the cluster apart."""
        family, row = self._table_family(), self.roster_.row_of(cluster)
        whole = type(self.stats_)(self.stats_.size.sum(keepdims=True), self.stats_.sums.sum(axis=0, keepdims=True))
        rest = statistics.add(whole, statistics.pick(self.stats_, [row]), -1)
        own, all_rows, others = (
            family.log_marginals(stats)[0] for stats in (statistics.pick(self.stats_, [row]), whole, rest)
        )
        gain = (own - (all_rows - others)) / max(int(self.stats_.size[row]), 1)
        return {column.name: float(value) for column, value in zip(family.columns, gain, strict=True)}

    def describe_cluster(self, cluster: int, n: int = 4) -> str:
        """One line for a card: the columns that matter most, with what the cluster's rows have there."""
        family, row = self._table_family(), self.roster_.row_of(cluster)
        evidence = self.column_evidence(cluster)
        matter = sum(value > MATTERS for value in evidence.values())
        order = np.argsort([-value for value in evidence.values()], kind="stable")[: min(n, max(matter, 1))]
        said = [descriptions.sentence(family, self.stats_, row, int(at)) for at in order]
        return f"{', '.join(said)}; {matter} of {len(evidence)} columns matter"

    def impute(self, X: Any, *, interval: float = 0.9) -> dict[str, Imputed]:
        """By column, what the missing values of these rows are likely to be given the values they have: medians of
        numbers and counts with a central interval, categories with their probability."""
        family, rows = self._table_family(), self._rows(X)
        check_real("interval", interval, minimum=0.0, maximum=1.0, strict=True)
        probability = self.predict_proba(rows)
        found = {
            column.name: descriptions.impute_column(family, self.stats_, rows, at, probability, interval)
            for at, column in enumerate(family.columns)
        }
        return {name: imputed for name, imputed in found.items() if imputed is not None}

    def _table_family(self) -> TableFamily:
        check_is_fitted(self)
        if not isinstance(self.family_, TableFamily):
            raise BadInput("this is for tables: fit with family='mixed', or a family for each column.")
        return self.family_

    @property
    def cluster_sizes_(self) -> np.ndarray:
        """(n_clusters_,) rows learned by each cluster, in the order of ``cluster_ids_``."""
        check_is_fitted(self)
        return np.asarray(self.stats_.size)

    @property
    def objective_history_(self) -> list[float]:
        """Log joint of rows and labels after each sweep."""
        check_is_fitted(self)
        return self.log_joint_history_

    # --- clusters -----------------------------------------------------------------------------------------------------

    def top_features(self, cluster: int, n: int = 10) -> TopFeatures:
        """The features that set the cluster apart: mean times log ratio to the mean over all rows, largest first."""
        check_is_fitted(self)
        row = self.roster_.row_of(cluster)
        return top_features_of(self.family_, self.stats_, row, n)

    def typicality(self) -> np.ndarray | None:
        """How much better its cluster explains a fitted row than an empty one does, in nats per unit of its length."""
        check_is_fitted(self)
        return np.asarray(self.typicality_)

    def cluster_uncertainty(self) -> np.ndarray | None:
        """For each cluster, the mean share of kept samples in which a member was elsewhere."""
        check_is_fitted(self)
        rows = np.searchsorted(self.roster_.ids, self.labels_)  # ids are in the order they were given
        members = np.bincount(rows, minlength=self.n_clusters_)
        agreed = np.bincount(rows, self.agreement_, minlength=self.n_clusters_)
        return np.asarray(1 - agreed / np.maximum(members, 1))

    @property
    def hierarchy_(self) -> Hierarchy:
        """A tree over the live clusters, grown when first asked for."""
        check_is_fitted(self)
        if self._tree is None:
            self._tree = build(self.family_, self.stats_)
        return self._tree

    def cut(self, n_groups: int) -> np.ndarray:
        """(n_clusters_,) the group of each live cluster when the tree is cut at this many."""
        return self.hierarchy_.cut(n_groups)

    def figures(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """The tree over the clusters, and the posterior of their number."""
        from shoal.families import plots

        if self.n_clusters_ > 2:
            says = "Clusters that join further left are more alike; the tree is cut where it would not fit."
            yield "How the clusters join", says, lambda: plots.tree_plot(self)
        yield "How many clusters", "In the kept samples.", lambda: plots.number_plot(self)

    # --- samples ------------------------------------------------------------------------------------------------------

    def same_cluster_probability(self, rows: Any, others: Any) -> np.ndarray:
        """For pairs of fitted rows (numbers or matching arrays), the share of kept samples that have them together."""
        check_is_fitted(self)
        rows, others = np.broadcast_arrays(np.asarray(rows), np.asarray(others))
        for name, numbers in (("rows", rows), ("others", others)):
            if numbers.size and (numbers.min() < 0 or numbers.max() >= self.samples_.shape[1]):
                raise BadInput(
                    f"{name} runs from {numbers.min()} to {numbers.max()}; the model was fitted to rows 0 to "
                    f"{self.samples_.shape[1] - 1}."
                )
        return np.asarray(np.mean(self.samples_[:, rows] == self.samples_[:, others], axis=0))

    @property
    def consensus_labels_(self) -> np.ndarray:
        """The kept sample nearest to all others in variation of information, numbered from the largest cluster."""
        check_is_fitted(self)
        _, labels, size = np.unique(consensus(self.samples_), return_inverse=True, return_counts=True)
        place = np.empty(len(size), np.int64)
        place[np.argsort(-size, kind="stable")] = np.arange(len(size))
        return np.asarray(place[labels])


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


def shared_features(family: Any, stats: Any, bound: int) -> np.ndarray | None:
    """Features of more counts than one for every second row, the most frequent first, where nearly all rows have ended
    in one cluster and those features make up much of what the rows hold; None where that is no matter."""
    if not isinstance(family, CountFamily) or bound == 1 or stats.size.max() < COLLAPSED * stats.size.sum():
        return None
    per_row = np.asarray(stats.sums.sum(axis=0)).ravel() / max(int(stats.size.sum()), 1)
    shared = np.flatnonzero(per_row >= SHARED)
    if per_row[shared].sum() < MUCH * per_row.sum():
        return None
    return np.asarray(shared[np.argsort(-per_row[shared], kind="stable")])


def top_features_of(family: Any, stats: Any, row: int, n: int) -> TopFeatures:
    """Features of a cluster, with a central 90 % credible interval of what is told of them."""
    best, values, meaning = family.salient(stats, row, n)
    low, high = family.interval(stats, row, best, 0.9)
    return TopFeatures(best, values, meaning, low, high, levels=_levels(family, best))


def _levels(family: Any, features: np.ndarray) -> np.ndarray | None:
    """Which of these features are measured, and which are categories; None where features are counted."""
    if isinstance(family, TableFamily):
        entries = descriptions.entries(family)
        return np.array(
            [family.columns[entries[int(at)].column].family != "categorical" for at in features], dtype=bool
        )
    return np.ones(len(features), dtype=bool) if isinstance(family, Gaussian) else None
