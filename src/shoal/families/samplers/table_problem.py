"""A table, its columns and their priors bound together: what a fit of mixed columns is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from shoal.families.distributions.columns import Column
from shoal.families.distributions.columns.base import LEAST_SCALE
from shoal.families.distributions.table import TableFamily, TableRows, TableStats
from shoal.families.kernels.random_kernels import new_state
from shoal.families.kernels.seeding_kernels import lloyd_steps, nearest_centers, seed_centers
from shoal.families.kernels.table_kernels import LabelPrior, column_marginals, part_table
from shoal.families.options import Settings
from shoal.families.samplers.gaussian_problem import label_gain, merge_while_it_gains, nearest_pairs
from shoal.families.samplers.hyperparameters import learn_alpha, learn_process
from shoal.families.samplers.table_gibbs import TableChain

STEP = 1.4
LEAST_SPLIT, PARTINGS, SEEDING_STEPS = 4, 2, 50
# k-means cuts long clusters in pieces of one shape. Merged at once they are taken for one wide cluster, for whose width
# the prior is then learned; after some sweeps the pieces have found their rows. Starts differ, so the best of a few.
STARTS, SWEEPS_BEFORE_MERGING, ROUNDS = 3, 5, 3
FEW_NUMBERS, MORE_NUMBERS = 3_000_000, 100_000_000  # rows x clusters x numbers of a posterior: several starts, or one


class TableProblem:
    """A mixture of tables to be sampled."""

    def __init__(self, X: TableRows, settings: Settings) -> None:
        self.settings, self.X = settings, X
        self.family: TableFamily = X.family
        start = 1.0 if settings.weights == "dirichlet_process" else 0.1
        self.concentration = start if settings.concentration == "learn" else float(settings.concentration)

    @property
    def n_rows(self) -> int:
        return len(self.X)

    @property
    def prior(self) -> LabelPrior:
        process = self.settings.weights == "dirichlet_process"
        return LabelPrior(0.0, self.concentration) if process else LabelPrior(self.concentration, 0.0)

    def choose_sampler(self) -> tuple[str, str]:
        return (
            "gibbs",
            f"{self.settings.n_clusters} clusters x {len(self.family.columns)} columns: every one is looked at",
        )

    def chain(self, sampler: str, seed: int) -> TableChain:
        return TableChain(self.X, self.family, self.prior, self.settings.n_clusters, seed=seed)

    def begin(self, chain: TableChain, labels: np.ndarray) -> None:
        chain.set_labels(labels)

    def default_inits(self) -> list[str]:
        return ["one-pass"]

    def first_labels(self, seed: int) -> np.ndarray:
        """Of a few starts the one with the best log joint; of very large tables, k-means alone."""
        work = self.n_rows * self.settings.n_clusters * int(self.family.layout().kept[-1])
        if work > MORE_NUMBERS:
            return self._k_means(self.settings.n_clusters, seed)
        starts = [self._start(seed + at) for at in range(STARTS if work <= FEW_NUMBERS else 1)]
        _, labels, best = max(starts, key=lambda start: start[0])
        self.X, self.family, self.concentration = best.X, best.family, best.concentration
        return labels

    def _start(self, seed: int) -> tuple[float, np.ndarray, TableProblem]:
        """(log joint, labels, what was learned) after k-means, sweeps, and then merges and splits."""
        trial = TableProblem(self.X, self.settings)
        chain = trial.chain("gibbs", seed)
        trial.begin(chain, self._k_means(self.settings.n_clusters, seed))
        trial.learn(chain)
        for _ in range(SWEEPS_BEFORE_MERGING):
            chain.sweep()
        for turn in range(2 * ROUNDS):
            trial.learn(chain)
            if turn >= ROUNDS:
                trial.split_merge(chain)
            chain.sweep()
        trial.learn(chain)
        return chain.log_joint(), chain.labels.copy(), trial

    def part_in_two(self) -> np.ndarray:
        return self._k_means(2, 0)

    def _k_means(self, n_clusters: int, seed: int) -> np.ndarray:
        """On standardized numbers, roots of counts, categories one by one; what is missing is at the mean."""
        rows = coordinates(self.family, self.X)
        centers = np.zeros((min(n_clusters, len(rows)), rows.shape[1]))
        centers = centers[: seed_centers(rows, new_state(seed), centers)]
        labels = np.full(len(rows), -1, np.int32)
        lloyd_steps(rows, centers, labels, SEEDING_STEPS)
        nearest_centers(rows, centers, labels)
        return labels

    # --- the prior ----------------------------------------------------------------------------------------------------

    def learn(self, chain: TableChain) -> None:
        """The scale of each column's prior by climbing its log marginal; the covariance of tied vectors."""
        if not chain.is_rebuilt:
            chain.rebuild()
        if self.settings.smoothing in ("auto", "learn"):
            columns = [
                replace(column, scale=self._scale(chain, at)) if column.is_learned else column
                for at, column in enumerate(self.family.columns)
            ]
            self.family = replace(self.family, columns=columns)
            for at in range(len(columns)):
                self._adapt(chain.labels, at)
        if self.settings.concentration == "learn":
            learner = learn_process if self.settings.weights == "dirichlet_process" else learn_alpha
            self.concentration = learner(chain.clusters.size, self.concentration)
        chain.set_prior(self.X, self.family, self.prior)

    def _scale(self, chain: TableChain, at: int) -> float:
        """Climb one column's log marginal in steps of 1.4."""
        column = self.family.columns[at]
        limit = column.most_scale(self.n_rows / self.settings.n_clusters)

        def value(scale: float) -> float:
            changed = list(self.family.columns)
            changed[at] = replace(column, scale=scale)
            return float(
                column_marginals(replace(self.family, columns=changed).layout(), at, chain.clusters.stats[:-1])
            )

        best, best_value = column.scale, value(column.scale)
        for factor in (STEP, 1 / STEP):
            while LEAST_SCALE < best * factor <= limit and (trial := value(best * factor)) > best_value:
                best, best_value = best * factor, trial
        return best

    def _adapt(self, labels: np.ndarray, at: int) -> None:
        """Encode a column anew where its encoding is learned from the clusters."""
        layout, column = self.family.layout(), self.family.columns[at]
        part = slice(layout.value[at], layout.value[at + 1])
        present = self.X.table.present[:, at]
        found = column.adapted(self.X.table.values[present, part], labels[present])
        if found is None:
            return
        changed, values = list(self.family.columns), self.X.table.values.copy()
        changed[at], values[present, part] = found
        self.family = replace(self.family, columns=changed)
        self.X = TableRows(self.X.table._replace(values=values), self.family)

    # --- moves of whole clusters --------------------------------------------------------------------------------------

    def split_merge(self, chain: TableChain) -> tuple[int, int]:
        """Merge and split while the log joint gains; how many of each."""
        return merge_while_it_gains(self, chain), self._split(chain)

    def best_merge(self, chain: TableChain) -> tuple[int, int] | None:
        live = np.flatnonzero(chain.clusters.size)
        if len(live) < 2:
            return None
        stats = TableStats(chain.clusters.size[live], chain.clusters.stats[live])
        left, right = nearest_pairs(stats.sums / stats.size[:, None])
        alone = self.family.log_marginal(stats)
        together = self.family.log_marginal(TableStats(stats.size[left], stats.sums[left] + stats.sums[right]))
        gain = together - alone[left] - alone[right] + label_gain(chain.prior, stats.size[left], stats.size[right])
        best = int(np.argmax(gain))
        return (int(live[left[best]]), int(live[right[best]])) if gain[best] > 0 else None

    def _split(self, chain: TableChain) -> int:
        """Part each cluster between two by a short restricted run, where the log joint gains by it."""
        n_splits = 0
        for cluster in np.flatnonzero(chain.clusters.size >= LEAST_SPLIT):
            if chain.clusters.empty[chain.n_clusters] == 0:
                break
            rows = np.flatnonzero(chain.labels == cluster)
            for _ in range(PARTINGS):
                sides = self._gainful_parting(chain, rows)
                if sides is not None:
                    labels = chain.labels.copy()
                    labels[rows[sides == 1]] = chain.clusters.empty[0]
                    chain.set_labels(labels)
                    n_splits += 1
                    break
        return n_splits

    def _gainful_parting(self, chain: TableChain, rows: np.ndarray) -> np.ndarray | None:
        layout, k = chain.layout, chain.n_clusters
        stats = np.zeros((3, layout.stat[-1]))
        kept = np.repeat(chain.clusters.kept[k : k + 1], 3, axis=0)
        sides = np.zeros(len(rows), np.int64)
        n_right = int(part_table(layout, self.X.table, rows, sides, stats, kept, chain.random))
        if n_right in (0, len(rows)):
            return None
        size = np.array([len(rows) - n_right, n_right, len(rows)])
        apart = self.family.log_marginal(TableStats(size, np.vstack([stats[:2], stats[:1] + stats[1:2]])))
        gain = apart[0] + apart[1] - apart[2] - label_gain(chain.prior, size[:1], size[1:2])[0]
        return sides if gain > 0 else None

    # --- what is kept -------------------------------------------------------------------------------------------------

    def statistics(self, labels: np.ndarray, n_clusters: int) -> TableStats:
        return self.family.statistics(self.X, labels, n_clusters)

    def hyperparameters(self) -> dict[str, Any]:
        return {"concentration": self.concentration, "scales": [float(column.scale) for column in self.family.columns]}

    def restore_hyperparameters(self, hyperparameters: dict[str, Any], family: TableFamily) -> None:
        self.family, self.concentration = family, hyperparameters["concentration"]


def coordinates(family: TableFamily, X: TableRows) -> np.ndarray:
    """Rows as points for k-means: every column counts alike, what is missing is at the mean."""
    layout, parts = family.layout(), [np.zeros((len(X), 0))]
    for at, column in enumerate(family.columns):
        if column.is_sparse:
            continue
        values = X.table.values[:, layout.value[at] : layout.value[at + 1]]
        parts.append(points(column, values, X.table.present[:, at]))
    joined = np.hstack(parts)
    if joined.shape[1] == 0:  # words alone: any labels will do to begin with
        joined = np.arange(len(X), dtype=np.float64)[:, None] * 0.618 % 1
    return np.ascontiguousarray(joined)


def points(column: Column, values: np.ndarray, present: np.ndarray) -> np.ndarray:
    """One column as coordinates of variance about 1 in all."""
    values, n_coordinates = column.points(values)
    known = values[present]
    if not len(known):
        return np.zeros_like(values)
    centered = np.where(present[:, None], values - known.mean(axis=0), 0.0)
    spread = np.sqrt((centered[present] ** 2).sum(axis=1).mean() / n_coordinates)
    return np.asarray(centered / max(float(spread), 1e-12))
