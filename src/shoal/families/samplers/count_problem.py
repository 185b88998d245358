"""Rows, family and prior bound together: what a fit of counts is about, whichever sampler does it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.families.distributions.counts import CountFamily, CountStats
from shoal.families.distributions.registry import COUNTS
from shoal.families.kernels.candidates_kernels import Lists
from shoal.families.kernels.scores_kernels import Prior
from shoal.families.options import Settings
from shoal.families.samplers.count_chain import CountChain
from shoal.families.samplers.fastex import FastExChain
from shoal.families.samplers.gibbs import GibbsChain
from shoal.families.samplers.hyperparameters import learn_alpha, learn_family, learn_process
from shoal.families.samplers.indexed import IndexedChain
from shoal.families.samplers.initialization import default_inits, random_labels
from shoal.families.samplers.items import as_items
from shoal.families.samplers.split_merge import LONG_ROWS, split_merge_clusters

BACKGROUND = 500.0
DENSE_BYTES = 1 << 30
PARTING_STARTS, PARTING_SWEEPS = 4, 10
# What a visit costs, in nanoseconds, measured on one core with 86 values a row: over all clusters 7.4 us at k = 100, 35
# at 1,000 and 310 at 10,000; through the index, in the first sweeps, about 16 us whatever the number of clusters.
NS_PER_VALUE, NS_PER_CELL, NS_PER_CLUSTER = 50.0, 0.3, 5.0
NS_INDEXED, NS_INDEXED_PER_VALUE = 3000.0, 150.0


class CountProblem:
    """A mixture of counts to be sampled."""

    is_linked = False  # rows whose labels are linked are not predicted one by one

    def __init__(self, X: sp.csr_matrix, settings: Settings, family: CountFamily | None = None) -> None:
        self.settings = settings
        self.family = self.first_family(X) if family is None else family
        self.X = X
        self.items, self.indexed, self.unit = as_items(
            X, binary=self.family.binary, n_clusters=settings.n_clusters, budget=settings.budget, least=settings.least
        )
        self.start_lists: tuple[np.ndarray, Lists] | None = None
        process = settings.weights == "dirichlet_process"
        start = 1.0 if process else 0.1
        self.concentration = start if settings.concentration == "learn" else float(settings.concentration)

    def first_family(self, X: sp.csr_matrix) -> CountFamily:
        """The family with its prior before anything is learned, or as the user fixed it."""
        family = COUNTS[self.settings.family].for_rows(X)
        smoothing, background = self.settings.smoothing, self.settings.background
        if family.length_given:
            long_rows = X.sum() >= LONG_ROWS * X.shape[0]
            if background == "learn" or (background == "auto" and (long_rows or smoothing == 0)):
                family = replace(family, strength=BACKGROUND)
            if smoothing == "auto" and background == "auto" and long_rows:
                family = replace(family, smoothing=0.0)
        if background not in ("auto", "learn"):
            family = replace(family, strength=float(background))
        if smoothing not in ("auto", "learn"):
            family = replace(family, smoothing=float(smoothing))
        return family

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def default_inits(self) -> list[str]:
        return default_inits(self)

    def part_in_two(self) -> np.ndarray:
        """Labels of the best of a few random starts with two clusters; both have rows."""
        best, found = -np.inf, np.arange(self.n_rows) % 2
        for seed in range(PARTING_STARTS):
            chain = self.chain("gibbs", seed)
            self.begin(chain, random_labels(self, seed))
            for _ in range(PARTING_SWEEPS):
                chain.sweep()
            if len(np.unique(chain.labels)) == 2 and chain.log_joint() > best:
                best, found = chain.log_joint(), chain.labels.copy()
        return found

    @property
    def prior(self) -> Prior:
        process = self.settings.weights == "dirichlet_process"
        alpha, dp_concentration = (0.0, self.concentration) if process else (self.concentration, 0.0)
        return self.family.prior(alpha=alpha, dp_concentration=dp_concentration, unit=self.unit, n_rows=self.X.shape[0])

    def choose_sampler(self) -> tuple[str, str]:
        """(sampler, why) for ``sampler="auto"``."""
        n, d = self.X.shape
        k, per_row = self.settings.n_clusters, len(self.items.features) / max(n, 1)
        dense_bytes = 4 * k * d
        all_ns = per_row * (NS_PER_VALUE + k * NS_PER_CELL) + k * NS_PER_CLUSTER
        few_ns = NS_INDEXED + per_row * NS_INDEXED_PER_VALUE
        about = f"{k} clusters x {per_row:.0f} values a row"
        if dense_bytes > DENSE_BYTES:
            return "indexed", f"a dense table of {k} x {d} would take {dense_bytes / 1e9:.1f} GB"
        if all_ns <= few_ns:
            return "gibbs", f"{about}: looking at every cluster costs about {all_ns / 1000:.1f} us a row"
        return "indexed", f"{about}: every cluster would cost about {all_ns / 1000:.0f} us a row"

    def chain(self, sampler: str, seed: int) -> CountChain:
        if sampler == "gibbs":
            return GibbsChain(self.items, self.indexed, self.prior, self.settings.n_clusters, seed=seed)
        if sampler == "fastex":
            return FastExChain(
                self.items, self.indexed, self.prior, self.settings.n_clusters, seed=seed,
                n_bits=self.settings.n_bits, published=self.settings.hashes == "published",
                n_candidates=self.n_candidates(),
            )  # fmt: skip
        return self._indexed(seed)

    def _indexed(self, seed: int) -> IndexedChain:
        return IndexedChain(
            self.items, self.indexed, self.prior, self.settings.n_clusters, seed=seed,
            n_candidates=self.n_candidates(), refresh=self.settings.refresh, n_threads=self.settings.n_threads,
            parallel=self.settings.parallel,
        )  # fmt: skip

    def first_labels(self, seed: int) -> np.ndarray:
        """One pass over the rows in random order, each to its best cluster so far or a new one."""
        chain = self._indexed(seed)
        chain.start_one_pass(np.random.default_rng(seed).permutation(self.X.shape[0]))
        self.start_lists = chain.labels.copy(), chain.lists
        return self.start_lists[0]

    def begin(self, chain: CountChain, labels: np.ndarray) -> None:
        """Set a chain on its way from these labels; lists made on the way to them are made use of."""
        chain.set_labels(labels)
        if isinstance(chain, IndexedChain) and self.start_lists is not None and labels is self.start_lists[0]:
            chain.adopt(self.start_lists[1])
        self.start_lists = None

    def n_candidates(self) -> int:
        """Exact scores cost time in proportion to a row's length, so short rows can afford more candidates."""
        per_row = len(self.items.features) / max(self.X.shape[0], 1)
        return int(np.clip(400 / max(per_row, 1.0), 4, 32))

    def learn(self, chain: CountChain) -> None:
        """Take the prior that suits the chain's clusters, where the user left it open."""
        settings, size = self.settings, chain.clusters.size
        if settings.smoothing in ("auto", "learn") or settings.background in ("auto", "learn"):
            found = learn_family(chain, self.family, by_rows=not self.is_linked)
            fixed = {
                name: getattr(self.family, name)
                for name, option in (("smoothing", settings.smoothing), ("strength", settings.background))
                if option not in ("auto", "learn")
            }
            self.family = replace(found, **fixed)
        if settings.concentration == "learn":
            learner = learn_process if settings.weights == "dirichlet_process" else learn_alpha
            self.concentration = learner(size, self.concentration)
        if not same_prior(self.prior, chain.prior):
            chain.set_prior(self.prior)

    def split_merge(self, chain: CountChain) -> tuple[int, int]:
        """Merge and split while it helps; how many of each."""
        before = chain.labels.copy()
        done = split_merge_clusters(chain, by_rows=not self.is_linked)
        moved = chain.labels != before
        if moved.any():
            chain.after_split_merge(moved)
        return done

    def statistics(self, labels: np.ndarray, n_clusters: int) -> CountStats:
        return self.family.statistics(self.X, labels, n_clusters)

    def hyperparameters(self) -> dict[str, Any]:
        """What was learned, to be stored with the model."""
        return {
            "smoothing": self.family.smoothing,
            "strength": self.family.strength,
            "concentration": self.concentration,
        }

    def restore_hyperparameters(self, hyperparameters: dict[str, Any], family: CountFamily) -> None:
        self.family = replace(family, smoothing=hyperparameters["smoothing"], strength=hyperparameters["strength"])
        self.concentration = hyperparameters["concentration"]


def same_prior(one: Prior, two: Prior) -> bool:
    pairs: list[tuple[Any, Any]] = list(zip(one, two, strict=True))
    return all(np.array_equal(left, right) for left, right in pairs)
