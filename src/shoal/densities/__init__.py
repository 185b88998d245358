"""Clusters of probability distributions."""

from shoal.densities.density_kmeans import FAMILIES, DensityKMeans
from shoal.densities.reading import Densities, read

__all__ = ["DensityKMeans", "Densities", "FAMILIES", "read"]
