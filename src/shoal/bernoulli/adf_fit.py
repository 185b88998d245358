"""One pass of assumed density filtering over rows in random order, as folds: a start, rounds, and further passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.adf import WIDTH, Block, Responsibilities, responsibilities_of
from shoal.bernoulli.calibration import Calibration, calibrated
from shoal.bernoulli.culling import culled
from shoal.bernoulli.merging import clutter_among, merged_by_new_rows, with_clutter
from shoal.bernoulli.profiles import (
    Profiles,
    background_of,
    copied,
    linked,
    rebuilt,
    refreshed,
    with_new_rows,
)
from shoal.bernoulli.reservoir import Prior, reservoir_size, started
from shoal.bernoulli.scoring import log_background, log_total_weight
from shoal.bernoulli.statistics import accumulate, count, merge, posterior, seen_in, update
from shoal.engine import fold
from shoal.progress import Monitor

MOST_IN_RESERVOIR = 0.9  # share of a fit's rows; the others decide about mergers
LEAST_NEW, NEW_PER_CLUSTER = 2000, 100  # rows kept back to decide about mergers before they are learned
LEAST_PER_CLUSTER = 10  # with fewer for each cluster, nothing can be decided


@dataclass(frozen=True)
class Options:
    """What learning by ADF may do."""

    n_clusters: int
    clutter: bool
    strength: float | None
    flat: bool
    init: str
    adapt: bool
    features_kept: int
    n_passes: int
    n_partitions: int
    n_threads: int | None


class Learned(NamedTuple):
    """What a fit found."""

    profiles: Profiles
    calibration: Calibration
    history: list[float]  # mean log probability of a round's rows, before they were learned
    interrupted: bool


def fit_adf(rows: sp.csr_matrix, weights: np.ndarray, options: Options, rng: np.random.Generator) -> Learned:
    """Start on a reservoir, filter the rest in rounds, decide about mergers by rows kept back, look again if asked."""
    order = rng.permutation(np.flatnonzero(weights > 0))
    n_start, n_new = parts(order.size, options.n_clusters)
    blocks = Shuffled(rows, weights, order)
    ends = round_ends(n_start, order.size - n_new)
    with Monitor("ADF", max_iter=len(ends) + 1 + options.n_passes) as monitor:
        profiles = start(blocks.part(0, n_start), seen_in(rows, weights), options, rng)
        monitor.report(_fitted(profiles, blocks.part(0, min(n_start, 1000))), rows=n_start)
        done = n_start
        for end in ends:
            profiles = _round(profiles, blocks.part(done, end), options, monitor)
            done = end
            if monitor.interrupted:
                break
        new = blocks.part(done, min(done + n_new, order.size))
        if options.adapt and new.rows.shape[0] >= LEAST_PER_CLUSTER * options.n_clusters:
            profiles = examined(profiles, new, clutter=options.clutter)
        calibration = calibrated(profiles, new if new.rows.shape[0] else blocks.part(0, n_start), rng)
        if new.rows.shape[0] and not monitor.interrupted:
            profiles = _round(profiles, new, options, monitor)
        if options.n_passes > 1:
            again = partitions(Block(rows, weights), options.n_partitions)
            profiles = further_passes(profiles, again, options, monitor)
    return Learned(by_size(profiles), calibration, monitor.history, monitor.interrupted)


def parts(n_rows: int, n_clusters: int) -> tuple[int, int]:
    """Rows of the reservoir, and rows kept back for the mergers."""
    n_start = min(int(MOST_IN_RESERVOIR * n_rows), reservoir_size(n_clusters))
    n_start = max(n_start, min(n_clusters, n_rows), 1)
    rest = n_rows - n_start
    wanted = max(LEAST_NEW, NEW_PER_CLUSTER * n_clusters)
    return n_start, min(wanted, max(rest // 2, min(LEAST_NEW, rest)))


def round_ends(begin: int, end: int, most: int = 65536) -> list[int]:
    """Rounds that grow with what is known, so that no round can carry the model far from where it was."""
    ends = []
    while begin < end:
        begin = min(end, begin + min(most, max(2048, begin)))
        ends.append(begin)
    return ends


class Shuffled(NamedTuple):
    """Rows in another order, copied part by part."""

    rows: sp.csr_matrix
    weights: np.ndarray
    order: np.ndarray

    def part(self, first: int, last: int) -> Block:
        some = self.order[first:last]
        return Block(self.rows[some], self.weights[some])


def start(block: Block, seen: np.ndarray, options: Options, rng: np.random.Generator) -> Profiles:
    """Profiles of the reservoir."""
    background = background_of(seen, flat=options.flat)
    prior = Prior(seen, background, options.strength, options.clutter, options.flat, options.n_threads)
    profiles = started(block, options.n_clusters, prior, options.init, rng)
    return culled(profiles, features_kept=options.features_kept)


def learned(
    profiles: Profiles, blocks: list[Any], options: Options, memories: list[Responsibilities] | None = None
) -> tuple[Profiles, float, list[Responsibilities] | None]:
    """One fold: every partition starts from the same prior, and the differences are applied to it.

    Also the weighted sum over rows of the log sum of scores before each was learned.
    """
    width = 0 if memories is None and options.n_passes == 1 else WIDTH
    if options.n_partitions == 1:  # nothing to add up: the posterior is the next prior
        (block,) = blocks
        profiles, memory = posterior(block, profiles, None if memories is None else memories[0], width=width)
        log_norm = float(block.weights @ memory.log_norms)
        return culled(profiles, features_kept=options.features_kept), log_norm, [memory] if width else None
    folded = fold(
        blocks, partial(accumulate, width=width), merge, profiles, memories=memories, n_threads=options.n_threads
    )
    profiles = culled(update(profiles, folded.stats), features_kept=options.features_kept)
    return profiles, folded.stats.log_norm, folded.memories


def partitions(block: Block, n: int) -> list[Block]:
    """A block cut into parts of equal size, in order."""
    edges = np.linspace(0, block.rows.shape[0], min(n, max(block.rows.shape[0], 1)) + 1).astype(np.int64)
    return [Block(block.rows[a:b], block.weights[a:b]) for a, b in pairwise(edges)]


def _round(profiles: Profiles, block: Block, options: Options, monitor: Monitor) -> Profiles:
    after, log_norm, _ = learned(profiles, partitions(block, options.n_partitions), options)
    monitor.report(mean_log_probability(profiles, block, log_norm), rows=block.rows.shape[0], clusters=after.n_clusters)
    return after


class Known(NamedTuple):
    """What the background says of some rows."""

    weight: float
    log_probability: float  # weighted sum over rows


def known_of(block: Block, profiles: Profiles, memory: None = None) -> tuple[Known, None]:
    """What the background says of a block's rows."""
    return Known(float(block.weights.sum()), float(block.weights @ log_background(profiles, block.rows))), memory


def add_known(a: Known, b: Known) -> Known:
    """Of both."""
    return Known(a.weight + b.weight, a.log_probability + b.log_probability)


def mean_log_probability(profiles: Profiles, block: Block, log_norm: float) -> float:
    """Mean log probability of a block's rows, each before it was learned (by the total weight of the start)."""
    return mean_of(profiles, known_of(block, profiles)[0], log_norm)


def mean_of(profiles: Profiles, known: Known, log_norm: float) -> float:
    """The same of rows in several blocks."""
    weight = max(known.weight, 1e-300)
    return (log_norm + known.log_probability) / weight - log_total_weight(profiles)


def _fitted(profiles: Profiles, block: Block) -> float:
    """Mean log probability of some rows."""
    log_norms = responsibilities_of(profiles, block, width=1).log_norms
    total = (log_norms - log_total_weight(profiles) + log_background(profiles, block.rows)) @ block.weights
    return float(total / max(block.weights.sum(), 1e-300))


def examined(profiles: Profiles, new: Block, *, clutter: bool) -> Profiles:
    """Clusters that rows not learned yet have no need of are merged; those that are none become the clutter."""
    profiles, _ = merged_by_new_rows(profiles, new)
    if clutter:
        profiles, _ = with_clutter(profiles, clutter_among(profiles, new))
    return profiles


def remembered(block: Block, profiles: Profiles, memory: None = None) -> tuple[Known, Responsibilities]:
    """The responsibilities of a block's rows, not learned, as what the block remembers."""
    return known_of(block, profiles)[0], responsibilities_of(profiles, block)


def further_passes(profiles: Profiles, blocks: list[Any], options: Options, monitor: Monitor) -> Profiles:
    """Count every row by its responsibilities; a further pass first removes the contribution of each row.

    A clutter that no cluster was found to be takes no part: it would win every row of a cluster of a few rows.
    """
    unfound = bool(profiles.n_clutter) and not profiles.has_entries[0]
    if unfound:
        profiles = without_clutter(profiles)
    known, memories = fold(blocks, remembered, add_known, profiles, n_threads=options.n_threads)
    profiles = emptied(profiles)
    folded = fold(blocks, count, merge, profiles, memories=memories, n_threads=options.n_threads)
    profiles = update(profiles, folded.stats)
    for _ in range(1, options.n_passes):
        if monitor.interrupted:
            break
        profiles, log_norm, memories = learned(profiles, blocks, options, memories)
        monitor.report(mean_of(profiles, known, log_norm), clusters=profiles.n_clusters)
    profiles = culled(profiles, features_kept=options.features_kept)
    return with_empty_clutter(profiles) if unfound else profiles


def without_clutter(profiles: Profiles) -> Profiles:
    """The clusters alone."""
    clusters = rebuilt(profiles, rows=np.arange(profiles.n_clutter, profiles.n_rows))
    return clusters._replace(prior=np.array([*profiles.prior[:2], 0.0]))


def with_empty_clutter(profiles: Profiles) -> Profiles:
    """The clusters, and before them a clutter without rows."""
    profiles = with_new_rows(profiles, 1)
    profiles = rebuilt(profiles, rows=np.roll(np.arange(profiles.n_rows), 1))
    has_entries = profiles.has_entries.copy()
    has_entries[0] = False
    return refreshed(profiles._replace(prior=np.array([*profiles.prior[:2], 1.0]), has_entries=has_entries))


def emptied(profiles: Profiles) -> Profiles:
    """The same clusters without what they have learned."""
    profiles = copied(profiles)._replace(
        mass=np.zeros(profiles.n_rows),
        default_hits=np.zeros(profiles.n_rows),
        uninformative=np.zeros(profiles.n_features, dtype=np.bool_),
        used=np.zeros(1, dtype=np.int64),
    )
    return linked(profiles)


def by_size(profiles: Profiles) -> Profiles:
    """The largest cluster first, after the clutter, if any; those without rows are left out."""
    n_clutter = profiles.n_clutter
    largest = n_clutter + np.argsort(-profiles.mass[n_clutter:], kind="stable")
    filled = largest[profiles.mass[largest] > 0]
    rows = np.concatenate([np.arange(n_clutter), filled if filled.size else largest[:1]])
    return refreshed(rebuilt(profiles, rows=rows))
