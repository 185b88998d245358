"""A fit of counts in parts: rounds in which every part samples its rows against a model at most one round old.

Within a part this is the exact chain of ``samplers/``: rows are visited one by one, and see at once what the rows
before them did. What the other parts hold is added as one row for each cluster, which is never visited; it
is as old as the round. So with one part the chain is exact, and with more of them that much of it is stale.

After a round, the changes of all parts are added up, clusters that say the same are merged (new ones that two parts
have begun, above all), and the prior is learned again on the sums.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from shoal.base import Roster
from shoal.engine import Converted, Partitions, fold, learning, using
from shoal.errors import BadInput
from shoal.families.consensus import live_counts
from shoal.families.distributions.counts import CountFamily, CountStats
from shoal.families.distributions.registry import COUNTS
from shoal.families.fit_warnings import check_fit
from shoal.families.options import Settings, seed_of
from shoal.families.samplers.count_chain import CountChain
from shoal.families.samplers.hyperparameters import learn_alpha, learn_family, learn_process
from shoal.families.samplers.part_chain import PartChain, SumsChain
from shoal.families.samplers.schedule import Schedule, Trace
from shoal.families.samplers.split_merge import likely_pairs, rank_pairs
from shoal.families.statistics import add, empty_like, stack, sum_groups
from shoal.progress import Monitor

if TYPE_CHECKING:
    from shoal.data import Dataset
    from shoal.families.mixture import ExponentialFamilyMixture

SAMPLE_ROWS, SAMPLE_PER_CLUSTER = 20_000, 20  # rows that the first clusters are found in
LEARNING_ROWS = 5_000  # of them, by which the prior is learned


class Round(NamedTuple):
    """What travels to the parts."""

    family: CountFamily
    stats: CountStats  # of all parts and all slots, as they were when the round began
    concentration: float
    settings: Settings
    joined: np.ndarray  # (n_slots,) where the rows of each slot belong since slots were merged
    turn: int
    n_rows: int
    seed: int


class Memory(NamedTuple):
    """What a part keeps from round to round."""

    labels: np.ndarray  # (n,) slots


class Delta(NamedTuple):
    """What a part's visits changed."""

    stats: CountStats
    n_moved: int


class PartRows(NamedTuple):
    """A part, and which of how many it is."""

    X: sp.csr_matrix
    first_row: int
    number: int
    n_parts: int


def fit(model: ExponentialFamilyMixture, data: Partitions, identity_from: Any, given: Any) -> ExponentialFamilyMixture:
    """Fit the model to data in parts."""
    if model.family not in COUNTS:
        raise BadInput(f"family={model.family!r} is not for partitions, which hold counts; use {', '.join(COUNTS)}.")
    if any(each is not None for each in given) or not isinstance(model.init, str) or model.n_chains > 1:
        raise BadInput("y, links, labels in init and n_chains are not for partitions; leave them out.")
    model._settings()
    with learning(model):
        for name in ("number_of_clusters_", "classes_", "diagnostics_"):
            model.__dict__.pop(name, None)
        seed = seed_of(model.random_state)
        which = sampled(model, data, seed)
        sample = data.rows(which)
        first = start(model, sample, seed)
        model.bound_ = first.bound_
        some = np.sort(np.random.default_rng(seed).permutation(len(which))[:LEARNING_ROWS])
        rounds = Rounds(data, first, model._settings(), seed, Sample(which[some], sample[some]))
        with Monitor("sampling in parts", model.n_sweeps) as monitor:
            while monitor.running:
                moved = rounds.run(learns=monitor.n_iter < max(1, model.n_sweeps // 2))
                log_joint = rounds.log_joint()
                monitor.report(log_joint, log_joint=log_joint, moved=moved, live=int((rounds.stats.size > 0).sum()))
        finish(model, data, rounds, list(monitor.history))
        model._remember_rows(data.columns_alone(data.item_ids()), mode="fit")
    return model._identified(identity_from, data)  # type: ignore[no-any-return]


class Sample(NamedTuple):
    """Some rows, kept where the model is, and their numbers among all."""

    which: np.ndarray
    X: sp.csr_matrix


def sampled(model: ExponentialFamilyMixture, data: Partitions, seed: int) -> np.ndarray:
    """Numbers of the rows that the first clusters are found in."""
    bound = model.n_clusters if isinstance(model.n_clusters, int) else 0
    n = min(data.n_items, max(SAMPLE_ROWS, SAMPLE_PER_CLUSTER * bound))
    return np.sort(np.random.default_rng(seed).permutation(data.n_items)[:n])


def start(model: ExponentialFamilyMixture, sample: sp.csr_matrix, seed: int) -> ExponentialFamilyMixture:
    """The same model, fitted to the sample where this is called."""
    with using("threads"):
        return clone(model).set_params(engine="threads", random_state=seed).fit(sample)  # type: ignore[no-any-return]


class Rounds:
    """The model between rounds, and what the parts remember."""

    def __init__(
        self, data: Partitions, first: ExponentialFamilyMixture, settings: Settings, seed: int, sample: Sample
    ) -> None:
        self.settings, self.seed, self.n_rows, self.sample = settings, seed, data.n_items, sample
        self.blocks = [
            Converted(part, partial(part_rows, first_row=part.first_row, number=number, n_parts=len(data)))
            for number, part in enumerate(data)
        ]
        self.family, self.concentration = first.family_, first.hyperparameters_["concentration"]
        self.start = stack(first.stats_, empty_like(first.stats_, settings.n_clusters - first.n_clusters_))
        self.stats, self.turn = self.start, 0
        self.memories: Any = None
        self.joined = np.arange(settings.n_clusters)

    def run(self, *, learns: bool) -> int:
        """One round; how many rows moved."""
        model = Round(self.family, self.stats, self.concentration, self.settings, self.joined, self.turn, self.n_rows,
                      self.seed)  # fmt: skip
        delta, self.memories = fold(
            self.blocks, visit, merge, model, memories=self.memories, n_threads=self.settings.n_threads
        )
        # The rows of the sample have been placed with all others: the start itself is no part of the sums.
        self.stats = delta.stats if self.turn == 0 else add(self.stats, delta.stats)
        self.turn += 1
        self.joined = np.arange(self.settings.n_clusters)
        if learns:
            self.learn()
            if self.family.length_given:  # sets that merge by the joint of their sums would all be one
                self.merge_slots()
        return int(delta.n_moved)

    def sums(self) -> SumsChain:
        """The sums as a chain: what merging looks at."""
        return SumsChain(self.stats, self.family, self.prior(), self.n_rows)

    def rows_chain(self) -> CountChain:
        """The rows of the sample in their clusters, together with all other rows, from which a prior is learned."""
        found = fold(self.blocks, labels_of, _add, self.sample.which, memories=self.memories).stats
        labels, X = np.concatenate(found), self.sample.X
        others = add(self.stats, self.family.statistics(X, labels, len(self.stats.size)), -1)
        chain = PartChain(X, others, np.arange(len(self.stats.size)), self.prior(), self.family, self.settings, 0)
        chain.begin(labels)
        return chain

    def prior(self) -> Any:
        return prior_of(self.family, self.settings, self.concentration, self.n_rows)

    def learn(self) -> None:
        """Take the prior that suits the clusters, where the user left it open."""
        settings = self.settings
        if settings.smoothing in ("auto", "learn") or settings.background in ("auto", "learn"):
            found = learn_family(self.rows_chain() if self.family.length_given else self.sums(), self.family)
            fixed = {
                name: getattr(self.family, name)
                for name, option in (("smoothing", settings.smoothing), ("strength", settings.background))
                if option not in ("auto", "learn")
            }
            self.family = replace(found, **fixed)
        if settings.concentration == "learn":
            learner = learn_process if settings.weights == "dirichlet_process" else learn_alpha
            self.concentration = learner(self.stats.size, self.concentration)

    def merge_slots(self) -> None:
        """Pairs of clusters that are likelier to be one become one, each cluster once a round."""
        chain, live = self.sums(), np.flatnonzero(self.stats.size)
        if len(live) < 2:
            return
        pairs, gains = rank_pairs(chain, likely_pairs(chain, live))
        taken: set[int] = set()
        for one, two in pairs[gains > 0].tolist():
            if taken.isdisjoint((one, two)):
                taken.update((one, two))
                if self.stats.size[one] < self.stats.size[two]:
                    one, two = two, one
                self.joined[two] = one
        if taken:
            self.stats = sum_groups(self.stats, self.joined, self.settings.n_clusters)

    def log_joint(self) -> float:
        """log p(rows, labels | prior)."""
        return self.sums().log_joint()

    def labels(self) -> np.ndarray:
        """The slots of all rows, in the order of the parts."""
        assert self.memories is not None
        return self.joined[np.concatenate([memory.labels for memory in self.memories])]


def prior_of(family: CountFamily, settings: Settings, concentration: float, n_rows: int) -> Any:
    """The prior as kernels read it."""
    process = settings.weights == "dirichlet_process"
    alpha, dp_concentration = (0.0, concentration) if process else (concentration, 0.0)
    return family.prior(alpha=alpha, dp_concentration=dp_concentration, n_rows=n_rows)


def finish(model: ExponentialFamilyMixture, data: Partitions, rounds: Rounds, history: list[float]) -> None:
    """Everything users read, from the state after the last round; the largest cluster first."""
    slots, labels, size = np.unique(rounds.labels(), return_inverse=True, return_counts=True)
    order = np.argsort(-size, kind="stable")
    place = np.empty(len(slots), np.int64)
    place[order] = np.arange(len(slots))
    model.labels_, model.n_clusters_ = place[labels].astype(np.int64), len(slots)
    rows_of = slots[order]
    model.stats_ = CountStats(rounds.stats.size[rows_of], rounds.stats.sums[rows_of])
    model.family_, model._tree = rounds.family, None
    model.hyperparameters_ = {
        "smoothing": rounds.family.smoothing, "strength": rounds.family.strength, "concentration": rounds.concentration
    }  # fmt: skip
    model.known_, model.sampler_, model.chain_ = None, "indexed", None
    model.schedule_, model.trace_ = Schedule(model.n_sweeps, max(1, model.n_sweeps // 2), 1, split_merge=False), Trace()
    model.roster_, model.n_rows_ = Roster.of(model.n_clusters_), len(labels)
    model.log_joint_, model.log_joint_history_, model.n_iter_ = history[-1], history, len(history)
    model.samples_, model.draws_ = model.labels_[None].copy(), []
    model.n_clusters_posterior_ = live_counts(model.samples_)
    model.acceptance_, model.agreement_ = 1.0, np.ones(len(labels))
    edges = np.cumsum([0, *(part.n_items for part in data)])
    own: Any = [model.labels_[first:last] for first, last in pairwise(edges)]
    found = fold(data.matrices(), typical, _add, (model.family_, model.stats_), memories=own)
    model.typicality_ = np.concatenate(found.stats)
    check_fit(model, model.trace_, rounds.settings.n_clusters)


# --- what runs where the parts are ------------------------------------------------------------------------------------


def part_rows(dataset: Dataset, first_row: int, number: int, n_parts: int) -> PartRows:
    """The rows of a part."""
    X = dataset.X
    if X.nnz and not (np.isfinite(X.data).all() and X.data.min() >= 0):
        raise BadInput(f"part {number} of the data holds values that are negative or not finite.")
    return PartRows(X, first_row, number, n_parts)


def visit(block: PartRows, model: Round, memory: Memory | None = None) -> tuple[Delta, Memory]:
    """Visit every row of a part once: place it, the first time, else draw its cluster."""
    n_slots, family, X = len(model.stats.size), model.family, block.X
    before = None if memory is None else model.joined[memory.labels]
    mine = family.statistics(X, np.full(X.shape[0], -1) if before is None else before, n_slots)
    others = add(model.stats, mine, -1)
    # Empty slots in another order in each part, so that two parts do not put different things into one.
    local = np.arange(n_slots)
    empty = np.flatnonzero(model.stats.size == 0)
    local[empty] = np.roll(empty, block.number * len(empty) // block.n_parts)
    seed = np.random.SeedSequence([model.seed, model.turn, block.number]).generate_state(1)[0]
    chain = PartChain(X, others, local, prior_of(family, model.settings, model.concentration, model.n_rows), family,
                      model.settings, int(seed))  # fmt: skip
    after = chain.placed() if before is None else chain.drawn(before)
    changed = add(family.statistics(X, after, n_slots), mine, -1)
    n_moved = X.shape[0] if before is None else int((after != before).sum())
    return Delta(changed, n_moved), Memory(after)


def labels_of(block: PartRows, which: np.ndarray, memory: Memory) -> tuple[list[np.ndarray], Memory]:
    """The slots of some rows, by number among all, that this part has."""
    mine = which[(which >= block.first_row) & (which < block.first_row + block.X.shape[0])] - block.first_row
    return [memory.labels[mine]], memory


def merge(a: Delta, b: Delta) -> Delta:
    """What both changed."""
    return Delta(add(a.stats, b.stats), a.n_moved + b.n_moved)


def typical(
    X: sp.csr_matrix, model: tuple[CountFamily, CountStats], labels: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """How much better its cluster explains each row than an empty one does, per unit of its length."""
    family, stats = model
    own, alone = (family.log_predictive_at(stats, X, of) for of in (labels, np.full(X.shape[0], -1)))
    return [np.asarray((own - alone) / np.maximum(family.row_lengths(X), 1.0))], labels


def _add(a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
    return a + b
