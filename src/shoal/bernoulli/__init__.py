"""Clusters of binary rows in one pass, with the uncertainty of every number, and suggestion of features."""

from shoal.bernoulli.adf import Block
from shoal.bernoulli.mixture import BernoulliMixture
from shoal.bernoulli.statistics import Delta, accumulate, merge, update
from shoal.suggestion_records import Reason, Suggestion

__all__ = [
    "BernoulliMixture",
    "Block",
    "Delta",
    "Reason",
    "Suggestion",
    "accumulate",
    "merge",
    "update",
]
