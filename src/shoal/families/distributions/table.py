"""Tables of mixed columns: a product of exponential families is one too, so log predictives add up over columns.

A missing value is left out of the likelihood of its row; nothing is filled in behind the user's back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.base import storable
from shoal.errors import BadInput, CannotMerge
from shoal.families.distributions.columns import COLUMNS, Column, Imputed
from shoal.families.distributions.columns.base import values_for
from shoal.families.distributions.columns.categories import ListsColumn
from shoal.families.distributions.columns.vectors import VectorsColumn
from shoal.families.distributions.counts import Best, best_of
from shoal.families.distributions.frames import columns_of, make_columns
from shoal.families.kernels.column_kernels import Layout, Table
from shoal.families.kernels.table_kernels import (
    fill_stats,
    left_out_table,
    marginals_table,
    refresh_stats,
    score_columns,
    score_table,
)


@storable
class TableStats(NamedTuple):
    """Sufficient statistics of clusters."""

    size: np.ndarray  # (k,) int64
    sums: np.ndarray  # (k, s)


@dataclass
class TableRows:
    """Rows of a table, encoded as a family's; slices like a matrix."""

    table: Table
    family: Any

    @property
    def shape(self) -> tuple[int, int]:
        return self.table.present.shape

    def __len__(self) -> int:
        return len(self.table.present)

    def __getitem__(self, rows: Any) -> TableRows:
        table = self.table
        return TableRows(
            table._replace(values=table.values[rows], present=table.present[rows], starts=table.starts[rows]),
            self.family,
        )


@storable
@dataclass
class TableFamily:
    """Columns that are independent given the cluster, each of its own family.

    >>> X = {"age": [30.0, 31.0, None, 70.0], "smoker": ["no", "no", "yes", "yes"]}
    >>> family = TableFamily.for_table(X, {"age": "gaussian", "smoker": "categorical"})
    >>> rows = family.encode(X)
    >>> stats = family.statistics(rows, np.array([0, 0, 1, 1]), 2)
    >>> family.log_predictive(stats, rows).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    columns: list[Column] = field(default_factory=list)

    name: ClassVar[str] = "mixed"
    nonnegative: ClassVar[bool] = False
    samplers: ClassVar[tuple[str, ...]] = ("gibbs",)

    # --- the table ----------------------------------------------------------------------------------------------------

    @classmethod
    def for_table(cls, X: Any, families: Any = None) -> TableFamily:
        """Columns and priors that suit a table; ``families``: by column, or None to guess them."""
        table = columns_of(X)
        if isinstance(families, str):
            joint = COLUMNS[families].is_joint
            families = {tuple(table): families} if joint else dict.fromkeys(table, families)
        return cls(make_columns(table, families))

    def encode(self, X: Any) -> TableRows:
        """Rows as kernels read them."""
        table = columns_of(X, [source for column in self.columns for source in column.sources])
        for column in self.columns:
            missing = [source for source in column.sources if source not in table]
            if missing:
                raise BadInput(f"there is no column {missing[0]!r} in X, which has {', '.join(map(repr, table))}.")
        n = len(next(iter(table.values())))
        dense, present = [np.zeros((n, 0))], np.zeros((n, len(self.columns)), np.bool_)
        starts, features, counts, first = [], [], [], 0
        for at, column in enumerate(self.columns):
            values = values_for(column, table, column.sources)
            if isinstance(column, ListsColumn):
                found = column.encode_lists(values)
                present[:, at] = found[0]
                starts += [found[1][:-1] + first, found[1][1:] + first]
                features.append(found[2])
                counts.append(found[3])
                first += len(found[2])
            else:
                encoded = column.encode(values)
                present[:, at] = ~np.isnan(encoded).any(axis=1)
                dense.append(np.where(present[:, [at]], encoded, 0.0))
        bounds = np.column_stack(starts).astype(np.int64) if starts else np.zeros((n, 0), np.int64)
        return TableRows(
            Table(
                np.ascontiguousarray(np.hstack(dense)), present, bounds,
                np.concatenate([np.zeros(0, np.int64), *features]), np.concatenate([np.zeros(0), *counts]),
            ),
            self,
        )  # fmt: skip

    def layout(self) -> Layout:
        """Where kernels find the columns."""
        dense = [0 if column.is_sparse else column.width for column in self.columns]
        is_sparse = np.array([column.is_sparse for column in self.columns], np.bool_)
        priors = [column.hyperparameters() for column in self.columns]
        return Layout(
            np.array([column.kind for column in self.columns], np.int64), offsets(dense),
            offsets([column.n_stats for column in self.columns]), offsets([column.n_kept for column in self.columns]),
            offsets([len(prior) for prior in priors]), np.where(is_sparse, 2 * (np.cumsum(is_sparse) - 1), -1),
            np.concatenate(priors),
        )  # fmt: skip

    # --- what every family gives --------------------------------------------------------------------------------------

    def row_lengths(self, X: TableRows) -> np.ndarray:
        """(n,) columns in which a row has a value."""
        return np.asarray(X.table.present.sum(axis=1), dtype=np.float64)

    def statistics(self, X: TableRows, labels: np.ndarray, n_clusters: int) -> TableStats:
        """Statistics of the rows by cluster; rows labeled -1 are left out."""
        layout = self.layout()
        size, stats = np.zeros(n_clusters, np.int64), np.zeros((n_clusters + 1, layout.stat[-1]))
        kept = np.zeros((n_clusters + 1, layout.kept[-1]))
        fill_stats(layout, X.table, np.asarray(labels, dtype=np.int32), size, stats, kept)
        return TableStats(size, stats[:-1].copy())

    def kept(self, stats: TableStats) -> tuple[Layout, np.ndarray, np.ndarray]:
        """(layout, statistics, what is kept of the posteriors); the last row is an empty cluster."""
        layout = self.layout()
        sums = np.vstack([stats.sums, np.zeros((1, layout.stat[-1]))])
        kept = np.zeros((len(sums), layout.kept[-1]))
        for cluster in range(len(sums)):
            refresh_stats(layout, sums[cluster], kept[cluster])
        return layout, sums, kept

    def log_jacobian(self, X: TableRows) -> np.ndarray:
        """(n,) what turns densities of encoded values into those of the table's own."""
        layout, out = self.layout(), np.zeros(len(X))
        for at, column in enumerate(self.columns):
            if not column.is_sparse:
                values = X.table.values[:, layout.value[at] : layout.value[at + 1]]
                out += np.where(X.table.present[:, at], column.log_jacobian(values), 0.0)
        return out

    def scorer(self, stats: TableStats, log_weights: np.ndarray) -> TableScorer:
        """Scores of rows under all clusters, made ready once."""
        return TableScorer(self, *self.kept(stats), np.asarray(log_weights))

    def log_predictive(self, stats: TableStats, X: TableRows) -> np.ndarray:
        """(n, k) log p(row | the cluster's rows)."""
        return self.scorer(stats, np.zeros(len(stats.size))).all(X)

    def log_predictive_at(self, stats: TableStats, X: TableRows, labels: np.ndarray) -> np.ndarray:
        """(n,) log p(row | the rows of its cluster ``labels[row]``); a label of -1 means an empty cluster."""
        return self.column_scores(stats, X, labels).sum(axis=1) + self.log_jacobian(X)

    def column_scores(self, stats: TableStats, X: TableRows, labels: np.ndarray) -> np.ndarray:
        """(n, columns) log predictive of each encoded value under its row's cluster; 0 where it is missing."""
        layout, sums, kept = self.kept(stats)
        out = np.zeros(X.shape)
        score_columns(layout, X.table, np.where(labels < 0, len(sums) - 1, labels), sums, kept, out)
        return out

    def log_predictive_left_out(self, stats: TableStats, X: TableRows, labels: np.ndarray) -> np.ndarray:
        """(n,) log p(row | the other rows of its cluster), for rows that the statistics hold."""
        layout, sums, kept = self.kept(stats)
        out = np.zeros(len(X))
        left_out_table(layout, X.table, np.asarray(labels), sums, kept, out)
        return out + self.log_jacobian(X)

    def log_marginals(self, stats: TableStats) -> np.ndarray:
        """(k, columns) log p(the cluster's encoded values in each column)."""
        out = np.zeros((len(stats.size), len(self.columns)))
        marginals_table(self.layout(), stats.sums, out)
        return out

    def log_marginal(self, stats: TableStats) -> np.ndarray:
        """(k,) log p(the cluster's encoded values)."""
        return np.asarray(self.log_marginals(stats).sum(axis=1))

    def n_parameters(self) -> int:
        """Free parameters of one cluster."""
        return sum(column.n_parameters for column in self.columns)

    def n_shared_parameters(self) -> int:
        """Free parameters that all clusters share."""
        return sum(column.n_shared_parameters for column in self.columns)

    # --- what clusters say of columns ---------------------------------------------------------------------------------

    def parts(self, stats: TableStats, at: int) -> list[np.ndarray]:
        """Each cluster's statistics of one column."""
        bounds = self.layout().stat
        return list(stats.sums[:, bounds[at] : bounds[at + 1]])

    def labels(self) -> list[str]:
        """What the entries of `means` are called, in the order of columns."""
        return [label for column in self.columns for label in column.labels()]

    def means(self, stats: TableStats) -> np.ndarray:
        """(k, entries) posterior means of numbers, rates and shares."""
        return np.hstack([
            [column.mean_of(part) for part in self.parts(stats, at)] for at, column in enumerate(self.columns)
        ])  # fmt: skip

    def expected(self, stats: TableStats, cluster: int) -> np.ndarray:
        """(entries,) of one cluster."""
        return np.asarray(self.means(TableStats(*(part[[cluster]] for part in stats)))[0])

    def covariance_column(self) -> int | None:
        """Which column is of vectors, if just one is."""
        vectors = [at for at, column in enumerate(self.columns) if isinstance(column, VectorsColumn)]
        return vectors[0] if len(vectors) == 1 else None

    def _vectors(self, stats: TableStats) -> tuple[VectorsColumn, list[np.ndarray]]:
        """The column of vectors, and its statistics: of one cluster where the covariance is that of all."""
        at = self.covariance_column()
        assert at is not None
        column, parts = self.columns[at], self.parts(stats, at)
        assert isinstance(column, VectorsColumn)
        return column, parts[:1] if column.is_tied else parts

    def covariances(self, stats: TableStats) -> np.ndarray:
        """Of the one column of vectors there is: (k, d, d), or (d, d) where it is tied."""
        column, parts = self._vectors(stats)
        found = np.array([column.covariance_of(part) for part in parts])
        return np.asarray(found[0] if column.is_tied else found)

    def covariance_interval(self, stats: TableStats, share: float, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of `covariances`, by draws from the inverse Wishart posterior."""
        rng = np.random.default_rng(0)
        column, parts = self._vectors(stats)
        draws = [column.covariance_draws(part, len(stats.size), n_draws, rng) for part in parts]
        low, high = np.quantile(np.array(draws), [(1 - share) / 2, (1 + share) / 2], axis=1)
        return (low[0], high[0]) if column.is_tied else (low, high)

    def salient(self, stats: TableStats, cluster: int, n: int) -> tuple[np.ndarray, np.ndarray, str]:
        """(numbers of entries, their means, meaning): those furthest from all rows first."""
        whole = whole_table(stats)
        scores = [
            column.salience(self.parts(stats, at)[cluster], self.parts(whole, at)[0])
            for at, column in enumerate(self.columns)
        ]
        best = np.argsort(-np.concatenate(scores), kind="stable")[:n]
        return best, self.expected(stats, cluster)[best], "mean, rate or share in the cluster"

    def sentence(self, stats: TableStats, cluster: int, at: int) -> str:
        """What a card says of a cluster's rows in one column."""
        return self.columns[at].sentence(self.parts(stats, at)[cluster], self.parts(whole_table(stats), at)[0])

    def interval(self, stats: TableStats, cluster: int, features: np.ndarray, share: float) -> tuple[Any, Any]:
        """Central credible interval of the entries' means."""
        ends = [column.interval_of(self.parts(stats, at)[cluster], share) for at, column in enumerate(self.columns)]
        low, high = (np.concatenate([end[side] for end in ends])[features] for side in range(2))
        return low, high

    def draw(self, stats: TableStats, cluster: int, n: int, lengths: np.ndarray, rng: Any) -> dict[str, Any]:
        """``n`` new rows of a cluster, as columns by name."""
        drawn: dict[str, Any] = {}
        for at, column in enumerate(self.columns):
            values = column.draw(self.parts(stats, at)[cluster], n, lengths, rng)
            if len(column.sources) > 1:
                drawn |= {source: values[:, part] for part, source in enumerate(column.sources)}
            else:
                drawn[column.sources[0]] = values[:, 0] if column.is_joint else values
        return drawn

    def impute(self, stats: TableStats, X: TableRows, memberships: np.ndarray, share: float) -> dict[str, Imputed]:
        """By column, what its missing values are likely to be."""
        found = {}
        for at, column in enumerate(self.columns):
            rows = np.flatnonzero(~X.table.present[:, at])
            if rows.size:
                found[column.name] = column.impute(rows, self.parts(stats, at), memberships[rows], share)
        return {name: imputed for name, imputed in found.items() if imputed is not None}

    def averaged(self, other: TableFamily, share: float) -> TableFamily:
        """The prior of two models together, in the encoding of this one."""
        if len(self.columns) != len(other.columns):
            raise CannotMerge(f"one table has {len(self.columns)} modeled columns, the other {len(other.columns)}.")
        pairs = list(zip(self.columns, other.columns, strict=True))
        for ours, theirs in pairs:
            ours.check_mergeable(theirs)
        return replace(self, columns=[replace(a, scale=(1 - share) * a.scale + share * b.scale) for a, b in pairs])

    def converted(self, other: TableFamily, stats: TableStats) -> TableStats:
        """Statistics in the encoding of another family of the same columns, in the encoding of this one."""
        moved = [
            ours.converted(theirs, np.array(self.parts(stats, at)))
            for at, (ours, theirs) in enumerate(zip(self.columns, other.columns, strict=True))
        ]
        return stats._replace(sums=np.hstack(moved))

    def grown(self, n_features: int) -> TableFamily:
        return self


class TableScorer(NamedTuple):
    """What scoring rows of a table needs of a model."""

    family: TableFamily
    layout: Layout
    sums: np.ndarray
    kept: np.ndarray
    log_weights: np.ndarray

    def all(self, X: TableRows) -> np.ndarray:
        """(n, k) log weight + log predictive."""
        out = np.zeros((len(X), len(self.log_weights)))
        score_table(self.layout, X.table, self.log_weights, self.sums, self.kept, out)
        return out + self.family.log_jacobian(X)[:, None]

    def best(self, X: TableRows, most: int) -> Best:
        """The ``most`` best clusters of each row."""
        empty = np.zeros((len(X), len(self.sums) - len(self.log_weights)))
        k = len(self.log_weights)
        score_table(self.layout, X.table, np.zeros(empty.shape[1]), self.sums[k:], self.kept[k:], empty)
        return best_of(self.all(X), most, empty[:, 0] + self.family.log_jacobian(X))


def offsets(widths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)


def whole_table(stats: TableStats) -> TableStats:
    """All clusters as one."""
    return TableStats(stats.size.sum(keepdims=True), stats.sums.sum(axis=0, keepdims=True))
