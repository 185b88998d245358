"""Where sampling starts: several cheap ways, and the one with the best log joint goes on.

No single way is right. Going through the rows once, each to its best cluster so far or a new one, is worth more than
many sweeps on long documents with many common words, and commits too early on short ones; there, random labels do
better, under weak smoothing where the clusters are many and small and under strong smoothing where they are few.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.base import check_choice
from shoal.errors import BadInput
from shoal.families.samplers.hyperparameters import SMOOTHING_RATE
from shoal.progress import Monitor

INITS = ("auto", "one-pass", "random")
SWEEPS_PER_START = 10
# Rounds of learning the prior, merging and splitting before starts are compared: one that began under another prior
# than it will end with looks worse than it is, and short texts of a few broad classes then lost their better start.
ROUNDS_BEFORE_COMPARING = 3
FEW_ROWS_TIMES_CLUSTERS = 20_000_000  # random starts are tried where so many scores a sweep are no trouble


class Start(NamedTuple):
    """A start that was tried."""

    name: str
    log_joint: float  # of rows, labels and smoothing
    labels: np.ndarray


def first_labels(problem: Any, init: Any, sampler: str, seed: int, *, split_merge: bool) -> tuple[np.ndarray, bool]:
    """(labels to begin with, whether finding them was interrupted)."""
    if not isinstance(init, str):
        return given_labels(problem, init), False
    check_choice("init", init, INITS)
    if init == "auto":
        names = problem.default_inits()
        return find_start(problem, names, sampler, seed, split_merge=split_merge)
    return (random_labels(problem, seed) if init == "random" else problem.first_labels(seed)), False


def predicted_labels(init: Any, X: Any) -> Any:
    """``init``, or where that is a fitted model of any kind, the labels it gives the rows."""
    return np.unique(init.predict(X), return_inverse=True)[1] if hasattr(init, "predict") else init


def given_labels(problem: Any, init: Any) -> np.ndarray:
    """Labels that the user gives."""
    labels = np.asarray(init)
    n, k = problem.n_rows, problem.settings.n_clusters
    if labels.shape != (n,) or labels.dtype.kind not in "iub" or labels.min() < 0 or labels.max() >= k:
        found = f" from {labels.min()} to {labels.max()}" if labels.size and labels.dtype.kind in "iufb" else ""
        raise BadInput(
            f"init holds labels of shape {labels.shape}{found}; it needs one whole number for each of the {n} rows, "
            f"from 0 to {k - 1}."
        )
    return labels.astype(np.int32)


def default_inits(problem: Any) -> list[str]:
    """Which starts are worth trying for these rows."""
    n, k = problem.X.shape[0], problem.settings.n_clusters
    if n * k > FEW_ROWS_TIMES_CLUSTERS or problem.family.strength > 0:
        return ["one-pass"]
    return ["random", "random-smooth"]


def random_labels(problem: Any, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, problem.settings.n_clusters, problem.n_rows).astype(np.int32)


def try_start(problem: Any, name: str, sampler: str, seed: int, *, split_merge: bool) -> Start:
    """Sweep a little from this start; leaves what it learned in ``problem``."""
    given = problem.family
    if name == "random-smooth" and given.smoothing > 0:
        problem.family = replace(given, smoothing=3 * given.smoothing)
    labels = problem.first_labels(seed) if name == "one-pass" else random_labels(problem, seed)
    chain = problem.chain(sampler, seed)
    problem.begin(chain, labels)
    for _ in range(SWEEPS_PER_START):
        chain.sweep()
    if problem.settings.smoothing not in ("auto", "learn"):
        problem.family = given
    for _ in range(ROUNDS_BEFORE_COMPARING):
        problem.learn(chain)
        chain.sweep()
    for _ in range(ROUNDS_BEFORE_COMPARING + 1 if split_merge else 0):
        problem.learn(chain)
        problem.split_merge(chain)
        chain.sweep()
    return Start(name, chain.log_joint() - SMOOTHING_RATE * problem.family.smoothing, chain.labels.copy())


def find_start(
    problem: Any, names: list[str], sampler: str, seed: int, *, split_merge: bool
) -> tuple[np.ndarray, bool]:
    """(labels of the best of these starts, whether it was interrupted). A single start is taken without sweeps."""
    if len(names) == 1:
        return problem.first_labels(seed) if names[0] == "one-pass" else random_labels(problem, seed), False
    fresh = (problem.family, problem.concentration)
    best: tuple[Start, tuple] | None = None  # type: ignore[type-arg]
    with Monitor("starting", len(names)) as monitor:
        for number, name in enumerate(names):
            problem.family, problem.concentration = fresh
            start = try_start(problem, name, sampler, seed + number, split_merge=split_merge)
            if best is None or start.log_joint > best[0].log_joint:
                best = start, (problem.family, problem.concentration)
            monitor.report(start.log_joint, start=name, log_joint=start.log_joint)
            if monitor.interrupted:
                break
    assert best is not None
    problem.family, problem.concentration = best[1]
    return best[0].labels, monitor.interrupted
