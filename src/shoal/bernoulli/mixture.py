"""BernoulliMixture: clusters of ads by keywords in one pass, with uncertainty, and keyword suggestion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from shoal.base import Roster, as_rows, as_weights, storable
from shoal.bernoulli.adf import Shares
from shoal.bernoulli.births import far_apart
from shoal.bernoulli.em import em_start, fit_em
from shoal.bernoulli.exemplars import remember, tuned
from shoal.bernoulli.managing import Managing
from shoal.bernoulli.profiles import Profiles, with_background, with_features
from shoal.bernoulli.scoring import as_presence, labelled, likelihoods, memberships_of
from shoal.bernoulli.suggesting import Suggesting
from shoal.bernoulli.training import WIDTH, Learner, Rules, joined
from shoal.errors import BadInput
from shoal.progress import Monitor


def _can_learn_more(model: BernoulliMixture) -> bool:
    if model.inference == "em":
        raise AttributeError('inference="em" cannot learn more rows after fit; use inference="adf" for partial_fit.')
    return True


@storable
class BernoulliMixture(Suggesting, Managing):
    """Clusters of sets (ads by keywords, baskets, tags), each number with its uncertainty, learned in one pass.

    A cluster believes, for every feature, in a Beta distribution of the share of its rows that have it. Values above 0
    mean that a row has the feature. Cost per row does not depend on the number of features.

    Parameters
    ----------
    n_clusters : at most this many clusters.
    inference : "adf", assumed density filtering, one pass; or "em", maximum likelihood in many passes, the baseline.
    clutter : keep one more cluster with a single parameter for all features, for rows that belong nowhere (label -1).
    n_passes : how often ADF looks at each row. From the second time on, what a row taught is taken back first.
    strength : how many rows the prior is worth. None: 2 for ADF, 0.01 for EM.
    background : "feature": the prior's mean is each feature's share of all rows; "flat": the same for all features.
    init : "spread": begin with rows far apart; "random": perturb the prior by a pinch of random rows.
    adapt : merge clusters that are alike and let new ones be born of badly explained rows.
    features_kept : the most features with a belief of their own in one cluster.
    n_shares : rows of a batch learned apart from the same prior, then added up (on threads); 1 is strictly one by one.
    remember_rows : keep the rows, so that suggestions come from rows and features themselves and not from clusters
        alone: more are right, for memory in proportion to the data.
    max_iter, tol : for EM: most passes, and the relative change of the log likelihood at which to stop.
    random_state : decides the start and the order of rows.

    Attributes
    ----------
    labels_ : id of each fitted row's most likely cluster, -1 for the clutter.
    profiles_ : all beliefs. roster_ : stable ids, names, pins and events of clusters.

    Examples
    --------
    Two kinds of shopper, and what goes with butter:

    >>> import numpy as np
    >>> X = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1], [0, 1, 1, 1]] * 25)
    >>> model = BernoulliMixture(2, clutter=False, random_state=0).fit(X)
    >>> labels = model.predict(X[:4])
    >>> bool(labels[0] == labels[1]), bool(labels[2] == labels[3]), bool(labels[0] == labels[3])
    (True, True, False)
    >>> model.suggest([0], n=1)[0].feature
    1
    """

    profiles_: Profiles
    roster_: Roster

    preferred_weighting: ClassVar[str] = "binary"

    def __init__(
        self,
        n_clusters: int = 100,
        *,
        inference: str = "adf",
        clutter: bool = True,
        n_passes: int = 1,
        strength: float | None = None,
        background: str = "feature",
        init: str = "spread",
        adapt: bool = True,
        features_kept: int = 2000,
        n_shares: int = 1,
        remember_rows: bool = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.inference = inference
        self.clutter = clutter
        self.n_passes = n_passes
        self.strength = strength
        self.background = background
        self.init = init
        self.adapt = adapt
        self.features_kept = features_kept
        self.n_shares = n_shares
        self.remember_rows = remember_rows
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    # --- learning -------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BernoulliMixture:
        """Learn the clusters of the rows of ``X`` (a matrix or a Dataset), read in random order."""
        rows = as_presence(as_rows(self, X, fitting=True))
        weights = some_weights(sample_weight, rows.shape[0])
        self._check_options(rows.shape[0])
        rng = np.random.default_rng(self.random_state)
        seen = seen_in(rows, weights)
        if self.inference == "em":
            self._fit_em(rows, weights, seen, rng)
        else:
            self._fit_adf(rows, weights, seen, rng)
        self._look_back(rows)
        self.__dict__.pop("exemplars_", None)
        if self.remember_rows:
            self.exemplars_ = remember(rows, tuned(rows, rng))
        return self

    def _fit_em(self, rows: sp.csr_matrix, weights: np.ndarray, seen: np.ndarray, rng: np.random.Generator) -> None:
        start = em_start(
            seen, self.n_clusters, clutter=self.clutter, strength=self._strength, flat=self.background == "flat"
        )
        candidates = rng.permutation(rows.shape[0])[: self._n_prime]
        if self.init == "spread":
            found = far_apart(rows[candidates], min(self.n_clusters, candidates.size), start.background, rng)
            seeds = candidates[found]
        else:
            seeds = candidates[: self.n_clusters]
        self.profiles_, monitor = fit_em(rows, weights, seeds, start, max_iter=self.max_iter, tol=self.tol)
        self.n_iter_, self.converged_ = monitor.n_iter, monitor.converged
        self.log_likelihoods_ = np.array(monitor.history)
        self.roster_ = Roster.of(self.n_clusters)

    def _fit_adf(self, rows: sp.csr_matrix, weights: np.ndarray, seen: np.ndarray, rng: np.random.Generator) -> None:
        order = rng.permutation(rows.shape[0])
        n_prime = min(rows.shape[0], self._n_prime)
        rules = self._rules(rng)
        learner, primed = Learner.primed(rows, weights, order[:n_prime], seen, rules)
        known = [primed]
        done, n_rows = n_prime, rows.shape[0]
        with Monitor("ADF", max_iter=len(batch_ends(n_prime, n_rows)) + self.n_passes) as monitor:
            for end in batch_ends(n_prime, n_rows):
                known = self._read_batch(learner, rows, weights, order, done, end, known)
                done = end
                monitor.report(float(learner.profiles.mass.sum()), rows=done, clusters=learner.roster.ids.size)
                if monitor.interrupted:
                    break
            self._further_passes(learner, rows, weights, order[:done], known, monitor)
        learner.finish()
        learner.number_afresh()
        self.profiles_, self.roster_ = learner.profiles, learner.roster
        self.n_iter_, self.converged_ = self.n_passes, not monitor.interrupted

    def _read_batch(
        self, learner: Learner, rows: sp.csr_matrix, weights: np.ndarray, order: np.ndarray, done: int, end: int,
        known: list[Shares],
    ) -> list[Shares]:  # fmt: skip
        """Learn one batch and tidy up; what each row gave is kept while it may be looked at again."""
        keep = self.n_passes > 1
        fresh = learner.read(rows, weights, order[done:end], width=WIDTH)
        if end == rows.shape[0]:
            return [joined([*known, fresh])] if keep else [fresh]
        if keep:
            return [learner.tidy(rows, weights, order[:end], joined([*known, fresh]), counted=True)]
        learner.tidy(rows, weights, order[done:end], fresh, counted=False)
        return []

    def _further_passes(
        self, learner: Learner, rows: sp.csr_matrix, weights: np.ndarray, order: np.ndarray, known: list[Shares],
        monitor: Monitor,
    ) -> None:  # fmt: skip
        if self.n_passes == 1 or monitor.interrupted:
            return
        shares = joined(known)
        learner.recount(rows, weights, order, shares)
        for number in range(1, self.n_passes):
            shares = learner.look_again(rows, weights, order, shares, tidy=number < self.n_passes - 1)
            monitor.report(float(shares.log_norms.sum()), clusters=learner.roster.ids.size)
            if monitor.interrupted:
                break

    @available_if(_can_learn_more)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BernoulliMixture:
        """Learn more rows, in the order given. ``X`` may have features never seen before, as further columns."""
        if not hasattr(self, "profiles_"):
            return self._first_part(X, sample_weight)
        rows = as_presence(self._wider(X))
        weights = some_weights(sample_weight, rows.shape[0])
        seen = with_features(self.profiles_, rows.shape[1])
        seen.seen[:] += seen_in(rows, weights)
        learner = Learner(
            with_background(seen, flat=self.background == "flat"),
            self.roster_,
            self._rules(np.random.default_rng(self.random_state)),
        )
        order, done = np.arange(rows.shape[0]), 0
        for end in batch_ends(0, rows.shape[0]):
            shares = learner.read(rows, weights, order[done:end])
            learner.tidy(rows, weights, order[done:end], shares, counted=False)
            done = end
        self.profiles_, self.roster_ = learner.profiles, learner.roster
        self._look_back(rows)
        self._remember_more(rows)
        return self

    def _remember_more(self, rows: sp.csr_matrix) -> None:
        """Add rows to those remembered; how far to trust them was chosen at the first."""
        if not self.remember_rows:
            return
        old = getattr(self, "exemplars_", None)
        if old is None:
            self.exemplars_ = remember(rows, tuned(rows, np.random.default_rng(self.random_state)))
            return
        shape = (old.feature_ptr.size - 1, rows.shape[1])
        before = sp.csr_matrix((np.ones(old.features.size), old.features, old.feature_ptr), shape=shape)
        self.exemplars_ = remember(sp.vstack([before, rows]).tocsr(), old.settings)

    def _first_part(self, X: Any, sample_weight: Any) -> BernoulliMixture:
        rows = as_presence(as_rows(self, X, fitting=True))
        weights = some_weights(sample_weight, rows.shape[0])
        self._check_options(rows.shape[0])
        rng = np.random.default_rng(self.random_state)
        self._fit_adf(rows, weights, seen_in(rows, weights), rng)
        self._look_back(rows)
        self._remember_more(rows)
        return self

    def _wider(self, X: Any) -> sp.csr_matrix:
        """Judge rows for a fitted model; more columns than before are new features."""
        width = getattr(getattr(X, "X", X), "shape", (0, 0))
        if len(width) == 2 and width[1] > self.n_features_in_:
            vocabulary = getattr(self, "vocabulary_", None)
            rows = as_rows(self, X, fitting=True)
            if vocabulary is not None and not hasattr(self, "vocabulary_"):
                self.vocabulary_ = vocabulary
            return rows
        rows = as_rows(self, X, fitting=False)
        vocabulary = getattr(X, "vocabulary", None)
        if vocabulary is not None and hasattr(self, "vocabulary_"):
            self.vocabulary_ = vocabulary
        return rows

    def _look_back(self, rows: sp.csr_matrix) -> None:
        """What is known of each fitted row once all are learned."""
        found = labelled(self.profiles_, rows)
        self.labels_ = self._ids_of(found.rows)
        self.typicality_, self.shares_ = found.explained, found.shares
        unsure = np.bincount(found.rows, weights=1 - found.shares, minlength=self.profiles_.n_rows)
        n_of = np.bincount(found.rows, minlength=self.profiles_.n_rows)
        self.uncertainty_ = (unsure / np.maximum(n_of, 1))[self.profiles_.n_clutter :]

    # --- using ----------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Id of each row's most likely cluster; -1 is the clutter: the row belongs nowhere."""
        check_is_fitted(self)
        rows = as_presence(as_rows(self, X, fitting=False))
        return self._ids_of(labelled(self.profiles_, rows).rows)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each cluster, (n_rows, n); columns follow ``roster_.ids``, the clutter's comes last."""
        check_is_fitted(self)
        rows = as_presence(as_rows(self, X, fitting=False))
        shares = memberships_of(self.profiles_, rows)
        return np.roll(shares, -self.profiles_.n_clutter, axis=1)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log probability of each row under the model."""
        check_is_fitted(self)
        return likelihoods(self.profiles_, as_presence(as_rows(self, X, fitting=False)))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log probability of the rows."""
        return float(self.score_samples(X).mean())

    def same_cluster_probability(self, X: Any, Y: Any) -> np.ndarray:
        """Probability, for each row of ``X`` with its row of ``Y``, that both are of one cluster (clutter is none)."""
        a, b = self.predict_proba(X), self.predict_proba(Y)
        if a.shape != b.shape:
            raise BadInput(
                f"X has {a.shape[0]} rows and Y has {b.shape[0]}; pairs need as many of one as of the other."
            )
        n = self.roster_.ids.size
        return np.asarray((a[:, :n] * b[:, :n]).sum(axis=1))

    def figures(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """For the report: what goes with the features of the largest clusters."""
        from shoal.bernoulli.showing import suggestions_table

        says = "Given the features on the left, those on the right are the most probable."
        yield "What goes with what", says, lambda: suggestions_table(self)

    # --- options --------------------------------------------------------------------------------------------------

    @property
    def _n_prime(self) -> int:
        """Rows looked at several times for a good start."""
        return max(2000, 20 * self.n_clusters)

    @property
    def _strength(self) -> float:
        return self.strength if self.strength is not None else (0.01 if self.inference == "em" else 2.0)

    def _rules(self, rng: np.random.Generator) -> Rules:
        return Rules(
            n_clusters=self.n_clusters, clutter=self.clutter, flat=self.background == "flat", strength=self._strength,
            weight=1.0, init=self.init, negligible=0.01, least_gain=3.0, features_kept=self.features_kept,
            least_share=0.05, births=self.adapt, merges=self.adapt, prime_passes=4, n_shares=self.n_shares, rng=rng,
        )  # fmt: skip

    def _check_options(self, n_rows: int) -> None:
        for name, choices in {
            "inference": ("adf", "em"), "background": ("feature", "flat"), "init": ("spread", "random"),
        }.items():  # fmt: skip
            if getattr(self, name) not in choices:
                raise BadInput(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(map(repr, choices))}.")
        for name in ("n_clusters", "n_passes", "features_kept", "n_shares", "max_iter"):
            if not getattr(self, name) >= 1:
                raise BadInput(f"{name} is {getattr(self, name)!r}; it must be 1 or more.")
        if self.n_clusters > n_rows:
            raise BadInput(
                f"n_clusters is {self.n_clusters}, but there are only n_samples={n_rows} rows. Ask for fewer."
            )
        if not self._strength > 0:
            raise BadInput(f"strength is {self.strength!r}; the prior must be worth more than 0 rows.")


def some_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Judge weights; all zero would leave nothing to learn."""
    weights = as_weights(sample_weight, n_rows)
    if n_rows and not weights.any():
        raise BadInput("every sample_weight is zero, so there is nothing to learn; give some row a positive weight.")
    return weights


def seen_in(rows: sp.csr_matrix, weights: np.ndarray) -> np.ndarray:
    """Rows that have each feature, and, last, rows in all."""
    per_entry = np.repeat(weights, np.diff(rows.indptr))
    return np.append(np.bincount(rows.indices, weights=per_entry, minlength=rows.shape[1]), weights.sum())


def batch_ends(begin: int, end: int, most: int = 65536) -> list[int]:
    """Batches that grow with what is known, so that no batch can carry the model far from where it was."""
    ends = []
    while begin < end:
        begin = min(end, begin + min(most, max(2048, begin)))
        ends.append(begin)
    return ends
