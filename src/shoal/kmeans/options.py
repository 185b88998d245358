"""The options and the state of SphericalKMeans, checked, and what a fit with them will need."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import check_choice, check_int, check_random_state, check_real
from shoal.errors import BadInput, BadModelFile
from shoal.kmeans.centers import HOT_BYTES, Centers, centers_from_csr
from shoal.kmeans.rows import Ranking, UnitRows
from shoal.threads import n_threads_of

ALGORITHMS = ("auto", "exact", "sparse", "wand")
INITS = ("k-means++", "k-means||", "random")
THRESHOLDS = ("safe", "carried", "cold")
STARTS = 3  # for n_init="auto"
CHEAP_STEP = 10**8  # entries x clusters: a plain step of this size takes about a tenth of a second


def check_options(model: Any) -> np.random.Generator:
    """Check every option before any work is done; the source of randomness."""
    for name in ("n_clusters", "max_iter", "top"):
        check_int(name, getattr(model, name), minimum=1)
    if model.n_init != "auto":
        check_int("n_init", model.n_init, minimum=1)
    check_choice("algorithm", model.algorithm, ALGORITHMS)
    check_choice("thresholds", model.thresholds, THRESHOLDS)
    kept = model.features_kept
    if kept is not None and kept != "auto":
        check_int("features_kept", kept, minimum=1)
    if model.algorithm == "exact" and kept not in ("auto", None):
        raise BadInput(f"features_kept={kept} thins the centers, which is not exact. Use algorithm='sparse' or 'wand'.")
    if isinstance(model.init, str):
        if model.init not in INITS:
            raise BadInput(f"init is {model.init!r}; choose one of {', '.join(INITS)}, or give a matrix of centers.")
    elif model.bisecting:
        raise BadInput("init is a matrix, but bisecting=True starts from one cluster; give the name of a seeding.")
    if model.bisecting and model.algorithm not in ("auto", "exact"):
        raise BadInput(f"bisecting=True splits exactly; algorithm={model.algorithm!r} has no use. Leave it at 'auto'.")
    for name in ("min_cluster_size", "max_cluster_size"):
        if getattr(model, name) is not None:
            check_int(name, getattr(model, name), minimum=1)
            if model.bisecting:
                raise BadInput(f"{name} is no option of bisecting=True, whose clusters are the leaves of a tree.")
    check_real("tol", model.tol, minimum=0)
    n_threads_of(model.n_threads)
    return check_random_state(model.random_state)


def how_many_starts(model: Any, nnz: int) -> int:
    """``n_init``, or what "auto" means: several starts where they cost little and change."""
    if model.n_init != "auto":
        return int(model.n_init)
    return STARTS if isinstance(model.init, str) and nnz * model.n_clusters <= CHEAP_STEP else 1


def given_centers(init: Any, n_clusters: int, rows: UnitRows) -> Centers:
    """The first centers as the caller gave them."""
    try:
        given = sp.csr_matrix(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"init is not a matrix of centers: {error}") from None
    if given.shape != (n_clusters, rows.n_features):
        raise BadInput(
            f"init has shape {given.shape}; n_clusters={n_clusters} centers of {rows.n_features} features are needed."
        )
    if not np.isfinite(given.data).all():
        raise BadInput("init holds NaN or infinity; give finite centers.")
    if not given.has_canonical_format:
        given = given.copy()
        given.sum_duplicates()
    return centers_from_csr(given, Ranking(rows.columns, rows.n_features))


def memory_needed(n_rows: int, nnz: int, n_features: int, n_clusters: int, *, algorithm: str = "exact") -> int:
    """Upper bound of the memory of a fit, in bytes and in addition to X.

    It consists of the unit rows (8 bytes per entry, 12 while they are made), one or two numbers per row and feature,
    the centers and their index (never more entries than the rows have), and for ``wand`` the inverted index.

    Parameters
    ----------
    n_rows, nnz, n_features : int
        Size of X; ``nnz`` is the number of stored entries.
    n_clusters : int
        Number of clusters.
    algorithm : {"exact", "sparse", "wand", "auto"}
        Algorithm of the fit.

    Examples
    --------
    >>> memory_needed(1_000_000, 95_000_000, 7_000_000, 1000, algorithm="wand") / 1e9 < 6
    True
    """
    rows = 12 * nnz + 80 * n_rows
    features = 60 * n_features
    center_entries = min(nnz, n_clusters * n_features)
    # Sums, old and new centers, and the lists or dense lines of the index.
    centers = 4 * 8 * center_entries + HOT_BYTES + 64 * n_clusters
    inverted = 8 * nnz + 40 * n_rows if algorithm == "wand" else 0
    return int(rows + features + centers + inverted)


def check_state(model: Any) -> None:
    """Refuse a state from a file whose arrays contradict one another: kernels would follow their indices."""
    wrong: list[str] = []
    centers = model.cluster_centers_
    if not _is_matrix(centers):
        raise BadModelFile("the centers of this SphericalKMeans are not a matrix; restore the file.")
    k, d = centers.shape
    for name, kinds in (("cluster_sizes_", "iu"), ("masses_", "f"), ("mean_lengths_", "f")):
        if not _is_array(getattr(model, name, None), (k,), kinds):
            wrong.append(name)
    labels = getattr(model, "labels_", None)
    n = labels.size if isinstance(labels, np.ndarray) else -1
    for name, kinds in (("labels_", "i"), ("similarities_", "f"), ("outliers_", "b")):
        if not _is_array(getattr(model, name, None), (n,), kinds):
            wrong.append(name)
    roster = getattr(model, "roster_", None)
    if roster is None or not _is_array(roster.ids, (k,), "i"):
        wrong.append("roster_")
    if model.n_features_in_ != d:
        wrong.append("n_features_in_")
    kept = getattr(model, "features_kept_", None)
    if kept is not None and not (isinstance(kept, int | np.integer) and kept >= 1):
        wrong.append("features_kept_")
    wrong += [name for name in ("n_iter_", "mean_similarity_", "objective_history_") if name not in vars(model)]
    wrong += _wrong_in_tree(model, k, d)
    if wrong:
        raise BadModelFile(
            f"{', '.join(wrong)} of this SphericalKMeans do not fit its {k} centers of {d} features; restore the file."
        )


def _wrong_in_tree(model: Any, k: int, d: int) -> list[str]:
    tree, leaves, nodes = (getattr(model, name, None) for name in ("tree_", "leaves_", "node_centers_"))
    if tree is None:
        return []
    n_splits = len(tree) if isinstance(tree, np.ndarray) else -1
    wrong = []
    if not _is_array(tree, (n_splits, 3), "i") or n_splits != k - 1:
        return ["tree_"]
    split = np.arange(n_splits)
    children = np.column_stack([2 * split + 1, 2 * split + 2])
    if (tree[:, 1:] != children).any() or (tree[:, 0] < 0).any() or (tree[:, 0] > 2 * split).any():
        wrong.append("tree_")
    ends = np.setdiff1d(np.arange(2 * n_splits + 1), tree[:, 0])
    if not _is_array(leaves, (k,), "i") or not np.array_equal(np.sort(np.asarray(leaves)), ends):
        wrong.append("leaves_")
    if not (_is_matrix(nodes) and getattr(nodes, "shape", None) == (2 * n_splits + 1, d)):
        wrong.append("node_centers_")
    return wrong


def _is_array(value: Any, shape: tuple[int, ...], kinds: str) -> bool:
    if not (isinstance(value, np.ndarray) and value.shape == shape and value.dtype.kind in kinds):
        return False
    return bool(np.isfinite(value).all()) if value.dtype.kind == "f" else True


def _is_matrix(value: Any) -> bool:
    """A CSR matrix of finite numbers whose offsets and columns stay inside it."""
    if not (sp.issparse(value) and value.format == "csr" and value.shape[0] > 0 and value.dtype.kind == "f"):
        return False
    indptr = value.indptr.astype(np.int64)
    return bool(
        indptr.shape == (value.shape[0] + 1,)
        and indptr[0] == 0
        and (indptr[1:] >= indptr[:-1]).all()
        and indptr[-1] == value.indices.size == value.data.size
        and (not value.indices.size or (value.indices.min() >= 0 and value.indices.max() < value.shape[1]))
        and np.isfinite(value.data).all()
    )
