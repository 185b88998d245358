"""A mixture as three functions: what rows add to the clusters, how that adds up, and the model it makes.

The sufficient statistics of an exponential family add: counts by cluster and feature, sums and squares, whatever the
family. So what a block of rows adds is a :class:`Delta`, deltas merge by addition, and a model takes them in by
addition, too. A block is labeled against the model as it was when the round began: placed, the first time
(``partial_fit``), or drawn again with its own rows left out, when it remembers labels (:func:`accumulate` with a
memory). On a single block the exact chain of ``samplers/`` does the labeling instead, row by row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

PLACED_ROWS, ROUND_BLOCKS = 256, 8  # partial_fit: rows of a block, and blocks placed against one model
FEW_PAIRS = 100_000


class Model(NamedTuple):
    """What labeling a row needs. All arrays; a new one is made by :func:`update`."""

    family: Any
    stats: Any  # of the family: `size` first, then sums by cluster and feature
    n_clusters: int  # the most there may be
    concentration: float
    is_dirichlet_process: bool

    @property
    def k(self) -> int:
        return len(self.stats.size)

    def log_weights(self) -> tuple[np.ndarray, float]:
        """(log weight of each live cluster, log weight of all empty ones together)."""
        size, n_empty = self.stats.size, max(self.n_clusters - self.k, 0)
        if self.is_dirichlet_process:
            grown, fresh = size.astype(float), self.concentration if n_empty else 0.0
        else:
            grown, fresh = size + self.concentration, n_empty * self.concentration
        total = grown.sum() + fresh
        return np.log(grown / total), float(np.log(fresh / total)) if fresh > 0 else -np.inf


class Delta(NamedTuple):
    """What rows add to the clusters of a model, and to clusters it does not have."""

    known: Any
    fresh: Any


class Memory(NamedTuple):
    """What a block keeps from pass to pass."""

    labels: np.ndarray
    turn: int  # passes there were


def stack(*several: Any) -> Any:
    """Statistics of several lists of clusters, one after the other."""
    columns = zip(*several, strict=True)
    parts = (sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts) for parts in columns)
    return type(several[0])(*parts)


def add(one: Any, two: Any, sign: int = 1) -> Any:
    """Statistics of the same clusters, added; neither argument changes."""
    total = type(one)(*(a + sign * b for a, b in zip(one, two, strict=True)))
    for part in total:
        if sp.issparse(part):
            part.eliminate_zeros()
            part.sort_indices()
    return total


def pick(stats: Any, rows: Any) -> Any:
    """Statistics of some of the clusters."""
    return type(stats)(*(part[rows] for part in stats))


def sum_groups(stats: Any, groups: np.ndarray, n_groups: int) -> Any:
    """Statistics of unions: cluster ``row`` goes to ``groups[row]``."""
    shape = (n_groups, len(groups))
    join = sp.csr_matrix((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=shape)
    parts = []
    for part in stats:
        summed = join @ part
        if sp.issparse(summed):
            summed.sort_indices()
        parts.append(summed.astype(part.dtype) if not sp.issparse(summed) else summed)
    return type(stats)(*parts)


# --- the three functions ----------------------------------------------------------------------------------------------


def accumulate(block: Any, model: Model, memory: Memory | None = None) -> tuple[Delta, Memory]:
    """Label a block's rows against the model: (what they add, their labels).

    Without a memory each row goes to its likeliest cluster, or with others of its block to a new one; labels from
    ``model.k`` on are clusters that the model does not have. With the memory of the pass before, each row is drawn from
    its posterior with itself left out, and the delta is what changes.
    """
    labels = place(block, model) if memory is None else redraw(block, model, memory)
    n_fresh = max(int(labels.max(initial=-1)) + 1 - model.k, 0)
    both = model.family.statistics(block, labels, model.k + n_fresh)
    known = pick(both, slice(0, model.k))
    if memory is not None:
        known = add(known, model.family.statistics(block, memory.labels, model.k), -1)
    turn = 0 if memory is None else memory.turn + 1
    return Delta(known, pick(both, slice(model.k, model.k + n_fresh))), Memory(labels, turn)


def merge(a: Delta, b: Delta) -> Delta:
    """What both add."""
    return Delta(add(a.known, b.known), stack(a.fresh, b.fresh))


def update(model: Model, delta: Delta) -> Model:
    """The model with these rows in it."""
    known = add(model.stats, delta.known)
    n_fresh = len(delta.fresh.size)
    if n_fresh == 0:
        return model._replace(stats=known)
    places = places_of_fresh(model, delta)
    n_clusters = max(model.k, int(places.max()) + 1)
    grown = stack(known, empty_like(delta.fresh, n_clusters - model.k))
    return model._replace(stats=add(grown, sum_groups(delta.fresh, places, n_clusters)))


# --- labeling ---------------------------------------------------------------------------------------------------------


def place(block: Any, model: Model) -> np.ndarray:
    """Each row's likeliest cluster; rows that a new cluster suits better are grouped among themselves."""
    log_weights, log_fresh = model.log_weights()
    best = model.family.scorer(model.stats, log_weights).best(block, 1)
    labels = best.clusters[:, 0].copy()
    strangers = np.flatnonzero(best.fresh + log_fresh > best.scores[:, 0])
    n_free = model.n_clusters - model.k
    if len(strangers) and n_free > 0:
        labels[strangers] = model.k + group_strangers(block[strangers], model._replace(n_clusters=n_free))
    return np.asarray(labels, dtype=np.int64)


def group_strangers(rows: Any, model: Model) -> np.ndarray:
    """One pass over rows that no cluster suits: each to the best new cluster so far, or to one more."""
    family, n = model.family, rows.shape[0]
    labels, stats = np.zeros(n, np.int64), family.statistics(rows[:1], np.zeros(1, np.int64), 1)
    for row in range(1, n):
        log_weights, log_fresh = model._replace(stats=stats).log_weights()
        best = family.scorer(stats, log_weights).best(rows[row : row + 1], 1)
        labels[row] = best.clusters[0, 0]
        if best.fresh[0] + log_fresh > best.scores[0, 0]:
            labels[row] = len(stats.size)
            stats = stack(stats, empty_like(stats, 1))
        stats = add(stats, family.statistics(rows[row : row + 1], labels[row : row + 1], len(stats.size)))
    return labels


def redraw(block: Any, model: Model, memory: Memory) -> np.ndarray:
    """Labels drawn from the posterior given all other rows, as they were when the round began. The random numbers
    depend on the block and its memory alone, so that the answer is the same on any engine."""
    labels, (log_weights, _) = memory.labels, model.log_weights()
    rows, size = np.arange(len(labels)), model.stats.size
    scores = model.family.scorer(model.stats, log_weights).all(block)
    own = model.family.log_predictive_left_out(model.stats, block, labels)
    prior = 0.0 if model.is_dirichlet_process else model.concentration
    with np.errstate(divide="ignore"):  # a Dirichlet process has no weight for a cluster without other rows
        weight = np.log(np.maximum(size[labels] - 1 + prior, 0.0)) - np.log(size[labels] + prior)
    scores[rows, labels] = own + log_weights[labels] + weight
    noise = np.random.default_rng([memory.turn, len(labels), int((labels * np.arange(1, len(labels) + 1)).sum())])
    return np.asarray((scores + noise.gumbel(size=scores.shape)).argmax(axis=1), dtype=np.int64)


# --- clusters that the model does not have ----------------------------------------------------------------------------


def empty_like(stats: Any, n_clusters: int) -> Any:
    """Statistics of clusters without rows."""
    parts = []
    for part in stats:
        shape = (n_clusters, *part.shape[1:])
        parts.append(sp.csr_matrix(shape, dtype=part.dtype) if sp.issparse(part) else np.zeros(shape, part.dtype))
    return type(stats)(*parts)


def label_gains(model: Model, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """log p(labels) with two clusters as one, minus that with both."""
    if model.is_dirichlet_process:
        return np.asarray(gammaln(one + two) - gammaln(one) - gammaln(two) - np.log(model.concentration))
    alpha = model.concentration
    return np.asarray(gammaln(alpha + one + two) + gammaln(alpha) - gammaln(alpha + one) - gammaln(alpha + two))


def union_gains(model: Model, stats: Any, others: Any) -> np.ndarray:
    """(n, m) change of the log joint if cluster i of ``stats`` and j of ``others`` become one."""
    family, n, m = model.family, len(stats.size), len(others.size)
    alone, apart = family.log_marginal(stats), family.log_marginal(others)
    gains = np.empty((n, m))
    for row in range(n):
        joined = add(pick(stats, np.full(m, row)), others)
        gains[row] = family.log_marginal(joined) - alone[row] - apart
        gains[row] += label_gains(model, stats.size[row].astype(float), others.size.astype(float))
    return gains


def places_of_fresh(model: Model, delta: Delta) -> np.ndarray:
    """(n_fresh,) where new clusters go, the largest first: to a new one before it or a known one if the log joint gains
    by that, to the best of them once there are as many as there may be, else to the end."""
    fresh = delta.fresh
    gains, among = union_gains(model, fresh, model.stats), union_gains(model, fresh, fresh)
    places, n_clusters = np.full(len(fresh.size), -1), model.k
    opened: list[int] = []
    for row in np.argsort(-fresh.size, kind="stable").tolist():
        known = int(gains[row].argmax()) if model.k else -1
        best, target = (gains[row, known], known) if model.k else (-np.inf, -1)
        for other in opened:
            if among[row, other] > best:
                best, target = among[row, other], int(places[other])
        if best > 0 or n_clusters >= model.n_clusters:
            places[row] = target
        else:
            places[row] = n_clusters
            opened.append(row)
            n_clusters += 1
    return places


def fold_in(blocks: list[Any], model: Model, n_threads: int | None = None) -> tuple[Model, np.ndarray]:
    """Rounds of the fold over new blocks: (the model with all of them, the rows' labels)."""
    from shoal.engine import fold

    labels = []
    for first in range(0, len(blocks), ROUND_BLOCKS):
        round_of = blocks[first : first + ROUND_BLOCKS]
        delta, found = fold(round_of, accumulate, merge, model, n_threads=n_threads)
        assert found is not None
        labels += resolved(model, delta, found)
        model = update(model, delta)
    return model, np.concatenate(labels) if labels else np.zeros(0, np.int64)


def resolved(model: Model, delta: Delta, memories: list[Memory]) -> list[np.ndarray]:
    """Labels of a round's blocks in the numbers of the updated model."""
    labels = [memory.labels for memory in memories]
    if len(delta.fresh.size) == 0:
        return labels
    places, first = places_of_fresh(model, delta), 0
    out = []
    for block in labels:
        new = block >= model.k
        out.append(np.where(new, places[np.where(new, block - model.k + first, 0)], block))
        first += max(int(block.max(initial=-1)) + 1 - model.k, 0)
    return out


def grown(model: Model, n_features: int) -> Model:
    """The model with features that no row has had so far."""
    if n_features == model.stats.sums.shape[1]:
        return model
    if not sp.issparse(model.stats.sums):
        return model._replace(family=model.family.grown(n_features))
    sums = model.stats.sums.copy()
    family = model.family.grown(n_features)
    sums.resize(model.k, n_features)
    return model._replace(family=family, stats=model.stats._replace(sums=sums))
