"""Mixtures of exponential families with thousands of components: documents, sets, counts, measurements."""

from shoal.families.bernoulli import Bernoulli
from shoal.families.gaussian import Gaussian
from shoal.families.mixture import ExponentialFamilyMixture, StuckSampler
from shoal.families.multinomial import Multinomial
from shoal.families.poisson import Poisson

__all__ = ["ExponentialFamilyMixture", "Bernoulli", "Gaussian", "Multinomial", "Poisson", "StuckSampler"]
