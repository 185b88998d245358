"""Rows, family and prior bound together, whatever the family."""

from __future__ import annotations

from typing import Any

from shoal.families.distributions.registry import COUNTS
from shoal.families.distributions.table import TableRows
from shoal.families.options import Settings
from shoal.families.samplers.count_problem import CountProblem
from shoal.families.samplers.gaussian_problem import GaussianProblem
from shoal.families.samplers.table_problem import TableProblem


def make_problem(rows: Any, settings: Settings) -> Any:
    """What is to be sampled."""
    if isinstance(settings.family, str) and settings.family in COUNTS:
        return CountProblem(rows, settings)
    if isinstance(rows, TableRows):
        return TableProblem(rows, settings)
    return GaussianProblem(rows, settings)
