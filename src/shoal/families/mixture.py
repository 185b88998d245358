"""ExponentialFamilyMixture: mixtures with thousands of components, sampled."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.base import Roster, as_rows, storable
from shoal.errors import BadInput, ShoalWarning
from shoal.families.consensus import live_counts
from shoal.families.hierarchy import stack, union_of
from shoal.families.inspection import FittedMixture
from shoal.families.options import FAMILIES, SAMPLERS, Settings, check_choice, check_number, check_prior, check_whole
from shoal.families.samplers.count_problem import CountProblem
from shoal.families.samplers.gaussian_problem import GaussianProblem
from shoal.families.samplers.initialization import default_starts, find_start
from shoal.families.samplers.schedule import Schedule, Trace, run
from shoal.progress import say
from shoal.threads import row_blocks

INITS = ("auto", "one-pass", "random")
SPLIT_MERGE_ROWS = 50_000
SPLIT_MERGE_CLUSTERS = 1_000
LOW_ACCEPTANCE, RESTLESS = 0.02, 0.1
FOLDED_ROWS = 256


class StuckSampler(ShoalWarning):
    """Proposals are hardly ever accepted: the chain does not move, however steady its log joint looks."""


@storable
class ExponentialFamilyMixture(FittedMixture):
    """Finds groups in counts, sets or measurements by sampling a Bayesian mixture, if need be of thousands.

    The clusters' parameters and weights are integrated out; what is sampled is who belongs with whom. ``n_clusters`` is
    an upper bound: clusters may stay empty, and ``n_clusters_`` says how many were found.

    Parameters
    ----------
    n_clusters : most clusters there may be.
    family : ``"multinomial"`` for documents, ``"bernoulli"`` for sets, ``"poisson"`` for counts of events,
        ``"gaussian"`` for measurements.
    sampler : ``"gibbs"`` looks at every cluster for every row. ``"indexed"`` looks at those that share the row's rare
        features. ``"fastex"`` proposes by binary hashes, as published, and hardly moves on text (see ``hashes``).
        ``"auto"`` takes the cheapest and says which. In the second half all of them have the same stationary
        distribution, the collapsed posterior.
    n_sweeps : visits to every row. The first half learns the prior, tunes proposals, and merges and splits clusters,
        none of which is a step of the chain; the second half is the chain, and gives the samples.
    init : ``"one-pass"``, ``"random"``, labels to start from, or ``"auto"``: the best of several.
    weights : ``"dirichlet"``, or ``"dirichlet_process"`` for the Dirichlet process.
    concentration : pseudo-rows of each cluster (Dirichlet) or weight of a new one (process); ``"learn"`` finds it.
    smoothing, background : of documents, the prior's pseudo-counts are ``smoothing`` for every word plus ``background``
        in all, spread as in the whole data. ``"learn"`` finds either from the clusters. ``"auto"`` does so for the one
        that suits: short texts get smoothing alone, long ones a background alone. Of sets and counts, ``background`` is
        the number of rows the prior is worth; of measurements, ``smoothing`` is twice the variance expected within
        clusters, as a share of that of the whole data.
    refresh : the indexed sampler lists a settled row's candidates again after so many sweeps. That tunes proposals to
        the chain's past, so it ends with the first half: then lists stay. With 1 no list is ever kept.
    n_samples : labelings kept from the second half, for the probability that two rows belong together.
    n_bits, hashes : length of the hashes for ``"fastex"``; ``"published"``, or ``"ranked"``, where they only rank
        candidates that are then scored exactly.
    covariance : ``"diagonal"`` or ``"spherical"``, for the Gaussian.
    parallel : the indexed sampler also decides visits on threads, once few rows move: a group of rows at a time, from
        the clusters as they are when it begins, and again in turn where what a row looked at has changed meanwhile. In
        the second half that is the chain that visits row by row, not an approximation. Off by default: on one thread
        it costs a little.
    n_threads : threads that list candidates for the indexed sampler, decide visits where ``parallel``, and score rows;
        the answer does not depend on it.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> texts = ["cat dog cat", "dog cat", "star moon", "moon star star", "cat cat", "moon star"]
    >>> X = CountVectorizer().fit_transform(texts)
    >>> model = ExponentialFamilyMixture(n_clusters=4, random_state=0).fit(X)
    >>> model.n_clusters_, (model.labels_ == model.labels_[0]).tolist()
    (2, [True, True, False, False, True, False])

    References
    ----------
    Ahmed, Ravi, Narayanamurthy, Smola, "FastEx: Hash Clustering with Exponential Families", NIPS 2012.
    """

    def __init__(
        self,
        n_clusters: int = 100,
        *,
        family: str = "multinomial",
        sampler: str = "auto",
        n_sweeps: int = 30,
        init: Any = "auto",
        weights: str = "dirichlet",
        concentration: float | str = 0.1,
        smoothing: float | str = "auto",
        background: float | str = "auto",
        refresh: int = 10,
        n_samples: int = 10,
        n_bits: int = 128,
        hashes: str = "ranked",
        covariance: str = "diagonal",
        parallel: bool = False,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.family = family
        self.sampler = sampler
        self.n_sweeps = n_sweeps
        self.init = init
        self.weights = weights
        self.concentration = concentration
        self.smoothing = smoothing
        self.background = background
        self.refresh = refresh
        self.n_samples = n_samples
        self.n_bits = n_bits
        self.hashes = hashes
        self.covariance = covariance
        self.parallel = parallel
        self.random_state = random_state
        self.n_threads = n_threads

    # --- fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> ExponentialFamilyMixture:
        """Sample the labels of these rows."""
        rows = as_rows(self, X, fitting=True, nonnegative=self.family != "gaussian")
        settings = self._settings(rows.shape[0])
        seed = int(check_random_state(self.random_state).randint(1 << 30))
        problem = self._problem(rows, settings)
        self.sampler_ = self._choose(problem)
        few = rows.shape[0] <= SPLIT_MERGE_ROWS and settings.n_clusters <= SPLIT_MERGE_CLUSTERS
        split_merge = few or self.sampler_ == "indexed"  # the index knows which clusters are near one another
        labels, interrupted = self._first_labels(problem, seed, split_merge)
        chain = problem.chain(self.sampler_, seed)
        problem.begin(chain, labels)
        burn_in = max(1, self.n_sweeps // 2)
        every = max(1, (self.n_sweeps - burn_in) // max(self.n_samples, 1))
        schedule = Schedule(0 if interrupted else self.n_sweeps, burn_in, every, split_merge)
        trace = Trace(best_labels=chain.labels.copy(), best_log_joint=chain.log_joint())
        run(problem, chain, trace, schedule)
        schedule.n_sweeps = self.n_sweeps
        self._finish(problem, chain, trace, schedule)
        return self

    def resume(self, X: Any, *, n_sweeps: int | None = None) -> ExponentialFamilyMixture:
        """Go on with the chain over the same rows: to the planned end after an interruption, or ``n_sweeps`` more.

        A chain that was interrupted, stored, loaded and taken up again is, to the last bit, one that never stopped.
        """
        check_is_fitted(self)
        rows = as_rows(self, X, fitting=False, nonnegative=self.family != "gaussian")
        if rows.shape[0] != len(self.chain_["labels"]):
            raise BadInput(
                f"resume was given {rows.shape[0]} rows, but the chain is over {len(self.chain_['labels'])}. Pass the "
                "rows the model was fitted to, in the same order; use partial_fit for new ones."
            )
        problem = self._problem(rows, self._settings(rows.shape[0]))
        problem.restore_hyperparameters(self.hyperparameters_, self.family_)
        chain = problem.chain(self.sampler_, int(self.chain_.get("seed", 0)))
        chain.restore(self.chain_)
        if n_sweeps is not None:
            self.schedule_.n_sweeps = chain.n_sweeps + n_sweeps
        run(problem, chain, self.trace_, self.schedule_)
        self._finish(problem, chain, self.trace_, self.schedule_)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> ExponentialFamilyMixture:
        """Fold new rows in: each goes to its likeliest cluster, or to a new one while ``n_clusters`` allows.

        The first call fits. Later ones leave the prior as it was learned; ``labels_`` and ``typicality_`` are then
        those of the last batch, and ids stay what they were. Rows of a block of 256 are placed at once.
        """
        if not hasattr(self, "stats_"):
            return self.fit(X)
        rows = as_rows(self, X, fitting=False, nonnegative=self.family != "gaussian")
        labels = [self._fold(rows[first:last]) for first, last in row_blocks(rows.shape[0], FOLDED_ROWS)]
        self.labels_ = np.concatenate(labels) if labels else np.zeros(0, np.int64)
        self.n_clusters_ = len(self.stats_.size)
        self.n_rows_ += len(self.labels_)
        self.typicality_ = self._typicality(rows, self.labels_)
        self.agreement_ = np.ones(len(self.labels_))
        self._tree = None
        return self

    def _fold(self, rows: sp.csr_matrix) -> np.ndarray:
        """Place one block of rows and take them into the statistics."""
        known, fresh = self._log_joint_of_rows(rows)
        labels = known.argmax(axis=1)
        strangers = np.flatnonzero(fresh > known[np.arange(len(labels)), labels])
        n_free = self.n_clusters - len(self.stats_.size)
        if len(strangers) and n_free > 0:
            # Strangers may belong together: a small mixture of their own finds out.
            settings = self._settings(len(strangers))._replace(n_clusters=n_free)
            problem = self._problem(rows[strangers], settings)
            problem.restore_hyperparameters(self.hyperparameters_, self.family_)
            chain = problem.chain("gibbs", self.n_rows_)
            problem.begin(chain, problem.first_labels(self.n_rows_))
            chain.sweep()
            problem.split_merge(chain)
            labels[strangers] = len(self.stats_.size) + np.unique(chain.labels, return_inverse=True)[1]
        n_clusters = max(len(self.stats_.size), int(labels.max(initial=-1)) + 1)
        if n_clusters > len(self.stats_.size):
            self.roster_.add(n_clusters - len(self.stats_.size))
        added = self.family_.statistics(rows, labels, n_clusters)
        nothing = self.family_.statistics(rows[:0], np.zeros(0, np.int64), n_clusters - len(self.stats_.size))
        self.stats_ = union_of(stack([self.stats_, nothing]), added)
        if sp.issparse(self.stats_.sums):
            self.stats_.sums.sort_indices()
        return np.asarray(labels, dtype=np.int64)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        return np.asarray(self.fit(X).labels_)

    def _settings(self, n_rows: int) -> Settings:
        check_whole("n_clusters", self.n_clusters, 1)
        check_whole("n_sweeps", self.n_sweeps, 1)
        check_whole("refresh", self.refresh, 1)
        check_whole("n_samples", self.n_samples, 1)
        check_whole("n_bits", self.n_bits, 1)
        check_choice("family", self.family, FAMILIES)
        check_choice("sampler", self.sampler, SAMPLERS)
        check_choice("weights", self.weights, ("dirichlet", "dirichlet_process"))
        check_choice("hashes", self.hashes, ("ranked", "published"))
        check_choice("covariance", self.covariance, ("diagonal", "spherical"))
        check_number("concentration", self.concentration, ("learn",))
        check_prior(self.family, self.smoothing, self.background)
        return Settings(
            self.n_clusters, self.family, self.weights, self.concentration, self.smoothing, self.background,
            self.n_bits, self.hashes, self.covariance, self.refresh, self.n_threads, parallel=bool(self.parallel),
        )  # fmt: skip

    def _problem(self, rows: sp.csr_matrix, settings: Settings) -> Any:
        if settings.family == "gaussian":
            return GaussianProblem(rows, settings)
        return CountProblem(rows, settings)

    def _choose(self, problem: Any) -> str:
        if self.sampler == "indexed" and self.family == "gaussian":
            raise BadInput(
                "sampler='indexed' looks up rare features of counts; for measurements use 'gibbs' or 'fastex'."
            )
        if self.sampler != "auto":
            if self.parallel and self.sampler != "indexed":
                raise BadInput(
                    f"parallel=True is for sampler='indexed' or 'auto', not for {self.sampler!r}. Leave it out."
                )
            return self.sampler
        chosen, why = problem.choose_sampler()
        say(f"sampler: {chosen} ({why})")
        if self.parallel and chosen != "indexed":
            say(f"parallel: without effect, for the {chosen} sampler visits row by row")
        return str(chosen)

    def _first_labels(self, problem: Any, seed: int, split_merge: bool) -> tuple[np.ndarray, bool]:
        if not isinstance(self.init, str):
            labels = np.asarray(self.init)
            if labels.shape != (problem.X.shape[0],) or labels.min() < 0 or labels.max() >= self.n_clusters:
                raise BadInput(
                    f"init holds labels of shape {labels.shape} from {labels.min()} to {labels.max()}; it needs one "
                    f"for each of the {problem.X.shape[0]} rows, from 0 to {self.n_clusters - 1}."
                )
            return labels.astype(np.int32), False
        check_choice("init", self.init, INITS)
        if self.family == "gaussian":
            if self.init == "random":
                rng = np.random.default_rng(seed)
                return rng.integers(0, self.n_clusters, problem.X.shape[0]).astype(np.int32), False
            return problem.first_labels(seed), False
        names = default_starts(problem) if self.init == "auto" else [self.init]
        return find_start(problem, names, self.sampler_, seed, split_merge=split_merge)

    def _finish(self, problem: Any, chain: Any, trace: Trace, schedule: Schedule) -> None:
        """Everything users read, from the best state found."""
        self._tree = None
        self.chain_, self.trace_, self.schedule_ = chain.state(), trace, schedule
        self.hyperparameters_, self.family_ = problem.hyperparameters(), problem.family
        slots, labels, size = np.unique(trace.best_labels, return_inverse=True, return_counts=True)
        # Large clusters come first; ties in the order of their slots.
        order = np.argsort(-size, kind="stable")
        place = np.empty(len(slots), np.int64)
        place[order] = np.arange(len(slots))
        self.labels_ = place[labels].astype(np.int64)
        self.n_clusters_ = len(slots)
        self.roster_ = Roster.of(self.n_clusters_)
        self.stats_ = problem.statistics(self.labels_, self.n_clusters_)
        self.n_rows_ = len(self.labels_)
        self.log_joint_, self.log_joint_history_ = trace.best_log_joint, list(trace.history)
        self.n_iter_ = len(trace.history)
        self.samples_ = np.array(trace.samples if trace.samples else [trace.best_labels])
        self.n_clusters_posterior_ = live_counts(self.samples_)
        self.acceptance_ = trace.n_accepted / max(trace.n_proposed, 1)
        self.typicality_ = self._typicality(problem.X, self.labels_)
        self.agreement_ = np.mean(self.samples_ == trace.best_labels, axis=0)
        # A chain that has settled proposes few moves; one that is stuck proposes many, and hardly any is accepted.
        restless = trace.n_proposed > RESTLESS * self.n_iter_ * self.n_rows_
        if self.sampler_ == "fastex" and restless and self.acceptance_ < LOW_ACCEPTANCE:
            warnings.warn(
                f"only {self.acceptance_:.2%} of the proposals from {self.n_bits}-bit hashes were accepted: the chain "
                "hardly moves and has not converged. Use sampler='indexed' or 'gibbs', or many more bits.",
                StuckSampler,
                stacklevel=3,
            )

    def _typicality(self, X: sp.csr_matrix, labels: np.ndarray) -> np.ndarray:
        """How much better a row's cluster explains it than an empty one does, in nats for each unit of its length."""
        own = self.family_.log_predictive_at(self.stats_, X, labels)
        nothing = self.family_.log_predictive_at(self.stats_, X, np.full(X.shape[0], -1))
        length = np.maximum(np.asarray(abs(X).sum(axis=1)).ravel(), 1.0)
        return np.asarray((own - nothing) / length)
