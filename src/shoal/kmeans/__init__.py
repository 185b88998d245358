"""Thousands of clusters of sparse rows by cosine: seeding, exact and indexed k-means, and ranked retrieval."""

from shoal.kmeans.inverted_index import Hits, InvertedIndex
from shoal.kmeans.options import memory_needed
from shoal.kmeans.spherical import SphericalKMeans

__all__ = ["SphericalKMeans", "InvertedIndex", "Hits", "memory_needed"]
