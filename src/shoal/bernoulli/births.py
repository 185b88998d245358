"""Where clusters come from: spread-out first ads, the worst-explained ads later, and one cluster out of two."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import betaln, gammaln

from shoal.bernoulli.births_kernels import spread_out
from shoal.bernoulli.entries_kernels import refresh_all
from shoal.bernoulli.profiles import Profiles, rebuilt


def unit_rows(rows: sp.csr_matrix, background: np.ndarray) -> sp.csr_matrix:
    """Binary rows weighted by how telling each keyword is, scaled to length one."""
    telling = np.sqrt(np.maximum(-np.log(background), 0.05))
    values = telling[rows.indices]
    lengths = np.sqrt(np.add.reduceat(np.append(values**2, 0.0), rows.indptr[:-1]) * (np.diff(rows.indptr) > 0))
    values = values / np.repeat(np.maximum(lengths, 1e-300), np.diff(rows.indptr))
    return sp.csr_matrix((values, rows.indices, rows.indptr), shape=rows.shape)


def far_apart(
    rows: sp.csr_matrix,
    n: int,
    background: np.ndarray,
    rng: np.random.Generator,
    interest: np.ndarray | None = None,
) -> np.ndarray:
    """Up to ``n`` row numbers that lie far apart, more likely where ``interest`` is large."""
    units = unit_rows(rows, background)
    chosen = np.zeros(n, dtype=np.int64)
    wanted = np.ones(rows.shape[0]) if interest is None else np.asarray(interest, dtype=np.float64)
    wanted = wanted * (np.diff(rows.indptr) > 0)
    found = spread_out(units.indptr, units.indices, units.data, rows.shape[1], rng.random(n), wanted, chosen)
    return chosen[:found]


def means_by_row(profiles: Profiles) -> sp.csr_matrix:
    """Means of the entries, one row for each cluster."""
    used = profiles.n_entries
    return sp.csr_matrix(
        (profiles.alphas() / profiles.totals(), (profiles.cluster[:used], profiles.feature[:used])),
        shape=(profiles.n_rows, profiles.n_features),
    )


def counts_by_row(profiles: Profiles, name: str) -> sp.csr_matrix:
    """A field of the entries, one row for each cluster."""
    used = profiles.n_entries
    return sp.csr_matrix(
        (getattr(profiles, name)[:used], (profiles.cluster[:used], profiles.feature[:used])),
        shape=(profiles.n_rows, profiles.n_features),
    )


def merge_gain(profiles: Profiles, counts: sp.csr_matrix, a: int, b: int) -> float:
    """Log evidence for one cluster in place of two: what the ads say of the weights and of every keyword with an entry.

    Positive: the two are better believed to be one.
    """
    strength, weight = profiles.prior
    mass_a, mass_b = profiles.mass[a], profiles.mass[b]
    both = np.union1d(
        counts.indices[counts.indptr[a] : counts.indptr[a + 1]], counts.indices[counts.indptr[b] : counts.indptr[b + 1]]
    )
    background = profiles.background[both]

    def present(row: int) -> np.ndarray:
        of_default = background * max(profiles.held[row], 0.0) / max(profiles.spread[row, 0], 1e-9)
        own = counts[row]
        found = np.searchsorted(both, own.indices)
        of_default[found] = own.data
        return np.asarray(np.clip(of_default, 0.0, None))

    def evidence(present: np.ndarray, mass: float) -> float:
        alpha, n = strength * background + present, strength + mass
        beta = np.maximum(n - alpha, 1e-6)
        return float(np.sum(betaln(alpha, beta) - betaln(strength * background, strength * (1 - background))))

    one = evidence(present(a) + present(b), mass_a + mass_b) + gammaln(weight + mass_a + mass_b) + gammaln(weight)
    two = (
        evidence(present(a), mass_a)
        + evidence(present(b), mass_b)
        + gammaln(weight + mass_a)
        + gammaln(weight + mass_b)
    )
    return float(one - two)


def mergers(profiles: Profiles, pinned: np.ndarray, least_cosine: float = 0.5) -> list[tuple[int, int]]:
    """Pairs (kept, gone) of clusters that are better believed to be one; no cluster is in two pairs."""
    means = means_by_row(profiles)
    lengths = np.sqrt(np.asarray(means.multiply(means).sum(axis=1)).ravel())
    units = sp.diags_array(1 / np.maximum(lengths, 1e-300)) @ means
    nearness = sp.triu(sp.coo_matrix(units @ units.T), k=1).tocoo()
    close = np.flatnonzero(nearness.data > least_cosine)
    close = close[np.argsort(-nearness.data[close], kind="stable")][: 4 * profiles.n_rows]
    counts = counts_by_row(profiles, "hits")
    counts.sort_indices()
    taken: set[int] = set()
    pairs = []
    for at in close:
        a, b = int(nearness.row[at]), int(nearness.col[at])
        if a in taken or b in taken or (pinned[a] and pinned[b]):
            continue
        if merge_gain(profiles, counts, a, b) > 0:
            taken |= {a, b}
            first = pinned[a] or (not pinned[b] and profiles.mass[a] >= profiles.mass[b])
            pairs.append((a, b) if first else (b, a))
    return pairs


def merged_rows(profiles: Profiles, pairs: list[tuple[int, int]]) -> Profiles:
    """Each pair's second cluster poured into its first: counts add; then the emptied rows are taken out."""
    if not pairs:
        return profiles
    into = np.arange(profiles.n_rows)
    for kept, gone in pairs:
        into[gone] = kept
    used = profiles.n_entries
    shape = (profiles.n_rows, profiles.n_features)
    spot = into[profiles.cluster[:used]], profiles.feature[:used]

    def summed(values: np.ndarray) -> sp.csr_matrix:
        total = sp.csr_matrix((values, spot), shape=shape)  # duplicates are added up
        total.sort_indices()
        return total

    ones = summed(np.ones(used))
    fields = {name: summed(getattr(profiles, name)[:used]).data for name in ("hits", "given", "loss")}
    rows = np.repeat(np.arange(profiles.n_rows), np.diff(ones.indptr))
    n = rows.size
    arena = {name: np.zeros_like(getattr(profiles, name), shape=max(n, 1)) for name in (*fields, "cluster", "feature")}
    for name, values in fields.items():
        arena[name][:n] = values
    arena["cluster"][:n], arena["feature"][:n] = rows, ones.indices
    mass, held = np.zeros(profiles.n_rows), np.zeros(profiles.n_rows)
    np.add.at(mass, into, profiles.mass)
    np.add.at(held, into, profiles.held)
    poured = profiles._replace(**arena, mass=mass, held=held, used=np.array([n]))
    gone_rows = np.array([gone for _, gone in pairs])
    return rebuilt(poured, np.ones(n, dtype=bool), np.setdiff1d(np.arange(profiles.n_rows), gone_rows))


def seeded(profiles: Profiles, rows: sp.csr_matrix, seeds: np.ndarray, clusters: np.ndarray, pinch: float) -> Profiles:
    """Perturb the prior of ``clusters`` by a pinch of one ad each, so that they do not stay alike for ever."""
    from shoal.bernoulli.adf import count_shares

    kept_rows = np.asarray(clusters, dtype=np.int64)[:, None]
    kept_shares = np.full((seeds.size, 1), 1.0)
    weights = np.full(rows.shape[0], pinch)
    profiles = count_shares(profiles, rows, weights, seeds, kept_rows, kept_shares, sign=1.0)
    refresh_all(profiles)
    return profiles
