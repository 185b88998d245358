"""Clusters of binary rows in one pass, with the uncertainty of every number, and keyword suggestion."""

from shoal.bernoulli.choosing import Choice, choose_n_clusters
from shoal.bernoulli.mixture import BernoulliMixture
from shoal.bernoulli.parallel import Delta, accumulate, merge, update
from shoal.records import Reason, Suggestion

__all__ = [
    "BernoulliMixture",
    "choose_n_clusters",
    "Choice",
    "Delta",
    "Reason",
    "Suggestion",
    "accumulate",
    "merge",
    "update",
]
