"""Clusters of binary rows in one pass, with the uncertainty of every number, and keyword suggestion."""

from shoal.bernoulli.mixture import BernoulliMixture
from shoal.bernoulli.parallel import Delta, accumulate, merge, update
from shoal.bernoulli.suggestion import Reason, Suggestion

__all__ = ["BernoulliMixture", "Delta", "Reason", "Suggestion", "accumulate", "merge", "update"]
