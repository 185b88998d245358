"""Base measures: what a cluster looks like before it has members."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from shoal.errors import BadInput
from shoal.streams.state import arrays as st
from shoal.streams.state.arrays import Prior

FLOOR = 0.5  # added to every feature's background count, so that unseen ones have a share too
FAMILIES = {"multinomial": st.MULTINOMIAL, "bernoulli": st.BERNOULLI, "gaussian": st.GAUSSIAN}


def make_prior(
    n_features: int,
    *,
    strength: float,
    blocks: np.ndarray | None = None,
    weights: tuple[float, ...] = (1.0,),
    strengths: tuple[float, ...] | None = None,
    gaussian: np.ndarray | None = None,
) -> Prior:
    """A prior that has seen nothing yet: uniform over each block's features."""
    block = np.zeros(n_features, dtype=np.int64) if blocks is None else np.asarray(blocks, dtype=np.int64)
    records: st.Records = st.records(len(weights), st.BLOCK)
    records.strength = strength if strengths is None else strengths
    records.evidence_weight = weights
    records.width = np.maximum(1, np.bincount(block, minlength=len(weights))[: len(weights)])
    empty = np.zeros((0, 4)) if gaussian is None else np.ascontiguousarray(gaussian, dtype=np.float64)
    return Prior(np.zeros(n_features), block, records, empty)


def add_seen(prior: Prior, counts: np.ndarray) -> None:
    """Let the base measure take the shape of these counts."""
    prior.seen[: len(counts)] += counts
    for block in range(len(prior.blocks)):
        of_block = prior.block[: len(counts)] == block
        prior.blocks.mass[block] += float(counts[of_block].sum())


def base_measure(prior: Prior, floor: float) -> np.ndarray:
    """The pseudo-count of each feature."""
    block = prior.blocks[prior.block]
    spread = block.mass + floor * block.width
    return np.asarray(block.strength * (prior.seen + floor) / spread)


def gaussian_prior(X: sp.csr_matrix, given: Any = None) -> np.ndarray:
    """Normal-Gamma for each column: wide about the data's own mean, with clusters about a third as wide as all.

    ``given`` may be a matrix with a row (mean, pseudo-count, shape, rate) for each column.
    """
    if given is not None:
        prior = np.asarray(given, dtype=np.float64)
        if prior.shape != (X.shape[1], 4) or not np.isfinite(prior).all() or (prior[:, 1:] <= 0).any():
            raise BadInput(
                f"base has shape {prior.shape}; a Gaussian model needs one row (mean, pseudo-count > 0, "
                f"shape > 0, rate > 0) for each of the {X.shape[1]} columns."
            )
        return prior
    values = X.toarray()
    mean = values.mean(axis=0)
    variance = ((values - mean) ** 2).mean(axis=0)
    # a column that has not varied yet is taken to vary as much as the others do
    variance = np.where(variance > 0, variance, variance[variance > 0].mean() if (variance > 0).any() else 1.0)
    shape = 2.0
    # E[cluster variance] = rate / (shape - 1) = variance / 9, and cluster means then spread about as the data do
    return np.stack([mean, np.full_like(mean, 0.1), np.full_like(mean, shape), variance / 9.0 * (shape - 1.0)], axis=1)


def surprise(X: sp.csr_matrix, family: int, prior: Prior, floor: float, pseudo: tuple[float, float]) -> np.ndarray:
    """-log P(d | new cluster) of each row, or infinity where no cluster's density is bounded by 1."""
    n = X.shape[0]
    if family == st.GAUSSIAN:
        return np.full(n, np.inf)
    row = np.repeat(np.arange(n), np.diff(X.indptr))
    if family == st.BERNOULLI:
        on = np.diff(X.indptr)
        p = pseudo[0] / sum(pseudo)
        return np.asarray(-(on * np.log(p) + (X.shape[1] - on) * np.log1p(-p)))
    base = base_measure(prior, floor)
    total = np.zeros(n)
    for block, (strength, weight, _, _) in enumerate(prior.blocks):
        counts = X.data * (prior.block[X.indices] == block)
        length = np.bincount(row, weights=counts, minlength=n).astype(float)  # of nothing it is whole numbers
        words = gammaln(counts + base[X.indices]) - gammaln(base[X.indices]) - gammaln(counts + 1.0)
        log_prob = np.bincount(row, weights=words, minlength=n).astype(float)
        log_prob += gammaln(strength) - gammaln(strength + length) + gammaln(length + 1.0)
        total -= weight * log_prob
    return total
