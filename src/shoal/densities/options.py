"""The options and the state of DensityKMeans, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.base import check_choice, check_int, check_random_state, check_real, validate_weights
from shoal.densities.beta_gamma import Beta, Dirichlet, Gamma
from shoal.densities.categorical_poisson import Categorical, Poisson
from shoal.densities.family import Family
from shoal.densities.gaussian import Gaussian, GaussianMixture
from shoal.errors import BadInput, BadModelFile
from shoal.threads import n_threads_of
from shoal.weights import scaled_weights

SIMPLE_FAMILIES: dict[str, type[Family]] = {
    family.name: family  # type: ignore[type-abstract]
    for family in (Gaussian, Beta, Gamma, Dirichlet, Categorical, Poisson)
}
FAMILIES = ("gaussian", "gaussian_mixture", "beta", "gamma", "dirichlet", "categorical", "poisson")
DIRECTIONS = ("center", "pooled")
INITS = ("k-means++", "random")


def check_options(model: Any) -> tuple[Family, np.random.Generator]:
    """Check every option before any work is done; the family and the source of randomness."""
    for name in ("n_clusters", "n_init", "max_iter", "n_components"):
        check_int(name, getattr(model, name), minimum=1)
    check_real("tol", model.tol, minimum=0)
    if not check_real("smoothing", model.smoothing, minimum=0) < 1:
        raise BadInput(f"smoothing is {model.smoothing!r}; it must be at least 0 and below 1.")
    n_threads_of(model.n_threads)
    if isinstance(model.init, str):
        check_choice("init", model.init, INITS)
    return family_of(model), check_random_state(model.random_state)


def family_of(model: Any) -> Family:
    """The family that the options name."""
    check_choice("direction", model.direction, DIRECTIONS)
    check_choice("family", model.family, FAMILIES)
    if model.family == "gaussian_mixture":
        return GaussianMixture(check_int("n_components", model.n_components, minimum=1))
    return SIMPLE_FAMILIES[model.family]()


def usable_weights(
    sample_weight: Any, n_rows: int, n_clusters: int, masses: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Weights with the largest (or the largest mass) about 1, and the unit; enough rows have some for the clusters."""
    weights = validate_weights(sample_weight, n_rows)
    if n_clusters and not weights.any():
        raise BadInput("every sample_weight is zero; at least n_clusters rows need a weight above zero.")
    if np.count_nonzero(weights) < n_clusters:
        raise BadInput(
            f"n_clusters={n_clusters} but X has n_samples={n_rows}, {np.count_nonzero(weights)} of them with weight "
            "above 0. Ask for fewer clusters."
        )
    return scaled_weights(weights, masses)


def check_state(model: Any) -> None:
    """Refuse a state from a file whose arrays contradict one another."""
    centers = model.cluster_centers_
    if not (isinstance(centers, np.ndarray) and centers.ndim == 2 and centers.dtype == np.float64 and len(centers)):
        raise BadModelFile("the centers of this DensityKMeans are not a table of numbers; restore the file.")
    k, d = centers.shape
    wanted = {"origin_": d, "smoothing_share_": d, "smoothing_typical_": d, "smoothing_added_": d, "masses_": k}
    wrong = [
        name
        for name, size in wanted.items()
        if not (
            isinstance(array := getattr(model, name, None), np.ndarray)
            and array.shape == (size,)
            and array.dtype == np.float64
            and np.isfinite(array).all()
        )
    ]
    sizes, labels, costs = (getattr(model, name, None) for name in ("cluster_sizes_", "labels_", "divergences_"))
    if not (isinstance(sizes, np.ndarray) and sizes.shape == (k,) and sizes.dtype.kind in "iu"):
        wrong.append("cluster_sizes_")
    if not (isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind == "i"):
        wrong.append("labels_")
    elif not (isinstance(costs, np.ndarray) and costs.shape == labels.shape and costs.dtype == np.float64):
        wrong.append("divergences_")
    wrong += [name for name in ("n_iter_", "objective_", "objective_history_") if name not in vars(model)]
    roster = getattr(model, "roster_", None)
    if roster is None or getattr(roster.ids, "shape", None) != (k,):
        wrong.append("roster_")
    if model.n_features_in_ != d:
        wrong.append("n_features_in_")
    if wrong:
        raise BadModelFile(
            f"{', '.join(wrong)} of this DensityKMeans do not fit its {k} centers of {d} parameters; restore the file."
        )
    try:
        family_of(model).check(centers)
    except BadInput as error:
        raise BadModelFile(f"the centers of this DensityKMeans are not distributions: {error}") from None
