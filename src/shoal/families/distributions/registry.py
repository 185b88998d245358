"""The families there are, by name."""

from __future__ import annotations

from typing import Any

from shoal.families.distributions.bernoulli import Bernoulli
from shoal.families.distributions.gaussian import Gaussian
from shoal.families.distributions.multinomial import Multinomial
from shoal.families.distributions.poisson import Poisson
from shoal.families.distributions.table import TableFamily

COUNTS: dict[str, Any] = {family.name: family for family in (Multinomial, Bernoulli, Poisson)}
TABLES = ("mixed", "categorical", "dirichlet")  # a product of columns, whose values may be missing
FAMILIES: dict[str, Any] = {**COUNTS, Gaussian.name: Gaussian, **dict.fromkeys(TABLES, TableFamily)}
COVARIANCES = ("diagonal", "spherical", "full", "tied")


def family_class(family: Any, covariance: str = "diagonal") -> Any:
    """The class of a family given by name, or by column."""
    if not isinstance(family, str) or (family == Gaussian.name and covariance in ("full", "tied")):
        return TableFamily
    return FAMILIES[family]


def table_families(family: Any, covariance: str) -> Any:
    """The families of a table's columns, as :meth:`TableFamily.for_table` takes them."""
    if not isinstance(family, str):
        return family
    return {"mixed": None, Gaussian.name: covariance}.get(family, family)
