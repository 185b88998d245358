"""Spherical k-means written down plainly: dense arrays, every row against every center."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def unit(X) -> np.ndarray:
    """Rows at unit length; empty rows stay 0. Values pass through float32, as the library stores them."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.where(lengths > 0, X / np.where(lengths > 0, lengths, 1), 0.0).astype(np.float32).astype(float)


def nearest(X, centers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Label, cosine, and how far the second best center is behind (0 is a tie)."""
    cosines = unit(X) @ unit(centers).T
    labels = cosines.argmax(axis=1)
    best_two = np.sort(cosines, axis=1)[:, -2:]
    return labels, cosines.max(axis=1), best_two[:, -1] - best_two[:, 0]


def means(X, labels, n_clusters, weights=None) -> np.ndarray:
    """The unit mean of each cluster."""
    weights = np.ones(len(labels)) if weights is None else weights
    membership = (labels[None, :] == np.arange(n_clusters)[:, None]) * weights
    return unit(membership @ unit(X))


def lloyd(X, centers, n_iter, weights=None) -> tuple[np.ndarray, np.ndarray, float]:
    """Labels after each of n_iter steps (one row a step), the last centers, and the smallest gap ever seen."""
    steps, gap = [], np.inf
    for _ in range(n_iter):
        labels, _, gaps = nearest(X, centers)
        gap = min(gap, gaps.min())
        steps.append(labels)
        centers = means(X, labels, len(centers), weights)
    return np.array(steps), centers, gap


def scan(X, query, n) -> tuple[np.ndarray, np.ndarray]:
    """Score every row, sort, keep n. Slow, and plainly right."""
    scores = np.asarray(X @ query).ravel()
    best = np.argsort(-scores, kind="stable")[:n]
    return best, scores[best]


def topics(seed=0, n=600, d=200, k=8, length=15):
    """Documents of words from a topic and from all, in uneven amounts so that ties are rare; no row is empty."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(d, 0.05), size=k) * 0.8 + rng.dirichlet(np.full(d, 0.3)) * 0.2
    labels = rng.integers(k, size=n)
    X = sp.csr_matrix(np.array([rng.multinomial(length, chances[label]) for label in labels]), dtype=np.float64)
    X.data *= rng.uniform(0.7, 1.3, X.nnz)
    return X, labels
