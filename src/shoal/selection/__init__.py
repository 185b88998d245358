"""Choosing a model: how many clusters, how stable they are, and which cluster of yesterday is which of today."""

from shoal.selection.matching import ClusterMatch, match_clusters
from shoal.selection.number_of_clusters import ClusterNumberChoice, choose_n_clusters
from shoal.selection.stability import cluster_stability

__all__ = ["ClusterNumberChoice", "ClusterMatch", "choose_n_clusters", "cluster_stability", "match_clusters"]
