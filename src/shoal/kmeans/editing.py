"""Clusters merged and split by hand, and whole models merged."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.errors import BadInput, CannotMerge
from shoal.kmeans.bisecting import two_means
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import centers_from_csr, spliced
from shoal.kmeans.prediction import nearest_clusters
from shoal.kmeans.rows import Ranking, by_frequency, compact, take_rows, unit_rows
from shoal.kmeans.seeding import first_centers
from shoal.kmeans.statistics import Model, merge, stats_behind, update
from shoal.kmeans.streaming import grown

MOST_STEPS_TO_SPLIT = 100


def merge_clusters(model: Any, clusters: Any, into: int) -> None:
    """One center for several clusters: the mean of all their rows; the ids of the others end."""
    gone = model.roster_.to_merge(clusters, into)
    places = [model.roster_.row_of(id_) for id_ in (into, *gone)]
    masses, lengths = model.masses_[places], model.mean_lengths_[places]
    if not masses.any():  # no rows behind them yet: every center counts the same
        masses, lengths = np.ones(len(places)), np.ones(len(places))
    shares = masses / masses.max()
    mean = sp.csr_matrix(sp.csr_matrix(shares * lengths / shares.sum()) @ model.cluster_centers_[places])
    length = float(np.sqrt((mean.data**2).sum()))
    center = mean / length if length > 1e-9 else model.cluster_centers_[places[0]]
    keep = np.setdiff1d(np.arange(model.cluster_centers_.shape[0]), places[1:])
    parts = [center if place == places[0] else model.cluster_centers_[place] for place in keep]
    model.cluster_centers_ = sp.csr_matrix(sp.vstack(parts, format="csr"), dtype=model.cluster_centers_.dtype)
    sizes, masses, lengths = model.cluster_sizes_.copy(), model.masses_.copy(), model.mean_lengths_.copy()
    sizes[places[0]], masses[places[0]] = sizes[places].sum(), masses[places].sum()
    lengths[places[0]] = min(length, 1.0)
    model.cluster_sizes_, model.masses_, model.mean_lengths_ = sizes[keep], masses[keep], lengths[keep]
    model.labels_ = np.where(np.isin(model.labels_, gone), into, model.labels_)
    model.tree_ = model.leaves_ = model.node_centers_ = None
    model.roster_.merge(gone, into)


def split_cluster(model: Any, cluster: int, X: sp.csr_matrix, weights: np.ndarray) -> int:
    """2-means on the rows of one cluster; the first half keeps the id, weight and size are divided as the rows are."""
    place = model.roster_.row_of(cluster)
    labels, _ = nearest_clusters(model, X)
    mine = np.flatnonzero((labels == place) & (weights > 0))
    rows = compact(take_rows(unit_rows(X, n_threads=model.n_threads), mine)).rows
    blocks = [Block(rows, weights[mine])]
    try:
        centers = first_centers(blocks, 2, "k-means++", np.random.default_rng(0), model.n_threads)
    except BadInput:
        raise BadInput(
            f"{mine.size} rows of X belong to cluster {cluster}, and they are not two that differ: there is nothing to "
            "split it by. Give rows of that cluster."
        ) from None
    centers, memory = two_means(blocks, centers, MOST_STEPS_TO_SPLIT, model.n_threads)
    halves = grown(centers.csr(rows), model.cluster_centers_.shape[1])
    half = memory.labels == 1
    share, of_rows = float(weights[mine][half].sum() / weights[mine].sum()), float(half.mean())
    new = int(model.roster_.split(cluster)[0])
    before, after = model.cluster_centers_[:place], model.cluster_centers_[place + 1 :]
    stack = [part for part in (before, halves[:1], after, halves[1:]) if part.shape[0]]
    model.cluster_centers_ = sp.csr_matrix(sp.vstack(stack, format="csr"), dtype=model.cluster_centers_.dtype)
    moved = round(int(model.cluster_sizes_[place]) * of_rows)
    model.cluster_sizes_ = np.append(model.cluster_sizes_, moved)
    model.cluster_sizes_[place] -= moved
    model.masses_ = np.append(model.masses_, model.masses_[place] * share)
    model.masses_[place] *= 1 - share
    cosines = [float(memory.similarities[side].mean()) if side.any() else 0.0 for side in (~half, half)]
    model.mean_lengths_ = np.append(model.mean_lengths_, np.clip(cosines[1], 0.0, 1.0))
    model.mean_lengths_[place] = np.clip(cosines[0], 0.0, 1.0)
    model.tree_ = model.leaves_ = model.node_centers_ = None
    return new


def merge_models(model: Any, other: Any, base: Any) -> None:
    """Add up the sums behind the centers of two models, cluster by cluster; those behind ``base`` count once."""
    for part in (other, *([base] if base is not None else [])):
        _require_same_start(model, part)
    signed = [(model, 1.0), (other, 1.0), *([(base, -1.0)] if base is not None else [])]
    matrix = sp.vstack([part.cluster_centers_ for part, _ in signed], format="csr")
    ranking = Ranking(by_frequency(matrix), matrix.shape[1])
    unit = max(float(part.masses_.max(initial=0.0)) for part, _ in signed) or 1.0
    stats = None
    for part, sign in signed:
        centers = centers_from_csr(part.cluster_centers_, ranking)
        behind = stats_behind(centers, part.mean_lengths_, sign * part.masses_ / unit)
        stats = behind if stats is None else merge(stats, behind)
    assert stats is not None
    stats = stats._replace(mass=np.maximum(stats.mass, 0.0))
    mine = centers_from_csr(model.cluster_centers_, ranking)
    start = Model(mine, ranking.columns.size, lengths=model.mean_lengths_)
    empty = np.flatnonzero(model.masses_ == 0)  # what the other has learned decides there
    if empty.size:
        theirs = centers_from_csr(other.cluster_centers_, ranking).take(empty)
        start = Model(spliced(mine, empty, theirs), ranking.columns.size, lengths=model.mean_lengths_)
    merged = update(start, stats, n_threads=model.n_threads)
    model.cluster_centers_ = merged.centers.csr(ranking)
    model.mean_lengths_ = np.clip(merged.lengths, 0.0, 1.0)
    model.masses_ = stats.mass * unit
    model.cluster_sizes_ = sum(int(sign) * part.cluster_sizes_ for part, sign in signed)
    model.tree_ = model.leaves_ = model.node_centers_ = None
    model.converged_ = False


def _require_same_start(model: Any, other: Any) -> None:
    """Clusters can be added up only where they mean the same."""
    if type(other) is not type(model):
        raise CannotMerge(f"a {type(other).__name__} does not merge into a {type(model).__name__}.")
    if other.n_features_in_ != model.n_features_in_:
        raise CannotMerge(
            f"the models have {model.n_features_in_} and {other.n_features_in_} features; let both learn over the same "
            "vocabulary."
        )
    mine, theirs = (getattr(part, "vocabulary_", None) for part in (model, other))
    if mine is not None and theirs is not None and not (mine is theirs or mine == theirs):
        raise CannotMerge("the models have other features under the same numbers; read both with one vocabulary.")
    if not np.array_equal(model.roster_.ids, other.roster_.ids):
        raise CannotMerge(
            f"the models have different clusters ({model.roster_.ids.size} and {other.roster_.ids.size}, or other "
            "ids); fit both from the same init, or continue copies of one model with partial_fit."
        )
