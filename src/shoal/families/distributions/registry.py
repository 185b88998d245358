"""The families there are, by name."""

from __future__ import annotations

from typing import Any

from shoal.families.distributions.bernoulli import Bernoulli
from shoal.families.distributions.gaussian import Gaussian
from shoal.families.distributions.multinomial import Multinomial
from shoal.families.distributions.poisson import Poisson

COUNTS: dict[str, Any] = {family.name: family for family in (Multinomial, Bernoulli, Poisson)}
FAMILIES: dict[str, Any] = {**COUNTS, Gaussian.name: Gaussian}
