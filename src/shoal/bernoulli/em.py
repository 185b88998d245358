"""Maximum likelihood for the same mixture by expectation maximisation: the baseline, and a choice for small data.

The parameters are dense here, n_features x n_clusters, which is what makes a pass fast; ``fit`` refuses where that
would not fit. The likelihood is kept off log(0) by ``strength`` ads of the background in every cluster.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.em_kernels import em_rows
from shoal.bernoulli.entries_kernels import link_slots, refresh_all
from shoal.bernoulli.profiles import Profiles, empty_profiles, grown
from shoal.errors import BadInput
from shoal.progress import Monitor
from shoal.threads import ordered_map, row_blocks

MOST_CELLS = 200_000_000  # of the dense n_features x n_clusters array, 8 bytes each
N_BLOCKS = 4  # rows are summed in this many fixed blocks, whatever the number of threads


class Stats(NamedTuple):
    """What one pass over some rows must remember."""

    counts: np.ndarray  # (n_features, k) expected ads of the cluster that have the keyword
    mass: np.ndarray  # (k,) expected ads of the cluster
    log_likelihood: float


class Theta(NamedTuple):
    """Point estimates in the form a pass wants."""

    log_odds: np.ndarray  # (n_features, k)
    base: np.ndarray  # (k,) log weight + sum of log(1 - theta)


def accumulate(
    rows: sp.csr_matrix, weights: np.ndarray, theta: Theta, first: int = 0, last: int | None = None
) -> Stats:
    """One pass over rows first..last."""
    counts, mass = np.zeros_like(theta.log_odds), np.zeros(theta.base.size)
    last = rows.shape[0] if last is None else last
    total = em_rows(rows.indptr, rows.indices, weights, *theta, counts, mass, first, last)
    return Stats(counts, mass, float(total))


def merge(a: Stats, b: Stats) -> Stats:
    a.counts.__iadd__(b.counts)
    return Stats(a.counts, a.mass + b.mass, a.log_likelihood + b.log_likelihood)


def update(stats: Stats, background: np.ndarray, *, strength: float, clutter: bool) -> Theta:
    """The parameters that make these responsibilities likeliest."""
    theta = stats.counts + strength * background[:, None]
    theta /= strength + stats.mass
    if clutter:  # one parameter for all keywords, relative to the background
        theta[:, 0] = background * (strength + stats.counts[:, 0].sum() / background.sum()) / (strength + stats.mass[0])
    np.clip(theta, 1e-12, 1 - 1e-9, out=theta)
    log_absent = np.log1p(-theta)
    weights = (stats.mass + 1e-6) / (stats.mass.sum() + 1e-6 * stats.mass.size)
    base = np.log(weights) + log_absent.sum(axis=0)
    np.log(theta, out=theta)
    theta -= log_absent
    return Theta(theta, base)


def fit_em(
    rows: sp.csr_matrix,
    weights: np.ndarray,
    seeds: np.ndarray,
    start: Profiles,
    *,
    max_iter: int,
    tol: float,
    n_threads: int | None = None,
) -> tuple[Profiles, Monitor]:
    """EM from clusters of one seed ad each, until the log likelihood moves by less than ``tol`` of itself."""
    k, clutter, strength = start.n_rows, bool(start.n_clutter), float(start.prior[0])
    if rows.shape[1] * k > MOST_CELLS:
        raise BadInput(
            f'inference="em" keeps n_features x n_clusters = {rows.shape[1]:,} x {k:,} numbers, over the limit of '
            f'{MOST_CELLS:,}. Use inference="adf", whose cost does not depend on the number of features.'
        )
    counts = np.zeros((rows.shape[1], k))
    for cluster, seed in enumerate(seeds, start=int(clutter)):
        counts[rows.indices[rows.indptr[seed] : rows.indptr[seed + 1]], cluster] += 1.0
    # Seeds alone would be over-sure of one ad: they start with the background worth two ads.
    stats = Stats(counts, np.ones(k), 0.0)
    theta = update(stats, start.background, strength=max(strength, 2.0), clutter=clutter)
    blocks = row_blocks(rows.shape[0], -(-rows.shape[0] // N_BLOCKS))
    with Monitor("EM", max_iter=max_iter, tol=tol) as monitor:
        while monitor.running:
            parts = ordered_map(partial(_one_block, rows, weights, theta), blocks, n_threads)
            stats = next(parts)
            for part in parts:
                stats = merge(stats, part)
            theta = update(stats, start.background, strength=strength, clutter=clutter)
            monitor.report(stats.log_likelihood, log_likelihood=stats.log_likelihood / max(weights.sum(), 1e-300))
    return from_counts(start, stats), monitor


def _one_block(rows: sp.csr_matrix, weights: np.ndarray, theta: Theta, block: tuple[int, int]) -> Stats:
    return accumulate(rows, weights, theta, *block)


def from_counts(start: Profiles, stats: Stats) -> Profiles:
    """The same beliefs as sparse profiles: an entry wherever a cluster expects to have seen the keyword."""
    counts = stats.counts
    if start.n_clutter:
        counts = counts.copy()
        start.held[0] = counts[:, 0].sum()
        counts[:, 0] = 0.0
    feature, cluster = np.nonzero(counts > 1e-6)
    profiles = grown(start, feature.size + 1)
    profiles.feature[: feature.size], profiles.cluster[: feature.size] = feature, cluster
    profiles.hits[: feature.size] = counts[feature, cluster]
    profiles.mass[:] = stats.mass
    profiles.used[0] = feature.size
    link_slots(profiles)
    refresh_all(profiles)
    return profiles


def em_start(seen: np.ndarray, n_clusters: int, *, clutter: bool, strength: float, flat: bool) -> Profiles:
    """Empty beliefs for EM: no prior weight to speak of."""
    return empty_profiles(seen, n_clusters, clutter=clutter, strength=strength, weight=1e-6, flat=flat)
