"""How stable clusters are: whether a fit to a resample finds them again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from shoal.base import Estimator, check_int, check_random_state, len_of
from shoal.errors import InterruptedWarning
from shoal.progress import hidden, task

MOST_ROWS = 20_000  # of a resample: enough to see clusters of a few dozen rows, however large the data


def cluster_stability(
    model: Estimator, X: Any, *, n_resamples: int = 10, times: Any = None, random_state: Any = None
) -> np.ndarray:
    """Stability of each cluster of a fitted model: how reliably it is found again on subsamples, from 0 to 1.

    The model's options are fitted to subsamples of half of the rows; a cluster's stability is the mean, over
    subsamples, of the largest Jaccard coefficient between its rows and those of a cluster found there (Hennig,
    "Cluster-wise assessment of cluster stability", 2007). Clusters below 0.5 are unreliable; clusters above
    0.75 are reliable.

    Parameters
    ----------
    model : Estimator
        A fitted model.
    X : matrix or Dataset
        The rows it was fitted on, or others like them.
    n_resamples : int
        How many subsamples; at most 20,000 rows each.
    times : array, optional
        When each row came, for models of streams.
    random_state : int, optional
        Decides the subsamples.

    Examples
    --------
    >>> from shoal import SphericalKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.poisson([5, 5, 0, 0], (50, 4)), rng.poisson([0, 0, 5, 5], (50, 4))]) + 0.01
    >>> model = SphericalKMeans(2, random_state=0).fit(X)
    >>> cluster_stability(model, X, n_resamples=4, random_state=0).round(2).tolist()
    [1.0, 1.0]
    """
    check_is_fitted(model)
    n_resamples = check_int("n_resamples", n_resamples)
    rng = check_random_state(random_state)
    ids = np.asarray(model.cluster_ids_)
    found = np.full((n_resamples, ids.size), np.nan)
    for trial, (rows, part) in enumerate(halves(X, n_resamples, rng)):
        options = {} if times is None else {"times": np.asarray(times)[rows]}
        with hidden():
            refit = fit_whole(clone(model), part, **options)
        found[trial] = best_jaccards(model.predict(part), np.asarray(refit.labels_), ids)  # type: ignore[attr-defined]
    present = ~np.isnan(found)
    return np.where(present.any(0), np.nansum(found, 0) / np.maximum(present.sum(0), 1), 0.0)


def halves(X: Any, n: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, Any]]:
    """Random halves of the rows, without replacement: a row drawn twice would be its own cluster's best witness."""
    n_rows = len_of(X)
    size = min(max(n_rows // 2, 1), MOST_ROWS)
    with task("resampling", n) as bar:
        for _ in range(n):
            rows = np.sort(rng.choice(n_rows, size, replace=False))
            yield rows, take_rows(X, rows)
            bar.advance()


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """These rows of a matrix, a Dataset or a table."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def fit_whole(model: Any, part: Any, **options: Any) -> Any:
    """Fit, and let Ctrl-C end the whole comparison: a fit that was cut short cannot be compared with others."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedWarning)
        try:
            return model.fit(part, **options)
        except InterruptedWarning:
            raise KeyboardInterrupt from None


def best_jaccards(labels: np.ndarray, others: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """For each id, the largest Jaccard coefficient of its rows in ``labels`` with a cluster of ``others``.

    >>> best_jaccards(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 6]), np.array([0, 1, 2])).round(2).tolist()
    [0.67, 0.5, nan]
    """
    known, columns = np.unique(others, return_inverse=True)
    order = np.argsort(ids)
    place = np.searchsorted(ids, labels, sorter=order)
    inside = np.isin(labels, ids)
    rows = order[np.minimum(place, ids.size - 1)]
    counts = sp.coo_matrix((np.ones(labels.size), (rows, columns)), shape=(ids.size, known.size))
    counts = sp.csr_matrix((counts.data[inside], (rows[inside], columns[inside])), shape=counts.shape)
    counts.sum_duplicates()
    mine, theirs = np.asarray(counts.sum(axis=1)).ravel(), np.bincount(columns, minlength=known.size)
    at = counts.tocoo()
    belongs = known[at.col] >= 0  # the unassigned rows are no cluster
    jaccard = np.where(belongs, at.data / (mine[at.row] + theirs[at.col] - at.data), 0.0)
    best = np.zeros(ids.size)
    np.maximum.at(best, at.row, jaccard)
    return np.where(mine > 0, best, np.nan)
