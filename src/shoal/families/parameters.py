"""A statistician's set: weights, means and covariances with credible intervals, and information criteria."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal.base import check_real
from shoal.errors import BadInput
from shoal.families import posterior
from shoal.families.distributions.gaussian import Gaussian
from shoal.families.distributions.table import TableFamily
from shoal.families.prediction import ScoringMixture


class EstimatedMixture(ScoringMixture):
    """The parameters of a fitted mixture, and how sure they are."""

    @property
    def relabeled_samples_(self) -> np.ndarray:
        """The kept labelings in the numbers of the best one, so that averages over draws are over the same cluster."""
        check_is_fitted(self)
        return posterior.relabeled(self.samples_, self.trace_labels())

    def trace_labels(self) -> np.ndarray:
        """Labels of the fitted rows as rows of the model."""
        if self.samples_.shape[1] != len(self.labels_):
            raise BadInput("the kept samples are of the rows of the last fit; rows have been learned since.")
        return self._places(self.labels_)

    def credible_intervals(self, share: float = 0.9) -> dict[str, posterior.Interval]:
        """Posterior means with central intervals: ``weights`` and ``means`` of each feature over the kept
        labelings, and of measurements ``covariances`` given the labels, in the form of ``covariances_``."""
        check_is_fitted(self)
        check_real("share", share, minimum=0.0, maximum=1.0, strict=True)
        model, family, samples = self._model(), self.family_, None
        if self.samples_.shape[1] == len(self.labels_) == int(self.stats_.size.sum()):
            samples = self.relabeled_samples_
        alpha = 0.0 if model.is_dirichlet_process else model.concentration
        found = {
            "weights": posterior.weights_of(self.stats_.size, samples, alpha, model.n_clusters, share),
            "means": posterior.means_of(family, self.stats_, self.draws_, share),
        }
        if isinstance(family, Gaussian):
            found["covariances"] = posterior.variances_of(family, self.stats_, share)
        elif isinstance(family, TableFamily) and family.covariance_column() is not None:
            ends = family.covariance_interval(self.stats_, share, posterior.DRAWS)
            found["covariances"] = posterior.Interval(family.covariances(self.stats_), *ends)
        return found

    @property
    def weights_(self) -> np.ndarray:
        """(n_clusters_,) posterior mean of each cluster's weight."""
        return self.credible_intervals()["weights"].mean

    @property
    def means_(self) -> np.ndarray:
        """(n_clusters_, n_features) posterior mean of each feature; of a table, of each entry a card can name."""
        check_is_fitted(self)
        return np.array([self.family_.expected(self.stats_, row) for row in range(len(self.stats_.size))])

    @property
    def covariances_(self) -> np.ndarray:
        """Posterior mean of the clusters' covariances: (k, d) diagonal, (k,) spherical, (k, d, d) full, (d, d) tied."""
        check_is_fitted(self)
        if isinstance(self.family_, TableFamily) and self.family_.covariance_column() is not None:
            return self.family_.covariances(self.stats_)
        if not isinstance(self.family_, Gaussian):
            raise AttributeError("covariances_ are of measurements: family='gaussian', or a column 'full' or 'tied'.")
        return posterior.variances_of(self.family_, self.stats_, 0.9).mean

    @property
    def n_parameters_(self) -> int:
        """Free parameters of the live clusters and their weights, and what clusters share."""
        check_is_fitted(self)
        shared = self.family_.n_shared_parameters() if isinstance(self.family_, TableFamily) else 0
        return int(len(self.stats_.size) * (self.family_.n_parameters() + 1) - 1 + shared)

    def bic(self, X: Any) -> float:
        """Bayesian information criterion of these rows, the smaller the better; for counts without log x!."""
        scores = self.score_samples(X)
        return float(-2 * scores.sum() + self.n_parameters_ * np.log(max(len(scores), 1)))

    def aic(self, X: Any) -> float:
        """Akaike's information criterion of these rows, the smaller the better; for counts without log x!."""
        return float(-2 * self.score_samples(X).sum() + 2 * self.n_parameters_)
