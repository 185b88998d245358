"""Assumed density filtering over rows: one pass, further passes, and the start that one pass needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.adf_kernels import count_rows, filter_rows, revisit_rows
from shoal.bernoulli.profiles import Profiles, grown


class Shares(NamedTuple):
    """What each ad, in the order it was read, gave to which clusters."""

    rows: np.ndarray  # (n, t) clusters, -1 for none
    values: np.ndarray  # (n, t) shares, multiples of 2^-24
    log_norms: np.ndarray  # (n,) log sum of scores before the ad was learned


def no_shares(n: int, width: int) -> Shares:
    return Shares(np.full((n, width), -1, dtype=np.int64), np.zeros((n, width)), np.zeros(n))


def roomier(profiles: Profiles) -> Profiles:
    return grown(profiles, 2 * profiles.hits.size + 1024)


def filtered(
    profiles: Profiles,
    rows: sp.csr_matrix,
    weights: np.ndarray,
    order: np.ndarray,
    *,
    negligible: float,
    width: int = 0,
) -> tuple[Profiles, Shares]:
    """Learn the rows in this order, each once."""
    shares, start = no_shares(order.size, width), 0
    while start < order.size:
        start = filter_rows(
            rows.indptr, rows.indices, weights, order, start, negligible, profiles, shares.log_norms, *shares[:2]
        )
        if start < order.size:
            profiles = roomier(profiles)
    return profiles, shares


def revisited(
    profiles: Profiles,
    rows: sp.csr_matrix,
    weights: np.ndarray,
    order: np.ndarray,
    shares: Shares,
    *,
    negligible: float,
) -> Profiles:
    """One more pass over rows whose shares are known; ``shares`` is brought up to date in place."""
    start = 0
    while start < order.size:
        start = revisit_rows(
            rows.indptr, rows.indices, weights, order, start, negligible, profiles, shares.log_norms, *shares[:2]
        )
        if start < order.size:
            profiles = roomier(profiles)
    return profiles


def count_shares(
    profiles: Profiles,
    rows: sp.csr_matrix,
    weights: np.ndarray,
    order: np.ndarray,
    kept_rows: np.ndarray,
    kept_shares: np.ndarray,
    *,
    sign: float,
) -> Profiles:
    """Add known shares as plain counts, or take them back."""
    start = 0
    while start < order.size:
        start = count_rows(rows.indptr, rows.indices, weights, order, start, sign, profiles, kept_rows, kept_shares)
        if start < order.size:
            profiles = roomier(profiles)
    return profiles
