"""How a fit by ADF goes: a primed start, one pass in blocks with tidying between, further passes if asked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from shoal.base import Roster
from shoal.bernoulli.adf import Shares, count_shares, filtered, no_shares, revisited
from shoal.bernoulli.births import far_apart, merged_rows, mergers, seeded
from shoal.bernoulli.culling import culled, given_back, tiny
from shoal.bernoulli.entries_kernels import refresh_all
from shoal.bernoulli.parallel import read_in_shares
from shoal.bernoulli.profiles import Profiles, empty_profiles, rebuilt, with_rows
from shoal.bernoulli.scoring import explained

LEAST_ADS, FEW_ADS = 0.5, 3.0  # a cluster with less is empty; at the end of a fit, has found no company
WIDTH = 6  # shares remembered of each ad while it may be looked at again


@dataclass
class Rules:
    """What a fit by ADF may do."""

    n_clusters: int
    clutter: bool
    flat: bool
    strength: float
    weight: float
    init: str
    negligible: float
    least_gain: float
    features_kept: int
    least_share: float
    births: bool
    merges: bool
    prime_passes: int
    n_shares: int = 1
    n_threads: int | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)


@dataclass
class Learner:
    """A model while it learns: beliefs, and whose they are."""

    profiles: Profiles
    roster: Roster
    rules: Rules

    # --- the start ------------------------------------------------------------------------------------------------

    @classmethod
    def primed(
        cls, rows: sp.csr_matrix, weights: np.ndarray, order: np.ndarray, seen: np.ndarray, rules: Rules
    ) -> tuple[Learner, Shares]:
        """Start from ads far apart, then look at the first ads several times, each counted once."""
        profiles = empty_profiles(
            seen, rules.n_clusters, clutter=rules.clutter, strength=rules.strength, weight=rules.weight, flat=rules.flat
        )
        first = rows[order]
        n_seeds = min(rules.n_clusters, order.size)
        if rules.init == "spread":
            seeds = far_apart(first, n_seeds, profiles.background, rules.rng)
        else:
            seeds = rules.rng.choice(order.size, size=n_seeds, replace=False)
        clusters = profiles.n_clutter + np.arange(seeds.size)
        start = seeded(profiles, first, seeds, clusters, 1.0 if rules.init == "spread" else 0.2)
        learner = cls(start, Roster.of(rules.n_clusters), rules)
        learner.profiles, shares = filtered(start, rows, weights, order, negligible=rules.negligible, width=WIDTH)
        if rules.prime_passes:
            learner.recount(rows, weights, order, shares)
            for passes in range(rules.prime_passes):
                last = passes == rules.prime_passes - 1
                shares = learner.look_again(rows, weights, order, shares, tidy=not last)
        return learner, shares

    def recount(self, rows: sp.csr_matrix, weights: np.ndarray, order: np.ndarray, shares: Shares) -> None:
        """Forget all, and count every ad by its shares: what was learned twice or perturbed at the start is gone."""
        fresh = rebuilt(self.profiles, np.zeros(self.profiles.n_entries, dtype=bool))
        fresh.mass[:], fresh.held[:] = 0.0, 0.0
        fresh.shared[:] = False
        refresh_all(fresh)
        self.profiles = count_shares(fresh, rows, weights, order, *shares[:2], sign=1.0)

    def number_afresh(self) -> None:
        """Number the clusters from 0, the largest first: nobody has seen the numbers used while starting."""
        profiles = self.profiles
        n_clutter = profiles.n_clutter
        largest = n_clutter + np.argsort(-profiles.mass[n_clutter:], kind="stable")
        rows = np.concatenate([np.arange(n_clutter), largest])
        self.profiles = rebuilt(profiles, np.ones(profiles.n_entries, dtype=bool), rows)
        self.roster = Roster.of(largest.size)

    def finish(self) -> None:
        """Drop the entries that say nothing, make one of clusters that are alike, remove those without company.

        A cluster born late may have taken half of another's ads, or none but its first, and no pass follows that would
        find out.
        """
        rules = self.rules
        self.profiles = culled(self.profiles, least_gain=rules.least_gain, features_kept=rules.features_kept)
        while rules.merges and (pairs := mergers(self.profiles, self.pinned)):
            self._pour(pairs, no_shares(0, 0))
        self._remove_tiny(no_shares(0, 0), counted=False, most=FEW_ADS)

    def look_again(
        self, rows: sp.csr_matrix, weights: np.ndarray, order: np.ndarray, shares: Shares, *, tidy: bool
    ) -> Shares:
        """One more pass over ads whose shares are known, with births and merges before it when ``tidy``."""
        if tidy:
            shares = self.tidy(rows, weights, order, shares, counted=True)
        self.profiles = revisited(self.profiles, rows, weights, order, shares, negligible=self.rules.negligible)
        return shares

    # --- the stream -----------------------------------------------------------------------------------------------

    def read(self, rows: sp.csr_matrix, weights: np.ndarray, order: np.ndarray, *, width: int = WIDTH) -> Shares:
        """Learn these ads, each once: one after the other, or in shares of which each starts from the same prior."""
        rules = self.rules
        if rules.n_shares == 1:
            self.profiles, shares = filtered(
                self.profiles, rows, weights, order, negligible=rules.negligible, width=width
            )
        else:
            self.profiles, shares = read_in_shares(
                self.profiles, rows, weights, order, n_shares=rules.n_shares, negligible=rules.negligible,
                width=width, n_threads=rules.n_threads,
            )  # fmt: skip
        return shares

    def tidy(
        self, rows: sp.csr_matrix, weights: np.ndarray, order: np.ndarray, shares: Shares, *, counted: bool
    ) -> Shares:
        """Cull, merge, remove and give birth.

        ``counted``: every ad of the model is among these, so a removed cluster's ads are simply without a share until
        they are looked at again; otherwise what it held is given back as one fractional ad.
        """
        rules = self.rules
        self.profiles = culled(self.profiles, least_gain=rules.least_gain, features_kept=rules.features_kept)
        if rules.merges:
            shares = self._merge_alike(shares)
        shares = self._remove_tiny(shares, counted=counted)
        if rules.births:
            shares = self._give_birth(rows, weights, order, shares)
        return shares

    @property
    def pinned(self) -> np.ndarray:
        mask = np.zeros(self.profiles.n_rows, dtype=bool)
        mask[self.profiles.n_clutter :] = np.isin(self.roster.ids, self.roster.pinned)
        if self.profiles.n_clutter:
            mask[0] = True
        return mask

    def _merge_alike(self, shares: Shares) -> Shares:
        pairs = mergers(self.profiles, self.pinned)
        return self._pour(pairs, shares) if pairs else shares

    def _pour(self, pairs: list[tuple[int, int]], shares: Shares) -> Shares:
        n_clutter = self.profiles.n_clutter
        into = np.arange(self.profiles.n_rows)
        ids = self.roster.ids.copy()
        for kept, gone in pairs:
            into[gone] = kept
            self.roster.remove([ids[gone - n_clutter]], kind="merge", into=int(ids[kept - n_clutter]))
        gone_rows = np.array([gone for _, gone in pairs])
        self.profiles = merged_rows(self.profiles, pairs)
        return renumbered(shares, _after_removal(gone_rows, into.size)[into])

    def _remove_tiny(self, shares: Shares, *, counted: bool, most: float = np.inf) -> Shares:
        """Remove clusters far smaller than the average, or, if that is less, than ``most`` ads."""
        profiles = self.profiles
        average = profiles.mass.sum() / max(self.rules.n_clusters, 1)
        gone = tiny(profiles, max(min(self.rules.least_share * average, most), LEAST_ADS), self.pinned)
        gone = gone[: max(profiles.n_rows - profiles.n_clutter - 1, 0)]
        if not gone.size:
            return shares
        self.roster.remove(self.roster.ids[gone - profiles.n_clutter])
        if counted:
            keep_rows = np.setdiff1d(np.arange(profiles.n_rows), gone)
            self.profiles = rebuilt(profiles, np.ones(profiles.n_entries, dtype=bool), keep_rows)
        else:
            self.profiles = given_back(profiles, gone, negligible=self.rules.negligible)
        return renumbered(shares, _after_removal(gone, profiles.n_rows))

    def _give_birth(self, rows: sp.csr_matrix, weights: np.ndarray, order: np.ndarray, shares: Shares) -> Shares:
        """Fill the free places with the worst-explained ads: each leaves where it was and begins a cluster."""
        profiles = self.profiles
        n_free = self.rules.n_clusters - (profiles.n_rows - profiles.n_clutter)
        if n_free <= 0 or order.size < 2:
            return shares
        block = rows[order]
        poorly = explained(profiles, block, shares.log_norms)
        known = np.diff(block.indptr) >= 2
        if not known.any():
            return shares
        worst = np.flatnonzero(known & (poorly <= np.quantile(poorly[known], 0.25)))
        chosen = worst[far_apart(block[worst], n_free, profiles.background, self.rules.rng)]
        if not chosen.size:
            return shares
        profiles = count_shares(
            profiles, rows, weights, order[chosen], shares.rows[chosen], shares.values[chosen], sign=-1.0
        )
        fresh = profiles.n_rows + np.arange(chosen.size)
        profiles = with_rows(profiles, chosen.size)
        shares.rows[chosen], shares.values[chosen] = -1, 0.0
        shares.rows[chosen, 0], shares.values[chosen, 0] = fresh, 1.0
        self.profiles = count_shares(
            profiles, rows, weights, order[chosen], shares.rows[chosen], shares.values[chosen], sign=1.0
        )
        self.roster.add(chosen.size)
        return shares


def _after_removal(gone: np.ndarray, n_rows: int) -> np.ndarray:
    """New row numbers once ``gone`` are taken out; -1 for those."""
    alive = np.ones(n_rows, dtype=bool)
    alive[gone] = False
    return np.where(alive, np.cumsum(alive) - 1, -1)


def renumbered(shares: Shares, new_row: np.ndarray) -> Shares:
    """The shares under new row numbers; those of one cluster are added up, those of removed clusters are dropped."""
    if not shares.rows.shape[1]:
        return shares
    rows = np.where(shares.rows >= 0, new_row[shares.rows], -1)
    values = np.where(rows >= 0, shares.values, 0.0)
    for later in range(1, rows.shape[1]):
        for earlier in range(later):
            same = (rows[:, later] == rows[:, earlier]) & (rows[:, later] >= 0)
            values[same, earlier] += values[same, later]
            rows[same, later], values[same, later] = -1, 0.0
    return Shares(rows, values, shares.log_norms)


def joined(parts: list[Shares]) -> Shares:
    """Shares of one block after another."""
    if not parts:
        return no_shares(0, WIDTH)
    return Shares(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
