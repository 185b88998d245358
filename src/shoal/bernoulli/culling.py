"""Keeping profiles small: which features lose their own Betas, and what becomes of a removed cluster."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr

from shoal.bernoulli.adf import NEGLIGIBLE
from shoal.bernoulli.adf_kernels import learn_fraction
from shoal.bernoulli.entries_kernels import refresh_all
from shoal.bernoulli.profiles import Profiles, copied, grown, rebuilt

LEAST_GAIN = 1.0  # nats an entry must be worth
SMALLEST_GAIN = 0.003  # the same for each row of the model: a handful of rows cannot gain a nat
SEEN_OFTEN = 10  # occurrences for each cluster from which a feature can be called uninformative
LEAST_COVERED = 0.9  # share of all rows in clusters with an entry, below which it cannot


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """KL divergence between Bernoulli distributions, in nats."""
    return np.asarray(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def culled(profiles: Profiles, *, features_kept: int) -> Profiles:
    """Apply both rules of culling; a cluster keeps at most ``features_kept`` entries, those of most gain."""
    alike = uninformative_features(profiles)
    if alike.any():
        profiles = copied(profiles)._replace(uninformative=profiles.uninformative | alike)
        refresh_all(profiles)
    used = profiles.n_entries
    rows = profiles.cluster[:used]
    gain = gains(profiles)
    enough = min(LEAST_GAIN, SMALLEST_GAIN * profiles.mass.sum())
    keep = (gain >= enough) & ~profiles.uninformative[profiles.feature[:used]]
    if np.bincount(rows[keep], minlength=profiles.n_rows).max(initial=0) > features_kept:
        keep &= _rank_in_cluster(rows, gain, keep) < features_kept
    return rebuilt(profiles, keep)


def gains(profiles: Profiles) -> np.ndarray:
    """For each entry, how much likelier it makes its cluster's rows than the default would, in nats over all of them.

    Rule (b) of the paper: the KL divergence from the own Beta to the default.
    """
    used = profiles.n_entries
    rows, features = profiles.cluster[:used], profiles.feature[:used]
    return np.asarray(profiles.mass[rows] * divergence(profiles.means(), profiles.default_means(rows, features)))


def uninformative_features(profiles: Profiles) -> np.ndarray:
    """Rule (a): features whose mean is about the same in every cluster (a mask by feature).

    Their information about the cluster is under 0.2 % of their own entropy, or no more than chance would give.
    """
    used = profiles.n_entries
    rows, features = profiles.cluster[:used], profiles.feature[:used]
    weights = profiles.weights()
    covered = np.bincount(features, weights=weights[rows], minlength=profiles.n_features)
    of_all = float(weights[profiles.has_entries].sum())  # an empty clutter has no entries
    candidates = np.flatnonzero((covered >= LEAST_COVERED * of_all) & ~profiles.uninformative)
    place = np.full(profiles.n_features, -1, dtype=np.int64)
    place[candidates] = np.arange(candidates.size)
    means = profiles.default_means(np.arange(profiles.n_rows)[:, None], candidates[None, :])
    inside = place[features] >= 0
    means[rows[inside], place[features[inside]]] = profiles.means()[inside]
    means = np.clip(means, 1e-12, 1 - 1e-12)
    overall = weights @ means
    information = weights @ divergence(means, overall[None, :])
    entropy = -(overall * np.log(overall) + (1 - overall) * np.log1p(-overall))
    n_rows, mass = profiles.n_rows, max(float(profiles.mass.sum()), 1.0)
    by_chance = (n_rows + 3 * np.sqrt(2 * n_rows)) / (2 * mass)
    alike = (information < 0.002 * entropy) | (information < by_chance)
    alike &= mass * overall > SEEN_OFTEN * n_rows
    mask = np.zeros(profiles.n_features, dtype=np.bool_)
    mask[candidates[alike]] = n_rows > 1
    return mask


def _rank_in_cluster(rows: np.ndarray, gain: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Place of each entry in its cluster by gain, those to keep first."""
    order = np.lexsort((-gain, ~keep, rows))
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows))])[:-1]
    rank = np.empty(rows.size, dtype=np.int64)
    rank[order] = np.arange(rows.size) - starts[rows[order]]
    return rank


def without_rows(profiles: Profiles, gone: np.ndarray) -> Profiles:
    """Remove clusters; what each held returns to the model as one fractional row (x_d = mu_ld, weight = its rows)."""
    used = profiles.n_entries
    means = profiles.means()
    fractions = []
    for row in gone:
        slots = np.flatnonzero(profiles.cluster[:used] == row)
        fractions.append((profiles.feature[slots].astype(np.int64), means[slots], float(profiles.mass[row])))
    profiles = rebuilt(profiles, rows=np.setdiff1d(np.arange(profiles.n_rows), gone))
    for features, values, mass in fractions:
        if mass <= 0 or profiles.n_rows == 0:
            continue
        while not learn_fraction(features, values, mass, NEGLIGIBLE, profiles):
            profiles = grown(profiles, 2 * profiles.hits.size + profiles.n_rows * features.size)
    return profiles
