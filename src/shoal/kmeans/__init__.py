"""Thousands of clusters of sparse rows by cosine: seeding, exact and indexed k-means, and ranked retrieval."""

from shoal.kmeans.spherical import SphericalKMeans, memory_needed

__all__ = ["SphericalKMeans", "memory_needed"]
