"""From the last step of a run to the model: full centers, a center for every row, and what was lost on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from shoal.engine import fold
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import CenterIndex, Centers, index_centers, own_similarities
from shoal.kmeans.exact import assign
from shoal.kmeans.lloyd import Run, assignment, inner_threads
from shoal.kmeans.rows import take_rows
from shoal.kmeans.statistics import Memory, Model, accumulate, merge, reassign, update
from shoal.progress import message

ROWS_FOR_CERTIFICATE = 2000


@dataclass
class FitResult:
    """What the model remembers of a run; labels are places of centers."""

    centers: Centers
    labels: np.ndarray
    similarities: np.ndarray  # to the full centers
    outliers: np.ndarray
    certificate: dict[str, float] = field(default_factory=dict)


def finalize(blocks: list[Block], run: Run, algorithm: str, n_threads: int | None = None) -> FitResult:
    """Exact runs are complete. Otherwise the centers are made anew from all features of their rows.

    Rows that no center won are outliers; they get their nearest center here, and pull on none.
    """
    labels, similarities = joined(run.memories)
    outliers = labels < 0
    if algorithm == "exact":
        return FitResult(run.model.centers, labels, similarities, outliers, certified_exact(labels.size))
    memories = run.memories
    if algorithm == "wand":  # rows may have a nearer center than the one that retrieved them
        _, nearest = assignment(blocks, run.model, reassign, None, n_threads)
        pairs = zip(memories, nearest, strict=True)
        memories = [new._replace(labels=np.where(old.labels < 0, -1, new.labels)) for old, new in pairs]
    memories = [memory._replace(starts=None, members=None) for memory in memories]
    plain = Model(run.model.centers, run.model.n_ranks)
    inner = inner_threads(blocks, n_threads)
    summed = fold(blocks, partial(accumulate, n_threads=inner), merge, plain, memories=memories, n_threads=n_threads)
    full = update(plain, summed.stats, n_threads=n_threads)
    step = partial(final_labels, n_threads=inner)
    view = FullCenters(full.centers, index_centers(full.centers, full.n_ranks), sum(block.n_rows for block in blocks))
    found = fold(blocks, step, merge_losses, view, memories=summed.memories, n_threads=n_threads)
    assert found.memories is not None
    labels, similarities = joined(found.memories)
    return FitResult(full.centers, labels, similarities, outliers, _certificate(found.stats))


def joined(memories: list[Memory]) -> tuple[np.ndarray, np.ndarray]:
    """Labels and cosines of all rows."""
    return (
        np.concatenate([memory.labels for memory in memories]),
        np.concatenate([memory.similarities for memory in memories]),
    )


class FullCenters(NamedTuple):
    """What the last pass needs."""

    centers: Centers
    indexed: CenterIndex
    n_rows: int  # in all blocks


class Losses(NamedTuple):
    """What exact assignment would add, on a sample of rows."""

    n: int
    total: float
    squares: float
    best: float  # sum of the largest cosines


def final_labels(
    block: Block, model: FullCenters, memory: Memory | None = None, *, n_threads: int | None = 1
) -> tuple[Losses, Memory]:
    """Rows without a center get their nearest; every row's cosine to its full center; a sample is assigned exactly."""
    assert memory is not None
    rows, labels = block.open(), memory.labels
    lost = np.flatnonzero((labels < 0) & (rows.lengths > 0))
    if lost.size:
        labels = labels.copy()
        labels[lost] = assign(take_rows(rows, lost), model.indexed, n_threads)[0]
    similarities = own_similarities(rows, labels, model.centers)
    n = min(model.n_rows, ROWS_FOR_CERTIFICATE)
    sample = np.linspace(0, model.n_rows - 1, n).astype(np.int64) - block.start
    sample = sample[(sample >= 0) & (sample < rows.n_rows)]
    _, best = assign(take_rows(rows, sample), model.indexed, n_threads)
    loss = np.maximum(best - similarities[sample], 0.0)
    losses = Losses(loss.size, float(loss.sum()), float((loss**2).sum()), float(best.sum()))
    return losses, Memory(labels, similarities, memory.others)


def merge_losses(a: Losses, b: Losses) -> Losses:
    """Both samples."""
    return Losses(a.n + b.n, a.total + b.total, a.squares + b.squares, a.best + b.best)


def _certificate(losses: Losses) -> dict[str, float]:
    """How much mean similarity an exact assignment to the same centers would add, from a sample of rows."""
    n = max(losses.n, 1)
    mean, best = losses.total / n, losses.best / n
    error = float(np.sqrt(max(losses.squares / n - mean**2, 0.0) / n))
    found = {
        "rows": float(losses.n),
        "loss": mean,
        "standard_error": error,
        "relative_loss": mean / max(best, 1e-300),
        "exact_mean_similarity": best,
    }
    message(
        f"certificate: exact assignment would add {mean:.5f} ± {2 * error:.5f} to the mean similarity "
        f"({found['relative_loss']:.2%}), from {losses.n:,} rows"
    )
    return found


def certified_exact(n_rows: int) -> dict[str, float]:
    """Nothing is lost."""
    return {"rows": float(n_rows), "loss": 0.0, "standard_error": 0.0, "relative_loss": 0.0}
