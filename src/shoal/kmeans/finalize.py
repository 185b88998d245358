"""From the last step of a run to the model: full centers, a center for every row, and what was lost on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shoal.kmeans.centers import Centers, index_centers, own_similarities, update_centers
from shoal.kmeans.exact import assign
from shoal.kmeans.lloyd import Outcome
from shoal.kmeans.rows import UnitRows, take_rows
from shoal.progress import say

ROWS_FOR_CERTIFICATE = 2000


@dataclass
class FitResult:
    """What the model remembers of a run."""

    centers: Centers
    labels: np.ndarray
    similarities: np.ndarray  # to the full centers
    outliers: np.ndarray
    certificate: dict[str, float] = field(default_factory=dict)


def finish(
    rows: UnitRows, row_weights: np.ndarray, run: Outcome, algorithm: str, n_threads: int | None = None
) -> FitResult:
    """Exact runs are complete. Otherwise the centers are made anew from all features of their rows.

    Rows that no center won are outliers; they get their nearest center here, and pull on none.
    """
    outliers = run.labels < 0
    if algorithm == "exact":
        return FitResult(run.centers, run.labels, run.similarities, outliers, certified_exact(rows.n_rows))
    labels = run.labels
    if algorithm == "wand":  # rows may have a nearer center than the one that retrieved them
        labels, _ = assign(rows, index_centers(run.centers, rows.n_ranks), n_threads)
    update = update_centers(
        rows, row_weights, np.where(outliers, -1, labels).astype(np.int32), len(run.centers), n_threads=n_threads
    )
    centers = update.centers.filled_from(run.centers)
    index = index_centers(centers, rows.n_ranks)
    lost = np.flatnonzero((labels < 0) & (rows.lengths > 0))
    if lost.size:
        labels = labels.copy()
        labels[lost] = assign(take_rows(rows, lost), index, n_threads)[0]
    similarities = own_similarities(rows, labels, centers)
    sample = np.linspace(0, rows.n_rows - 1, min(rows.n_rows, ROWS_FOR_CERTIFICATE)).astype(np.int64)
    _, best = assign(take_rows(rows, sample), index, n_threads)
    return FitResult(centers, labels, similarities, outliers, _certificate(best, similarities[sample]))


def _certificate(best: np.ndarray, reached: np.ndarray) -> dict[str, float]:
    """How much mean similarity an exact assignment to the same centers would add, from a sample of rows."""
    loss = np.maximum(best - reached, 0.0)
    error = float(loss.std() / np.sqrt(loss.size))
    found = {
        "rows": float(loss.size),
        "loss": float(loss.mean()),
        "standard_error": error,
        "relative_loss": float(loss.mean() / max(best.mean(), 1e-300)),
        "exact_mean_similarity": float(best.mean()),
    }
    say(
        f"certificate: exact assignment would add {found['loss']:.5f} ± {2 * error:.5f} to the mean similarity "
        f"({found['relative_loss']:.2%}), from {loss.size:,} rows"
    )
    return found


def certified_exact(n_rows: int) -> dict[str, float]:
    return {"rows": float(n_rows), "loss": 0.0, "standard_error": 0.0, "relative_loss": 0.0}
