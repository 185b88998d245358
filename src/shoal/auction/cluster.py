"""Clusters of keywords: by their bid landscapes, and by the baselines they are compared with."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata
from sklearn.cluster import KMeans

from shoal.auction.landscape import Landscapes
from shoal.densities import DensityKMeans
from shoal.errors import BadInput

METHODS = ("k-GMM", "k-Gauss", "k-means", "k-bins", "random")


def density_model(n_clusters: int, *, method: str = "k-GMM", n_init: int = 3, random_state: int = 0) -> DensityKMeans:
    """The model behind k-GMM and k-Gauss; landscapes are smoothed already."""
    family = {"k-GMM": "gaussian_mixture", "k-Gauss": "gaussian"}[method]
    return DensityKMeans(n_clusters, family=family, n_init=n_init, smoothing=0, random_state=random_state)


def cluster_keywords(
    landscapes: Landscapes, n_clusters: int = 64, *, method: str = "k-GMM", random_state: int = 0
) -> np.ndarray:
    """Cluster keywords by their bid landscapes; returns a cluster number for each keyword.

    Parameters
    ----------
    landscapes : Landscapes
        Result of :func:`landscapes`.
    n_clusters : int
        Number of clusters.
    method : {"k-GMM", "k-Gauss", "k-means", "k-bins", "random"}
        "k-GMM": Kullback-Leibler divergence of the labelled mixture of mainline and sidebar bids. "k-Gauss": the same
        with one Gaussian of all shown bids. "k-means": percentile ranks of five features. "k-bins": equal-sized bins of
        the 95th percentile of the rank score. "random": a baseline.
    random_state : int
        Random seed.

    Examples
    --------
    >>> from shoal.auction import Market, baseline_policy, landscapes
    >>> market = Market(20, n_days=2, page_views_per_day=100, random_state=0)
    >>> log = market.log(baseline_policy(market, tuning="coarse").policy)
    >>> cluster_keywords(landscapes(log), 4).shape
    (20,)
    """
    n_keywords = landscapes.keywords.size
    n_clusters = min(n_clusters, n_keywords)
    if method in ("k-GMM", "k-Gauss"):
        rows = landscapes.mixtures if method == "k-GMM" else landscapes.gaussians
        return np.asarray(density_model(n_clusters, method=method, random_state=random_state).fit(rows).labels_)
    if method == "k-means":
        model = KMeans(n_clusters, n_init=3, random_state=random_state)
        return np.asarray(model.fit(landscapes.percentiles()).labels_).astype(np.int64)
    if method == "k-bins":
        return bins(landscapes.upper_score, n_clusters)
    if method == "random":
        return np.random.default_rng(random_state).integers(0, n_clusters, n_keywords)
    raise BadInput(f"method is {method!r}; choose one of {', '.join(METHODS)}.")


def bins(scores: np.ndarray, n_bins: int) -> np.ndarray:
    """Equal-sized bins by rank.

    >>> bins(np.array([10.0, 5.0, 7.0, 1.0]), 2)
    array([1, 0, 1, 0])
    """
    rank = rankdata(scores, method="ordinal") - 1
    return np.minimum((rank * n_bins) // scores.size, n_bins - 1).astype(np.int64)
