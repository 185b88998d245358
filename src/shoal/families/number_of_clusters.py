"""``n_clusters="auto"``: a generous fit, and where that fills whatever it is given, a number that resamples agree on.

On short rows a generous bound is not filled: the posterior itself says how many clusters there are. All that is wrong
with it are strays: with many empty clusters to go to, a few rows that no cluster suits make one of their own. Clusters
of less than a handful of rows are not counted, and the rows are fitted again under the smaller bound.

On long rows any bound is filled, for words are not independent draws: real topics have subtopics without end, and each
more predicts held-out rows better. Then two things are asked of a number g. Do models of two halves of the rows put all
rows together in the same way (adjusted Rand index)? That is best where clusters are what the rows are like and not what
the sample was. And how much of what clusters can predict do g of them predict? The worth of a number is the product of
the agreement and the square root of that share: a share of a half costs as much as an agreement that is lower by 30 %.
Two halves may agree by chance, on few clusters above all, so the score is averaged with those of neighboring numbers.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from shoal.base import storable
from shoal.families.hierarchy import Hierarchy
from shoal.metrics import adjusted_rand_index
from shoal.progress import Monitor

LEAST_BOUND, MOST_BOUND, ROWS_PER_CLUSTER = 20, 300, 20
FILLED = 0.75  # share of the bound in use from which the bound has a part in the number
GRID = (2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30, 40, 55, 75, 100, 140)
ROWS_PER_HALF, LEAST_ROWS_IN_HALF, TRIAL_SWEEPS = 2_000, 10, 12
SPLITS = 3  # into halves
LEAST_ROWS = 5  # of a cluster that counts
HOPELESS = 4  # numbers in a row that are worth less than half of the best: larger ones are not tried
logger = logging.getLogger("shoal")


@storable
@dataclass
class NumberOfClusters:
    """How a number of clusters was chosen, and the generous fit for those who want it finer or coarser."""

    bound: int  # of the generous fit
    found: int  # by it
    reason: str
    tried: np.ndarray  # numbers compared by resampling; empty where the generous fit left clusters empty
    agreement: np.ndarray  # adjusted Rand index between models of two halves
    log_likelihood: np.ndarray  # of a held-out row
    fine_labels: np.ndarray  # of the generous fit
    fine_tree: Hierarchy  # over its clusters

    def cut(self, n_groups: int) -> np.ndarray:
        """(n,) labels of the fitted rows when the tree over the fine clusters is cut at this many groups."""
        return np.asarray(self.fine_tree.cut(n_groups)[self.fine_labels])


def generous_bound(n_rows: int) -> int:
    """More clusters than rows are likely to have."""
    return int(min(max(LEAST_BOUND, min(MOST_BOUND, n_rows // ROWS_PER_CLUSTER)), max(n_rows, 1)))


def choose(estimator: Any, rows: Any, seed: int) -> tuple[Any, NumberOfClusters]:
    """(fitted estimator, how its number of clusters was chosen)."""
    bound = generous_bound(rows.shape[0])
    generous = trial(estimator, bound, seed).fit(rows)
    found = generous.n_clusters_
    nothing = np.zeros(0)
    facts = NumberOfClusters(bound, found, "", nothing, nothing, nothing, generous.labels_, generous.hierarchy_)
    if found < FILLED * bound or rows.shape[0] < 4 * LEAST_ROWS_IN_HALF:
        counted = int((generous.cluster_sizes_ >= LEAST_ROWS).sum())
        facts.reason = (
            f"{found} of {bound} possible clusters are in use, {counted} of {LEAST_ROWS} rows or more: the evidence "
            "decides"
        )
        tight = trial(estimator, counted, seed).fit(rows) if counted > 1 else generous
        return (tight if tight.n_clusters_ > 1 else generous), facts
    facts.tried, facts.agreement, facts.log_likelihood = compare(estimator, rows, bound, seed)
    best = int(facts.tried[np.argmax(worth(facts.agreement, facts.log_likelihood))])
    facts.reason = (
        f"the rows fill most of any bound ({found} of {bound} clusters in use): "
        f"{best} is what two halves of the rows agree on"
    )
    return trial(estimator, best, seed).fit(rows), facts


def trial(estimator: Any, n_clusters: int, seed: int, **options: Any) -> Any:
    return clone(estimator).set_params(n_clusters=n_clusters, random_state=seed, **options)


def worth(agreement: np.ndarray, log_likelihood: np.ndarray) -> np.ndarray:
    """What each number of clusters is worth; the first entry of ``log_likelihood`` is that of a single cluster.

    >>> worth(np.array([0.9, 0.2, 0.8, 0.8, 0.7]), np.array([0.0, 0.1, 0.3, 0.8, 0.9, 1.0])).argmax()
    np.int64(3)
    """
    share = (log_likelihood[1:] - log_likelihood[0]) / max(log_likelihood.max() - log_likelihood[0], 1e-12)
    alone = np.maximum(agreement, 0.0) * np.sqrt(np.clip(share, 0.0, 1.0))
    padded = np.concatenate([alone[:1], alone, alone[-1:]])
    return np.asarray((padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4)


def compare(estimator: Any, rows: Any, bound: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(numbers, agreement of two halves for each, log likelihood of held-out rows for one cluster and for each)."""
    most = min(bound, rows.shape[0] // (2 * LEAST_ROWS_IN_HALF))
    numbers = [number for number in GRID if number <= most] or [2]
    agreement, log_likelihood = [], []
    with Monitor("comparing numbers of clusters", len(numbers) + 1) as monitor:
        for number in (1, *numbers):
            found = [try_halves(estimator, rows, number, seed + split) for split in range(SPLITS if number > 1 else 1)]
            agreement.append(float(np.mean([agreed for agreed, _ in found])))
            log_likelihood.append(float(np.mean([held_out for _, held_out in found])))
            monitor.report(log_likelihood[-1], clusters=number)
            if monitor.interrupted or is_hopeless(np.array(agreement[1:]), np.array(log_likelihood)):
                break
    return np.array(numbers[: len(agreement) - 1]), np.array(agreement[1:]), np.array(log_likelihood)


def try_halves(estimator: Any, rows: Any, number: int, seed: int) -> tuple[float, float]:
    """(agreement of models of two halves on all their rows, mean log likelihood of a row under the other's model)."""
    order = np.random.default_rng(seed).permutation(rows.shape[0])[: 2 * ROWS_PER_HALF]
    halves = rows[np.sort(order[::2])], rows[np.sort(order[1::2])]
    models = [trial(estimator, number, seed + at, n_sweeps=TRIAL_SWEEPS).fit(half) for at, half in enumerate(halves)]
    labels = [np.concatenate([model.predict(half) for half in halves]) for model in models]
    held_out = [models[0].score_samples(halves[1]), models[1].score_samples(halves[0])]
    return float(adjusted_rand_index(*labels)), float(np.concatenate(held_out).mean())


def is_hopeless(agreement: np.ndarray, log_likelihood: np.ndarray) -> bool:
    """Whether the last numbers were all worth much less than the best, and agreement is falling."""
    if len(agreement) <= HOPELESS:
        return False
    found = worth(agreement, log_likelihood)
    return bool((found[-HOPELESS:] < 0.5 * found.max()).all())
