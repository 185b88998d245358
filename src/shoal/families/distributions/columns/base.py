"""What a column of a table is to the rest of the package, whatever its distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.errors import BadInput, CannotMerge

KAPPA, SHAPE = 0.05, 2.0  # pseudo-rows of a cluster's mean, shape of the precision's prior
LEAST_SCALE, MOST_VARIANCE = 1e-3, 10.0
FARTHEST = 1e50  # standard deviations: squares are finite, however far a value is from all others


class Imputed(NamedTuple):
    """What the missing values of one column are likely to be."""

    rows: np.ndarray  # where they are missing
    values: Any  # numbers, or names of categories
    low: np.ndarray | None  # central interval of numbers and counts
    high: np.ndarray | None
    probability: np.ndarray | None  # of the category named


@dataclass
class Column:
    """One column of a table, or several that have one distribution together.

    A subclass says how values are encoded as numbers, which prior they have, and what one cluster's posterior says of
    them; ``part`` is that cluster's slice of the statistics, whose first number is how many rows have a value. The
    compiled side is in ``kernels/column_kernels.py`` under the same ``kind``.

    ``scale`` is the number by which the prior is learned: of numbers and vectors the variance expected within a
    cluster, of all others how many rows the prior is worth.
    """

    name: str
    sources: list[str]  # the table's own columns
    levels: list[str] = field(default_factory=list)  # categories, words or names of coordinates
    n_rows: int = 1
    scale: float = 1.0

    family: ClassVar[str]
    kind: ClassVar[int]
    is_sparse: ClassVar[bool] = False  # words and sets: a row has a list
    is_joint: ClassVar[bool] = False  # several columns of the table have one distribution
    is_learned: ClassVar[bool] = True  # whether `scale` is
    numbers_only: ClassVar[bool] = True
    is_measured: ClassVar[bool] = True  # whether the entries of `mean_of` are measured, not shares of categories

    # --- encoding -----------------------------------------------------------------------------------------------------

    @classmethod
    def learn(cls, name: str, sources: list[str], values: Any) -> Column:
        """The column with its prior, from (n, sources) numbers with NaN where missing, or a list with None."""
        raise NotImplementedError

    def encode(self, values: Any) -> np.ndarray:
        """(n, width) what kernels read, NaN where missing."""
        raise NotImplementedError

    def check_mergeable(self, other: Column) -> None:
        """Refuse a column whose statistics cannot be brought to this one's encoding."""
        if (self.name, self.family) != (other.name, other.family):
            raise CannotMerge(
                f"column {self.name!r} is {self.family} here and {other.name!r} is {other.family} there. Name the same "
                "families for both fits."
            )
        if self.levels != other.levels:
            raise CannotMerge(
                f"column {self.name!r} has other categories in the two models; fit the second with partial_fit."
            )

    def converted(self, other: Any, stats: np.ndarray) -> np.ndarray:
        """(k, s) statistics in the encoding of ``other``, in that of this column."""
        return stats

    def log_jacobian(self, values: np.ndarray) -> np.ndarray:
        """What turns the density of encoded values (n, width) into that of the table's own."""
        return np.zeros(len(values))

    def points(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        """(encoded values as coordinates for k-means, how many of them count as one)."""
        return values, values.shape[1]

    def adapted(self, values: np.ndarray, labels: np.ndarray) -> tuple[Column, np.ndarray] | None:
        """The column, and encoded values, where the encoding itself is learned from the clusters."""
        return None

    # --- the prior ----------------------------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Values of a row (dense), or features there are (sparse)."""
        return 1

    @property
    def n_stats(self) -> int:
        raise NotImplementedError

    @property
    def n_kept(self) -> int:
        raise NotImplementedError

    @property
    def n_parameters(self) -> int:
        """Free parameters of one cluster."""
        raise NotImplementedError

    @property
    def n_shared_parameters(self) -> int:
        """Free parameters that all clusters share."""
        return 0

    def hyperparameters(self) -> np.ndarray:
        """The prior as kernels read it."""
        raise NotImplementedError

    def most_scale(self, rows_per_cluster: float) -> float:
        """The largest ``scale`` that may be learned: a prior worth half the rows of a cluster."""
        return max(rows_per_cluster / 2, 1.0, self.scale)

    # --- what a cluster says of it ------------------------------------------------------------------------------------

    def labels(self) -> list[str]:
        """What a card calls the entries of `mean_of`."""
        return [self.name]

    def mean_of(self, part: np.ndarray) -> np.ndarray:
        """The cluster's posterior mean in the table's own units: numbers, rates or shares."""
        raise NotImplementedError

    def interval_of(self, part: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
        """Central credible interval of `mean_of`."""
        raise NotImplementedError

    def salience(self, part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """How far the cluster is from all rows in each entry, in nats a row."""
        mean, typical = self.mean_of(part), self.mean_of(whole)
        return np.asarray(mean * np.log(np.maximum(mean, 1e-300) / np.maximum(typical, 1e-300)))

    def sentence(self, part: np.ndarray, whole: np.ndarray) -> str:
        """What a card says of the cluster: the entry that sets it apart most, with its share."""
        level = int(np.argmax(self.salience(part, whole)))
        return f"{self.name} {self.levels[level] or '(empty)'} {100 * self.mean_of(part)[level]:.0f} %"

    def draw(self, part: np.ndarray, n: int, lengths: np.ndarray, rng: Any) -> Any:
        """``n`` new values, parameters drawn from their posterior: an array, or lists."""
        raise NotImplementedError

    def impute(self, rows: np.ndarray, parts: list[np.ndarray], weight: np.ndarray, share: float) -> Imputed | None:
        """The posterior predictive where values are missing, over the clusters each row may be in."""
        return None


# --- from what a table holds ------------------------------------------------------------------------------------------


def as_numbers(name: str, values: Any, family: str) -> np.ndarray:
    """A column of floats, with NaN for what is missing; dates as days since 1970."""
    if not isinstance(values, np.ndarray):
        try:
            values = np.array([np.nan if value is None else float(value) for value in values])
        except (TypeError, ValueError):
            raise BadInput(
                f"column {name!r} holds values that are no numbers; family {family!r} needs numbers."
            ) from None
    if values.dtype.kind == "M":
        days = (values - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        return np.asarray(np.where(np.isnat(values), np.nan, days))
    refuse_infinite(name, values)  # of numbers written as text
    return np.asarray(values)


def refuse_infinite(name: str, values: Any) -> None:
    """Infinity is neither a number to model nor a missing one."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and np.isinf(values).any():
        raise BadInput(f"row {int(np.flatnonzero(np.isinf(values))[0])} of column {name!r} is infinite.")


def values_for(column: type[Column] | Column, table: Mapping[str, Any], sources: Sequence[str]) -> Any:
    """The table's own values as `learn` and `encode` take them."""
    if column.numbers_only:
        return np.column_stack([as_numbers(source, table[source], column.family) for source in sources])
    values = table[sources[0]]
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return [None if np.isnat(value) else str(value)[:10] for value in values]
    if isinstance(values, np.ndarray) and column.is_sparse:
        raise BadInput(f"column {sources[0]!r} holds numbers; a family of words or sets needs lists or text.")
    if isinstance(values, np.ndarray):
        return [None if np.isnan(value) else f"{value:.15g}" for value in values]
    if column.is_sparse:
        return [value.split() if isinstance(value, str) else value for value in values]
    return list(values)


def centered(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each coordinate, in units of the largest value so that neither overflows."""
    unit = np.maximum(np.abs(rows).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)
    scaled = rows / unit
    center = scaled.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])
    spread = (scaled - center).std(axis=0) if len(rows) else np.zeros(rows.shape[1])
    return center * unit, np.where(spread > 1e-14, spread * unit, 1.0)


def standardized(values: Any, center: Any, spread: Any) -> np.ndarray:
    """Numbers as kernels see them."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip((values - center) / spread, -FARTHEST, FARTHEST))


def moved_stats(scale: np.ndarray, shift: np.ndarray, stats: np.ndarray) -> np.ndarray:
    """(k, 1 + d + d * d) counts, sums and products of x, as those of scale * x + shift."""
    d = len(scale)
    n, total = stats[:, :1], stats[:, 1 : 1 + d]
    moved = scale * total
    cross = moved[:, :, None] * shift[None, None, :]
    products = scale[:, None] * scale * stats[:, 1 + d :].reshape(len(stats), d, d) + cross + cross.transpose(0, 2, 1)
    products += n[:, :, None] * shift[:, None] * shift
    return np.hstack([n, moved + n * shift, products.reshape(len(stats), d * d)])
