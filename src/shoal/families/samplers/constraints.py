"""What the user knows of the labels: the clusters of some rows, pairs that belong together, and pairs that do not.

Rows whose cluster is known stay there. Rows that must be together are one block, which is visited after each sweep as
one row is within it: out of its cluster, scored under all clusters that hold no row it must not be with, and drawn from
its exact conditional. So the chain leaves the posterior unchanged that is restricted to labelings which keep to all
that is known.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from shoal.base import storable
from shoal.errors import BadInput
from shoal.families import statistics
from shoal.families.kernels.random_kernels import next_word
from shoal.threads import row_blocks

logger = logging.getLogger("shoal")


@storable
class Known(NamedTuple):
    """What is known of the labels of the fitted rows."""

    classes: np.ndarray  # (n,) the class of each row, from 0, or -1
    together: np.ndarray  # (m, 2) rows of one cluster
    apart: np.ndarray  # (m, 2) rows of different clusters
    names: np.ndarray  # of the classes

    def as_options(self) -> dict[str, Any]:
        """What it was given as."""
        y = np.full(len(self.classes), -1, np.int64)
        y[self.classes >= 0] = self.names[self.classes[self.classes >= 0]]
        return {"y": y, "must_link": self.together, "cannot_link": self.apart}


def read_known(y: Any, must_link: Any, cannot_link: Any, n_rows: int) -> Known | None:
    """What is known, if anything."""
    classes, names = np.full(n_rows, -1, np.int64), np.zeros(0, np.int64)
    if y is not None and is_semi_supervised(y):
        classes, names = read_classes(y, n_rows)
    together, apart = read_pairs("must_link", must_link, n_rows), read_pairs("cannot_link", cannot_link, n_rows)
    if (classes < 0).all() and not len(together) and not len(apart):
        return None
    return Known(classes, together, apart, names)


def is_semi_supervised(y: Any) -> bool:
    """Whether y leaves the class of some row open. Where it does not, there is nothing to find: such a y is what
    scikit-learn's pipelines and searches pass to every estimator, and clusterers ignore it."""
    given = np.asarray(y)
    if given.dtype.kind in "iuf" and (given < 0).any():
        return True
    logger.info("y is not used: it has no -1, which is what marks rows of unknown class")
    return False


def read_classes(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(class of each row from 0, or -1; the classes as given)."""
    given = np.asarray(y)
    if given.shape != (n_rows,) or given.dtype.kind not in "iu":
        raise BadInput(
            f"y has shape {given.shape} and type {given.dtype}; it needs one whole number for each of the {n_rows} "
            "rows: the class of the row, or -1 where that is unknown."
        )
    if given.min(initial=0) < -1:
        raise BadInput(f"row {int(np.argmin(given))} of y is {given.min()}; classes are 0 or more, and -1 is unknown.")
    names, classes = np.unique(given[given >= 0], return_inverse=True)
    out = np.full(n_rows, -1, np.int64)
    out[given >= 0] = classes
    return out, names


def read_pairs(name: str, pairs: Any, n_rows: int) -> np.ndarray:
    found = np.zeros((0, 2), np.int64) if pairs is None or len(pairs) == 0 else np.asarray(pairs)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise BadInput(f"{name} has shape {found.shape} and type {found.dtype}; give pairs of row numbers: [(0, 7)].")
    if found.size and (found.min() < 0 or found.max() >= n_rows):
        raise BadInput(f"{name} names rows {found.min()} to {found.max()}; the rows of X are 0 to {n_rows - 1}.")
    return found.astype(np.int64)


class Constraints:
    """Blocks of rows that move together, where they must not go, and the rows that a sweep passes over."""

    def __init__(self, known: Known, n_clusters: int) -> None:
        n = len(known.classes)
        links = sp.coo_matrix((np.ones(len(known.together)), known.together.T), shape=(n, n))
        self.n_clusters = n_clusters
        self.block_of = connected_components(links, directed=False)[1]
        self.class_of = block_classes(known, self.block_of, n_clusters)
        self.enemies = block_enemies(known, self.block_of)
        rows = np.argsort(self.block_of, kind="stable")
        members = np.split(rows, np.cumsum(np.bincount(self.block_of))[:-1])
        self.members = {
            block: members[block]
            for block in range(len(members))
            if self.class_of[block] < 0 and (len(members[block]) > 1 or block in self.enemies)
        }
        self.classes = self.class_of[self.block_of]
        self.has_classes = bool((self.classes >= 0).any())

    def free_runs(self) -> list[tuple[int, int]]:
        """First and last + 1 of the rows that sweeps visit one by one."""
        free = self.classes < 0
        for rows in self.members.values():
            free[rows] = False
        edges = np.flatnonzero(np.diff(np.concatenate([[0], free.astype(np.int8), [0]])))
        return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]

    def first_labels(self, problem: Any, labels: np.ndarray | None) -> np.ndarray:
        """Labels that keep to what is known: ``labels``, changed where they do not. With None, and known classes, all
        other rows go where those rows suggest."""
        if labels is None:
            labels = self._placed(problem)
        labels = np.where(self.classes >= 0, self.classes, labels).astype(np.int64)
        for rows in self.members.values():
            labels[rows] = -1
        return self._visited(problem, labels, None).astype(np.int32)

    def _placed(self, problem: Any) -> np.ndarray:
        """Rows of known classes make the first clusters; the others are folded in."""
        settings, held = problem.settings, np.flatnonzero(self.classes >= 0)
        stats = problem.family.statistics(problem.X[held], self.classes[held], int(self.classes.max()) + 1)
        process = settings.weights == "dirichlet_process"
        model = statistics.Model(problem.family, stats, self.n_clusters, problem.concentration, process)
        rest = np.flatnonzero(self.classes < 0)
        parts = [problem.X[rest[first:last]] for first, last in row_blocks(len(rest), statistics.PLACED_ROWS)]
        labels = np.full(problem.n_rows, -1, np.int64)
        if len(rest):
            labels[rest] = statistics.fold_in(parts, model, settings.n_threads)[1]
        return labels

    def visit(self, problem: Any, chain: Any) -> None:
        """Draw the cluster of each block from its conditional."""
        if self.members:
            rng = np.random.default_rng(int(next_word(chain.random)))
            chain.set_labels(self._visited(problem, chain.labels.astype(np.int64), rng))

    def repair(self, problem: Any, chain: Any) -> None:
        """After splits and merges: blocks that they parted, or put with rows they must not be with, are placed anew."""
        labels = chain.labels.astype(np.int64)
        for block, rows in self.members.items():
            if (labels[rows] != labels[rows[0]]).any() or labels[rows[0]] in self._forbidden(block, labels):
                labels[rows] = -1
        if (labels < 0).any():
            chain.set_labels(self._visited(problem, labels, None))

    def _forbidden(self, block: int, labels: np.ndarray) -> np.ndarray:
        """Clusters of the rows that a block must not be with."""
        others = [
            labels[self.members[enemy][0]] if enemy in self.members else self.class_of[enemy]
            for enemy in self.enemies.get(block, ())
        ]
        return np.unique([cluster for cluster in others if cluster >= 0]).astype(np.int64)

    def _visited(self, problem: Any, labels: np.ndarray, rng: Any) -> np.ndarray:
        """Visit all blocks; without ``rng`` only those without a cluster, which go to the best that is allowed: those
        with the least choice first, for later ones find less."""
        visit = Visit(problem, labels, self.n_clusters)
        waiting = [block for block, rows in self.members.items() if rng is not None or labels[rows[0]] < 0]
        while waiting:
            at = 0 if rng is not None else int(np.argmax([len(self._forbidden(block, labels)) for block in waiting]))
            block = waiting.pop(at)
            visit.move(self.members[block], self._forbidden(block, labels), rng)
        return labels


class Visit:
    """Blocks of rows moved between clusters, with the statistics kept up to date."""

    def __init__(self, problem: Any, labels: np.ndarray, n_clusters: int) -> None:
        self.family, self.X, self.prior, self.labels, self.k = (
            problem.family, problem.X, problem.prior, labels, n_clusters
        )  # fmt: skip
        self.stats = self.family.statistics(self.X, labels, n_clusters)
        self.alone = self.family.log_marginal(self.stats)

    def move(self, rows: np.ndarray, forbidden: np.ndarray, rng: Any) -> None:
        """Draw a cluster for these rows, or take the best."""
        own = int(self.labels[rows[0]])
        part = self.family.statistics(self.X[rows], np.zeros(len(rows), np.int64), 1)
        if own >= 0:
            self._shift(part, own, -1)
        together = self.family.log_marginal(
            statistics.add(self.stats, statistics.pick(part, np.zeros(self.k, np.int64)))
        )
        scores = together - self.alone + log_label_weights(self.stats.size, len(rows), self.prior)
        scores[forbidden] = -np.inf
        if not np.isfinite(scores).any():
            raise BadInput(
                f"row {rows[0]} has no cluster left that cannot_link allows: raise n_clusters above {self.k}, or leave "
                "pairs out."
            )
        target = int(np.argmax(scores if rng is None else scores + rng.gumbel(size=self.k)))
        self._shift(part, target, 1)
        self.labels[rows] = target

    def _shift(self, part: Any, cluster: int, sign: int) -> None:
        """The block's statistics enter or leave a cluster's."""
        self.stats = statistics.add(
            self.stats, statistics.sum_groups(part, np.full(1, cluster), len(self.stats.size)), sign
        )
        self.alone[cluster] = self.family.log_marginal(statistics.pick(self.stats, [cluster]))[0]


def block_classes(known: Known, block_of: np.ndarray, n_clusters: int) -> np.ndarray:
    """The class of each block, or -1."""
    out = np.full(int(block_of.max(initial=-1)) + 1, -1, np.int64)
    for row in np.flatnonzero(known.classes >= 0):
        if out[block_of[row]] not in (-1, known.classes[row]):
            raise BadInput(f"must_link puts row {row} together with a row of another class of y. Leave a pair out.")
        out[block_of[row]] = known.classes[row]
    if out.max(initial=-1) >= n_clusters:
        raise BadInput(f"y names {int(out.max()) + 1} classes, but n_clusters is {n_clusters}; raise n_clusters.")
    return out


def block_enemies(known: Known, block_of: np.ndarray) -> dict[int, set[int]]:
    """For each block, those it must not be with."""
    enemies: dict[int, set[int]] = {}
    for one, two in known.apart.tolist():
        left, right = int(block_of[one]), int(block_of[two])
        if left == right or (known.classes[one] >= 0 and known.classes[one] == known.classes[two]):
            raise BadInput(f"cannot_link names rows {one} and {two}, which must_link or y puts together.")
        enemies.setdefault(left, set()).add(right)
        enemies.setdefault(right, set()).add(left)
    return enemies


def log_label_weights(size: np.ndarray, n: int, prior: Any) -> np.ndarray:
    """log p(n rows go to each cluster | all other labels), up to a constant."""
    if prior.dp_concentration == 0:
        return np.asarray(gammaln(size + prior.alpha + n) - gammaln(size + prior.alpha))
    n_empty = max(int((size == 0).sum()), 1)
    fresh = np.log(prior.dp_concentration / n_empty) + gammaln(n)
    return np.where(size > 0, gammaln(size + n) - gammaln(np.maximum(size, 1)), fresh)
