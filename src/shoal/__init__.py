"""shoal finds groups in web-scale sparse, streaming and probabilistic data, and puts the groups to work.

The names below are imported when first used, so ``import shoal`` itself costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# public name -> the module it lives in
_HOMES = {
    "read": "shoal.data",
    "read_batches": "shoal.data",
    "Dataset": "shoal.data",
    "ReadOptions": "shoal.data",
    "BernoulliMixture": "shoal.bernoulli",
    "DensityKMeans": "shoal.densities",
    "ExponentialFamilyMixture": "shoal.families",
    "SphericalKMeans": "shoal.kmeans",
    "Suggester": "shoal.suggestion",
    "TimeSensitiveMixture": "shoal.streams",
    "choose_n_clusters": "shoal.selection",
    "cluster_cards": "shoal.report",
    "cluster_stability": "shoal.selection",
    "match_clusters": "shoal.selection",
    "save": "shoal.store",
    "load": "shoal.store",
    "ShoalError": "shoal.errors",
}
_ROOMS = [
    "auction",
    "bernoulli",
    "data",
    "datasets",
    "densities",
    "engine",
    "errors",
    "families",
    "kmeans",
    "metrics",
    "progress",
    "report",
    "selection",
    "store",
    "streams",
    "suggestion",
]

__all__ = ["__version__", *_HOMES, *_ROOMS]

if TYPE_CHECKING:
    from shoal.bernoulli import BernoulliMixture as BernoulliMixture
    from shoal.data import Dataset as Dataset
    from shoal.data import ReadOptions as ReadOptions
    from shoal.data import read as read
    from shoal.data import read_batches as read_batches
    from shoal.densities import DensityKMeans as DensityKMeans
    from shoal.errors import ShoalError as ShoalError
    from shoal.families import ExponentialFamilyMixture as ExponentialFamilyMixture
    from shoal.kmeans import SphericalKMeans as SphericalKMeans
    from shoal.report import cluster_cards as cluster_cards
    from shoal.selection import choose_n_clusters as choose_n_clusters
    from shoal.selection import cluster_stability as cluster_stability
    from shoal.selection import match_clusters as match_clusters
    from shoal.store import load as load
    from shoal.store import save as save
    from shoal.streams import TimeSensitiveMixture as TimeSensitiveMixture
    from shoal.suggestion import Suggester as Suggester


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"shoal.{name}")
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
