"""Rows, family and prior bound together, whatever the family."""

from __future__ import annotations

import logging
from typing import Any

from shoal.errors import BadInput
from shoal.families.distributions.registry import COUNTS
from shoal.families.distributions.table import TableRows
from shoal.families.options import Settings
from shoal.families.samplers.count_problem import CountProblem
from shoal.families.samplers.gaussian_problem import GaussianProblem
from shoal.families.samplers.table_problem import TableProblem

logger = logging.getLogger("shoal")


def make_problem(rows: Any, settings: Settings) -> Any:
    """What is to be sampled."""
    if isinstance(settings.family, str) and settings.family in COUNTS:
        return CountProblem(rows, settings)
    if isinstance(rows, TableRows):
        return TableProblem(rows, settings)
    return GaussianProblem(rows, settings)


def choose_sampler(problem: Any, sampler: str, parallel: bool, constrained: bool) -> str:
    """The sampler asked for, or the cheapest. With known labels or links only one can pass over rows."""
    if constrained:
        if sampler not in ("auto", "gibbs") or parallel:
            raise BadInput("y, must_link and cannot_link are for sampler='gibbs' (or 'auto') without parallel=True.")
        return "gibbs"
    if sampler != "auto":
        if parallel and sampler != "indexed":
            raise BadInput(f"parallel=True is for sampler='indexed' or 'auto', not for {sampler!r}. Leave it out.")
        return sampler
    chosen, why = problem.choose_sampler()
    logger.info("sampler: %s (%s)", chosen, why)
    if parallel and chosen != "indexed":
        logger.info("parallel: without effect, for the %s sampler visits row by row", chosen)
    return str(chosen)
