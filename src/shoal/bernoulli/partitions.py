"""A fit of rows in parts: a start on a sample of all parts, then rounds in which every part learns some more rows from
the same prior, side by side, and what they have learned is added up.

Rounds grow with what is known, as they do for rows in one place; within a round a part learns its rows one by one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.base import check_random_state
from shoal.bernoulli.adf import Block
from shoal.bernoulli.adf_fit import (
    LEAST_PER_CLUSTER,
    Known,
    Learned,
    Options,
    Shuffled,
    add_known,
    by_size,
    examined,
    further_passes,
    known_of,
    learned,
    mean_log_probability,
    mean_of,
    parts,
    round_ends,
    start,
)
from shoal.bernoulli.calibration import calibrated
from shoal.bernoulli.culling import culled
from shoal.bernoulli.profiles import Profiles
from shoal.bernoulli.scoring import as_presence, per_feature, scored
from shoal.bernoulli.statistics import Delta, accumulate, merge, update
from shoal.bernoulli.stream_fit import StreamState
from shoal.engine import Converted, Partitions, fold, learning, using
from shoal.errors import BadInput
from shoal.progress import Monitor

if TYPE_CHECKING:
    from shoal.bernoulli.mixture import BernoulliMixture
    from shoal.data import Dataset

MOST_A_ROUND = 65_536  # rows that a part learns from one prior


class Round(NamedTuple):
    """What travels to the parts: the prior, and which share of their rows, from where to where, it is for."""

    profiles: Profiles
    begin: float
    end: float


class Lesson(NamedTuple):
    """What rows have taught, and what was known of them before."""

    delta: Delta
    known: Known


def fit(model: BernoulliMixture, data: Partitions, sample_weight: Any, identity_from: Any) -> BernoulliMixture:
    """Fit the model to data in parts."""
    if sample_weight is not None:
        raise BadInput("sample_weight is not for partitions; give rows in one matrix, or no weights.")
    options, n = model._options(), data.n_items
    if options.n_clusters > n:
        raise BadInput(f"n_clusters is {options.n_clusters}, but there are only n_samples={n} rows. Ask for fewer.")
    seen = np.append(data.items_with.astype(np.float64), float(n))
    with learning(model):
        rng = check_random_state(model.random_state)
        n_start, n_new = parts(n, options.n_clusters)
        order = rng.permutation(n)[: n_start + n_new]
        which = np.sort(order)
        rows, place = as_presence(data.rows(which)), np.searchsorted(which, order)
        if model.inference == "em":
            weights = np.ones(which.size)
            model._fit_em(rows[place], weights, options, rng, data.converted(presence_block), seen)
        else:
            sample = Shuffled(rows, np.ones(which.size), place)
            model._adopt_adf(fit_adf(data, which, sample, n_start, seen, options, rng))
        empty = sp.csr_matrix((0, rows.shape[1]))
        model.stream_ = StreamState(empty, np.zeros(0), n_rows=n, n_started=n, n_examined=n, n_calibrated=n)
        model._remember_rows(data.columns_alone(data.item_ids()), mode="fit")
        look_back(model, data)
    return model._identified(identity_from, data)  # type: ignore[no-any-return]


def fit_adf(
    data: Partitions, which: np.ndarray, sample: Shuffled, n_start: int, seen: np.ndarray, options: Options,
    rng: np.random.Generator,
) -> Learned:  # fmt: skip
    """As for rows in one place, with the rows that are not in the sample learned where they are."""
    alone = replace(options, n_partitions=1, n_passes=1)
    beginning, new = sample.part(0, n_start), sample.part(n_start, which.size)
    blocks, n_rest = rest_of(data, which, int(rng.integers(2**31))), data.n_items - which.size
    ends = round_ends(n_start, n_start + n_rest, MOST_A_ROUND * len(data))
    with Monitor("ADF", max_iter=len(ends) + 1 + options.n_passes) as monitor:
        with using("threads"):  # the sample is here
            profiles = start(beginning, seen, options, rng)
        monitor.report(0.0, rows=n_start)
        monitor.history.clear()
        done = 0.0
        for end in ends:
            share = (end - n_start) / n_rest
            lesson = fold(blocks, learn_share, add_lessons, Round(profiles, done, share)).stats
            after = culled(update(profiles, lesson.delta), features_kept=options.features_kept)
            mean = mean_of(profiles, lesson.known, lesson.delta.log_norm)
            monitor.report(mean, rows=int(lesson.known.weight), clusters=after.n_clusters)
            profiles, done = after, share
            if monitor.interrupted:
                break
        if options.adapt and new.rows.shape[0] >= LEAST_PER_CLUSTER * options.n_clusters:
            profiles = examined(profiles, new, clutter=options.clutter)
        calibration = calibrated(profiles, new if new.rows.shape[0] else beginning, rng)
        if new.rows.shape[0] and not monitor.interrupted:
            after, log_norm, _ = learned(profiles, [new], alone)
            monitor.report(mean_log_probability(profiles, new, log_norm), rows=new.rows.shape[0])
            profiles = after
        if options.n_passes > 1:
            side_by_side = replace(options, n_partitions=max(len(data), 2))
            profiles = further_passes(profiles, data.converted(presence_block), side_by_side, monitor)
    return Learned(by_size(profiles), calibration, monitor.history, monitor.interrupted)


# --- the parts as blocks ----------------------------------------------------------------------------------------------


def presence_block(dataset: Dataset) -> Block:
    """All rows of a part, each once."""
    rows = as_presence(dataset.X)
    return Block(rows, np.ones(rows.shape[0]))


def rest_of(data: Partitions, which: np.ndarray, seed: int) -> list[Converted]:
    """The parts without the rows of the sample, in an order that depends on the part alone."""
    blocks = []
    for number, part in enumerate(data):
        taken = which[(which >= part.first_row) & (which < part.first_row + part.n_items)] - part.first_row
        blocks.append(Converted(part, partial(shuffled_block, taken=taken, seed=(seed, number))))
    return blocks


def shuffled_block(dataset: Dataset, taken: np.ndarray, seed: tuple[int, int]) -> Block:
    """The other rows of a part, in random order."""
    left = np.setdiff1d(np.arange(len(dataset)), taken)
    rows = as_presence(dataset.X)[np.random.default_rng(seed).permutation(left)]
    return Block(rows, np.ones(rows.shape[0]))


def learn_share(block: Block, model: Round, memory: None = None) -> tuple[Lesson, None]:
    """What some more rows of a part teach the prior."""
    begin, end = (round(share * block.rows.shape[0]) for share in (model.begin, model.end))
    some = Block(block.rows[begin:end], block.weights[begin:end])
    return Lesson(accumulate(some, model.profiles)[0], known_of(some, model.profiles)[0]), memory


def add_lessons(a: Lesson, b: Lesson) -> Lesson:
    """What both taught."""
    return Lesson(merge(a.delta, b.delta), add_known(a.known, b.known))


# --- what is known of the rows ----------------------------------------------------------------------------------------


class LookedBack(NamedTuple):
    """Rows with their most likely cluster, part by part."""

    rows: list[np.ndarray]
    shares: list[np.ndarray]
    typicality: list[np.ndarray]


def look_back(model: BernoulliMixture, data: Partitions) -> None:
    """What is known of the rows just learned, in the order of the parts."""
    found = fold(iter(data.converted(presence_block)), look_at, add_looks, model.profiles_).stats
    rows, shares = np.concatenate(found.rows), np.concatenate(found.shares)
    model._describe_rows(rows, shares, np.concatenate(found.typicality))


def look_at(block: Block, profiles: Profiles, memory: None = None) -> tuple[LookedBack, None]:
    """The rows of a block under a model that does not learn from them."""
    found = scored(profiles, block.rows, n_threads=1)
    return LookedBack([found.rows], [found.shares], [per_feature(found.log_ratios, block.rows)]), memory


def add_looks(a: LookedBack, b: LookedBack) -> LookedBack:
    """The rows of both."""
    return LookedBack(*(one + other for one, other in zip(a, b, strict=True)))
