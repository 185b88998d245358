"""What a fitted mixture says of its clusters: cards, evidence by column, the tree, and samples of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal.base import TopFeatures, check_int, check_real
from shoal.errors import BadInput
from shoal.families import statistics
from shoal.families.consensus import consensus
from shoal.families.distributions.columns import Imputed
from shoal.families.distributions.gaussian import Gaussian
from shoal.families.distributions.table import TableFamily, whole_table
from shoal.families.hierarchy import Hierarchy, build
from shoal.families.parameters import EstimatedMixture

MATTERS = 0.1  # nats a row


class FittedMixture(EstimatedMixture):
    """Reading a fitted :class:`ExponentialFamilyMixture`."""

    # --- tables -------------------------------------------------------------------------------------------------------

    def name_features(self, features: np.ndarray) -> list[str]:
        """Features in words; of a table, its columns and their levels."""
        if isinstance(getattr(self, "family_", None), TableFamily):
            labels = self.family_.labels()
            return [labels[int(feature)] for feature in features]
        return super().name_features(features)

    def column_evidence(self, cluster: int) -> dict[str, float]:
        """By column, how many nats a row the cluster's own distribution explains its rows better than that of all rows.

        Columns near 0 do not matter for what sets the cluster apart."""
        family, row = self._table_family(), self.roster_.row_of(cluster)
        whole = whole_table(self.stats_)
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
        said = [family.sentence(self.stats_, row, int(at)) for at in order]
        return f"{', '.join(said)}; {matter} of {len(evidence)} columns matter"

    def impute(self, X: Any, *, interval: float = 0.9) -> dict[str, Imputed]:
        """By column, what the missing values of these rows are likely to be given the values they have: medians of
        numbers and counts with a central interval, categories with their probability."""
        family, rows = self._table_family(), self._rows(X)
        check_real("interval", interval, minimum=0.0, maximum=1.0, strict=True)
        return family.impute(self.stats_, rows, self.predict_proba(rows), interval)

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
    def converged_(self) -> bool:
        """Whether all planned sweeps were run. Whether they were enough, ``n_chains`` and ``diagnostics_`` say."""
        check_is_fitted(self)
        return self.n_iter_ >= self.n_sweeps

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
        return top_features_of(self.family_, self.stats_, row, check_int("n", n, minimum=0))

    def typicality(self) -> np.ndarray | None:
        """How much better its cluster explains a fitted row than an empty one does, in nats per unit of its length."""
        check_is_fitted(self)
        return np.asarray(self.typicality_)

    def cluster_uncertainty(self) -> np.ndarray | None:
        """For each cluster, the mean share of kept samples in which a member was elsewhere."""
        check_is_fitted(self)
        rows = self._places(self.labels_)
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
        yield "The course of sampling", course_in_words(self), lambda: plots.trace_plot(self)

    # --- samples ------------------------------------------------------------------------------------------------------

    def sampled_together(self, rows: Any, others: Any) -> np.ndarray:
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


def course_in_words(model: Any) -> str:
    """What a reader of the trace plot should know."""
    chains = getattr(model, "diagnostics_", None)
    if chains is None:
        return "The first half learns the prior and looks for a good state; the second is the chain."
    r_hat, size = chains.r_hat, chains.effective_sample_size
    verdict = "The chains disagree" if chains.disagree else "The chains agree"
    return (
        f"{verdict}: R-hat of the log joint {r_hat['log_joint']:.2f}, of the number of clusters "
        f"{r_hat['n_clusters']:.2f}; effective samples {size['log_joint']:.0f} and {size['n_clusters']:.0f}."
    )


def top_features_of(family: Any, stats: Any, row: int, n: int) -> TopFeatures:
    """Features of a cluster, with central 90 % credible intervals."""
    best, values, meaning = family.salient(stats, row, n)
    low, high = family.interval(stats, row, best, 0.9)
    return TopFeatures(best, values, meaning, low, high, levels=_levels(family, best))


def _levels(family: Any, features: np.ndarray) -> np.ndarray | None:
    """Which of these features are measured, and which are categories; None where features are counted."""
    if isinstance(family, TableFamily):
        measured = [column.is_measured for column in family.columns for _ in column.labels()]
        return np.array(measured)[features]
    return np.ones(len(features), dtype=bool) if isinstance(family, Gaussian) else None
