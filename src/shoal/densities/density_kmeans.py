"""K-means of probability distributions under the Kullback-Leibler divergence."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal.base import (
    Assignment,
    CenterEstimator,
    Roster,
    Rows,
    TopFeatures,
    check_int,
    storable,
    transaction,
    validate_rows,
    validate_weights,
)
from shoal.densities import editing, partitions
from shoal.densities.family import Family, Smoother, as_distributions
from shoal.densities.lloyd import Run, joined, lloyd
from shoal.densities.options import FAMILIES, check_options, check_state, family_of, usable_weights
from shoal.densities.seeding import first_centers
from shoal.densities.statistics import (
    Block,
    Centers,
    Memory,
    accumulate,
    blocks_of,
    centers_of,
    divergences,
    merge,
    nearest_centers,
    row_side,
    stats_behind,
    update,
)
from shoal.engine import Partitions, fold, learning
from shoal.errors import BadInput

__all__ = ["FAMILIES", "DensityKMeans"]

MOST_NUMBERS = 2**31  # of a matrix that is made dense: 16 GB


@storable
class DensityKMeans(CenterEstimator):
    """K-means for rows that are the parameters of probability distributions.

    For data in which each row describes a distribution, such as keywords by their bids or users by the posterior of
    their click rate. Both steps minimize the objective exactly, so it never increases.

    Parameters
    ----------
    n_clusters : int
        How many clusters.
    family : str
        The distributions, and with them the columns of ``X``:

        ==================  ===========================================================================
        gaussian            d means, then d variances
        gaussian_mixture    Z weights, Z*d means, Z*d variances; components are matched by position
        beta                d numbers a, then d numbers b
        gamma               d shapes, then d rates (1 / scale)
        dirichlet           alpha_1 ... alpha_d
        categorical         the probability (or the count) of each of d outcomes
        poisson             d rates
        ==================  ===========================================================================
    direction : {"center", "pooled"}
        "center" measures KL(center || row): a center is what its rows agree on (natural parameters are averaged).
        "pooled" measures KL(row || center): a center is the fit to the data of all its rows together (mean parameters
        are averaged).
    n_components : int
        Z, for the family "gaussian_mixture".
    init : {"k-means++", "random"} or array (n_clusters, n_parameters)
        Where to start. An array gives the first centers, laid out as the rows are.
    n_init : int
        Fits from this many sets of first centers; the best is kept. One, when ``init`` gives them.
    smoothing : float
        Keeps divergences finite. The quantile of the variances that is added to each variance, and the share by which
        weights, probabilities and rates are moved towards their average. 0 takes the rows as they are.
    max_iter, tol : int, float
        Stop after this many steps, or when the objective falls by less than this fraction.
    random_state : int, RandomState or None
        Decides the answer; the number of threads does not.
    n_threads : int or None
        Threads to use; None means all cores.
    engine : str
        Where passes over the rows run: ``"threads"`` of this process (or what :func:`shoal.engine.using` chose),
        ``"dask"``, or the address of a Dask scheduler. It does not change the result.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features) parameters of the centers, in the layout of the rows.
    labels_, divergences_ : of the rows of the last call that learned, the cluster and the divergence in nats.
    cluster_sizes_, masses_ : rows and weight that each cluster has learned, in the order of ``cluster_ids_``.
    objective_, objective_history_ : the weighted sum of divergences, at the end and after each step.
    n_iter_, converged_ : steps of the best fit, and whether it converged.

    Examples
    --------
    Four bell curves, two about 0 and two about 5:

    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.2, 1.0], [5.0, 1.0], [5.2, 1.0]])  # mean, variance
    >>> model = DensityKMeans(2, family="gaussian", smoothing=0, random_state=0).fit(X)
    >>> model.cluster_centers_[np.argsort(model.cluster_centers_[:, 0])].round(3)
    array([[0.1, 1. ],
           [5.1, 1. ]])
    >>> model.divergences_.round(4)                                     # 0.1^2 / 2
    array([0.005, 0.005, 0.005, 0.005])

    Two halves fitted from the same start merge to the whole:

    >>> start = X[[0, 2]]
    >>> halves = [DensityKMeans(2, init=start, smoothing=0).fit(X[[0, 2]]), DensityKMeans(2, init=start, smoothing=0)
    ...           .fit(X[[1, 3]])]
    >>> halves[0].merge(halves[1]).cluster_centers_.round(3)
    array([[0.1, 1. ],
           [5.1, 1. ]])
    """

    typicality_meaning = "minus the divergence from the center (nats)"

    cluster_centers_: np.ndarray
    labels_: np.ndarray
    divergences_: np.ndarray
    cluster_sizes_: np.ndarray
    masses_: np.ndarray
    objective_: float
    objective_history_: np.ndarray
    n_iter_: int
    converged_: bool
    roster_: Roster

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        family: str = "gaussian",
        direction: str = "center",
        n_components: int = 2,
        init: Any = "k-means++",
        n_init: int = 3,
        smoothing: float = 0.01,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
        n_threads: int | None = None,
        engine: str = "threads",
    ) -> None:
        self.n_clusters = n_clusters
        self.family = family
        self.direction = direction
        self.n_components = n_components
        self.init = init
        self.n_init = n_init
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.engine = engine

    # --- learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, identity_from: Any = None) -> DensityKMeans:
        """Find the centers of ``X``, (n, n_features) parameters; rows may carry weights.

        ``X`` may also be :func:`shoal.engine.read_partitions`: smoothing and first centers are then learned from a
        sample of rows. ``identity_from``: an earlier model, whose ids, names and pins go to the clusters found again.
        """
        given, (family, random) = X, check_options(self)
        with learning(self):
            if isinstance(given, Partitions):
                rows, X = given.columns_alone(given.item_ids()), partitions.sampled(given, self, family, random)
            else:
                rows, X = self._validated(family, X, "fit")
            weights, unit = partitions.weights_of(given, sample_weight, len(X), self.n_clusters)
            self._learn_transform(family, X, weights)
            X = self._transformed(family, X)
            blocks = blocks_of(family, self.direction, X, weights)
            passed_over: Any = partitions.blocks_in(given, self, family) if isinstance(given, Partitions) else blocks
            n_init = self.n_init if isinstance(self.init, str) else 1
            runs = [
                lloyd(
                    passed_over,
                    centers_of(family, self.direction, self._first_centers(family, X, blocks, weights, random)),
                    f"fit {at + 1}/{n_init}",
                    max_iter=self.max_iter,
                    tol=self.tol,
                    n_threads=self.n_threads,
                )
                for at in range(n_init)
            ]
            best = min(runs, key=lambda run: run.history[-1])
            self.roster_ = Roster.of(self.n_clusters)
            self._remember(best, unit)
            self._remember_rows(rows, mode="fit")
        return self._identified(identity_from, given)  # type: ignore[no-any-return]

    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> DensityKMeans:
        """Learn from one more batch of rows: each center moves by the share of its weight that is new.

        The first batch also gives the first centers and the smoothing. ``labels_``, ``divergences_`` and ``objective_``
        are those of this batch.
        """
        family, random = check_options(self)
        first = not hasattr(self, "cluster_centers_")
        rows, X = self._validated(family, X, "fit" if first else "partial_fit")
        weights, unit = usable_weights(
            sample_weight, len(X), self.n_clusters if first else 0, None if first else self.masses_
        )
        with learning(self):
            if first:
                self._start_stream(family, X, weights, random)
            model = self._centers(family)
            blocks = blocks_of(family, self.direction, self._transformed(family, X), weights)
            stats, memories = fold(blocks, accumulate, merge, model, n_threads=self.n_threads)
            before = stats_behind(model, self.masses_ / unit)
            self.cluster_centers_ = update(model, merge(before, stats)).parameters + self.origin_
            self.masses_ = self.masses_ + stats.mass * unit
            self._remember_labels(joined(memories))
            self.cluster_sizes_ = self.cluster_sizes_ + np.bincount(self._places(), minlength=len(self.masses_))
            self.objective_ = stats.cost * unit
            self.objective_history_ = np.append(self.objective_history_, self.objective_)
            self.n_iter_ += 1
            self._remember_rows(rows, mode="fit" if first else "partial_fit")
        return self

    def _first_centers(
        self, family: Family, X: np.ndarray, blocks: list[Block], weights: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        if isinstance(self.init, str):
            return X[first_centers(blocks, weights, self.n_clusters, self.init, family, self.direction, random)]
        given = np.asarray(self.init, dtype=np.float64)
        if given.shape != (self.n_clusters, X.shape[1]):
            raise BadInput(
                f"init has shape {given.shape}; n_clusters={self.n_clusters} centers of {X.shape[1]} parameters "
                "are needed."
            )
        family.check(given)
        return self._transformed(family, given)

    def _start_stream(self, family: Family, X: np.ndarray, weights: np.ndarray, random: np.random.Generator) -> None:
        """First centers and smoothing from the first batch; no weight behind them yet."""
        self._learn_transform(family, X, weights)
        X = self._transformed(family, X)
        blocks = blocks_of(family, self.direction, X, weights)
        self.cluster_centers_ = self._first_centers(family, X, blocks, weights, random) + self.origin_
        self.masses_ = np.zeros(self.n_clusters)
        self.cluster_sizes_ = np.zeros(self.n_clusters, dtype=np.int64)
        self.objective_history_, self.n_iter_, self.converged_ = np.zeros(0), 0, False
        self.roster_ = Roster.of(self.n_clusters)

    def _remember(self, run: Run, unit: float) -> None:
        self.cluster_centers_ = run.centers.parameters + self.origin_
        self.masses_ = run.mass * unit
        self._remember_labels(run.memory)
        self.cluster_sizes_ = np.bincount(self._places(), minlength=self.n_clusters)
        self.objective_, self.objective_history_ = run.history[-1] * unit, np.array(run.history) * unit
        self.n_iter_, self.converged_ = run.n_iter, run.converged

    def _remember_labels(self, memory: Memory) -> None:
        self.labels_, self.divergences_ = self.roster_.ids[memory.labels], memory.divergences

    # --- asking -------------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each row."""
        return self._nearest(X)[0]

    def assign(self, X: Any) -> Assignment:
        """The cluster of each row, and minus its divergence."""
        labels, costs = self._nearest(X)
        return Assignment(labels, -costs)

    def transform(self, X: Any) -> np.ndarray:
        """Divergences in nats, rows down and centers across, in the model's direction."""
        family, X = self._asked(X)
        return divergences(row_side(family, self.direction, X), self._centers(family).side)

    def score_samples(self, X: Any) -> np.ndarray:
        """Minus the divergence of each row to its nearest center."""
        return -self._nearest(X)[1]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted sum of divergences to the nearest centers."""
        costs = self._nearest(X)[1]
        return -float(validate_weights(sample_weight, costs.size) @ costs)

    def typicality(self) -> np.ndarray:
        """Minus the divergence of each fitted row."""
        return -np.asarray(self.divergences_)

    def top_features(self, cluster: int, n: int = 10) -> TopFeatures:
        """The parameters in which this center differs most from the other centers, in their standard deviations."""
        check_is_fitted(self)
        center = self.cluster_centers_[self.roster_.row_of(cluster)]
        spread = self.cluster_centers_.std(0)
        unusual = np.abs(center - self.cluster_centers_.mean(0)) / np.where(spread > 0, spread, 1)
        order = np.argsort(-unusual, kind="stable")[: check_int("n", n, minimum=0)]
        return TopFeatures(order, center[order], "parameter of the center", levels=np.ones(order.size, dtype=bool))

    # --- editing and combining ----------------------------------------------------------------------------------------

    def merge_clusters(self, clusters: Any, into: int) -> DensityKMeans:
        """The rows of ``clusters`` (one id or several) belong to ``into`` from now on; its center is their average."""
        check_is_fitted(self)
        with transaction(self):
            editing.merge_clusters(self, clusters, into)
        return self

    def split_cluster(self, cluster: int, X: Any, *, sample_weight: Any = None) -> int:  # type: ignore[override]
        """Split a cluster in two by those rows of ``X`` that belong to it; the id of the new one."""
        check_is_fitted(self)
        family, X = self._asked(X)
        weights = validate_weights(sample_weight, len(X))
        with transaction(self):
            return editing.split_cluster(self, family, cluster, X, weights)

    def merge(self, other: DensityKMeans, *, base: DensityKMeans | None = None) -> DensityKMeans:
        """Take in a model that learned from other rows, cluster by cluster.

        Both must come from the same start: fitted from the same ``init``, or continued by ``partial_fit`` from copies
        of one model, which is then given as ``base`` and counted once. A center becomes the average by weight. Where
        the models learned different smoothing from their rows, that is averaged, too. ``labels_`` stay those of this
        model.
        """
        check_is_fitted(self)
        with transaction(self):
            editing.merge_models(self, other, base)
        return self

    # --- input and state ----------------------------------------------------------------------------------------------

    def _validated(self, family: Family, X: Any, mode: Any) -> tuple[Rows, np.ndarray]:
        """Rows of parameters in the layout of the family, dense."""
        rows = validate_rows(self, X, mode=mode, measurements=True)
        if rows.matrix.shape[0] * rows.matrix.shape[1] > MOST_NUMBERS:
            raise BadInput(
                f"X has {rows.matrix.shape[0]:,} x {rows.matrix.shape[1]:,} columns, which are made dense here. A wide "
                "sparse matrix of counts is clustered by SphericalKMeans or ExponentialFamilyMixture."
            )
        dense = rows.matrix.toarray().astype(np.float64, copy=False)
        family.check(dense)
        with np.errstate(all="ignore"):
            finite = np.isfinite(row_side(family, self.direction, as_distributions(family, dense)).stats).all()
        if not finite:
            raise BadInput(
                "X holds values so large or so small that their squares or quotients are not finite; give the "
                "distributions in another unit."
            )
        return rows, dense

    def _asked(self, X: Any) -> tuple[Family, np.ndarray]:
        check_is_fitted(self)
        family = family_of(self)
        return family, self._transformed(family, self._validated(family, X, "predict")[1])

    def _nearest(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        family, X = self._asked(X)
        rows = row_side(family, self.direction, X)
        places, costs = nearest_centers(rows, self._centers(family).side, self.n_threads)
        return self.roster_.ids[places], costs

    def _centers(self, family: Family) -> Centers:
        return centers_of(family, self.direction, self.cluster_centers_ - self.origin_)

    def _places(self) -> np.ndarray:
        """The place of each label among the centers."""
        order = np.argsort(self.roster_.ids)
        return np.asarray(order[np.searchsorted(self.roster_.ids, self.labels_, sorter=order)])

    def _learn_transform(self, family: Family, X: np.ndarray, weights: np.ndarray) -> None:
        X = as_distributions(family, X)
        smoother = family.smoother(X, weights, self.smoothing)
        self.smoothing_share_, self.smoothing_typical_ = smoother.share, smoother.typical
        self.smoothing_added_ = smoother.added
        self.origin_ = family.origin(smoother(X), weights)

    def _transformed(self, family: Family, X: np.ndarray) -> np.ndarray:
        smooth = Smoother(self.smoothing_share_, self.smoothing_typical_, self.smoothing_added_)
        return np.ascontiguousarray(smooth(as_distributions(family, X)) - self.origin_)

    def check_state(self) -> None:
        """Refuse a state from a file that contradicts itself."""
        check_state(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.family == "poisson"  # a parameter of the other families is never zero
        tags.input_tags.positive_only = self.family not in ("gaussian", "gaussian_mixture")
        return tags
