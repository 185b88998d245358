"""Clusters of at most, or at least, so many rows: rows pay a price for crowded centers and are paid for empty ones.

The limits couple the rows as a budget couples the items of a multiple-choice knapsack, and are priced in the same way:
a row goes to the center with the largest cosine minus price. Prices of centers above their limit rise, each time to
where just enough rows prefer their next best center (an auction); rows that a center below its limit needs are those
that lose least by coming.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from shoal.errors import BadInput
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import Centers, index_centers, own_similarities
from shoal.kmeans.exact import nearest_similarities, similarity_matrix
from shoal.kmeans.finalize import FitResult
from shoal.kmeans.rows import UnitRows, take_rows
from shoal.kmeans.statistics import Memory, Model, accumulate, update
from shoal.progress import message

CANDIDATES = 16  # centers that a row may choose from; rows that find no room among them look at all
ROUNDS = 2  # assignment within the limits, then new centers
MOST_BIDS = 20_000
LEAST_RISE = 1e-5  # of a price: ties must not stop the auction
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class SizeLimits:
    """Rows that a cluster must have, and may have."""

    least: int
    most: int


def size_limits(least: int | None, most: int | None, n_rows: int, n_clusters: int) -> SizeLimits | None:
    """The limits, if there are any and if they can be kept."""
    if least is None and most is None:
        return None
    limits = SizeLimits(0 if least is None else least, n_rows if most is None else most)
    if limits.least > limits.most:
        raise BadInput(f"min_cluster_size={least} is more than max_cluster_size={most}.")
    if limits.least * n_clusters > n_rows:
        raise BadInput(
            f"{n_clusters} clusters of at least {limits.least} rows need {limits.least * n_clusters} rows that can be "
            f"assigned; there are {n_rows}. Ask for at most {n_rows // n_clusters}."
        )
    if limits.most * n_clusters < n_rows:
        raise BadInput(
            f"{n_clusters} clusters of at most {limits.most} rows hold {limits.most * n_clusters}; there are {n_rows}. "
            f"Allow at least {-(-n_rows // n_clusters)}."
        )
    return limits


def within_limits(block: Block, result: FitResult, limits: SizeLimits, n_threads: int | None = None) -> FitResult:
    """The fit with its rows assigned within the limits, and the centers of those rows."""
    rows, k = block.open(), len(result.centers)
    usable = np.flatnonzero(result.labels >= 0)
    mine = rows if usable.size == rows.n_rows else take_rows(rows, usable)
    centers, places = result.centers, result.labels[usable]
    for _ in range(ROUNDS):
        index = index_centers(centers, rows.n_ranks)
        table = nearest_similarities(mine, index, CANDIDATES, n_threads)
        places = _at_most(table, limits.most, k)
        left = np.flatnonzero(places < 0)
        for start in range(0, left.size, ROWS_AT_ONCE):
            some = left[start : start + ROWS_AT_ONCE]
            _where_there_is_room(similarity_matrix(take_rows(mine, some), index, n_threads), some, places, limits.most)
        _at_least(mine, centers, places, limits.least)
        labels = np.full(rows.n_rows, -1, np.int32)
        labels[usable] = places
        zeros = np.zeros(rows.n_rows)
        model = Model(centers, rows.n_ranks)
        stats, _ = accumulate(block, model, Memory(labels, zeros, zeros), whole=True, n_threads=n_threads)
        centers = update(model, stats, n_threads=n_threads).centers
    similarities = own_similarities(rows, labels, centers)
    weight = max(float(block.weights.sum()), 1e-300)
    cost = float(block.weights @ (result.similarities - similarities)) / weight
    sizes = np.bincount(places, minlength=k)
    message(f"clusters of {sizes.min():,} to {sizes.max():,} rows; the limits cost {cost:.5f} of mean similarity")
    certificate = result.certificate | {"cost_of_size_limits": cost}
    return replace(result, centers=centers, labels=labels, similarities=similarities, certificate=certificate)


def _at_most(table, most: int, k: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """The place of each row by auction among its candidates; -1 where all of them are worth less than nothing left."""
    n_rows, width = table.shape[0], int(np.diff(table.indptr).max(initial=1))
    candidates, values = np.zeros((n_rows, width), np.int32), np.full((n_rows, width), -np.inf, np.float32)
    inside = np.arange(width)[None, :] < np.diff(table.indptr)[:, None]
    candidates[inside], values[inside] = table.indices, table.data
    prices = np.zeros(k, np.float32)
    places, gaps = _choices(candidates, values, prices)
    sizes = np.bincount(places[places >= 0], minlength=k)
    bids = 0
    while (sizes > most).any() and bids < MOST_BIDS:
        crowded = np.flatnonzero(sizes > most)
        bids += crowded.size
        mine = np.flatnonzero((sizes > most)[places] & (places >= 0))
        mine = mine[np.lexsort((gaps[mine], places[mine]))]
        starts = np.searchsorted(places[mine], crowded)
        surplus = sizes[crowded] - most
        # The price at which just enough rows go: where the surplus-th row is indifferent.
        rise = gaps[mine[starts + surplus - 1]]
        prices[crowded] += np.where(np.isfinite(rise), np.maximum(rise, 0) + LEAST_RISE, 1.0)
        before = places[mine]
        places[mine], gaps[mine] = _choices(candidates[mine], values[mine], prices)
        sizes -= np.bincount(before, minlength=k)
        sizes += np.bincount(places[mine][places[mine] >= 0], minlength=k)
    for place in np.flatnonzero(sizes > most):  # out of bids: the rows with the smallest gaps look for room elsewhere
        mine = np.flatnonzero(places == place)
        places[mine[np.argsort(gaps[mine], kind="stable")[: mine.size - most]]] = -1
    return places


def _choices(candidates: np.ndarray, values: np.ndarray, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best candidate of each row at these prices, and how much more it is worth than the second best."""
    worth = values - prices[candidates]
    rows, best = np.arange(len(worth)), worth.argmax(1)
    top = worth[rows, best]
    worth[rows, best] = -np.inf
    # A row whose candidates all cost more than they are worth looks for room elsewhere.
    second = np.maximum(worth.max(1), -1.0)
    places = np.where(top > -1.0, candidates[rows, best], -1)
    return places, top - second


def _where_there_is_room(similarities: np.ndarray, which: np.ndarray, places: np.ndarray, most: int) -> None:
    """Rows that found no room among their candidates, each to the nearest center that has some."""
    sizes = np.bincount(places[places >= 0], minlength=similarities.shape[1])
    for row in np.argsort(-similarities.max(1), kind="stable"):
        open_to = np.where(sizes < most, similarities[row], -np.inf)
        places[which[row]] = place = int(open_to.argmax())
        sizes[place] += 1


def _at_least(rows: UnitRows, centers: Centers, places: np.ndarray, least: int) -> None:
    """Bring the rows that lose least into every cluster that has too few, from clusters that can spare them."""
    sizes = np.bincount(places, minlength=len(centers))
    small = np.flatnonzero(sizes < least)
    if not small.size:
        return
    own = own_similarities(rows, places.astype(np.int32), centers)
    for place in small[np.argsort(sizes[small], kind="stable")]:
        center = np.zeros(rows.n_ranks)
        entries = slice(centers.indptr[place], centers.indptr[place + 1])
        center[centers.ranks[entries]] = centers.weights[entries]
        there = np.asarray(rows.csr @ center)
        loss = np.where(places == place, np.inf, own - there)
        for row in _smallest_first(loss, int(least - sizes[place])):
            if sizes[place] >= least:
                break
            if sizes[places[row]] > least:
                sizes[places[row]] -= 1
                places[row], own[row] = place, there[row]
                sizes[place] += 1


def _smallest_first(loss: np.ndarray, n: int) -> Iterator[int]:
    """Rows by rising loss: a few more than the n that are wanted, and all the others only if those do not do."""
    few = min(4 * n + 64, loss.size)
    early = np.sort(np.argpartition(loss, few - 1)[:few])
    early = early[np.argsort(loss[early], kind="stable")]
    yield from early.tolist()
    if few < loss.size:
        later = np.argsort(loss, kind="stable")
        yield from later[~np.isin(later, early)].tolist()
