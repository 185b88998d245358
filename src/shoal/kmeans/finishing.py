"""From the last step of a run to the model: full centres, a centre for every row, and what was lost on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shoal.kmeans.centres import Centres, index_centres, own_similarities, update_centres
from shoal.kmeans.exact import assign
from shoal.kmeans.lloyd import Outcome
from shoal.kmeans.rows import UnitRows, take_rows
from shoal.progress import say

ROWS_FOR_CERTIFICATE = 2000


@dataclass
class Finished:
    """What the model remembers of a run."""

    centres: Centres
    labels: np.ndarray
    similarities: np.ndarray  # to the full centres
    outliers: np.ndarray
    certificate: dict[str, float] = field(default_factory=dict)


def finish(
    rows: UnitRows, row_weights: np.ndarray, run: Outcome, algorithm: str, n_threads: int | None = None
) -> Finished:
    """Exact runs are complete. Otherwise the centres are made anew from all features of their rows.

    Rows that no centre won are outliers; they get their nearest centre here, and pull on none.
    """
    outliers = run.labels < 0
    if algorithm == "exact":
        return Finished(run.centres, run.labels, run.similarities, outliers, certified_exact(rows.n_rows))
    labels = run.labels
    if algorithm == "wand":  # rows may have a nearer centre than the one that retrieved them
        labels, _ = assign(rows, index_centres(run.centres, rows.n_ranks), n_threads)
    update = update_centres(
        rows, row_weights, np.where(outliers, -1, labels).astype(np.int32), len(run.centres), n_threads=n_threads
    )
    centres = update.centres.filled_from(run.centres)
    index = index_centres(centres, rows.n_ranks)
    lost = np.flatnonzero((labels < 0) & (rows.lengths > 0))
    if lost.size:
        labels = labels.copy()
        labels[lost] = assign(take_rows(rows, lost), index, n_threads)[0]
    similarities = own_similarities(rows, labels, centres)
    sample = np.linspace(0, rows.n_rows - 1, min(rows.n_rows, ROWS_FOR_CERTIFICATE)).astype(np.int64)
    _, best = assign(take_rows(rows, sample), index, n_threads)
    return Finished(centres, labels, similarities, outliers, _certificate(best, similarities[sample]))


def _certificate(best: np.ndarray, reached: np.ndarray) -> dict[str, float]:
    """How much mean similarity an exact assignment to the same centres would add, from a sample of rows."""
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
