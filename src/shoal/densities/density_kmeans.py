"""K-means of probability distributions under the Kullback-Leibler divergence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from shoal.base import Estimator, TopFeatures, as_weights, storable
from shoal.densities.beta_gamma import Beta, Dirichlet, Gamma
from shoal.densities.categorical_poisson import Categorical, Poisson
from shoal.densities.family import Family, Smoother
from shoal.densities.gaussian import Gaussian, GaussianMixture
from shoal.densities.seeding import spread_out_rows
from shoal.densities.statistics import Side, accumulate, center_side, divergences, nearest_centers, row_side, update
from shoal.errors import BadInput
from shoal.progress import Monitor

SIMPLE_FAMILIES: dict[str, type[Family]] = {
    family.name: family  # type: ignore[type-abstract]
    for family in (Gaussian, Beta, Gamma, Dirichlet, Categorical, Poisson)
}
FAMILIES = ("gaussian", "gaussian_mixture", "beta", "gamma", "dirichlet", "categorical", "poisson")


class Run(NamedTuple):
    """One fit from one set of seeds."""

    centers: np.ndarray
    labels: np.ndarray
    costs: np.ndarray
    history: list[float]
    n_iter: int
    converged: bool


@storable
class DensityKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """K-means for rows that are the parameters of probability distributions.

    Use it when each thing to be grouped is itself an uncertain or spread-out quantity: keywords by the distribution of
    their bids, users by the posterior of their click rate, shops by the distribution of their baskets. Both steps are
    exact minimizers, so the objective never rises.

    Parameters
    ----------
    n_clusters : how many centers.
    family : the distributions, and with them the columns of ``X``:

        ==================  ===========================================================================
        gaussian            d means, then d variances
        gaussian_mixture    Z weights, Z*d means, Z*d variances; components are matched by position
        beta                d numbers a, then d numbers b
        gamma               d shapes, then d rates (1 / scale)
        dirichlet           alpha_1 ... alpha_d
        categorical         the probability (or the count) of each of d outcomes
        poisson             d rates
        ==================  ===========================================================================
    direction : "center" measures KL(center || row): a center is what its rows agree on (natural parameters are
        averaged). "pooled" measures KL(row || center): a center is the fit to all its rows' data pooled (mean
        parameters are averaged).
    n_components : Z, for the family "gaussian_mixture".
    n_init : fits from this many sets of seeds; the best is kept.
    smoothing : keeps divergences finite. The quantile of the variances that is added to each variance, and the share
        by which weights, probabilities and rates are moved towards their average. 0 takes the rows as they are.
    max_iter, tol : stop after this many steps, or when the objective falls by less than this fraction.
    random_state : decides the answer; the number of threads does not.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features) parameters of the centers, arranged as the rows are.
    labels_, divergences_ : the cluster of each row and the divergence, in nats.
    objective_, objective_history_ : the weighted sum of divergences, at the end and after each step.
    n_iter_, converged_ : steps of the best fit, and whether it settled.

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
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        family: str = "gaussian",
        direction: str = "center",
        n_components: int = 2,
        n_init: int = 3,
        smoothing: float = 0.01,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.family = family
        self.direction = direction
        self.n_components = n_components
        self.n_init = n_init
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    # --- fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DensityKMeans:
        """Find the centers of ``X``, (n, n_features) parameters; rows may carry weights."""
        family = self._checked_family()
        X = self._validate(family, X, fitting=True)
        weights = as_weights(sample_weight, X.shape[0])
        if not weights.any():
            raise BadInput("every sample_weight is zero; at least n_clusters rows need a weight above zero.")
        if np.count_nonzero(weights) < self.n_clusters:
            raise BadInput(
                f"n_clusters={self.n_clusters} but X has n_samples={X.shape[0]}, {np.count_nonzero(weights)} "
                f"of them with "
                "weight above 0. Ask for fewer clusters."
            )
        X = _as_distributions(family, X)
        self._learn_transform(family, X, weights)
        X = self._transformed(X)
        rows = row_side(family, self.direction, X)
        random = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        best: Run | None = None
        for restart in range(self.n_init):
            seeds = spread_out_rows(family, self.direction, X, rows, weights, self.n_clusters, random)
            run = self._descend(family, X, rows, weights, X[seeds], f"fit {restart + 1}/{self.n_init}")
            if best is None or run.history[-1] < best.history[-1]:
                best = run
        assert best is not None
        self._remember(best)
        return self

    def _descend(
        self, family: Family, X: np.ndarray, rows: Side, weights: np.ndarray, centers: np.ndarray, what: str
    ) -> Run:
        """Assign and average until nothing moves."""
        labels = np.full(X.shape[0], -1)
        costs = np.zeros(X.shape[0])
        with Monitor(what, self.max_iter, self.tol) as monitor:
            while monitor.running:
                before = labels
                labels, costs = nearest_centers(rows, center_side(family, self.direction, centers))
                stats = accumulate(rows, weights, labels, costs, self.n_clusters)
                settled = np.array_equal(before, labels)
                monitor.report(stats.cost, settled=settled, moved=int((before != labels).sum()))
                if settled:
                    break
                centers = update(family, self.direction, stats, centers)
                empty = np.flatnonzero(stats.mass <= 0)
                if empty.size:  # an empty cluster starts anew at the worst-served row
                    centers[empty] = X[np.argsort(-costs * weights, kind="stable")[: empty.size]]
        history = list(monitor.history)
        if not settled:  # the centers moved once more after the last assignment
            labels, costs = nearest_centers(rows, center_side(family, self.direction, centers))
            history.append(float(weights @ costs))
        return Run(centers, labels, costs, history, monitor.n_iter, monitor.converged)

    def _remember(self, run: Run) -> None:
        self.cluster_centers_ = run.centers + self.origin_
        self.labels_, self.divergences_ = run.labels, run.costs
        self.objective_, self.objective_history_ = run.history[-1], run.history
        self.n_iter_, self.converged_ = run.n_iter, run.converged

    # --- using --------------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """The nearest center of each row."""
        return self._nearest(X)[0]

    def transform(self, X: Any) -> np.ndarray:
        """Divergences in nats, rows down and centers across, in the model's direction."""
        rows, centers = self._both_sides(X)
        return divergences(rows, centers)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted sum of divergences to the nearest centers."""
        costs = self._nearest(X)[1]
        return -float(as_weights(sample_weight, costs.size) @ costs)

    def typicality(self) -> np.ndarray:
        """Minus the divergence of each fitted row."""
        return -np.asarray(self.divergences_)

    def top_features(self, cluster: int, n: int = 10) -> TopFeatures:
        """The parameters in which this center differs most from the other centers, in their standard deviations."""
        check_is_fitted(self)
        spread = self.cluster_centers_.std(0)
        unusual = np.abs(self.cluster_centers_[cluster] - self.cluster_centers_.mean(0)) / np.where(
            spread > 0, spread, 1
        )
        order = np.argsort(-unusual, kind="stable")[:n]
        return TopFeatures(order, self.cluster_centers_[cluster, order], "parameter of the center")

    def _nearest(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        rows, centers = self._both_sides(X)
        return nearest_centers(rows, centers)

    def _both_sides(self, X: Any) -> tuple[Side, Side]:
        check_is_fitted(self)
        family = self._checked_family()
        X = self._transformed(_as_distributions(family, self._validate(family, X, fitting=False)))
        centers = center_side(family, self.direction, self.cluster_centers_ - self.origin_)
        return row_side(family, self.direction, X), centers

    # --- judging ------------------------------------------------------------------------------------------------------

    def _checked_family(self) -> Family:
        if self.direction not in ("center", "pooled"):
            raise BadInput(f"direction is {self.direction!r}; choose 'center' or 'pooled'.")
        for name in ("n_clusters", "n_init", "max_iter", "n_components"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)!r}; it must be 1 or more.")
        if not 0 <= self.smoothing < 1:
            raise BadInput(f"smoothing is {self.smoothing!r}; it must be at least 0 and below 1.")
        if self.family == "gaussian_mixture":
            return GaussianMixture(self.n_components)
        if self.family not in SIMPLE_FAMILIES:
            raise BadInput(f"family is {self.family!r}; choose one of {', '.join(FAMILIES)}.")
        return SIMPLE_FAMILIES[self.family]()

    def _validate(self, family: Family, X: Any, *, fitting: bool) -> np.ndarray:
        try:
            X = validate_data(self, X, reset=fitting, dtype=np.float64)
        except ValueError as error:
            raise BadInput(str(error)) from None
        family.check(X)
        return np.asarray(X)

    def _learn_transform(self, family: Family, X: np.ndarray, weights: np.ndarray) -> None:
        smoother = family.smoother(X, weights, self.smoothing)
        self.smoothing_share_, self.smoothing_typical_ = smoother.share, smoother.typical
        self.smoothing_added_ = smoother.added
        self.origin_ = family.origin(smoother(X), weights)

    def _transformed(self, X: np.ndarray) -> np.ndarray:
        smooth = Smoother(self.smoothing_share_, self.smoothing_typical_, self.smoothing_added_)
        return np.ascontiguousarray(smooth(X) - self.origin_)

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.positive_only = self.family not in ("gaussian", "gaussian_mixture")
        return tags


def _as_distributions(family: Family, X: np.ndarray) -> np.ndarray:
    """Counts of a categorical family become shares."""
    return X / X.sum(1, keepdims=True) if isinstance(family, Categorical) else X
