"""Learning from batches: first centers, one fold per batch, and centers that grow with the vocabulary."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import Roster, Rows
from shoal.engine import fold
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import centers_from_csr
from shoal.kmeans.finalize import certified_exact
from shoal.kmeans.rows import Ranking, by_frequency, unit_rows
from shoal.kmeans.statistics import Model, accumulate, merge, stats_behind, update

FEATURES_IN_A_STREAM = 4096  # a center never grows beyond this while streaming, unless features_kept says otherwise


def grown(matrix: sp.csr_matrix, n_features: int) -> sp.csr_matrix:
    """The same rows over more columns."""
    if matrix.shape[1] == n_features:
        return matrix
    return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], n_features))


def ranking_of(X: sp.csr_matrix, centers: sp.csr_matrix) -> Ranking:
    """The features of some rows, most common first, then those that only the centers have."""
    mine, theirs = by_frequency(X), by_frequency(centers)
    return Ranking(np.concatenate([mine, theirs[~np.isin(theirs, mine)]]), X.shape[1])


def start_stream(model: Any, rows: Rows, weights: np.ndarray, rng: np.random.Generator) -> None:
    """First centers from the first batch; no weight behind them yet."""
    unit = unit_rows(rows.matrix, n_threads=model.n_threads)
    model.cluster_centers_ = model._first_centers([Block(unit, weights)], rng).csr(unit)
    k = model.n_clusters
    model.roster_, model.certificate_ = Roster.of(k), certified_exact(0)
    model.masses_, model.mean_lengths_, model.cluster_sizes_ = np.zeros(k), np.zeros(k), np.zeros(k, np.int64)
    model.features_kept_, model.algorithm_, model.iteration_seconds_ = None, "partial_fit", None
    model.converged_, model.n_iter_, model.objective_history_ = False, 0, np.zeros(0)


def learn_batch(model: Any, rows: Rows, weights: np.ndarray, unit: float) -> None:
    """Fold the batch, and merge its sums with those behind the centers."""
    n_features = rows.matrix.shape[1]
    matrix = grown(model.cluster_centers_, n_features)
    ranking = ranking_of(rows.matrix, matrix)
    centers = centers_from_csr(matrix, ranking)
    keep = model.features_kept if isinstance(model.features_kept, int | np.integer) else FEATURES_IN_A_STREAM
    centers_model = Model(centers, ranking.columns.size, int(keep), lengths=model.mean_lengths_).indexed()
    blocks = [Block(unit_rows(rows.matrix, ranking, model.n_threads), weights)]
    step = partial(accumulate, n_threads=model.n_threads)
    stats, memories = fold(blocks, step, merge, centers_model, n_threads=model.n_threads)
    before = stats_behind(centers, model.mean_lengths_, model.masses_ / unit)
    centers_model = update(centers_model, merge(before, stats), n_threads=model.n_threads)
    assert memories is not None
    places, won = memories[0].labels, memories[0].labels >= 0
    model.tree_ = model.leaves_ = model.node_centers_ = None  # a tree does not describe centers that move on
    model.cluster_centers_, model.mean_lengths_ = centers_model.centers.csr(ranking), centers_model.lengths
    model.masses_ = model.masses_ + stats.mass * unit
    model.labels_, model.similarities_, model.outliers_ = model._ids_of(places), memories[0].similarities, ~won
    model.cluster_sizes_ = model.cluster_sizes_ + np.bincount(places[won], minlength=centers_model.k)
    model.mean_similarity_ = stats.similarity / max(stats.weight, 1e-300)
    model.objective_history_ = np.append(model.objective_history_, model.mean_similarity_)
    model.n_iter_ += 1
