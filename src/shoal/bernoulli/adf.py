"""Assumed density filtering over rows: one pass, further passes, and the start that one pass needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.adf_kernels import read_rows
from shoal.bernoulli.profiles import Board, Profiles, board_of, grown


class Shares(NamedTuple):
    """What each ad, in the order it was read, gave to which clusters."""

    rows: np.ndarray  # (n, t) clusters, -1 for none
    values: np.ndarray  # (n, t) shares, multiples of 2^-24
    log_norms: np.ndarray  # (n,) log sum of scores before the ad was learned


class Reading(NamedTuple):
    """What to do with each ad, in this order."""

    takes_back: bool  # what it taught when it was read before
    looks: bool  # at it, for its shares
    adds: bool  # it to the clusters, by its shares
    negligible: float  # a share below this is left out


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
    shares = no_shares(order.size, width)
    how = Reading(takes_back=False, looks=True, adds=True, negligible=negligible)
    return _read(profiles, board_of(profiles), rows, weights, order, shares, how), shares


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
    how = Reading(takes_back=True, looks=True, adds=True, negligible=negligible)
    return _read(profiles, board_of(profiles), rows, weights, order, shares, how)


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
    how = Reading(takes_back=sign < 0, looks=False, adds=sign > 0, negligible=0.0)
    shares = Shares(kept_rows, kept_shares, np.zeros(0))
    return _read(profiles, board_of(profiles, empty=True), rows, weights, order, shares, how)


def _read(
    profiles: Profiles,
    board: Board,
    rows: sp.csr_matrix,
    weights: np.ndarray,
    order: np.ndarray,
    shares: Shares,
    how: Reading,
) -> Profiles:
    start = 0
    while True:
        start = read_rows(
            rows.indptr, rows.indices, weights, order, start, *how, profiles, board,
            shares.log_norms, shares.rows, shares.values,
        )  # fmt: skip
        if start == order.size:
            return profiles
        profiles = roomier(profiles)
