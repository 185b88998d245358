"""Clusters merged and split by hand, and whole models merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.densities.family import Family
from shoal.densities.seeding import first_centers
from shoal.densities.statistics import (
    Centers,
    accumulate,
    blocks_of,
    centers_of,
    merge,
    nearest_centers,
    row_side,
    stats_behind,
    update,
)
from shoal.engine import fold
from shoal.errors import BadInput, CannotMerge

MOST_STEPS_TO_SPLIT = 100


def merge_clusters(model: Any, clusters: Any, into: int) -> None:
    """Average the centers of some clusters by weight; the ids of the others end."""
    gone = model.roster_.to_merge(clusters, into)
    places = [model.roster_.row_of(id_) for id_ in (into, *gone)]
    family, masses = _family(model), model.masses_
    centers = model._centers(family)
    weights = masses[places] if masses[places].any() else np.ones(len(places))
    together = stats_behind(_some(centers, places), weights)
    one = together._replace(mass=together.mass.sum(keepdims=True), total=together.total.sum(0, keepdims=True))
    parameters = model.cluster_centers_.copy()
    parameters[places[0]] = update(_some(centers, places[:1]), one).parameters[0] + model.origin_
    sizes, masses = model.cluster_sizes_.copy(), masses.copy()
    sizes[places[0]], masses[places[0]] = sizes[places].sum(), masses[places].sum()
    model.cluster_centers_ = np.delete(parameters, places[1:], axis=0)
    model.cluster_sizes_, model.masses_ = np.delete(sizes, places[1:]), np.delete(masses, places[1:])
    model.labels_ = np.where(np.isin(model.labels_, gone), into, model.labels_)
    model.roster_.merge(gone, into)


def split_cluster(model: Any, family: Family, cluster: int, X: np.ndarray, weights: np.ndarray) -> int:
    """2-means on the rows of one cluster; the half that is nearer to the center keeps the id."""
    place = model.roster_.row_of(cluster)
    centers = model._centers(family)
    labels, _ = nearest_centers(row_side(family, model.direction, X), centers.side)
    mine = (labels == place) & (weights > 0)
    if len(np.unique(X[mine], axis=0)) < 2:
        raise BadInput(
            f"{int(mine.sum())} rows of X belong to cluster {cluster}, and they are not two that differ: there is "
            "nothing to split it by. Give rows of that cluster."
        )
    halves, shares, sizes = _two_means(family, model.direction, X[mine], weights[mine])
    new = int(model.roster_.split(cluster)[0])
    model.cluster_centers_ = np.vstack([model.cluster_centers_, halves[1] + model.origin_])
    model.cluster_centers_[place] = halves[0] + model.origin_
    model.masses_ = np.append(model.masses_, model.masses_[place] * shares[1])
    model.masses_[place] *= shares[0]
    moved = round(int(model.cluster_sizes_[place]) * float(sizes[1]))
    model.cluster_sizes_ = np.append(model.cluster_sizes_, moved)
    model.cluster_sizes_[place] -= moved
    return new


def _two_means(
    family: Family, direction: str, X: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two centers, their shares of the weight, and their shares of the rows."""
    blocks = blocks_of(family, direction, X, weights)
    random = np.random.default_rng(0)
    model = centers_of(family, direction, X[first_centers(blocks, weights, 2, "k-means++", family, direction, random)])
    memories: Any = None
    for _ in range(MOST_STEPS_TO_SPLIT):
        stats, memories = fold(blocks, accumulate, merge, model, memories=memories)
        if not stats.n_moved:
            break
        model = update(model, stats)
    sizes = np.bincount(np.concatenate([memory.labels for memory in memories]), minlength=2)
    return model.parameters, stats.mass / stats.mass.sum(), sizes / sizes.sum()


def merge_models(model: Any, other: Any, base: Any) -> None:
    """Average the centers of two models, cluster by cluster, and add up what stands behind them."""
    for what in (other, *([base] if base is not None else [])):
        _require_same_start(model, what)
    family = _family(model)
    parts = [(model, 1.0), (other, 1.0), *([(base, -1.0)] if base is not None else [])]
    unit = max(float(part.masses_.max(initial=0.0)) for part, _ in parts) or 1.0
    weights = np.array([sign * part.masses_.sum() / unit for part, sign in parts])
    for name in ("origin_", "smoothing_share_", "smoothing_typical_", "smoothing_added_"):
        values = np.array([getattr(part, name) for part, _ in parts])
        if not (values == values[0]).all():
            setattr(model, name, np.asarray(weights @ values / weights.sum()) if weights.sum() > 0 else values[0])
    stats = None
    for part, sign in parts:
        centers = centers_of(family, model.direction, part.cluster_centers_ - model.origin_)
        behind = stats_behind(centers, sign * part.masses_ / unit)
        stats = behind if stats is None else merge(stats, behind)
    assert stats is not None
    merged = update(centers_of(family, model.direction, model.cluster_centers_ - model.origin_), stats)
    model.cluster_centers_ = merged.parameters + model.origin_
    model.masses_ = np.maximum(stats.mass, 0.0) * unit
    model.cluster_sizes_ = sum(int(sign) * part.cluster_sizes_ for part, sign in parts)
    model.objective_ = float(model.objective_ + other.objective_)
    model.converged_ = False


def _require_same_start(model: Any, other: Any) -> None:
    """Clusters can be added up only where they mean the same."""
    for name in ("family", "direction", "n_components", "n_features_in_"):
        if type(other) is not type(model) or getattr(other, name) != getattr(model, name):
            raise CannotMerge(
                f"a {type(other).__name__} with {name}={getattr(other, name, None)!r} does not merge into a "
                f"{type(model).__name__} with {name}={getattr(model, name)!r}."
            )
    if not np.array_equal(model.roster_.ids, other.roster_.ids):
        raise CannotMerge(
            f"the models have different clusters ({model.roster_.ids.size} and {other.roster_.ids.size}, or other "
            "ids); fit both from the same init, or continue copies of one model with partial_fit."
        )


def _family(model: Any) -> Family:
    from shoal.densities.options import family_of

    return family_of(model)


def _some(centers: Centers, places: list[int]) -> Centers:
    return centers_of(centers.family, centers.direction, centers.parameters[places])
