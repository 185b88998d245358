"""A Markov chain over the labels of a table's rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.families.distributions.table import TableFamily, TableRows
from shoal.families.kernels.counts_kernels import rebuild_empty
from shoal.families.kernels.random_kernels import new_state
from shoal.families.kernels.table_kernels import LabelPrior, TableClusters, fill_stats, gibbs_table, marginals_table
from shoal.families.samplers.count_chain import SweepFacts, log_labels


class TableChain:
    """Labels, statistics and random state; a sweep draws every label from its exact conditional."""

    def __init__(self, rows: TableRows, family: TableFamily, prior: LabelPrior, n_clusters: int, *, seed: int) -> None:
        n, k = len(rows), n_clusters
        self.rows, self.family, self.prior, self.n_clusters = rows, family, prior, k
        self.runs = [(0, n)]  # the rows that a sweep visits
        self.layout = family.layout()
        self.random, self.tally, self.n_sweeps = new_state(seed), np.zeros(5, np.int64), 0
        self.is_rebuilt = False
        self.scores = np.zeros(k)
        self.clusters = TableClusters(
            np.zeros(n, np.int32), np.zeros(k, np.int64), np.zeros((k + 1, self.layout.stat[-1])),
            np.zeros((k + 1, self.layout.kept[-1])), np.zeros(k + 1, np.int64), np.zeros(k, np.int64),
        )  # fmt: skip
        self.rebuild()

    @property
    def labels(self) -> np.ndarray:
        return self.clusters.labels

    def set_labels(self, labels: np.ndarray) -> None:
        self.clusters.labels[:] = labels
        self.rebuild()

    def set_prior(self, rows: TableRows, family: TableFamily, prior: LabelPrior) -> None:
        """Go on under another prior, or with values that are encoded in another way."""
        self.rows, self.family, self.prior, self.layout = rows, family, prior, family.layout()
        self.rebuild()

    def rebuild(self) -> None:
        """Statistics from the labels in one fixed order: rounding never depends on how the chain came here."""
        clusters = self.clusters
        fill_stats(self.layout, self.rows.table, clusters.labels, clusters.size, clusters.stats, clusters.kept)
        rebuild_empty(clusters)
        self.is_rebuilt = True

    def sweep(self) -> SweepFacts:
        """Visit every row once."""
        if not self.is_rebuilt:
            self.rebuild()
        self.tally[:] = 0
        for first, last in self.runs:
            gibbs_table(
                self.layout, self.rows.table, self.prior, self.clusters, first, last, self.random, self.tally,
                self.scores,
            )  # fmt: skip
        self.is_rebuilt = False
        self.n_sweeps += 1
        proposed, moved, listed, scored, skipped = (int(value) for value in self.tally)
        return SweepFacts(moved, proposed, scored, listed, skipped)

    def freeze_adaptation(self) -> None:
        """Nothing is tuned to the chain's past."""

    def log_marginals(self) -> np.ndarray:
        """(k,) log p(the encoded values of each cluster)."""
        out = np.zeros((self.n_clusters, len(self.layout.kind)))
        marginals_table(self.layout, self.clusters.stats, out)
        return np.asarray(out.sum(axis=1))

    def log_joint(self) -> float:
        """log p(rows, labels | prior), of encoded values."""
        if not self.is_rebuilt:
            self.rebuild()
        jacobian = self.family.log_jacobian(self.rows).sum()
        return float(self.log_marginals().sum() + jacobian) + log_labels(self.clusters.size, self.prior)

    def state(self) -> dict[str, Any]:
        return {"labels": self.labels.copy(), "random": self.random.copy(), "n_sweeps": self.n_sweeps}

    def restore(self, state: dict[str, Any]) -> None:
        self.set_labels(state["labels"])
        self.random[:] = state["random"]
        self.n_sweeps = int(state["n_sweeps"])
