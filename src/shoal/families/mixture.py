"""ExponentialFamilyMixture: mixtures with thousands of components, sampled."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal.base import Roster, storable, transaction
from shoal.engine import Partitions, learning
from shoal.errors import BadInput, CannotMerge
from shoal.families import editing, partitions, posterior, statistics
from shoal.families.consensus import live_counts, most_probable
from shoal.families.fit_warnings import check_fit, warn_of_chains
from shoal.families.inspection import FittedMixture
from shoal.families.number_of_clusters import choose
from shoal.families.options import Settings, check_options, same_columns, seed_of
from shoal.families.samplers.constraints import Constraints, Known, read_known
from shoal.families.samplers.gaussian_problem import merged_while_it_gains
from shoal.families.samplers.initialization import first_labels, predicted_labels
from shoal.families.samplers.problems import choose_sampler, make_problem
from shoal.families.samplers.schedule import Schedule, Trace, run
from shoal.families.statistics import Model
from shoal.threads import row_blocks

SPLIT_MERGE_ROWS = 50_000
SPLIT_MERGE_CLUSTERS = 1_000
logger = logging.getLogger("shoal")


@storable
class ExponentialFamilyMixture(FittedMixture):
    """Bayesian mixture of exponential families, sampled by collapsed Gibbs, with up to thousands of components.

    Parameters and weights of clusters are integrated out; labels are sampled. ``n_clusters`` is a maximum: clusters may
    be empty, and ``n_clusters_`` is the number of the others. If all are used (``bound_reached_``), ``n_clusters_`` is
    the maximum and not an estimate.

    Parameters
    ----------
    n_clusters : int or "auto"
        Maximum number of clusters. "auto" starts from a large maximum; if the rows use all clusters, as long rows do,
        it takes the number on which models of two halves of the rows agree. ``number_of_clusters_`` holds the reason,
        and the first fit with its tree, which can be cut to other numbers.
    family : str or dict
        ``"multinomial"`` for documents, ``"bernoulli"`` for sets, ``"poisson"`` for counts of events,
        ``"gaussian"`` for measurements. ``"mixed"`` for tables of mixed columns (pandas, polars, Arrow, or a dict),
        each of a family that is detected, or a dict of families: ``{"age": "gaussian", "smoker": "categorical",
        ("left", "right"): "dirichlet"}``, with ``"gaussian"``, ``"lognormal"``, ``"poisson"``, ``"categorical"``,
        ``"multinomial"`` (words), ``"bernoulli"`` (sets), and for several columns at once ``"dirichlet"``, ``"full"``
        or ``"tied"``. Missing values are left out of the likelihood. ``"dirichlet"`` (rows that are proportions) and
        ``"categorical"`` (tables of names) use one family for all columns.
    sampler : {"auto", "gibbs", "indexed", "fastex"}
        "gibbs" scores every cluster for every row. "indexed" scores the clusters that share the rare features of the
        row. "fastex" proposes by binary hashes, as published, and mixes poorly on text (see ``hashes``). "auto" chooses
        the fastest; see ``sampler_``. In the second half of the sweeps, all have the same stationary distribution, the
        collapsed posterior.
    n_sweeps : int
        Sweeps over the rows. The first half is burn-in: it learns the prior, tunes proposals, and merges and splits
        clusters. The second half is the chain that is sampled.
    init : {"auto", "one-pass", "random"}, array or fitted model
        Initial labels. "auto" is the best of several.
    weights : {"dirichlet", "dirichlet_process"}
        Prior of the cluster weights.
    concentration : float or "learn"
        Pseudo-rows of each cluster (Dirichlet), or weight of a new cluster (Dirichlet process).
    smoothing, background : float, "auto" or "learn"
        For documents, the pseudo-counts of the prior are ``smoothing`` for every word plus ``background`` in total,
        distributed as in the whole data. "learn" estimates them from the clusters. "auto" estimates the appropriate
        one: ``smoothing`` for short texts, ``background`` for long texts. For sets and counts, ``background`` is the
        weight of the prior in rows. For measurements, ``smoothing`` is twice the expected variance within clusters,
        relative to that of the whole data.
    refresh : int
        During burn-in, the indexed sampler lists the candidates of a stable row again after this many sweeps;
        afterwards lists are fixed. With 1, candidates are listed at every visit.
    n_samples : int
        Labelings kept from the second half. ``labels_`` has the most frequent cluster of each row in them (with known
        labels or links, the best labeling), and their frequencies are the probability that two rows are together.
    n_bits : int
        Length of the hashes of "fastex".
    hashes : {"ranked", "published"}
        "published": as in the paper. "ranked": hashes rank candidates, which are then scored exactly.
    covariance : {"diagonal", "spherical", "full", "tied"}
        For the Gaussian; "tied" is one covariance for all clusters.
    parallel : bool
        Whether the indexed sampler decides visits on threads, in groups of rows, once few rows move. Visits whose
        inputs have changed are decided again, so that the result is that of the sequential chain.
    n_chains : int
        Number of chains with different initial states. The model is the one of the best log joint; samples are from all
        chains, and ``diagnostics_`` has R-hat and the effective sample size.
    n_threads : int, optional
        Threads to use; None means all cores. It does not change the result.
    engine : str
        Where passes over blocks of rows run: ``"threads"`` of this process (or what :func:`shoal.engine.using`
        selected), ``"dask"``, or the address of a Dask scheduler. It does not change the result.
    random_state : int, Generator or None
        Random seed.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> texts = ["cat dog cat", "dog cat", "star moon", "moon star star", "cat cat", "moon star"]
    >>> X = CountVectorizer().fit_transform(texts)
    >>> model = ExponentialFamilyMixture(n_clusters=4, random_state=0).fit(X)
    >>> model.n_clusters_, (model.labels_ == model.labels_[0]).tolist()
    (2, [True, True, False, False, True, False])

    A table with missing values (pandas, polars and Arrow tables are accepted, too):

    >>> people = {"age": [23.0, 25, 21, None, 24, 26, 67, 70, 72, None, 69, 71],
    ...           "smoker": ["no", "no", None, "no", "no", "no", "yes", "yes", "yes", "yes", None, "yes"]}
    >>> model = ExponentialFamilyMixture(4, family="mixed", random_state=0).fit(people)
    >>> model.name_cluster(1, "young")
    >>> model.n_clusters_, model.describe_cluster(0)
    (2, 'age 66.1 to 72.9, smoker yes 100 %; 2 of 2 columns matter')
    >>> model.impute(people)["age"].values.round().tolist()
    [24.0, 69.0]

    References
    ----------
    Ahmed, Ravi, Narayanamurthy, Smola, "FastEx: Hash Clustering with Exponential Families", NIPS 2012.
    """

    def __init__(
        self,
        n_clusters: int | str = 100,
        *,
        family: Any = "multinomial",
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
        n_chains: int = 1,
        random_state: Any = None,
        n_threads: int | None = None,
        engine: str = "threads",
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
        self.n_chains = n_chains
        self.random_state = random_state
        self.n_threads = n_threads
        self.engine = engine

    # --- fitting ------------------------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, *, must_link: Any = None, cannot_link: Any = None, identity_from: Any = None
    ) -> ExponentialFamilyMixture:
        """Sample the labels of these rows. On a single block, as here, that is the exact chain.

        Parameters
        ----------
        y : (n,) known classes of some rows, whole numbers from 0, and -1 for the others. Rows of one class are one
            cluster; the others join these or make clusters of their own. ``classes_`` has the classes, and the cluster
            of ``classes_[j]`` has the id j and the class for a name. A y without -1 is ignored, as clusterers do.
        must_link, cannot_link : pairs of row numbers that are in one cluster, or in two.
        identity_from : an earlier model, whose ids, names and pins go to the clusters found again.
        """
        if isinstance(X, Partitions):
            return partitions.fit(self, X, identity_from, (y, must_link, cannot_link))
        settings, rows = self._settings(), self._validated(X, mode="fit")
        seed, n_rows = seed_of(self.random_state), rows.matrix.shape[0]
        known = read_known(y, must_link, cannot_link, n_rows)
        init = predicted_labels(self.init, X)
        if self.n_clusters == "auto" and (known is not None or not isinstance(init, str)):
            raise BadInput("n_clusters='auto' compares fits of parts of the rows, without y, links or labels in init.")
        with learning(self):
            for name in ("number_of_clusters_", "classes_", "diagnostics_"):
                self.__dict__.pop(name, None)
            if known is not None and len(known.names):
                self.classes_ = known.names
            if self.n_clusters == "auto":
                chosen, self.number_of_clusters_ = choose(self, rows.matrix, seed)
                logger.info("number of clusters: %s", self.number_of_clusters_.reason)
                self.restore_state(chosen.fitted_state())
            else:
                self.bound_ = settings.n_clusters
                self._remember_rows(rows, mode="fit")  # sampling reads the names of the columns
                if self.n_chains > 1:
                    self._run_chains(rows.matrix, init, known, seed)
                else:
                    self._sample(make_problem(rows.matrix, settings), init, known, seed)
            self._remember_rows(rows, mode="fit")
        return self._identified(identity_from, X)  # type: ignore[no-any-return]

    def _run_chains(self, rows: Any, init: Any, known: Known | None, seed: int) -> None:
        """Several fits from different starts, the best of which is the model."""
        best, self.samples_, self.diagnostics_ = posterior.run_chains(self, rows, init, known, seed)
        learned = {name: value for name, value in best.fitted_state().items() if name != "samples_"}
        self.restore_state(learned)
        self.n_clusters_posterior_ = live_counts(self.samples_)
        warn_of_chains(self.diagnostics_, self.n_chains)

    def _sample(self, problem: Any, init: Any, known: Known | None, seed: int) -> None:
        """Start, run the chain, and read the model off its best state."""
        constraints = None if known is None else Constraints(known, problem.settings.n_clusters)
        self.known_, problem.is_linked = known, known is not None
        self.sampler_ = choose_sampler(problem, self.sampler, self.parallel, problem.is_linked)
        few = problem.n_rows <= SPLIT_MERGE_ROWS and problem.settings.n_clusters <= SPLIT_MERGE_CLUSTERS
        split_merge = few or self.sampler_ == "indexed"  # the index knows which clusters are near one another
        labels, interrupted = None, False
        if constraints is None or not constraints.has_classes:
            labels, interrupted = first_labels(problem, init, self.sampler_, seed, split_merge=split_merge)
        if constraints is not None:
            labels = constraints.first_labels(problem, labels)
            split_merge = split_merge and not constraints.has_classes  # clusters of classes are what they are
        chain = self._chain(problem, constraints, seed)
        problem.begin(chain, labels)
        burn_in = max(1, self.n_sweeps // 2)
        every = max(1, (self.n_sweeps - burn_in) // max(self.n_samples, 1))
        schedule = Schedule(0 if interrupted else self.n_sweeps, burn_in, every, split_merge)
        trace = Trace(best_labels=chain.labels.copy(), best_log_joint=chain.log_joint())
        run(problem, chain, trace, schedule, constraints)
        schedule.n_sweeps = self.n_sweeps
        self._finish(problem, chain, trace, schedule)

    def _chain(self, problem: Any, constraints: Constraints | None, seed: int) -> Any:
        chain = problem.chain(self.sampler_, seed)
        if constraints is not None:
            chain.runs = constraints.free_runs()
        return chain

    def resume(self, X: Any, *, n_sweeps: int | None = None) -> ExponentialFamilyMixture:
        """Go on with the chain over the same rows: to the planned end after an interruption, or ``n_sweeps`` more.

        A chain that was interrupted, stored, loaded and taken up again is, to the last bit, one that never stopped.
        """
        check_is_fitted(self)
        rows = self._validated(X, mode="predict").matrix
        if self.chain_ is None or rows.shape[0] != len(self.chain_["labels"]):
            n_known = "no rows since the clusters were edited" if self.chain_ is None else len(self.chain_["labels"])
            raise BadInput(
                f"resume was given {rows.shape[0]} rows, but the chain is over {n_known}. Pass the rows the model was "
                "fitted to, in the same order; use partial_fit for new ones."
            )
        with transaction(self):
            problem = make_problem(rows, self._settings())
            problem.restore_hyperparameters(self.hyperparameters_, self.family_)
            constraints = None if self.known_ is None else Constraints(self.known_, self._bound())
            problem.is_linked = constraints is not None
            chain = self._chain(problem, constraints, int(self.chain_.get("seed", 0)))
            chain.restore(self.chain_)
            schedule, trace = self.schedule_.copy(), self.trace_.copy()
            if n_sweeps is not None:
                schedule.n_sweeps = chain.n_sweeps + n_sweeps
            run(problem, chain, trace, schedule, constraints)
            self._finish(problem, chain, trace, schedule)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> ExponentialFamilyMixture:
        """Fold new rows in: each goes to its likeliest cluster, or to a new one while ``n_clusters`` allows.

        The first call fits. Later ones leave the prior as it was learned; ``labels_`` and ``typicality_`` are then
        those of the last batch, and ids stay what they were. Rows are placed in rounds of 2,048, against the clusters
        as they were when the round began; new clusters of a round are merged where they are the same.
        """
        if not hasattr(self, "stats_"):
            return self.fit(X, y)
        self._settings()
        rows = self._validated(X, mode="partial_fit")
        with learning(self):
            model = statistics.grown(self._model(), rows.matrix.shape[1])
            blocks = row_blocks(rows.matrix.shape[0], statistics.PLACED_ROWS)
            parts = [rows.matrix[first:last] for first, last in blocks]
            model, labels = statistics.fold_in(parts, model, self.n_threads)
            self._adopt(model)
            self._remember_rows(rows, mode="partial_fit")
            self.labels_, self.n_rows_ = self.roster_.ids[labels], self.n_rows_ + len(labels)
            self.typicality_ = self._typicality(rows.matrix, labels)
            self.agreement_ = np.ones(len(labels))
        return self

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and the rows' labels."""
        return np.asarray(self.fit(X, y).labels_)

    # --- editing and combining ----------------------------------------------------------------------------------------

    def merge(self, other: ExponentialFamilyMixture) -> ExponentialFamilyMixture:
        """Take in a model fitted on other rows with the same columns: a cluster of it joins the one with which it is
        likelier to be one than two, or becomes a new one while ``n_clusters`` allows. Ids of this model stay."""
        check_is_fitted(self)
        if not isinstance(other, ExponentialFamilyMixture) or other.family != self.family:
            raise CannotMerge(f"a mixture of family {self.family!r} can be merged with another of its kind only.")
        if self.n_features_in_ != other.n_features_in_ or not same_columns(self, other):
            raise CannotMerge("the two models have different columns; fit both on data with one vocabulary.")
        with transaction(self):
            self._adopt(editing.united(self._model(), other._model(), self.n_rows_, other.n_rows_))
            self.n_rows_, self.chain_ = self.n_rows_ + other.n_rows_, None
        return self

    def merge_clusters(self, clusters: int | Iterable[int], into: int) -> ExponentialFamilyMixture:
        """The rows of ``clusters`` (one id or several) belong to the cluster ``into`` from now on."""
        check_is_fitted(self)
        gone = self.roster_.to_merge(clusters, into)
        rows, target = [self.roster_.row_of(id_) for id_ in gone], self.roster_.row_of(into)
        with transaction(self):
            self.roster_.merge(gone, into)
            self.labels_ = np.where(np.isin(self.labels_, gone), into, self.labels_)
            self._adopt(editing.with_merged(self._model(), rows, target))
            self.chain_ = None
        return self

    def split_cluster(self, cluster: int, X: Any) -> int:
        """Part a cluster in two by its rows among ``X``; the id of the new one, which takes the smaller part."""
        row = self.roster_.row_of(cluster)
        rows = self._rows(X)
        rows = rows[np.flatnonzero(self._best(rows).clusters[:, 0] == row)]
        if rows.shape[0] < 2:
            raise BadInput(f"X has {rows.shape[0]} rows of cluster {cluster}; at least 2 are needed to split it.")
        with transaction(self):
            problem = make_problem(rows, self._settings()._replace(n_clusters=2))
            problem.restore_hyperparameters(self.hyperparameters_, self.family_)
            self.roster_.split(cluster)
            self._adopt(editing.with_split(self._model(), row, rows, problem.part_in_two()))
            self.chain_ = None
        return int(self.roster_.ids[-1])

    # --- inside -------------------------------------------------------------------------------------------------------

    def _settings(self) -> Settings:
        check_options(self)
        return Settings(
            self._bound(), self.family, self.weights, self.concentration, self.smoothing, self.background,
            self.n_bits, self.hashes, self.covariance, self.refresh, self.n_threads, parallel=bool(self.parallel),
        )  # fmt: skip

    def _bound(self) -> int:
        """The most clusters there may be."""
        return int(getattr(self, "bound_", 1) if isinstance(self.n_clusters, str) else self.n_clusters)

    def _model(self) -> Model:
        """What the fold needs of this estimator."""
        process = self.weights == "dirichlet_process"
        return Model(self.family_, self.stats_, self._bound(), self.hyperparameters_["concentration"], process)

    def _adopt(self, model: Model) -> None:
        """Take over a model that the fold has made; clusters it has more get ids of their own."""
        if model.k > len(self.roster_.ids):
            self.roster_.add(model.k - len(self.roster_.ids))
        self.family_, self.stats_, self.n_clusters_ = model.family, model.stats, model.k
        self._tree, self.draws_ = None, []

    def _finish(self, problem: Any, chain: Any, trace: Trace, schedule: Schedule) -> None:
        """Everything users read, from the best state found and the samples."""
        self._tree = None
        self.chain_, self.trace_, self.schedule_ = chain.state(), trace, schedule
        self.hyperparameters_, self.family_ = problem.hyperparameters(), problem.family
        chosen = most_probable(trace.best_labels, trace.samples if self.known_ is None else [])
        if self.known_ is None and schedule.split_merge and hasattr(problem, "best_merge"):
            chosen = merged_while_it_gains(problem, chain, chosen)  # odd rows that the vote has left alone
        slots, labels, size = np.unique(chosen, return_inverse=True, return_counts=True)
        # The classes of y come first, then large clusters; ties in the order of their slots.
        n_classes = len(getattr(self, "classes_", ()))
        order = np.argsort(np.where(slots < n_classes, slots - float(n_classes), 1 / size), kind="stable")
        place = np.empty(len(slots), np.int64)
        place[order] = np.arange(len(slots))
        self.labels_ = place[labels].astype(np.int64)
        self.n_clusters_ = len(slots)
        self.roster_ = Roster.of(self.n_clusters_)
        for cluster, name in enumerate(getattr(self, "classes_", ())):
            self.roster_.name(cluster, str(name))
        self.stats_ = problem.statistics(self.labels_, self.n_clusters_)
        self.n_rows_ = len(self.labels_)
        self.log_joint_, self.log_joint_history_ = trace.best_log_joint, list(trace.history)
        self.n_iter_ = len(trace.history)
        self.samples_ = np.array(trace.samples if trace.samples else [trace.best_labels])
        self.draws_ = posterior.draws_of(problem, self.samples_, self.labels_, self.n_clusters_)
        self.n_clusters_posterior_ = live_counts(self.samples_)
        self.acceptance_ = trace.n_accepted / max(trace.n_proposed, 1)
        self.typicality_ = self._typicality(problem.X, self.labels_)
        self.agreement_ = np.mean(self.samples_ == chosen, axis=0)
        check_fit(self, trace, problem.settings.n_clusters)
