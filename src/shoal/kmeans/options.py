"""The options of SphericalKMeans: which values they may have, and what a fit with them will need."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import BadInput
from shoal.kmeans.centers import HOT_BYTES

ALGORITHMS = ("auto", "exact", "sparse", "wand")
INITS = ("k-means++", "k-means||", "random")
THRESHOLDS = ("safe", "carried", "cold")
STARTS = 3  # for n_init="auto"
CHEAP_STEP = 10**8  # entries x clusters: a plain step of this size takes about a tenth of a second


def check_options(model: Any) -> None:
    """Check the options before any work is done."""
    for name in ("n_clusters", "n_init", "max_iter", "top"):
        if not _is_whole(getattr(model, name), 1) and (name, model.n_init) != ("n_init", "auto"):
            raise BadInput(f"{name} is {getattr(model, name)!r}; it must be a whole number, 1 or more.")
    _check_choice("algorithm", model.algorithm, ALGORITHMS)
    _check_choice("thresholds", model.thresholds, THRESHOLDS)
    kept = model.features_kept
    if kept is not None and kept != "auto" and not _is_whole(kept, 1):
        raise BadInput(f"features_kept is {kept!r}; it must be a whole number, 1 or more, 'auto', or None for all.")
    if model.algorithm == "exact" and kept not in ("auto", None):
        raise BadInput(f"features_kept={kept} thins the centers, which is not exact. Use algorithm='sparse' or 'wand'.")
    if isinstance(model.init, str):
        _check_choice("init", model.init, INITS, ", or give a matrix of centers")
    elif model.bisecting:
        raise BadInput("init is a matrix, but bisecting=True starts from one cluster; give the name of a seeding.")
    if model.bisecting and model.algorithm not in ("auto", "exact"):
        raise BadInput(f"bisecting=True splits exactly; algorithm={model.algorithm!r} has no use. Leave it at 'auto'.")
    if not model.tol >= 0:
        raise BadInput(f"tol is {model.tol!r}; it must be 0 or more.")


def how_many_starts(model: Any, nnz: int) -> int:
    """``n_init``, or what "auto" means: several starts where they cost little and change."""
    if model.n_init != "auto":
        return int(model.n_init)
    return STARTS if isinstance(model.init, str) and nnz * model.n_clusters <= CHEAP_STEP else 1


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least


def _check_choice(name: str, value: Any, known: tuple[str, ...], more: str = "") -> None:
    if value not in known:
        raise BadInput(f"{name} is {value!r}; choose one of {', '.join(known)}{more}.")


def memory_needed(n_rows: int, nnz: int, n_features: int, n_clusters: int, *, algorithm: str = "exact") -> int:
    """Bytes that a fit will hold at most besides X itself, from sizes alone.

    The unit rows (8 bytes an entry, 12 while they are made), one number or two for each row and feature, the centers
    and their index (never more entries than the rows have), and for ``wand`` the inverted index.

    >>> memory_needed(1_000_000, 95_000_000, 7_000_000, 1000, algorithm="wand") / 1e9 < 6
    True
    """
    rows = 12 * nnz + 80 * n_rows
    features = 60 * n_features
    center_entries = min(nnz, n_clusters * n_features)
    # Old and new centers, the blocks they are made in, and the lists or dense lines of the index.
    centers = 3 * 8 * center_entries + HOT_BYTES + 64 * n_clusters
    inverted = 8 * nnz + 40 * n_rows if algorithm == "wand" else 0
    return int(rows + features + centers + inverted)
