"""Low-rank scores (iALS): what a set has in common with others when no two of its features have met.

The score of feature d for a set S is z_d = v_d' u with u = A^-1 sum of v_j over S and
A = unseen V'V + sum of v_j v_j' over S + penalty (|S| + unseen n_features) I (Hu, Koren and Volinsky, ICDM 2008;
the scaled penalty is that of Rendle et al., RecSys 2022). It is a sum over the given features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.suggestion.factor_kernels import fold_in, sweep_half

RANK, N_SWEEPS, CG_STEPS = 32, 12, 3
UNSEEN, PENALTY = 0.03, 0.03  # weight of an entry that is not there; ridge penalty for each entry
MOST_ROWS = 20_000  # rows, drawn at random, that the factors are learned from


@storable
class Factors(NamedTuple):
    """One vector for each feature."""

    features: np.ndarray  # (n_features, RANK)
    gram: np.ndarray  # (RANK, RANK) features' features

    def scores(self, given: sp.csr_matrix, refused: sp.csr_matrix) -> np.ndarray:
        """z of every feature, for the rows of ``given``."""
        of_rows = np.zeros((given.shape[0], self.features.shape[1]))
        fold_in(
            given.indptr.astype(np.int64), given.indices.astype(np.int32), refused.indptr.astype(np.int64),
            refused.indices.astype(np.int32), np.array(self.features), np.array(self.gram), UNSEEN, PENALTY, of_rows,
        )  # fmt: skip
        return np.asarray(of_rows @ self.features.T)

    def weights_to(self, given: np.ndarray, refused: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """What each given feature adds to z of each target: (n_given, n_targets)."""
        V, (n_features, rank) = self.features, self.features.shape
        A = UNSEEN * self.gram + V[given].T @ V[given] + V[refused].T @ V[refused]
        A += PENALTY * (given.size + UNSEEN * n_features) * np.eye(rank)
        return np.asarray(V[given] @ np.linalg.solve(A, V[targets].T))

    def widened(self, n_features: int) -> Factors:
        """Features that are new have no factors until they are learned again."""
        more = n_features - self.features.shape[0]
        return self._replace(features=np.pad(self.features, ((0, more), (0, 0)))) if more > 0 else self


def no_factors(n_features: int) -> Factors:
    """All scores 0."""
    return Factors(np.zeros((n_features, RANK)), np.zeros((RANK, RANK)))


def fit_factors(rows: sp.csr_matrix, seed: int) -> Factors:
    """Alternating least squares from small random vectors; the same bits for the same rows and seed."""
    rng = np.random.default_rng(seed)
    if rows.shape[0] > MOST_ROWS:
        rows = rows[np.sort(rng.permutation(rows.shape[0])[:MOST_ROWS])]
    columns = rows.tocsc()
    V = rng.normal(0, 0.1 / np.sqrt(RANK), (rows.shape[1], RANK)).astype(np.float32)
    U = np.zeros((rows.shape[0], RANK), np.float32)
    sides = [(part.indptr.astype(np.int64), part.indices.astype(np.int32)) for part in (rows, columns)]
    for _ in range(N_SWEEPS):
        sweep_half(*sides[0], V, V.T @ V, np.float32(UNSEEN), PENALTY, CG_STEPS, U)
        sweep_half(*sides[1], U, U.T @ U, np.float32(UNSEEN), PENALTY, CG_STEPS, V)
    features = V.astype(np.float64)
    return Factors(features, features.T @ features)
