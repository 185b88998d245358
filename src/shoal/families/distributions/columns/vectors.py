"""Measurements with a covariance: one for each cluster, or one that all share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import stdtrit

from shoal.base import storable
from shoal.errors import CannotMerge
from shoal.families.distributions.columns.base import KAPPA, MOST_VARIANCE, Column, centered, moved_stats, standardized
from shoal.families.kernels.column_kernels import VECTOR, WHITENED


@dataclass
class VectorsColumn(Column):
    """Coordinates standardized by the whole data; a row that lacks one is missing."""

    center: np.ndarray = field(default_factory=lambda: np.zeros(1))
    spread: np.ndarray = field(default_factory=lambda: np.ones(1))

    is_joint: ClassVar[bool] = True
    is_tied: ClassVar[bool] = False

    @property
    def width(self) -> int:
        return len(self.levels)

    def encode(self, values: Any) -> np.ndarray:
        return standardized(values, self.center, self.spread)

    def log_jacobian(self, values: np.ndarray) -> np.ndarray:
        return np.full(len(values), -np.log(self.spread).sum())

    def labels(self) -> list[str]:
        return self.levels

    def posterior(self, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(mean, Cholesky factor of the covariance) of standardized coordinates."""
        raise NotImplementedError

    def mean_of(self, part: np.ndarray) -> np.ndarray:
        return np.asarray(self.center + self.spread * self.posterior(part)[0])

    def covariance_draws(self, part: np.ndarray, n_clusters: int, n: int, rng: Any) -> np.ndarray:
        """(n, d, d) draws of the covariance from its posterior."""
        raise NotImplementedError

    def covariance_of(self, part: np.ndarray) -> np.ndarray:
        """(d, d) posterior mean, in the table's own units."""
        lower = self.spread[:, None] * self.posterior(part)[1]
        return np.asarray(lower @ lower.T)

    def salience(self, part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        return np.asarray(0.5 * ((self.mean_of(part) - self.mean_of(whole)) / self.spread) ** 2)

    def sentence(self, part: np.ndarray, whole: np.ndarray) -> str:
        level = int(np.argmax(self.salience(part, whole)))
        return f"{self.levels[level]} about {self.mean_of(part)[level]:.3g}"

    def draw(self, part: np.ndarray, n: int, lengths: np.ndarray, rng: Any) -> Any:
        mean, lower = self.posterior(part)
        return self.center + self.spread * (mean + rng.normal(size=(n, len(mean))) @ lower.T)

    def _wishart_draws(self, scatter: np.ndarray, freedom: float, n: int, rng: Any) -> np.ndarray:
        """Inverse Wishart draws by Bartlett's decomposition, in the table's own units."""
        d = len(scatter)
        lower = np.linalg.cholesky(np.linalg.inv(scatter))
        root = np.tril(rng.normal(size=(n, d, d)), -1)
        root[:, np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(freedom - np.arange(d), size=(n, d)))
        precision = lower @ (root @ root.transpose(0, 2, 1)) @ lower.T
        return np.asarray(np.linalg.inv(precision) * np.outer(self.spread, self.spread))


@storable
@dataclass
class FullColumn(VectorsColumn):
    """A covariance for each cluster, with a Normal-inverse-Wishart prior."""

    scale: float = 0.25

    family: ClassVar[str] = "full"
    kind: ClassVar[int] = VECTOR

    @classmethod
    def learn(cls, name: str, sources: list[str], values: Any) -> Column:
        center, spread = centered(values[~np.isnan(values).any(axis=1)])
        return cls(name, sources, list(sources), len(values), center=center, spread=spread)

    def converted(self, other: Any, stats: np.ndarray) -> np.ndarray:
        return moved_stats(other.spread / self.spread, (other.center - self.center) / self.spread, stats)

    @property
    def n_stats(self) -> int:
        d = len(self.levels)
        return 1 + d + d * d

    @property
    def n_kept(self) -> int:
        d = len(self.levels)
        return 4 + d + d * d

    @property
    def n_parameters(self) -> int:
        d = len(self.levels)
        return d + d * (d + 1) // 2

    def hyperparameters(self) -> np.ndarray:
        d = len(self.levels)
        return np.concatenate([[KAPPA, d + 2.0], np.full(d, self.scale)])

    def most_scale(self, rows_per_cluster: float) -> float:
        return MOST_VARIANCE

    def scatter_of(self, part: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """(kappa, mean, inverse Wishart scale), of standardized coordinates."""
        d, kappa = len(self.levels), KAPPA + part[0]
        mean, outer = part[1 : 1 + d] / kappa, part[1 + d :].reshape(d, d)
        scatter = np.tril(outer) + np.tril(outer, -1).T - kappa * np.outer(mean, mean) + self.scale * np.eye(d)
        return kappa, mean, scatter

    def posterior(self, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, mean, scatter = self.scatter_of(part)
        return mean, np.linalg.cholesky(scatter / max(part[0] + 1.0, 1.0))

    def interval_of(self, part: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
        kappa, mean, scatter = self.scatter_of(part)
        freedom = part[0] + 3.0  # nu - d + 1
        half = stdtrit(freedom, (1 + share) / 2) * np.sqrt(np.maximum(np.diag(scatter), 0.0) / (kappa * freedom))
        return self.center + self.spread * (mean - half), self.center + self.spread * (mean + half)

    def covariance_draws(self, part: np.ndarray, n_clusters: int, n: int, rng: Any) -> np.ndarray:
        return self._wishart_draws(self.scatter_of(part)[2], part[0] + len(self.levels) + 2.0, n, rng)


@storable
@dataclass
class TiedColumn(VectorsColumn):
    """One covariance for all clusters, by which coordinates are whitened; it is learned from the clusters."""

    scale: float = 0.05
    whiten: np.ndarray = field(default_factory=lambda: np.eye(1))  # standardized -> whitened coordinates

    family: ClassVar[str] = "tied"
    kind: ClassVar[int] = WHITENED
    is_tied: ClassVar[bool] = True
    is_learned: ClassVar[bool] = False

    @classmethod
    def learn(cls, name: str, sources: list[str], values: Any) -> Column:
        known = values[~np.isnan(values).any(axis=1)]
        center, spread = centered(known)
        standard = (known - center) / spread
        whiten = whitening(standard.T @ standard / max(len(standard), 1))
        return cls(name, sources, list(sources), len(values), center=center, spread=spread, whiten=whiten)

    def encode(self, values: Any) -> np.ndarray:
        return np.asarray(super().encode(values) @ self.whiten.T)

    def log_jacobian(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(super().log_jacobian(values) + np.linalg.slogdet(self.whiten)[1])

    def check_mergeable(self, other: Column) -> None:
        super().check_mergeable(other)
        if not all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("whiten", "center", "spread")
        ):
            raise CannotMerge(
                f"the covariance that all clusters share in {self.name!r} was estimated from other rows; fit the "
                "second model with partial_fit."
            )

    def adapted(self, values: np.ndarray, labels: np.ndarray) -> tuple[Column, np.ndarray] | None:
        """Whitened by the covariance within the clusters."""
        standard = np.linalg.solve(self.whiten, values.T).T
        found, groups, size = np.unique(labels, return_inverse=True, return_counts=True)
        means = np.zeros((len(found), standard.shape[1]))
        np.add.at(means, groups, standard)
        apart = standard - (means / size[:, None])[groups]
        d = standard.shape[1]
        covariance = (apart.T @ apart + 0.05 * np.eye(d)) / max(len(apart) - len(found) + 1, 1)
        column = replace(self, whiten=whitening(covariance))
        return column, standard @ column.whiten.T

    @property
    def n_stats(self) -> int:
        return 2 + len(self.levels)

    @property
    def n_kept(self) -> int:
        return 2 + len(self.levels)

    @property
    def n_parameters(self) -> int:
        return len(self.levels)

    @property
    def n_shared_parameters(self) -> int:
        """The covariance."""
        return len(self.levels) * (len(self.levels) + 1) // 2

    def hyperparameters(self) -> np.ndarray:
        return np.array([self.scale])

    def posterior(self, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        back = np.linalg.inv(self.whiten)
        return back @ (part[2:] / (KAPPA + part[0])), back

    def interval_of(self, part: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
        mean, back = self.posterior(part)
        half = stdtrit(max(self.n_rows - 1.0, 1.0), (1 + share) / 2) * np.sqrt(
            (back**2).sum(axis=1) / (KAPPA + part[0])
        )
        return self.center + self.spread * (mean - half), self.center + self.spread * (mean + half)

    def covariance_draws(self, part: np.ndarray, n_clusters: int, n: int, rng: Any) -> np.ndarray:
        back, freedom = np.linalg.inv(self.whiten), max(self.n_rows - n_clusters, 1.0) + len(self.levels) + 1.0
        return self._wishart_draws((freedom - len(self.levels) - 1) * back @ back.T, freedom, n, rng)


def whitening(covariance: np.ndarray) -> np.ndarray:
    """W such that W x has unit covariance."""
    d = len(covariance)
    covariance = covariance + 1e-6 * max(float(np.trace(covariance)) / max(d, 1), 1e-12) * np.eye(d)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariance)))
