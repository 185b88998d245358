"""Clusters of probability distributions."""

from shoal.densities.density_kmeans import FAMILIES, DensityKMeans
from shoal.densities.observations import Densities, read_observations, smoothed_components

__all__ = ["DensityKMeans", "Densities", "FAMILIES", "read_observations", "smoothed_components"]
