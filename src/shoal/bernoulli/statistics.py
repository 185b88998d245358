"""What a pass over some rows must remember, for both ways of learning; fit and partial_fit fold these.

Assumed density filtering divides the posterior by the prior: the difference of natural parameters (:class:`Delta`).
Deltas of blocks that started from the same prior add up, in any order, and can be taken back::

    delta, memory = accumulate(block, profiles, memory)
    delta = merge(delta, other)
    profiles = update(profiles, delta)

Expectation maximization remembers expected counts (:class:`ExpectedCounts`)::

    counts, memory = expect(block, theta, memory)
    counts = add_counts(counts, other)
    theta = maximize(counts, ...)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.base import storable
from shoal.bernoulli.adf import Block, Responsibilities, counted, filtered, revisited
from shoal.bernoulli.em_kernels import em_rows, maximize_cells
from shoal.bernoulli.entries_kernels import add_to_entries, refresh_all, solve_ratio
from shoal.bernoulli.profiles import Profiles, copied, dense_lines, rebuilt, seen_added
from shoal.errors import CannotMerge

# --- assumed density filtering ----------------------------------------------------------------------------------------


@storable
class Delta(NamedTuple):
    """Posterior divided by prior: what was added to every natural parameter."""

    cluster: np.ndarray  # (n,) row of the model
    feature: np.ndarray  # (n,) column
    hits: np.ndarray  # (n,) rows of the cluster that have the feature
    loss: np.ndarray  # (n,) pseudo-count lost on ambiguous rows
    mass: np.ndarray  # (n_rows,) rows
    default_hits: np.ndarray  # (n_rows,) occurrences that went to the default
    log_norm: float  # weighted sum over rows of the log sum of scores before the row was learned
    ids: np.ndarray  # (n_clusters,) ids of the clusters; empty when not known
    seen: np.ndarray  # (n_features + 1,) rows with each feature, and rows in all; empty when not known


def accumulate(
    block: Block, profiles: Profiles, memory: Responsibilities | None = None, *, width: int = 0
) -> tuple[Delta, Responsibilities | None]:
    """The difference that the rows of a block make to the prior ``profiles``, which is unchanged.

    Without memory the rows are seen for the first time and learned by matching moments; with it they are looked at
    again. ``width``: how many responsibilities of each row to remember; 0 for none.

    Parameters
    ----------
    block : Block
        Rows and their weights.
    profiles : Profiles
        The prior.
    memory : Responsibilities, optional
        Result of the previous pass over the block. Without it the rows are learned by moment matching; with it their
        earlier contribution is removed and they are learned as plain counts.
    width : int
        Number of responsibilities to remember per row; 0 for none.
    """
    after, memory = _read(block, profiles, memory, width)
    delta = difference(after, profiles)._replace(log_norm=float(block.weights @ memory.log_norms))
    return delta, memory if width else None


def posterior(
    block: Block, profiles: Profiles, memory: Responsibilities | None = None, *, width: int = 0
) -> tuple[Profiles, Responsibilities]:
    """The prior ``profiles`` once the rows of a block are learned; what :func:`accumulate` gives, applied."""
    after, memory = _read(block, profiles, memory, width)
    refresh_all(after)
    return after, memory


def _read(
    block: Block, profiles: Profiles, memory: Responsibilities | None, width: int
) -> tuple[Profiles, Responsibilities]:
    return filtered(profiles, block, width=width) if memory is None else revisited(profiles, block, memory)


def count(block: Block, profiles: Profiles, memory: Responsibilities) -> tuple[Delta, Responsibilities]:
    """The difference made by known responsibilities, as plain counts."""
    return difference(counted(profiles, block, memory), profiles), memory


def difference(posterior: Profiles, prior: Profiles) -> Delta:
    """``posterior`` divided by ``prior``, whose entries must come first in ``posterior``."""
    old, used = prior.n_entries, posterior.n_entries
    hits, loss = posterior.hits[:used].copy(), posterior.loss[:used].copy()
    hits[:old] -= prior.hits[:old]
    loss[:old] -= prior.loss[:old]
    # What a new entry took out of the default is not new, only moved.
    hits[old:] -= posterior.hits_from_default[old:used]
    default_hits = posterior.default_hits - prior.default_hits
    np.add.at(default_hits, posterior.cluster[old:used], posterior.hits_from_default[old:used])
    changed = np.flatnonzero((hits != 0) | (loss != 0) | (np.arange(used) >= old))
    return Delta(
        posterior.cluster[changed], posterior.feature[changed], hits[changed], loss[changed],
        posterior.mass - prior.mass, default_hits, 0.0, np.zeros(0, dtype=np.int64), np.zeros(0),
    )  # fmt: skip


def merge(a: Delta, b: Delta) -> Delta:
    """The sum of two differences.

    Parameters
    ----------
    a, b : Delta
        Differences from the same prior.
    """
    if a.mass.size != b.mass.size or not np.array_equal(a.ids, b.ids):
        raise CannotMerge(
            f"the two differences belong to models with other clusters ({a.mass.size} and {b.mass.size} rows). "
            "Accumulate both from the same prior."
        )
    cluster, feature, hits, loss = _summed(a, b)
    seen = a.seen + b.seen if a.seen.size == b.seen.size else np.zeros(0)
    return Delta(
        cluster, feature, hits, loss, a.mass + b.mass, a.default_hits + b.default_hits, a.log_norm + b.log_norm,
        a.ids, seen,
    )  # fmt: skip


def _summed(a: Delta, b: Delta) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The entries of both, those of the same feature and cluster added up, in order of feature and cluster."""
    key = np.concatenate([part.feature.astype(np.int64) * part.mass.size + part.cluster for part in (a, b)])
    spots, place = np.unique(key, return_inverse=True)
    hits, loss = (
        np.bincount(place, weights=np.concatenate([getattr(a, name), getattr(b, name)]), minlength=spots.size)
        for name in ("hits", "loss")
    )
    n_rows = max(a.mass.size, 1)
    return (spots % n_rows).astype(np.int32), (spots // n_rows).astype(np.int32), hits, loss


def update(profiles: Profiles, delta: Delta, *, sign: float = 1.0) -> Profiles:
    """Multiply the prior by what was learned from it, or (``sign=-1``) take that back.

    Taken back, entries that know nothing more than the default return to it.

    Parameters
    ----------
    profiles : Profiles
        The prior.
    delta : Delta
        A difference from it.
    sign : float
        -1 removes the difference; entries that equal the default are then dropped.
    """
    if delta.mass.size != profiles.n_rows:
        raise CannotMerge(
            f"the difference knows {delta.mass.size} clusters, the model has {profiles.n_rows}. "
            "Clusters were born, merged or removed since; the difference no longer fits."
        )
    profiles = copied(profiles, room=delta.cluster.size + 1024)
    add_to_entries(
        delta.cluster, delta.feature, delta.hits, delta.loss, sign, profiles, dense_lines(profiles)
    )  # fmt: skip
    profiles.mass[:] += sign * delta.mass
    profiles.default_hits[:] += sign * delta.default_hits
    if delta.seen.size:
        profiles = profiles._replace(seen=seen_added(profiles.seen, delta.seen, sign))
    if sign < 0:
        used = profiles.n_entries
        return rebuilt(
            profiles, (profiles.hits[:used] != profiles.hits_from_default[:used]) | (profiles.loss[:used] != 0)
        )
    refresh_all(profiles)
    return profiles


def seen_in(rows: sp.csr_matrix, weights: np.ndarray) -> np.ndarray:
    """Rows that have each feature, and, last, rows in all."""
    per_entry = np.repeat(weights, np.diff(rows.indptr))
    return np.append(np.bincount(rows.indices, weights=per_entry, minlength=rows.shape[1]), weights.sum())


# --- expectation maximization -----------------------------------------------------------------------------------------


class ExpectedCounts(NamedTuple):
    """What one E-step over some rows must remember."""

    counts: np.ndarray  # (n_features, k) expected rows of the cluster that have the feature
    mass: np.ndarray  # (k,) expected rows of the cluster
    log_likelihood: float


class Theta(NamedTuple):
    """Point estimates in the form a pass wants."""

    log_odds: np.ndarray  # (n_features, k)
    base: np.ndarray  # (k,) log weight + sum of log(1 - theta)


def expect(block: Block, theta: Theta, memory: None = None) -> tuple[ExpectedCounts, None]:
    """The E-step over a block."""
    counts, mass = np.zeros_like(theta.log_odds), np.zeros(theta.base.size)
    rows = block.rows
    total = em_rows(rows.indptr, rows.indices, block.weights, *theta, counts, mass)
    return ExpectedCounts(counts, mass, float(total)), memory


def add_counts(a: ExpectedCounts, b: ExpectedCounts) -> ExpectedCounts:
    """Expected counts of both."""
    return ExpectedCounts(a.counts + b.counts, a.mass + b.mass, a.log_likelihood + b.log_likelihood)


def maximize(
    stats: ExpectedCounts, background: np.ndarray, *, strength: float, weight: float = 1.0, clutter: bool = False
) -> Theta:
    """The M-step: posterior means under the prior Beta(s b, s (1 - b)); for a small strength, maximum likelihood.

    ``clutter``: column 0 has one parameter for all features, relative to the background.
    """
    weights = stats.mass + weight
    theta = Theta(np.empty_like(stats.counts), np.log(weights / weights.sum()))
    maximize_cells(stats.counts, stats.mass, background, strength, *theta)
    if not clutter:
        return theta
    log_odds, absent = _scaled_background(stats.counts[:, 0].sum(), stats.mass[0], background, strength)
    theta.log_odds[:, 0] = log_odds
    theta.base[0] = np.log(weights[0] / weights.sum()) + absent
    return theta


def _scaled_background(hits: float, mass: float, background: np.ndarray, strength: float) -> tuple[np.ndarray, float]:
    """Log-odds of a cluster with one parameter for all features, and its sum of log(1 - mean)."""
    nothing = np.zeros(4), np.zeros(background.size, dtype=np.bool_), np.arange(background.size)
    s = solve_ratio(1.0, strength, mass, hits, *nothing, background)
    log_absent = np.log1p(-background) - np.log1p((s - 1.0) * background)
    return np.log(s) + np.log(background) - np.log1p(-background), float(log_absent.sum())
