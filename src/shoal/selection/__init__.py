"""Choosing a model: how many clusters, how stable they are, and which cluster of yesterday is which of today."""

from shoal.selection.choice import Choice, choose_n_clusters
from shoal.selection.matching import ClusterMatch, match_clusters
from shoal.selection.stability import cluster_stability

__all__ = ["Choice", "ClusterMatch", "choose_n_clusters", "cluster_stability", "match_clusters"]
