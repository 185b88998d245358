"""SphericalKMeans: thousands of clusters of sparse rows, by cosine."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from shoal.base import (
    Assignment,
    CenterEstimator,
    Roster,
    TopFeatures,
    check_int,
    storable,
    transaction,
    validate_rows,
    validate_weights,
)
from shoal.engine import learning
from shoal.errors import BadInput
from shoal.kmeans import editing
from shoal.kmeans.bisecting import bisect
from shoal.kmeans.blocks import Block
from shoal.kmeans.centers import Centers, own_similarities
from shoal.kmeans.exact import nearest_similarities, similarity_matrix
from shoal.kmeans.finalize import FitResult, certified_exact, finalize
from shoal.kmeans.input import Input, read_input
from shoal.kmeans.lloyd import Assign, Run, lloyd
from shoal.kmeans.options import check_options, check_state, given_centers, how_many_starts
from shoal.kmeans.prediction import PreparedCenters, nearest_clusters, prepared
from shoal.kmeans.rows import unit_rows
from shoal.kmeans.seeding import first_centers, require_distinct_rows
from shoal.kmeans.select_algorithm import AlgorithmChoice, choose
from shoal.kmeans.size_limits import size_limits, within_limits
from shoal.kmeans.statistics import Model, reassign
from shoal.kmeans.streaming import learn_batch, start_stream
from shoal.kmeans.wand import retrieve
from shoal.weights import scaled_weights


@storable
class SphericalKMeans(CenterEstimator):
    """Cluster sparse rows by their direction: documents by terms, users by clicks, ads by keywords.

    Rows are scaled to unit length; a center is the mean of its rows, scaled to unit length; the objective is the mean
    cosine of rows and centers (psi). Centers are sparse; no n_clusters x n_features array is made.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    algorithm : {"auto", "exact", "sparse", "wand"}
        ``exact`` gives the labels of Lloyd's algorithm with fewer computations. ``sparse`` keeps only the heaviest
        features of each center while it iterates. ``wand`` lets centers retrieve rows from an inverted index ("Scalable
        K-Means by Ranked Retrieval", WSDM 2014). ``auto`` measures a small part of the work and chooses ``exact`` where
        that is fast, otherwise ``sparse``; see ``algorithm_``.
    top : int
        For ``wand`` (which runs MaxScore where that is faster): how many rows a center asks for. All rows scored on
        the way are offered to it, so 1 is enough.
    features_kept : int, "auto" or None
        For ``sparse`` and ``wand``: features of a center while iterating. ``auto`` takes the smallest of 50, 100, 200
        and 500 that loses next to nothing on a sample; None keeps all.
    thresholds : {"safe", "carried", "cold"}
        For ``wand``: where the retrieval threshold of a center starts in the next step (see :mod:`shoal.kmeans.wand`).
    init : {"k-means++", "k-means||", "random"} or matrix (n_clusters, n_features)
        Where to start. A matrix, sparse or dense, gives the first centers. Over several blocks of rows ``k-means++``
        is ``k-means||``, which needs few passes.
    n_init : int or "auto"
        How many starts; the one with the largest mean similarity is kept. "auto" makes three on small data (up to 1e8
        entries x clusters), one on large data and from given centers.
    max_iter, tol : int, float
        Stop after this many steps, or when the mean similarity changes by less than this share.
    bisecting : bool
        Build a tree by splitting the worst cluster in two until there are ``n_clusters``; ``predict`` descends the
        tree.
    min_cluster_size, max_cluster_size : int or None
        Limits on the number of rows of a cluster in ``fit``, with the smallest loss of similarity, which is
        ``certificate_["cost_of_size_limits"]``. ``predict`` has no limits.
    random_state : int, RandomState or None
        Random seed. Results do not depend on the number of threads.
    n_threads : int or None
        Threads to use; None means all cores.
    engine : str
        Where passes over the rows run: ``"threads"`` of this process (or what :func:`shoal.engine.using` chose),
        ``"dask"``, or the address of a Dask scheduler. It does not change the result.

    Attributes
    ----------
    labels_ : (n_rows,) the cluster of each row of the last call that learned; -1: unassigned, because the row is empty
        or shares no feature with any center.
    similarities_ : (n_rows,) cosine of each row to its center; 0 where the label is -1.
    outliers_ : (n_rows,) bool, True for rows that pulled on no center in the last step. ``sparse`` and ``wand`` still
        give them the label of their nearest center if there is one.
    mean_similarity_ : the (weighted) mean of ``similarities_``: psi.
    cluster_centers_ : CSR (n_clusters, n_features), rows of unit length, with all features of their rows.
    cluster_sizes_, masses_ : (n_clusters,) rows and weight that each cluster has learned, in the order of
        ``cluster_ids_``.
    certificate_ : for ``sparse`` and ``wand``, what exact assignment to these centers would add to psi ("loss"), with
        its standard error, from a sample of rows; 0 for ``exact``.
    algorithm_, features_kept_ : what was used.
    n_iter_, converged_, objective_history_, iteration_seconds_ : how the fit went; the seconds are not saved.
    tree_ : for ``bisecting``, (n_splits, 3): the node split and the two nodes made. ``leaves_`` holds each cluster's
        node, ``node_centers_`` the centers of all nodes.

    Examples
    --------
    Two rows about fish, two about birds:

    >>> import numpy as np
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1]])
    >>> model = SphericalKMeans(2, random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3])
    True
    >>> model.predict([[5, 0, 0, 0]]) == model.labels_[:1]
    array([ True])

    Rows in blocks, such as those of ``read_batches``:

    >>> SphericalKMeans(2, random_state=0).fit(iter([X[:2], X[2:]])).cluster_sizes_.tolist()
    [2, 2]
    """

    cluster_centers_: sp.csr_matrix
    labels_: np.ndarray
    similarities_: np.ndarray
    outliers_: np.ndarray
    roster_: Roster
    cluster_sizes_: np.ndarray
    masses_: np.ndarray
    mean_lengths_: np.ndarray
    objective_history_: np.ndarray
    iteration_seconds_: np.ndarray | None
    n_iter_: int
    tree_: np.ndarray | None
    leaves_: Any
    node_centers_: Any

    preferred_weighting: ClassVar[str] = "tfidf"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        algorithm: str = "auto",
        top: int = 1,
        features_kept: int | str | None = "auto",
        thresholds: str = "safe",
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        bisecting: bool = False,
        min_cluster_size: int | None = None,
        max_cluster_size: int | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
        engine: str = "threads",
    ) -> None:
        self.n_clusters = n_clusters
        self.algorithm = algorithm
        self.top = top
        self.features_kept = features_kept
        self.thresholds = thresholds
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.bisecting = bisecting
        self.min_cluster_size = min_cluster_size
        self.max_cluster_size = max_cluster_size
        self.random_state = random_state
        self.n_threads = n_threads
        self.engine = engine

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, identity_from: Any = None) -> SphericalKMeans:
        """Cluster the rows of ``X``.

        ``X`` is a matrix, a :class:`shoal.Dataset`, an :class:`InvertedIndex` over rows, or blocks of rows: a list, or
        an iterator such as :func:`shoal.read_batches` gives, whose blocks wait on disk while the fit passes over them,
        or :func:`shoal.engine.read_partitions`, whose parts are read where the passes run.
        ``sample_weight`` is then a list of the weights of each block.

        ``identity_from``: an earlier model, whose ids, names and pins go to the clusters found again; matched by the
        rows of ``X``, or by the features of the clusters where ``X`` is blocks.
        """
        rng = check_options(self)
        with learning(self), read_input(self, X, sample_weight) as data:
            if len(data.blocks) > 1 and (self.min_cluster_size or self.max_cluster_size):
                raise BadInput("limits on cluster sizes need all rows at once; give one matrix, or no limits.")
            if self.bisecting:
                self._grow_tree(data, rng)
            else:
                n_runs = how_many_starts(self, data.nnz)
                choice, best = max((self._run(data, rng) for _ in range(n_runs)), key=lambda run: run[1].objective)
                self.features_kept_, self.algorithm_ = choice.features_kept, choice.algorithm
                self._remember_run(best)
                result = finalize(data.blocks, best, choice.algorithm, self.n_threads)
                self._remember(self._within_limits(data, result), data)
            self._remember_rows(data.rows, mode="fit")
        return self._identified(identity_from, X)  # type: ignore[no-any-return]

    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> SphericalKMeans:
        """Learn from one more batch of rows; each center has its own learning rate, the share of its rows that are new.

        The first batch also gives the first centers, so it needs at least ``n_clusters`` distinct rows. After ``fit``,
        learning goes on from there. ``labels_`` and the like are those of this batch. A center keeps its 4,096 heaviest
        features at most (or ``features_kept``), so that memory stays bounded on an endless stream.
        """
        rng = check_options(self)
        first = not hasattr(self, "cluster_centers_")
        mode: Any = "fit" if first else "partial_fit"
        rows = validate_rows(self, X, mode=mode)
        weights, unit = scaled_weights(
            validate_weights(sample_weight, rows.matrix.shape[0]), None if first else self.masses_
        )
        with learning(self):
            if first:
                start_stream(self, rows, weights, rng)
            learn_batch(self, rows, weights, unit)
            self._remember_rows(rows, mode=mode)
        return self

    # --- asking -------------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each row; -1 for a row that is empty or shares no feature with any center."""
        return self.assign(X).labels

    def assign(self, X: Any) -> Assignment:
        """The cluster of each row and the row's cosine to its center; -1 and 0 for a row that is unassigned."""
        check_is_fitted(self, "cluster_centers_")
        places, similarities = nearest_clusters(self, validate_rows(self, X, mode="predict").matrix)
        return Assignment(self._ids_of(places), similarities)

    def memberships(self, X: Any, top: int = 5) -> sp.csr_matrix:
        """The ``top`` largest cosines above 0 of each row, as a sparse matrix over ``cluster_ids_``.

        K-means has no probabilities: these say how near the next clusters are, and do not sum to 1.
        """
        ready, X = self._asked(X, top)
        parts = ready.parts(X, self.n_threads)
        return sp.vstack([nearest_similarities(rows, ready.full, top, self.n_threads) for rows in parts], format="csr")

    def transform(self, X: Any) -> np.ndarray:
        """The cosine of each row to every center (n_rows, n_clusters): larger is nearer, unlike a distance."""
        ready, X = self._asked(X)
        return similarity_matrix(unit_rows(X, ready.ranking, self.n_threads), ready.full, self.n_threads)

    def score_samples(self, X: Any) -> np.ndarray:
        """The cosine of each row to its center."""
        return self.assign(X).scores

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean cosine of the rows to their nearest centers (psi)."""
        ready, X = self._asked(X)
        weights, _ = scaled_weights(validate_weights(sample_weight, X.shape[0]))
        nearest = PreparedCenters(ready.matrix, None) if ready.features_kept is not None else ready
        found = [nearest.nearest(rows, self.n_threads)[1] for rows in nearest.parts(X, self.n_threads)]
        return float(weights @ np.concatenate([np.zeros(0), *found]) / max(weights.sum(), 1e-300))

    def top_features(self, cluster: int, n: int = 10) -> TopFeatures:
        """The heaviest features of the center with this id."""
        check_is_fitted(self, "cluster_centers_")
        center = self.cluster_centers_[self.roster_.row_of(cluster)]
        heaviest = np.lexsort((center.indices, -center.data))[: check_int("n", n, minimum=0)]
        return TopFeatures(center.indices[heaviest], center.data[heaviest], "weight in the center")

    def typicality(self) -> np.ndarray:
        """Each fitted row's cosine to its center."""
        check_is_fitted(self, "similarities_")
        return self.similarities_

    # --- editing and combining ----------------------------------------------------------------------------------------

    def merge_clusters(self, clusters: Any, into: int) -> SphericalKMeans:
        """The rows of ``clusters`` (one id or several) belong to ``into`` from now on; its center is their mean."""
        check_is_fitted(self, "cluster_centers_")
        with transaction(self):
            editing.merge_clusters(self, clusters, into)
        return self

    def split_cluster(self, cluster: int, X: Any, *, sample_weight: Any = None) -> int:  # type: ignore[override]
        """Split a cluster in two by those rows of ``X`` that belong to it; the id of the new one."""
        check_is_fitted(self, "cluster_centers_")
        rows = validate_rows(self, X, mode="predict").matrix
        weights, _ = scaled_weights(validate_weights(sample_weight, rows.shape[0]))
        with transaction(self):
            return editing.split_cluster(self, cluster, rows, weights)

    def merge(self, other: SphericalKMeans, *, base: SphericalKMeans | None = None) -> SphericalKMeans:
        """Take in a model that learned from other rows, cluster by cluster: centers become the mean of all rows.

        Both must come from the same start: fitted from the same ``init``, or continued by ``partial_fit`` from copies
        of one model, which is then given as ``base`` and counted once. ``labels_`` stay those of this model.
        """
        check_is_fitted(self, "cluster_centers_")
        with transaction(self):
            editing.merge_models(self, other, base)
        return self

    # --- the steps of fit ---------------------------------------------------------------------------------------------

    def _run(self, data: Input, rng: np.random.Generator) -> tuple[AlgorithmChoice, Run]:
        seeds = self._first_centers(data.blocks, rng)
        choice = self._choice(data.blocks, seeds)
        assign: Assign = reassign
        blocks = data.blocks
        if choice.algorithm == "wand":
            assign = partial(retrieve, top=self.top, thresholds=self.thresholds)
            blocks = data.blocks = [block.with_postings() for block in blocks]
        model = Model(seeds, blocks[0].open().n_ranks, choice.features_kept)
        return choice, lloyd(blocks, model, assign, max_iter=self.max_iter, tol=self.tol, n_threads=self.n_threads)

    def _within_limits(self, data: Input, result: FitResult) -> FitResult:
        n_rows, n_clusters = int((result.labels >= 0).sum()), len(result.centers)
        limits = size_limits(self.min_cluster_size, self.max_cluster_size, n_rows, n_clusters)
        return result if limits is None else within_limits(data.blocks[0], result, limits, self.n_threads)

    def _choice(self, blocks: list[Block], seeds: Centers) -> AlgorithmChoice:
        """What to run; only what is left open is measured."""
        if self.algorithm == "exact":
            return AlgorithmChoice("exact", None)
        if self.algorithm != "auto" and self.features_kept != "auto":
            return AlgorithmChoice(self.algorithm, self.features_kept)  # type: ignore[arg-type]
        return choose(blocks, seeds, self.algorithm, self.n_threads)

    def _first_centers(self, blocks: list[Block], rng: np.random.Generator) -> Centers:
        if isinstance(self.init, str):
            return first_centers(blocks, self.n_clusters, self.init, rng, self.n_threads)
        return given_centers(self.init, self.n_clusters, blocks[0].open())

    def _grow_tree(self, data: Input, rng: np.random.Generator) -> None:
        if len(data.blocks) > 1:
            raise BadInput("bisecting=True needs all rows at once; give one matrix, or leave bisecting=False.")
        require_distinct_rows(data.blocks, self.n_clusters, self.n_threads)
        rows, weights = data.blocks[0].open(), data.weights
        grown_tree = bisect(
            rows, weights, self.n_clusters, rng, init=str(self.init), max_iter=self.max_iter, n_threads=self.n_threads
        )
        tree, labels = grown_tree.tree, grown_tree.labels
        centers = tree.centers.take(tree.leaves)
        similarities = own_similarities(rows, labels, centers)
        self.features_kept_, self.algorithm_ = None, "bisecting"
        self._remember(FitResult(centers, labels, similarities, labels < 0, certified_exact(rows.n_rows)), data)
        splits = np.arange(tree.parents.size)
        self.tree_ = np.column_stack([tree.parents, 2 * splits + 1, 2 * splits + 2])
        self.leaves_, self.node_centers_ = tree.leaves, tree.centers.csr(rows)
        self.n_iter_, self.converged_ = len(grown_tree.history), grown_tree.converged
        self.objective_history_, self.iteration_seconds_ = np.array(grown_tree.history), None

    def _remember_run(self, run: Run) -> None:
        self.n_iter_ = len(run.history)
        self.converged_ = run.converged
        self.objective_history_ = np.array(run.history)
        self.iteration_seconds_ = np.array(run.seconds)
        self.tree_ = self.leaves_ = self.node_centers_ = None

    def _remember(self, result: FitResult, data: Input) -> None:
        k, weights, places = len(result.centers), data.weights, result.labels
        won = places >= 0
        self.roster_ = Roster.of(k)
        self.cluster_centers_ = result.centers.csr(data.blocks[0].open())
        self.labels_ = self._ids_of(places)
        self.similarities_, self.outliers_ = result.similarities, result.outliers
        self.mean_similarity_ = float(weights @ result.similarities / max(weights.sum(), 1e-300))
        self.cluster_sizes_ = np.bincount(places[won], minlength=k)
        self.certificate_ = result.certificate
        # What partial_fit and merge need to go on: the weight behind each center, and the length of the mean, which is
        # the mean cosine of its rows.
        masses = np.bincount(places[won], weights[won], k)
        cosines = np.bincount(places[won], (weights * result.similarities)[won], k)
        self.mean_lengths_ = np.clip(np.divide(cosines, masses, out=np.zeros(k), where=masses > 0), 0.0, 1.0)
        self.masses_ = masses * data.unit

    # --- state --------------------------------------------------------------------------------------------------------

    def fitted_state(self) -> dict[str, Any]:
        """Everything ``fit`` learned; how long it took is no part of the model."""
        return super().fitted_state() | {"iteration_seconds_": None}

    def check_state(self) -> None:
        """Refuse a state from a file that contradicts itself."""
        check_state(self)

    def _ids_of(self, places: np.ndarray) -> np.ndarray:
        """Cluster ids of places of centers; -1 stays -1."""
        return np.append(self.roster_.ids, -1)[places]

    def _asked(self, X: Any, top: int = 1) -> tuple[PreparedCenters, sp.csr_matrix]:
        check_is_fitted(self, "cluster_centers_")
        if top < 1:
            raise BadInput(f"top is {top}; ask for 1 cluster or more.")
        ready = prepared(self, self.cluster_centers_, self.features_kept_)
        return ready, validate_rows(self, X, mode="predict").matrix
