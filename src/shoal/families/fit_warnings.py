"""What a user has to know of a fit: a bound that decided, a collapse, a chain that is stuck, chains that disagree."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np

from shoal.errors import ShoalWarning
from shoal.families.distributions.counts import CountFamily
from shoal.families.posterior import Diagnostics
from shoal.families.samplers.schedule import Trace

COLLAPSED, SHARED, MUCH = 0.95, 0.5, 0.2  # shares of rows, of counts a row, and of all counts
LOW_ACCEPTANCE, RESTLESS = 0.02, 0.1
logger = logging.getLogger("shoal")


class StuckSampler(ShoalWarning):
    """Proposals are hardly ever accepted: the chain does not move, however steady its log joint looks."""


class ChainsDisagree(ShoalWarning):
    """Chains from different starts have not found the same distribution."""


def check_fit(model: Any, trace: Trace, bound: int) -> None:
    """Set ``bound_reached_`` and ``shared_features_``, and say what they mean."""
    model.bound_reached_ = bool(1 < bound == model.n_clusters_ < model.n_rows_)
    if model.bound_reached_:
        logger.info("all %d clusters are in use: the number is your bound, not a finding", bound)
    model.shared_features_ = shared_features(model.family_, model.stats_, bound)
    if model.shared_features_ is not None:
        logger.warning(
            "nearly all rows are in one cluster, and features of most rows are much of all counts (%s): leave "
            "them out (max_df=, stop_words=) or weigh them down, for they hide what sets rows apart",
            ", ".join(model.name_features(model.shared_features_[:5])),
        )
    # A chain that has settled proposes few moves; one that is stuck proposes many, and hardly any is accepted.
    restless = trace.n_proposed > RESTLESS * model.n_iter_ * model.n_rows_
    if model.sampler_ == "fastex" and restless and model.acceptance_ < LOW_ACCEPTANCE:
        warnings.warn(
            f"only {model.acceptance_:.2%} of the proposals from {model.n_bits}-bit hashes were accepted: the chain "
            "hardly moves and has not converged. Use sampler='indexed' or 'gibbs', or many more bits.",
            StuckSampler,
            stacklevel=5,
        )


def warn_of_chains(diagnostics: Diagnostics, n_chains: int) -> None:
    """Warn where chains disagree."""
    if diagnostics.disagree:
        found = diagnostics.r_hat
        warnings.warn(
            f"the {n_chains} chains disagree (R-hat of the log joint {found['log_joint']:.2f}, of the number of "
            f"clusters {found['n_clusters']:.2f}): run more sweeps, or take the best chain for one answer of several.",
            ChainsDisagree,
            stacklevel=4,
        )


def shared_features(family: Any, stats: Any, bound: int) -> np.ndarray | None:
    """Features of more counts than one for every second row, the most frequent first, where nearly all rows have ended
    in one cluster and those features make up much of what the rows hold; None where that is no matter."""
    if not isinstance(family, CountFamily) or bound == 1 or stats.size.max() < COLLAPSED * stats.size.sum():
        return None
    per_row = np.asarray(stats.sums.sum(axis=0)).ravel() / max(int(stats.size.sum()), 1)
    shared = np.flatnonzero(per_row >= SHARED)
    if not shared.size or per_row[shared].sum() < MUCH * per_row.sum():
        return None
    return np.asarray(shared[np.argsort(-per_row[shared], kind="stable")])
