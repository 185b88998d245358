"""Recommenders to compare suggestion with: each takes training rows and test rows, and gives ranked columns."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def best_columns(scores: np.ndarray, given: sp.csr_matrix, n: int) -> np.ndarray:
    """The n best columns of each row of scores that the row does not have."""
    scores = np.where(given.toarray() > 0, -np.inf, scores)
    top = np.argpartition(-scores, n, axis=1)[:, :n]
    return np.take_along_axis(top, np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable"), axis=1)


def in_blocks(score, given: sp.csr_matrix, n: int, block: int = 2000) -> np.ndarray:
    parts = [given[first : first + block] for first in range(0, given.shape[0], block)]
    return np.concatenate([best_columns(score(part), part, n) for part in parts])


def popularity(train: sp.csr_matrix, given: sp.csr_matrix, n: int) -> np.ndarray:
    counts = np.asarray(train.sum(axis=0)).ravel()
    return in_blocks(lambda part: np.tile(counts, (part.shape[0], 1)), given, n)


def item_cosine(train: sp.csr_matrix, given: sp.csr_matrix, n: int) -> np.ndarray:
    together = (train.T @ train).toarray()
    lengths = np.sqrt(np.maximum(np.diag(together), 1e-12))
    cosine = together / lengths[:, None] / lengths[None, :]
    np.fill_diagonal(cosine, 0.0)
    return in_blocks(lambda part: part @ cosine, given, n)


def ease(train: sp.csr_matrix, given: sp.csr_matrix, n: int, *, ridge: float = 100.0) -> np.ndarray:
    """Embarrassingly shallow auto-encoder: the closed-form linear item-to-item model without self-weights."""
    gram = (train.T @ train).toarray()
    gram[np.diag_indices_from(gram)] += ridge
    inverse = np.linalg.inv(gram)
    weights = -inverse / np.diag(inverse)[None, :]
    np.fill_diagonal(weights, 0.0)
    return in_blocks(lambda part: part @ weights, given, n)


def implicit_als(
    train: sp.csr_matrix, given: sp.csr_matrix, n: int, *, factors: int, regularization: float, alpha: float
):
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        factors=factors, regularization=regularization, alpha=alpha, iterations=20, random_state=0, num_threads=2
    )
    model.fit(train.astype(np.float32), show_progress=False)
    rows = given.astype(np.float32).tocsr()
    found, _ = model.recommend(
        np.arange(rows.shape[0]), rows, N=n, filter_already_liked_items=True, recalculate_user=True
    )
    return found


def implicit_knn(train: sp.csr_matrix, given: sp.csr_matrix, n: int, *, neighbours: int) -> np.ndarray:
    from implicit.nearest_neighbours import CosineRecommender

    model = CosineRecommender(K=neighbours, num_threads=2)
    model.fit(train.astype(np.float64), show_progress=False)
    rows = given.astype(np.float64).tocsr()
    found, _ = model.recommend(np.arange(rows.shape[0]), rows, N=n, filter_already_liked_items=True)
    return found
