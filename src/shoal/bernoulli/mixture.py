"""BernoulliMixture: clusters of sets in one pass, with uncertainty, and suggestion of features."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from shoal.base import (
    Roster,
    check_choice,
    check_int,
    check_random_state,
    check_real,
    storable,
    transaction,
    validate_rows,
    validate_weights,
)
from shoal.bernoulli import editing, partitions, statistics
from shoal.bernoulli.adf import Block
from shoal.bernoulli.adf_fit import Learned, Options, fit_adf
from shoal.bernoulli.calibration import calibrated, uncalibrated
from shoal.bernoulli.em import EM, as_profiles, blocks_of, check_room, fit_em
from shoal.bernoulli.fitted_profiles import FittedProfiles
from shoal.bernoulli.merging import Merger, merged_rows
from shoal.bernoulli.profiles import background_of, with_seen
from shoal.bernoulli.scoring import as_presence, per_feature, scored
from shoal.bernoulli.seeding import seed_rows
from shoal.bernoulli.statistics import Delta, accumulate, seen_in
from shoal.bernoulli.stored_state import check_state
from shoal.bernoulli.stream_fit import StreamLearner, StreamState, empty_state, note_mergers
from shoal.engine import Partitions, learning
from shoal.errors import BadInput, CannotMerge
from shoal.weights import positive_repetitions, repetitions

SEED_ROWS = 2000  # rows that EM's seeds are chosen from, at least


def _can_learn_more(model: BernoulliMixture) -> bool:
    if model.inference == "em":
        raise AttributeError('inference="em" cannot learn more rows after fit; use inference="adf" for partial_fit.')
    return True


@storable
class BernoulliMixture(FittedProfiles):
    """Bernoulli mixture for sets (ads by keywords, baskets, tags), with uncertainty, learned in one pass.

    A cluster has, for every feature, a Beta distribution of the share of its rows that have the feature. Values above 0
    mean that a row has the feature. The cost per row does not depend on the number of features.

    Parameters
    ----------
    n_clusters : int
        Maximum number of clusters; clusters that do not improve the likelihood of new rows are merged.
    inference : {"adf", "em"}
        "adf": assumed density filtering, one pass. "em": maximum likelihood by several passes.
    clutter : bool
        Label rows of unrelated features -1: those of clusters whose own parameters predict new rows no better than one
        parameter for all features.
    n_passes : int
        Number of passes of ADF. From the second pass on, the earlier contribution of a row is removed first.
    strength : float, optional
        Weight of the prior, in rows. None: the value with the largest evidence.
    background : {"feature", "flat"}
        The prior's mean is each feature's share of all rows, or the same for all features.
    init : {"spread", "random"}
        Initialize with rows far apart, or with random rows.
    adapt : bool
        Merge redundant clusters; in ``partial_fit``, create new ones for rows that no cluster explains.
    features_kept : int
        Maximum number of features with their own Beta in a cluster.
    n_partitions : int
        Parts of a round that are learned in parallel from the same prior and then added; 1 is strictly sequential.
    max_iter, tol : int, float
        For EM: maximum number of passes, and relative change of the log likelihood at which to stop.
    n_threads : int, optional
        Threads to use; None means all cores. It does not change the result.
    engine : str
        Where passes over the rows run: ``"threads"`` of this process (or what :func:`shoal.engine.using` chose),
        ``"dask"``, or the address of a Dask scheduler. It does not change the result.
    random_state : int or Generator, optional
        Seed of the initialization and of the order of rows.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,)
        Id of each row's most likely cluster, for the rows of the last call that learned; -1: unassigned.
    cluster_ids_, cluster_sizes_ : ndarray of shape (n_clusters_,)
        Stable ids of the clusters, and the effective number of rows of each, of all rows learned.
    strength_ : float
        Weight of the prior, in rows.
    objective_history_ : list of float
        ADF: mean log probability of each round's rows before they were learned. EM: log likelihood of each pass.
    profiles_, roster_, calibration_ :
        All posteriors; ids, names, pins and events of clusters; the calibration of suggested probabilities.

    Examples
    --------
    Two kinds of baskets, and a suggestion:

    >>> import numpy as np
    >>> X = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1], [0, 1, 1, 1]] * 25)
    >>> model = BernoulliMixture(2, random_state=0).fit(X)
    >>> labels = model.predict(X[:4])
    >>> bool(labels[0] == labels[1]), bool(labels[2] == labels[3]), bool(labels[0] == labels[3])
    (True, True, False)
    >>> model.suggest([0], n=1)[0].feature
    1
    """

    preferred_weighting: ClassVar[str] = "binary"

    stream_: StreamState

    def __init__(
        self,
        n_clusters: int = 100,
        *,
        inference: Literal["adf", "em"] = "adf",
        clutter: bool = True,
        n_passes: int = 1,
        strength: float | None = None,
        background: Literal["feature", "flat"] = "feature",
        init: Literal["spread", "random"] = "spread",
        adapt: bool = True,
        features_kept: int = 2000,
        n_partitions: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        n_threads: int | None = None,
        engine: str = "threads",
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
        self.n_partitions = n_partitions
        self.max_iter = max_iter
        self.tol = tol
        self.n_threads = n_threads
        self.engine = engine
        self.random_state = random_state

    # --- learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, identity_from: Any = None) -> BernoulliMixture:
        """Learn the clusters of the rows of ``X`` (a matrix or a Dataset), read in random order.

        Parameters
        ----------
        X : matrix, Dataset, table, or :func:`shoal.engine.read_partitions`, shape (n_rows, n_features)
        y : ignored
        sample_weight : array of shape (n_rows,), optional
            How often each row counts; not for partitions.
        identity_from : fitted model, optional
            An earlier model, whose ids, names and pins go to the clusters found again.
        """
        options = self._options()
        if isinstance(X, Partitions):
            return partitions.fit(self, X, sample_weight, identity_from)
        found = validate_rows(self, X, mode="fit")
        rows = as_presence(found.matrix)
        weights = positive_repetitions(validate_weights(sample_weight, rows.shape[0]))
        if self.n_clusters > rows.shape[0]:
            raise BadInput(
                f"n_clusters is {self.n_clusters}, but there are only n_samples={rows.shape[0]} rows. Ask for fewer."
            )
        with learning(self):
            rng = check_random_state(self.random_state)
            if self.inference == "em":
                self._fit_em(rows, weights, options, rng, blocks_of(rows, weights), seen_in(rows, weights))
            else:
                self._fit_adf(rows, weights, options, rng)
            n = rows.shape[0]
            self.stream_ = StreamState(
                sp.csr_matrix((0, rows.shape[1])), np.zeros(0), n_rows=n, n_started=n, n_examined=n, n_calibrated=n
            )
            self._remember_rows(found, mode="fit")
            self._look_back(rows)
        return self._identified(identity_from, X)  # type: ignore[no-any-return]

    def _fit_adf(self, rows: sp.csr_matrix, weights: np.ndarray, options: Options, rng: np.random.Generator) -> None:
        self._adopt_adf(fit_adf(rows, weights, options, rng))

    def _adopt_adf(self, learned: Learned) -> None:
        self.profiles_, self.calibration_ = learned.profiles, learned.calibration
        self.roster_ = Roster.of(self.profiles_.n_clusters)
        self.objective_history_ = list(learned.history)
        self.n_iter_, self.converged_ = self.n_passes, not learned.interrupted

    def _fit_em(
        self, rows: sp.csr_matrix, weights: np.ndarray, options: Options, rng: np.random.Generator, blocks: list[Any],
        seen: np.ndarray,
    ) -> None:  # fmt: skip
        """EM over ``blocks``, in which ``seen`` rows have each feature; ``rows`` are all of them, or some."""
        check_room(rows.shape[1], self.n_clusters)
        background = background_of(seen, flat=options.flat)
        candidates = rng.permutation(np.flatnonzero(weights > 0))[: max(SEED_ROWS, 20 * self.n_clusters)]
        seeds = candidates[seed_rows(rows[candidates], self.n_clusters, background, self.init, rng)]
        em = EM(
            blocks, float(seen[-1]), background, strength=self.strength, clutter=self.clutter, n_threads=self.n_threads
        )
        stats, monitor = fit_em(em, em.begin(rows, seeds, self.n_clusters), max_iter=self.max_iter, tol=self.tol)
        self.profiles_ = as_profiles(stats, seen, clutter=self.clutter, strength=em.strength, flat=options.flat)
        self.n_iter_, self.converged_ = monitor.n_iter, monitor.converged
        self.objective_history_ = list(monitor.history)
        self.roster_ = Roster.of(self.n_clusters)
        sample = rng.permutation(rows.shape[0])[: 10 * self.n_clusters]
        self.calibration_ = calibrated(self.profiles_, Block(rows[sample], weights[sample]), rng)

    @available_if(_can_learn_more)
    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> BernoulliMixture:
        """Learn more rows, in the order given, from the first row on.

        A Dataset or table may bring features never seen before. Clusters keep their ids.

        Parameters
        ----------
        X : matrix, Dataset or table, shape (n_rows, n_features)
        y : ignored
        sample_weight : array of shape (n_rows,), optional
        """
        options = self._options()
        fitted = hasattr(self, "profiles_")
        found = validate_rows(self, X, mode="partial_fit" if fitted else "fit")
        rows = as_presence(found.matrix)
        weights = positive_repetitions(validate_weights(sample_weight, rows.shape[0]))
        with learning(self):
            rng = check_random_state(self.random_state)
            kept = weights > 0
            self._learn_stream(Block(rows[kept], weights[kept]), options, rng, fitted=fitted)
            self.n_iter_, self.converged_ = 1, True
            self._remember_rows(found, mode="partial_fit" if fitted else "fit")
            self._look_back(rows)
        return self

    def _learn_stream(self, block: Block, options: Options, rng: np.random.Generator, *, fitted: bool) -> None:
        seen = seen_in(block.rows, block.weights)
        if fitted:
            state = self.stream_
            profiles = with_seen(self.profiles_, seen, flat=options.flat)
            parts = (state.rows.data, state.rows.indices, state.rows.indptr)
            wide = sp.csr_matrix(parts, shape=(state.rows.shape[0], seen.size - 1))
            state = state._with_rows(wide)
            rng = np.random.default_rng(rng.integers(2**63) + state.n_rows)
            learner = StreamLearner(profiles, self.roster_, state, self.calibration_, options, rng)
        else:
            learner = StreamLearner(None, Roster.of(0), empty_state(block.rows.shape[1]), None, options, rng)
        learner.learn(block)
        self.profiles_, self.roster_, self.stream_ = learner.result()
        self.calibration_ = learner.calibration or uncalibrated(np.diff(block.rows.indptr))
        self.objective_history_ = [*getattr(self, "objective_history_", []), *learner.history]

    def _look_back(self, rows: sp.csr_matrix) -> None:
        """What is known of the rows just learned."""
        found = scored(self.profiles_, rows, self.n_threads)
        self._describe_rows(found.rows, found.shares, per_feature(found.log_ratios, rows))

    def _describe_rows(self, rows: np.ndarray, shares: np.ndarray, typicality: np.ndarray) -> None:
        n_clutter = self.profiles_.n_clutter
        self.labels_, self.typicality_ = self._ids_of(rows), typicality
        unsure = np.bincount(rows, weights=1 - shares, minlength=self.profiles_.n_rows)
        n_of = np.bincount(rows, minlength=self.profiles_.n_rows)
        self.uncertainty_ = (unsure / np.maximum(n_of, 1))[n_clutter:]

    def check_state(self) -> None:
        """Refuse a state from a file that contradicts itself."""
        check_state(self)

    # --- editing ------------------------------------------------------------------------------------------------------

    def merge_clusters(self, clusters: Any, into: int) -> BernoulliMixture:
        """The rows of ``clusters`` (one id or several) belong to ``into`` from now on: what all have seen adds up."""
        check_is_fitted(self)
        gone = self.roster_.to_merge(clusters, into)  # the clutter (-1) is none of the roster's
        rows = [self._row_of(id_) for id_ in (into, *gone)]
        profiles, sizes = self.profiles_, self.profiles_.mass[rows]
        with transaction(self):
            unsure = self.uncertainty_.copy()
            unsure[self.roster_.row_of(into)] = np.average(unsure[np.array(rows) - profiles.n_clutter], weights=sizes)
            for id_ in gone:
                row = self._row_of(id_)
                profiles = merged_rows(profiles, [Merger(self._row_of(into), row)])
                unsure = np.delete(unsure, row - profiles.n_clutter)
                self.roster_.merge([id_], into=int(into))
            self.profiles_, self.uncertainty_ = profiles, unsure
            self.labels_ = np.where(np.isin(self.labels_, gone), into, self.labels_)
        return self

    def split_cluster(self, cluster: int, X: Any) -> int:  # type: ignore[override]
        """Split a cluster in two by those rows of ``X`` (rows the model has learned) that it holds; the new id."""
        rows = self._rows(X)
        row = self._row_of(cluster)
        if cluster == -1:
            raise BadInput("the clutter (-1) cannot be split; name a cluster.")
        profiles, n = editing.split_in_two(self.profiles_, row, rows, check_random_state(self.random_state))
        if n < 2:
            raise BadInput(f"cluster {cluster} holds {n} of the rows given. A split needs at least two of its rows.")
        with transaction(self):
            self.profiles_ = profiles
            new = int(self.roster_.split(cluster)[0])
            self.uncertainty_ = np.append(self.uncertainty_, self.uncertainty_[self.roster_.row_of(cluster)])
            if self.labels_.size == rows.shape[0]:  # the rows learned last, as far as can be known
                inside = self.labels_ == cluster
                self.labels_ = self.labels_.copy()
                self.labels_[inside] = self._ids_of(scored(profiles, rows[np.flatnonzero(inside)]).rows)
        return new

    # --- differences and models trained apart -------------------------------------------------------------------------

    def accumulate(self, X: Any, sample_weight: Any = None) -> Delta:
        """The difference that learning these rows makes, without changing the model. Apply with :meth:`update`."""
        rows = self._rows(X)
        weights = repetitions(validate_weights(sample_weight, rows.shape[0]))
        delta, _ = accumulate(Block(rows, weights), self.profiles_)
        return delta._replace(ids=self.roster_.ids.copy(), seen=seen_in(rows, weights))

    def update(self, delta: Delta) -> BernoulliMixture:
        """Learn a difference that :meth:`accumulate` gave, here or in a copy of this model."""
        return self._apply(delta, 1.0)

    def forget(self, stats: Delta) -> BernoulliMixture:
        """Remove a difference exactly, for example the data of a day or of a customer."""
        return self._apply(stats, -1.0)

    def _apply(self, delta: Delta, sign: float) -> BernoulliMixture:
        check_is_fitted(self)
        if not np.array_equal(delta.ids, self.roster_.ids):
            raise CannotMerge(
                "the difference was taken when the model had other clusters; clusters were born, merged or removed "
                "since. Accumulate it again from the model as it is."
            )
        self.profiles_ = statistics.update(self.profiles_, delta, sign=sign)
        return self

    def merge(self, other: Any) -> BernoulliMixture:
        """Take in a model that was fitted on other rows with the same columns.

        Clusters of the two models are merged where one cluster is more probable than two, and then in order of the
        smallest loss until ``n_clusters`` are left. No rows are needed. Ids, names and pins of this model are kept.
        """
        check_is_fitted(self)
        if not isinstance(other, BernoulliMixture):
            raise CannotMerge(f"cannot merge a {type(other).__name__} into a BernoulliMixture.")
        check_is_fitted(other)
        mine, theirs = self.profiles_, other.profiles_
        if mine.n_clutter != theirs.n_clutter:
            raise CannotMerge("one model has a clutter cluster and the other has not; fit both with the same clutter.")
        if mine.n_features != theirs.n_features:
            raise CannotMerge(
                f"one model knows {mine.n_features} features and the other {theirs.n_features}; fit both on the same "
                "columns."
            )
        profiles = editing.appended(mine, theirs, flat=self.background == "flat")
        pinned = np.zeros(profiles.n_rows, dtype=np.bool_)
        pinned[mine.n_clutter : mine.n_rows] = self.roster_.is_pinned()
        profiles, mergers = editing.joined(profiles, self.n_clusters, pinned)
        with transaction(self):
            self.roster_.add(theirs.n_clusters)
            note_mergers(self.roster_, mergers, mine.n_clutter)
            self.profiles_ = profiles
            self.uncertainty_ = np.full(profiles.n_clusters, float(np.mean(self.uncertainty_)))
            alive = np.isin(self.labels_, self.roster_.ids)
            self.labels_ = np.where(alive, self.labels_, -1)
        return self

    # --- options ------------------------------------------------------------------------------------------------------

    def _options(self) -> Options:
        check_choice("inference", self.inference, ("adf", "em"))
        check_real("tol", self.tol, minimum=0.0)
        check_int("max_iter", self.max_iter)
        if self.strength is not None:
            check_real("strength", self.strength, minimum=0.0, strict=True)
        return Options(
            n_clusters=check_int("n_clusters", self.n_clusters),
            clutter=bool(self.clutter),
            strength=self.strength,
            flat=check_choice("background", self.background, ("feature", "flat")) == "flat",
            init=check_choice("init", self.init, ("spread", "random")),
            adapt=bool(self.adapt),
            features_kept=check_int("features_kept", self.features_kept),
            n_passes=check_int("n_passes", self.n_passes),
            n_partitions=check_int("n_partitions", self.n_partitions),
            n_threads=self.n_threads,
        )
