"""Assumed density filtering, in the order of the paper: responsibilities, the moment match, and looking again.

1. Responsibility: ``r_l ~ gamma_l prod_d mu_ld^x_d (1 - mu_ld)^(1 - x_d)``.
2. Each Beta becomes the one whose first two moments are those of the exact posterior, a mixture of two Betas.
3. ``gamma_l += r_l``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.bernoulli.adf_kernels import read_rows, top_rows
from shoal.bernoulli.entries_kernels import refresh_all
from shoal.bernoulli.profiles import Profiles, copied, dense_lines, grown

NEGLIGIBLE = 0.01  # a responsibility below this share of the largest is left out
WIDTH = 6  # responsibilities remembered of each row while it may be looked at again


class Block(NamedTuple):
    """Some rows of a fit."""

    rows: sp.csr_matrix  # what is stored is present
    weights: np.ndarray  # (n,)


class Responsibilities(NamedTuple):
    """What each row of a block gave to which clusters."""

    rows: np.ndarray  # (n, t) rows of the model, -1 for none
    values: np.ndarray  # (n, t) shares, multiples of 2^-24
    log_norms: np.ndarray  # (n,) log sum of scores before the row was learned


class Reading(NamedTuple):
    """What to do with each row."""

    takes_back: bool  # its contribution when it was read before
    looks: bool  # at it, for its responsibilities
    adds: bool  # it to the clusters, by its responsibilities
    negligible: float


def no_responsibilities(n: int, width: int) -> Responsibilities:
    return Responsibilities(np.full((n, width), -1, dtype=np.int64), np.zeros((n, width)), np.zeros(n))


def filtered(
    profiles: Profiles, block: Block, *, width: int = 0, negligible: float = NEGLIGIBLE
) -> tuple[Profiles, Responsibilities]:
    """Learn the rows of a block in their order, each once, by matching moments."""
    found = no_responsibilities(block.rows.shape[0], width)
    how = Reading(takes_back=False, looks=True, adds=True, negligible=negligible)
    return _read(profiles, block, found, how), found


def revisited(
    profiles: Profiles, block: Block, known: Responsibilities, *, negligible: float = NEGLIGIBLE
) -> tuple[Profiles, Responsibilities]:
    """Another pass over rows: the earlier contribution of each is removed, then it is learned as plain counts."""
    found = Responsibilities(known.rows.copy(), known.values.copy(), known.log_norms.copy())
    how = Reading(takes_back=True, looks=True, adds=True, negligible=negligible)
    return _read(profiles, block, found, how), found


def counted(profiles: Profiles, block: Block, known: Responsibilities, *, sign: float = 1.0) -> Profiles:
    """Add known responsibilities as plain counts, or take them back."""
    how = Reading(takes_back=sign < 0, looks=False, adds=sign > 0, negligible=0.0)
    profiles = _read(profiles, block, known._replace(log_norms=np.zeros(0)), how)
    refresh_all(profiles)
    return profiles


def responsibilities_of(profiles: Profiles, block: Block, width: int = WIDTH) -> Responsibilities:
    """The responsibilities of rows that are not learned."""
    found = no_responsibilities(block.rows.shape[0], width)
    top_rows(
        block.rows.indptr, block.rows.indices, profiles, dense_lines(profiles), NEGLIGIBLE,
        found.log_norms, found.rows, found.values,
    )  # fmt: skip
    return found


def wholly(clusters: np.ndarray) -> Responsibilities:
    """Rows that belong to one cluster each."""
    clusters = np.asarray(clusters, dtype=np.int64)[:, None]
    return Responsibilities(clusters, np.ones(clusters.shape), np.zeros(clusters.size))


def _read(profiles: Profiles, block: Block, known: Responsibilities, how: Reading) -> Profiles:
    """Run the kernel on a copy, with more room whenever it has used up what there is."""
    profiles = copied(profiles, room=profiles.n_entries + 1024)
    dense = dense_lines(profiles, empty=not how.looks)
    start = 0
    while True:
        start = read_rows(
            block.rows.indptr, block.rows.indices, block.weights, start, *how, profiles, dense,
            known.log_norms, known.rows, known.values,
        )  # fmt: skip
        if start == block.rows.shape[0]:
            return profiles
        profiles = grown(profiles, 2 * profiles.hits.size + 1024)
