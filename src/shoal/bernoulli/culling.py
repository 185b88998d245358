"""Keeping profiles small: which keywords lose their own Beta, and which clusters are given back."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr

from shoal.bernoulli.adf_kernels import learn_fraction
from shoal.bernoulli.entries_kernels import refresh_all
from shoal.bernoulli.profiles import Profiles, grown, rebuilt

# Scores take a default's mean to be small (log(1 - mu) as a short series): above this, entries are kept. At 0.1 so many
# were kept on Debian's tags that clusters merged too eagerly (41 of 100 left, at 0.3 it is 75).
COMMON = 0.3
SMALLEST_GAIN = 0.003  # nats for each ad of the model


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """KL divergence between Bernoulli distributions, in nats."""
    return np.asarray(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def gains(profiles: Profiles) -> np.ndarray:
    """For each entry, how much likelier it makes its cluster's ads than the default would, in nats over all of them.

    Infinite where the default would be too large a mean to be scored as a default.
    """
    used = profiles.n_entries
    rows, features = profiles.cluster[:used], profiles.feature[:used]
    means = np.clip(profiles.alphas() / profiles.totals(), 1e-12, 1 - 1e-9)
    defaults = profiles.ratio[rows] * profiles.background[features]
    gain = profiles.mass[rows] * divergence(means, np.clip(defaults, 1e-12, 1 - 1e-9))
    return np.where(defaults > COMMON, np.inf, gain)


def telling_nothing(profiles: Profiles, least_share: float = 0.9) -> np.ndarray:
    """Rule (a): keywords whose mean is about the same in every cluster (a mask by keyword).

    Their information about the cluster is under 0.2 % of their own entropy, or no more than chance would give.
    """
    used = profiles.n_entries
    rows, features = profiles.cluster[:used], profiles.feature[:used]
    weights = profiles.weights()
    covered = np.bincount(features, weights=weights[rows], minlength=profiles.n_features)
    of_all = float(weights[profiles.opens].sum())  # the clutter has no entries
    candidates = np.flatnonzero((covered >= least_share * of_all) & ~profiles.shared)
    place = np.full(profiles.n_features, -1, dtype=np.int64)
    place[candidates] = np.arange(candidates.size)
    means = profiles.ratio[:, None] * profiles.background[candidates]
    inside = place[features] >= 0
    means[rows[inside], place[features[inside]]] = (profiles.alphas() / profiles.totals())[inside]
    means = np.clip(means, 1e-12, 1 - 1e-9)
    overall = weights @ means
    information = weights @ divergence(means, overall[None, :])
    entropy = -(overall * np.log(overall) + (1 - overall) * np.log1p(-overall))
    n_rows, ads = profiles.n_rows, max(float(profiles.mass.sum()), 1.0)
    by_chance = (n_rows + 3 * np.sqrt(2 * n_rows)) / (2 * ads)
    alike = (information < 0.002 * entropy) | (information < by_chance)
    alike &= profiles.mass.sum() * overall > 10 * n_rows  # seldom seen: too early to say
    mask = np.zeros(profiles.n_features, dtype=np.bool_)
    mask[candidates[alike]] = n_rows > 1
    return mask


def culled(profiles: Profiles, *, least_gain: float, features_kept: int) -> Profiles:
    """Apply both rules. ``least_gain`` in nats; a cluster keeps at most ``features_kept`` entries, the most telling."""
    alike = telling_nothing(profiles)
    if alike.any():
        profiles = profiles._replace(shared=profiles.shared | alike)
        refresh_all(profiles)
    used = profiles.n_entries
    rows = profiles.cluster[:used]
    gain = gains(profiles)
    # A handful of ads cannot gain many nats: what they say is little, but it is all there is.
    enough = min(least_gain, SMALLEST_GAIN * profiles.mass.sum())
    keep = (gain >= enough) & ~profiles.shared[profiles.feature[:used]]
    counts = np.bincount(rows[keep], minlength=profiles.n_rows)
    if counts.max(initial=0) > features_kept:
        order = np.lexsort((-gain, ~keep, rows))
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=profiles.n_rows))])[:-1]
        rank = np.empty(used, dtype=np.int64)
        rank[order] = np.arange(used) - starts[rows[order]]
        keep &= rank < features_kept
    return rebuilt(profiles, keep)


def tiny(profiles: Profiles, least_mass: float, pinned: np.ndarray) -> np.ndarray:
    """Rows of clusters that explain less than ``least_mass`` ads, clutter and pinned ones apart."""
    return np.flatnonzero((profiles.mass < least_mass) & profiles.opens & ~pinned)


def given_back(profiles: Profiles, gone: np.ndarray, *, negligible: float) -> Profiles:
    """Remove clusters; what each held returns to the model as one fractional ad (x_d = mu_ld, weight = its ads)."""
    used = profiles.n_entries
    means = profiles.alphas() / profiles.totals()
    fractions = []
    for row in gone:
        slots = np.flatnonzero(profiles.cluster[:used] == row)
        fractions.append((profiles.feature[slots].astype(np.int64), means[slots], float(profiles.mass[row])))
    profiles = rebuilt(profiles, np.ones(used, dtype=bool), np.setdiff1d(np.arange(profiles.n_rows), gone))
    for features, values, mass in fractions:
        if mass <= 0 or profiles.n_rows == 0:
            continue
        while not learn_fraction(features, values, mass, negligible, profiles):
            profiles = grown(profiles, 2 * profiles.hits.size + profiles.n_rows * features.size)
    return profiles
