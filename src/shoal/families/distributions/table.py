"""Tables of mixed columns: a product of exponential families is one too, so log predictives add up over columns.

A missing value is left out of the likelihood of its row; nothing is filled in behind the user's back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.base import storable
from shoal.errors import BadInput, CannotMerge
from shoal.families.distributions.columns import (
    KINDS,
    SEVERAL,
    SPARSE,
    Column,
    log_shares,
)
from shoal.families.distributions.counts import Best, best_of
from shoal.families.distributions.frames import categories, columns_of, lists, make_columns, numbers
from shoal.families.kernels.column_kernels import NUMBER, VECTOR, WHITENED, Layout, Table
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
            if families in SEVERAL:
                families = {tuple(table): families}
            elif families in KINDS:
                families = dict.fromkeys(table, families)
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
            if column.family in SPARSE:
                found = encode_sparse(column, lists(column.name, table[column.sources[0]]))
                present[:, at] = found[0]
                starts.append(found[1][:-1] + first)
                features.append(found[2])
                counts.append(found[3])
                first += len(found[2])
                starts.append(found[1][1:] + first - len(found[2]))
            else:
                values = encode_dense(column, table)
                present[:, at] = ~np.isnan(values).any(axis=1)
                dense.append(np.where(present[:, [at]], values, 0.0))
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
        dense = [0 if column.family in SPARSE else column.width for column in self.columns]
        is_sparse = np.array([column.family in SPARSE for column in self.columns], np.bool_)
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
            if column.family not in SPARSE:
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
        """Free parameters of one cluster; a covariance that all share is not counted."""
        d = {"gaussian": 2, "lognormal": 2, "poisson": 1}
        total = 0
        for column in self.columns:
            n = len(column.levels)
            own = {"full": n + n * (n + 1) // 2, "categorical": n - 1, "multinomial": n - 1}
            total += d.get(column.family, own.get(column.family, n))
        return total

    def means(self, stats: TableStats) -> np.ndarray:
        """(k, entries) posterior means of numbers, rates and shares."""
        from shoal.families.distributions import descriptions as say

        return np.array([
            np.concatenate([
                say.posterior_mean(column, say.column_stats(self, stats, cluster, at), self, at)
                for at, column in enumerate(self.columns)
            ])
            for cluster in range(len(stats.size))
        ])  # fmt: skip

    def covariances(self, stats: TableStats) -> np.ndarray:
        """Of the one column of vectors there is: (k, d, d), or (d, d) where it is tied."""
        from shoal.families.distributions import descriptions as say

        vectors = [(at, column) for at, column in enumerate(self.columns) if column.family in ("full", "tied")]
        if len(vectors) != 1:
            raise AttributeError("covariances_ are of tables with one column of vectors ('full' or 'tied').")
        at, column = vectors[0]
        parts = [say.column_stats(self, stats, cluster, at) for cluster in range(len(stats.size))]
        lower = [column.spread[:, None] * say.vector_posterior(column, part)[1] for part in parts]
        found = np.array([one @ one.T for one in lower])
        return found[0] if column.family == "tied" else found

    # --- what cards say -----------------------------------------------------------------------------------------------

    def salient(self, stats: TableStats, cluster: int, n: int) -> tuple[np.ndarray, np.ndarray, str]:
        """(numbers of entries, their means, meaning): those furthest from all rows first."""
        from shoal.families.distributions import descriptions as say

        whole = TableStats(stats.size.sum(keepdims=True), stats.sums.sum(axis=0, keepdims=True))
        scores, means = [], []
        for at, column in enumerate(self.columns):
            part, rest = say.column_stats(self, stats, cluster, at), say.column_stats(self, whole, 0, at)
            scores.append(say.salience(column, part, rest, self, at))
            means.append(say.posterior_mean(column, part, self, at))
        best = np.argsort(-np.concatenate(scores), kind="stable")[:n]
        return best, np.concatenate(means)[best], "mean, rate or share in the cluster"

    def interval(self, stats: TableStats, cluster: int, features: np.ndarray, share: float) -> tuple[Any, Any]:
        """Central credible interval of the entries' means."""
        from shoal.families.distributions import descriptions as say

        ends = [
            say.interval_of(column, say.column_stats(self, stats, cluster, at), share)
            for at, column in enumerate(self.columns)
        ]
        return tuple(np.concatenate([end[side] for end in ends])[features] for side in range(2))  # type: ignore[return-value]

    def draw(self, stats: TableStats, cluster: int, n: int, lengths: np.ndarray, rng: Any) -> dict[str, Any]:
        """``n`` new rows of a cluster, as columns by name."""
        from shoal.families.distributions import descriptions as say

        drawn: dict[str, Any] = {}
        for at, column in enumerate(self.columns):
            values = say.draw_column(column, say.column_stats(self, stats, cluster, at), n, lengths, rng)
            if len(column.sources) > 1:
                drawn |= {source: values[:, part] for part, source in enumerate(column.sources)}
            else:
                drawn[column.sources[0]] = values
        return drawn

    def averaged(self, other: TableFamily, share: float) -> TableFamily:
        """The prior of two models together, in the encoding of this one."""
        if len(self.columns) != len(other.columns):
            raise CannotMerge(f"one table has {len(self.columns)} modeled columns, the other {len(other.columns)}.")
        for ours, theirs in zip(self.columns, other.columns, strict=True):
            check_same_kind(ours, theirs)
        pairs = zip(self.columns, other.columns, strict=True)
        return replace(self, columns=[replace(a, scale=(1 - share) * a.scale + share * b.scale) for a, b in pairs])

    def converted(self, other: TableFamily, stats: TableStats) -> TableStats:
        """Statistics in the encoding of another family of the same columns, in the encoding of this one."""
        layout, sums = self.layout(), stats.sums.copy()
        for at, (ours, theirs) in enumerate(zip(self.columns, other.columns, strict=True)):
            if ours.kind in (NUMBER, VECTOR):
                part = slice(layout.stat[at], layout.stat[at + 1])
                sums[:, part] = moved_stats(ours, theirs, sums[:, part])
        return stats._replace(sums=sums)

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


# --- encoding ---------------------------------------------------------------------------------------------------------


def offsets(widths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)


def encode_dense(column: Column, table: dict[str, Any]) -> np.ndarray:
    """(n, width) encoded values, NaN where missing."""
    if column.family == "categorical":
        place = {level: at for at, level in enumerate(column.levels)}
        found = categories(table[column.sources[0]])
        # A category that the model has not seen says nothing about which cluster the row is in.
        return np.array([[np.nan if value is None else place.get(str(value), np.nan)] for value in found])
    rows = np.column_stack([numbers(source, table[source], column.family) for source in column.sources])
    if column.family == "dirichlet":
        return log_shares(column, rows)
    if column.family == "poisson":
        wrong = np.flatnonzero((rows[:, 0] < 0) | (rows[:, 0] != np.rint(rows[:, 0])) & ~np.isnan(rows[:, 0]))
        if wrong.size:
            raise BadInput(f"row {wrong[0]} of column {column.name!r} is {rows[wrong[0], 0]:g}, which is no count.")
        return rows
    if column.family == "lognormal" and (rows <= 0).any():
        at = int(np.flatnonzero(rows[:, 0] <= 0)[0])
        raise BadInput(f"row {at} of column {column.name!r} is 0 or less; 'lognormal' needs positive numbers.")
    standard = column.standardized(rows)
    return standard @ column.whiten.T if column.family == "tied" else standard


def encode_sparse(column: Column, values: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(present, starts, features, counts); words that the model has not seen are left out."""
    place = {word: at for at, word in enumerate(column.levels)}
    starts, features, counts = [0], [], []
    for row in values:
        found: dict[int, float] = {}
        for word in () if row is None else row:
            at = place.get(str(word))
            if at is not None:
                found[at] = found.get(at, 0.0) + 1.0
        features += sorted(found)
        counts += [found[at] for at in sorted(found)]
        starts.append(len(features))
    present = np.array([row is not None for row in values], np.bool_)
    return present, np.array(starts, np.int64), np.array(features, np.int64), np.array(counts, np.float64)


def check_same_kind(ours: Column, theirs: Column) -> None:
    """Refuse to merge columns whose statistics cannot be brought to one encoding."""
    if (ours.name, ours.family) != (theirs.name, theirs.family):
        raise CannotMerge(
            f"column {ours.name!r} is {ours.family} here and {theirs.name!r} is {theirs.family} there. Name the same "
            "families for both fits."
        )
    if ours.levels != theirs.levels:
        raise CannotMerge(
            f"column {ours.name!r} has other categories in the two models; fit the second with partial_fit."
        )
    if ours.kind == WHITENED and not (
        np.array_equal(ours.whiten, theirs.whiten)
        and np.array_equal(ours.center, theirs.center)
        and np.array_equal(ours.spread, theirs.spread)
    ):
        raise CannotMerge(
            f"the covariance that all clusters share in {ours.name!r} was estimated from other rows; fit the second "
            "model with partial_fit."
        )


def moved_stats(ours: Column, theirs: Column, stats: np.ndarray) -> np.ndarray:
    """(k, s) counts, sums and products of numbers standardized by one column, as if by another."""
    scale, shift = theirs.spread / ours.spread, (theirs.center - ours.center) / ours.spread
    d = len(scale)
    n, total = stats[:, :1], stats[:, 1 : 1 + d]
    products = stats[:, 1 + d :].reshape(len(stats), d, d)
    moved = scale * total
    cross = moved[:, :, None] * shift[None, None, :]
    products = (
        scale[:, None] * scale * products + cross + cross.transpose(0, 2, 1) + n[:, :, None] * shift[:, None] * shift
    )
    return np.hstack([n, moved + n * shift, products.reshape(len(stats), d * d)])
