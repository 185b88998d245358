"""First rows of clusters: rows that lie far apart."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.seeding_kernels import spread_out


def unit_rows(rows: sp.csr_matrix, background: np.ndarray) -> sp.csr_matrix:
    """Binary rows weighted by how rare each feature is, scaled to length one."""
    salience = np.sqrt(np.maximum(-np.log(background), 0.05))
    values = salience[rows.indices]
    lengths = np.sqrt(np.add.reduceat(np.append(values**2, 0.0), rows.indptr[:-1]) * (np.diff(rows.indptr) > 0))
    values = values / np.repeat(np.maximum(lengths, 1e-300), np.diff(rows.indptr))
    return sp.csr_matrix((values, rows.indices, rows.indptr), shape=rows.shape)


def far_apart(rows: sp.csr_matrix, n: int, background: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Up to ``n`` row numbers that lie far apart (k-means++ on unit rows)."""
    units = unit_rows(rows, background)
    chosen = np.zeros(n, dtype=np.int64)
    interest = (np.diff(rows.indptr) > 0).astype(np.float64)
    found = spread_out(units.indptr, units.indices, units.data, rows.shape[1], rng.random(n), interest, chosen)
    return chosen[:found]


def seed_rows(rows: sp.csr_matrix, n: int, background: np.ndarray, init: str, rng: np.random.Generator) -> np.ndarray:
    """Row numbers to begin clusters from: ``init`` is "spread" (far apart) or "random"."""
    n = min(n, rows.shape[0])
    if init == "random":
        return rng.choice(rows.shape[0], size=n, replace=False)
    return far_apart(rows, n, background, rng)
