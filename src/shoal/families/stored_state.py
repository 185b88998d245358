"""What a model file may say about a mixture: kernels follow labels and the rows of sparse sums without looking."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput, BadModelFile
from shoal.families.distributions.counts import CountFamily, CountStats
from shoal.families.distributions.gaussian import Gaussian, GaussStats
from shoal.families.distributions.registry import family_class
from shoal.state_checks import need, need_array, need_attributes, need_number

FITTED = (
    "stats_",
    "family_",
    "roster_",
    "hyperparameters_",
    "chain_",
    "labels_",
    "n_clusters_",
    "typicality_",
    "agreement_",
    "samples_",
    "draws_",
    "known_",
    "n_features_in_",
)


def check_state(model: Any) -> None:
    """Refuse a fitted mixture from a file that contradicts itself."""
    need_attributes(model, FITTED)
    need_number(model.n_clusters_, "n_clusters_", low=0, whole=True)
    k = model.n_clusters_
    need_array(getattr(model.stats_, "size", None), "the sizes of the clusters", (k,), "i", low=0)
    need(model.roster_.ids.size == k, "there are more or fewer ids than clusters")
    _check_distribution(model.family_, model.stats_, k, model.n_features_in_)
    try:
        wanted = family_class(model.family, model.covariance)
    except BadInput as error:
        raise BadModelFile(str(error)) from None
    need(isinstance(model.family_, wanted), f"family is {model.family!r}, but the prior is of another one")
    _check_hyperparameters(model.hyperparameters_)
    n_rows = model.labels_.size
    for name in ("typicality_", "agreement_"):
        need_array(getattr(model, name), name, (n_rows,))
    need_array(model.samples_, "samples_", (None, None), "i")
    need(model.samples_.shape[0] > 0, "samples_ is empty")
    if model.chain_ is not None:
        _check_chain(model.chain_, model.n_clusters if isinstance(model.n_clusters, int) else None)


def _check_distribution(family: Any, stats: Any, k: int, n_features: int) -> None:
    """The prior and the sums are of one family, of as many features as the model."""
    if isinstance(family, CountFamily):
        need(isinstance(stats, CountStats), "the sums are of another family than the prior")
        need_array(family.mean, "the prior mean", (n_features,), low=0)
        need_number(family.strength, "the strength of the prior", low=0)
        need_number(family.smoothing, "the smoothing", low=0)
        need(family.smoothing + family.strength * family.mean > 0, "the prior gives a feature no weight")
        need(sp.issparse(stats.sums) and stats.sums.shape == (k, n_features), "the sums have another shape")
        need_array(stats.sums.data, "the sums", (None,), "if", low=0)
    elif isinstance(family, Gaussian):
        need(isinstance(stats, GaussStats), "the sums are of another family than the prior")
        need_array(family.center, "the centers of the coordinates", (n_features,))
        need_array(family.scale, "the scales of the coordinates", (n_features,))
        need(family.scale > 0, "a scale of a coordinate is not above 0")
        for name in ("kappa", "a", "b"):
            need_number(getattr(family, name), f"{name} of the prior")
            need(getattr(family, name) > 0, f"{name} of the prior is not above 0")
        need_array(stats.sums, "the sums", (k, n_features))
        need_array(stats.squares, "the sums of squares", (k, n_features))


def _check_hyperparameters(found: Any) -> None:
    need(isinstance(found, dict) and "concentration" in found, "there is no concentration")
    for name, value in found.items():
        if isinstance(value, float | int):
            need_number(value, f"the hyperparameter {name}")
    need_number(found["concentration"], "the concentration")
    need(found["concentration"] > 0, "the concentration is not above 0")


def _check_chain(chain: Any, most: int | None) -> None:
    """Labels and candidates lead to clusters that there may be."""
    need(isinstance(chain, dict) and {"labels", "random", "n_sweeps"} <= chain.keys(), "the chain is none")
    need_array(chain["labels"], "the labels of the chain", (None,), "i", low=-1, high=most)
    need_array(chain["random"], "the random state of the chain", (1,), "u")
    need_number(chain["n_sweeps"], "the sweeps of the chain", low=0, whole=True)
    n_rows = chain["labels"].size
    for name, value in chain.items():
        if isinstance(value, np.ndarray) and name != "random":
            need(value.ndim > 0 and len(value) == n_rows, f"{name} of the chain is not of as many rows as its labels")
    if "candidates" in chain:
        need_array(chain["candidates"], "the candidates of the chain", (n_rows, None), "i", low=-1, high=most)
