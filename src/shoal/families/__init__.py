"""Mixtures of exponential families with thousands of components: documents, sets, counts, measurements."""

from shoal.families.distributions.bernoulli import Bernoulli
from shoal.families.distributions.gaussian import Gaussian
from shoal.families.distributions.multinomial import Multinomial
from shoal.families.distributions.poisson import Poisson
from shoal.families.fit_warnings import ChainsDisagree, StuckSampler
from shoal.families.mixture import ExponentialFamilyMixture

__all__ = [
    "ChainsDisagree",
    "ExponentialFamilyMixture",
    "Bernoulli",
    "Gaussian",
    "Multinomial",
    "Poisson",
    "StuckSampler",
]
