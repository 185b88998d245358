"""SphericalKMeans: thousands of clusters of sparse rows, by cosine."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.base import Assignment, Estimator, Roster, TopFeatures, as_rows, as_weights, storable
from shoal.errors import BadInput
from shoal.kmeans import minibatch
from shoal.kmeans.bisecting import Tree, bisect, descend
from shoal.kmeans.centers import Centers, centers_from_csr, centers_from_rows, own_similarities
from shoal.kmeans.exact import CenterIndexAssigner, assign, similarity_matrix
from shoal.kmeans.finalize import FitResult, certified_exact, finish
from shoal.kmeans.inverted_index import InvertedIndex, postings_of
from shoal.kmeans.lloyd import Assigner, Outcome, lloyd
from shoal.kmeans.options import check_options, how_many_starts
from shoal.kmeans.prediction import PreparedCenters, prepared
from shoal.kmeans.rows import Ranking, UnitRows, unit_rows
from shoal.kmeans.seeding import choose_seeds
from shoal.kmeans.select_algorithm import Choice, choose
from shoal.kmeans.wand import WandAssigner


@storable
class SphericalKMeans(TransformerMixin, ClassNamePrefixFeaturesOutMixin, Estimator):
    """Cluster sparse rows by their direction: documents by terms, users by clicks, ads by keywords.

    Rows are brought to unit length; a center is the unit mean of its rows; the objective is the mean cosine of the
    rows to their centers (psi). Nothing of size n_clusters x n_features is ever made: centers are sparse.

    Parameters
    ----------
    n_clusters : int
        How many clusters.
    algorithm : {"auto", "exact", "sparse", "wand"}
        ``exact`` is Lloyd's algorithm, label for label, without most of its work. ``sparse`` keeps only the heaviest
        features of each center while it iterates. ``wand`` lets centers retrieve rows from an inverted index ("Scalable
        K-Means by Ranked Retrieval", WSDM 2014). ``auto`` measures a small part of the work and takes ``exact`` where
        that is quick and ``sparse`` elsewhere; ``algorithm_`` says which.
    top : int
        For ``wand``: how many rows a center asks for. All rows scored on the way are offered to it, so 1 is enough.
    features_kept : int, "auto" or None
        For ``sparse`` and ``wand``: features of a center while iterating. ``auto`` takes the smallest of 50, 100, 200
        and 500 that loses next to nothing on a sample; None keeps all.
    thresholds : {"safe", "carried", "cold"}
        For ``wand``: where the retrieval threshold of a center starts in the next step (see :mod:`shoal.kmeans.wand`).
    init : {"k-means++", "k-means||", "random"} or matrix (n_clusters, n_features)
        Where to start. A matrix, sparse or dense, gives the first centers.
    n_init : int or "auto"
        How many starts; the one with the largest mean similarity is kept. "auto" makes three on small data (up to 1e8
        entries x clusters), one on large data and from given centers.
    max_iter, tol : int, float
        Stop after this many steps, or when the mean similarity changes by less than this share.
    bisecting : bool
        Make a tree: split the worst cluster in two until there are ``n_clusters``. ``predict`` then walks the tree.
    random_state : int, RandomState or None
        Decides the answer. The number of threads and the order of the rows do not.
    n_threads : int or None
        Threads to use; None means all cores.

    Attributes
    ----------
    labels_ : (n_rows,) the cluster of each row; -1 for a row that is unassigned: it is empty, or shares no feature
        with any center.
    similarities_ : (n_rows,) cosine of each row to its center; 0 where the label is -1.
    outliers_ : (n_rows,) bool, True for rows that pulled on no center in the last step. ``sparse`` and ``wand`` still
        give them the label of their nearest center if there is one.
    mean_similarity_ : the (weighted) mean of ``similarities_``: psi.
    cluster_centers_ : CSR (n_clusters, n_features), rows of unit length, with all features of their rows.
    cluster_sizes_ : (n_clusters,) rows in each cluster.
    certificate_ : for ``sparse`` and ``wand``, what exact assignment to these centers would add to psi ("loss"), with
        its standard error, from a sample of rows; 0 for ``exact``.
    algorithm_, features_kept_ : what was used.
    n_iter_, converged_, objective_history_, iteration_seconds_ : how the fit went.
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
    """

    cluster_centers_: sp.csr_matrix
    labels_: np.ndarray
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
        random_state: Any = None,
        n_threads: int | None = None,
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
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SphericalKMeans:
        """Cluster the rows of ``X``: a matrix, a :class:`shoal.Dataset`, or an :class:`InvertedIndex` over rows."""
        check_options(self)
        rows, index = self._validate(X)
        weights = as_weights(sample_weight, rows.n_rows)
        rng = self._generator()
        if self.bisecting:
            self._grow_tree(rows, weights, rng)
            return self
        runs = [self._run(rows, weights, rng, index) for _ in range(how_many_starts(self, int(rows.indptr[-1])))]
        choice, best = max(runs, key=lambda run: run[1].objective)
        self.features_kept_, self.algorithm_ = choice.features_kept, choice.algorithm
        self._remember_run(best)
        self._remember(finish(rows, weights, best, choice.algorithm, self.n_threads), rows, weights)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SphericalKMeans:
        """Learn from one more batch of rows; each center has its own learning rate, the share of its rows that are new.

        The first batch also gives the first centers, so it needs at least ``n_clusters`` distinct rows. After ``fit``,
        learning goes on from there. ``labels_`` and the like are those of this batch. A center keeps its 4,096 heaviest
        features at most (or ``features_kept``), so that memory stays bounded on an endless stream.
        """
        check_options(self)
        first = not hasattr(self, "cluster_centers_")
        X = as_rows(self, X, fitting=first)
        weights = as_weights(sample_weight, X.shape[0])
        if first:
            self._start_stream(X, weights)
        self.tree_ = self.leaves_ = self.node_centers_ = None  # a tree does not describe centers that move on
        keep = self.features_kept if isinstance(self.features_kept, int) else None
        batch = minibatch.accumulate(X, PreparedCenters(self.cluster_centers_, None), weights, self.n_threads)
        means = minibatch.Means(self.cluster_centers_, self.mean_lengths_, self.masses_)
        self.cluster_centers_, self.mean_lengths_, self.masses_ = minibatch.update(means, batch.stats, keep)
        self.labels_, self.similarities_, self.outliers_ = batch.labels, batch.similarities, batch.labels < 0
        self.mean_similarity_ = batch.stats.similarity / max(batch.stats.weight, 1e-300)
        self.cluster_sizes_ = self.cluster_sizes_ + np.bincount(batch.labels[batch.labels >= 0], minlength=self._k)
        self.objective_history_ = np.append(self.objective_history_, self.mean_similarity_)
        self.n_iter_ += 1
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each row; -1 for a row that is empty or shares no feature with any center."""
        ready = self._ready()
        X = as_rows(self, X, fitting=False)
        if self.tree_ is not None:
            ready = prepared(self, self.node_centers_, None)
            tree = Tree(self.tree_[:, 0], ready.centers, self.leaves_)
            return descend(ready.rows(X, self.n_threads), tree, self.n_threads)
        return ready.labels(ready.rows(X, self.n_threads), self.n_threads)

    def assign(self, X: Any) -> Assignment:
        """The cluster of each row and the row's cosine to its center; 0 where it is unassigned."""
        labels = self.predict(X)
        ready = self._ready()
        rows = ready.rows(as_rows(self, X, fitting=False), self.n_threads)
        return Assignment(labels, own_similarities(rows, labels, ready.centers))

    def transform(self, X: Any) -> np.ndarray:
        """The cosine of each row to every center (n_rows, n_clusters): larger is nearer, unlike a distance."""
        ready = self._ready()
        return similarity_matrix(
            ready.rows(as_rows(self, X, fitting=False), self.n_threads), ready.full, self.n_threads
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean cosine of the rows to their nearest centers (psi)."""
        ready = self._ready()
        rows = ready.rows(as_rows(self, X, fitting=False), self.n_threads)
        weights = as_weights(sample_weight, rows.n_rows)
        similarities = assign(rows, ready.full, self.n_threads)[1]
        return float(weights @ similarities / max(weights.sum(), 1e-300))

    def top_features(self, cluster: int, n: int = 10) -> TopFeatures:
        """The heaviest features of the center with this id."""
        check_is_fitted(self, "cluster_centers_")
        center = self.cluster_centers_[self.roster_.row_of(cluster)]
        heaviest = np.lexsort((center.indices, -center.data))[:n]
        return TopFeatures(center.indices[heaviest], center.data[heaviest], "weight in the center")

    def typicality(self) -> np.ndarray:
        """Each fitted row's cosine to its center."""
        check_is_fitted(self, "similarities_")
        return self.similarities_

    # --- the steps of fit ---------------------------------------------------------------------------------------------

    def _validate(self, X: Any) -> tuple[UnitRows, InvertedIndex | None]:
        if isinstance(X, InvertedIndex):
            self.n_features_in_ = X.rows.n_features
            return X.rows, X
        return unit_rows(as_rows(self, X, fitting=True), n_threads=self.n_threads), None

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _run(
        self, rows: UnitRows, weights: np.ndarray, rng: np.random.Generator, index: InvertedIndex | None
    ) -> tuple[Choice, Outcome]:
        seeds = self._first_centers(rows, weights, rng)
        choice = self._choice(rows, weights, seeds)
        assigner: Assigner
        if choice.algorithm == "wand":
            assigner = WandAssigner(
                rows, postings_of(rows) if index is None else index.postings, top=self.top,
                features_kept=choice.features_kept, thresholds=self.thresholds, n_threads=self.n_threads,
            )  # fmt: skip
        else:
            assigner = CenterIndexAssigner(rows, choice.features_kept, self.n_threads)
        return choice, lloyd(
            rows, weights, seeds, assigner, max_iter=self.max_iter, tol=self.tol, n_threads=self.n_threads
        )

    def _choice(self, rows: UnitRows, weights: np.ndarray, seeds: Centers) -> Choice:
        """What to run; only what is left open is measured."""
        if self.algorithm == "exact":
            return Choice("exact", None)
        if self.algorithm != "auto" and self.features_kept != "auto":
            return Choice(self.algorithm, self.features_kept)  # type: ignore[arg-type]
        return choose(rows, seeds, self.algorithm, self.n_threads)

    def _first_centers(self, rows: UnitRows, weights: np.ndarray, rng: np.random.Generator) -> Centers:
        if isinstance(self.init, str):
            return centers_from_rows(rows, choose_seeds(rows, weights, self.n_clusters, self.init, rng, self.n_threads))
        given = sp.csr_matrix(self.init, dtype=np.float64)
        if given.shape != (self.n_clusters, rows.n_features):
            raise BadInput(
                f"init has shape {given.shape}; n_clusters={self.n_clusters} centers of {rows.n_features} features "
                "are needed."
            )
        if not np.isfinite(given.data).all():
            raise BadInput("init holds NaN or infinity; give finite centers.")
        return centers_from_csr(given, Ranking.of(rows.columns, rows.n_features))

    def _grow_tree(self, rows: UnitRows, weights: np.ndarray, rng: np.random.Generator) -> None:
        choose_seeds(rows, weights, self.n_clusters, "random", rng, self.n_threads)  # are there enough distinct rows?
        grown = bisect(
            rows, weights, self.n_clusters, rng, init=str(self.init), max_iter=self.max_iter, n_threads=self.n_threads
        )
        centers = grown.tree.centers.take(grown.tree.leaves)
        similarities = own_similarities(rows, grown.labels, centers)
        self.features_kept_, self.algorithm_ = None, "bisecting"
        self._remember(
            FitResult(centers, grown.labels, similarities, grown.labels < 0, certified_exact(rows.n_rows)),
            rows,
            weights,
        )
        parents = grown.tree.parents
        made = np.arange(2 * parents.size).reshape(-1, 2) + 1
        self.tree_ = np.column_stack([parents, made])
        self.leaves_, self.node_centers_ = grown.tree.leaves, grown.tree.centers.csr(rows)
        self.n_iter_, self.converged_ = len(grown.history), grown.converged
        self.objective_history_, self.iteration_seconds_ = np.array(grown.history), None

    def _remember_run(self, run: Outcome) -> None:
        self.n_iter_ = len(run.history)
        self.converged_ = run.converged
        self.objective_history_ = np.array(run.history)
        self.iteration_seconds_ = np.array(run.seconds)
        self.tree_ = self.leaves_ = self.node_centers_ = None

    def _remember(self, finished: FitResult, rows: UnitRows, weights: np.ndarray) -> None:
        k = len(finished.centers)
        won = finished.labels >= 0
        self.cluster_centers_ = finished.centers.csr(rows)
        self.labels_ = finished.labels
        self.similarities_ = finished.similarities
        self.outliers_ = finished.outliers
        self.mean_similarity_ = float(weights @ finished.similarities / max(weights.sum(), 1e-300))
        self.cluster_sizes_ = np.bincount(finished.labels[won], minlength=k)
        self.certificate_ = finished.certificate
        self.roster_ = Roster.of(k)
        # What partial_fit needs to go on: the weight behind each center, and the length of the mean, which is the mean
        # cosine of its rows.
        self.masses_ = np.bincount(finished.labels[won], weights[won], k)
        cosines = np.bincount(finished.labels[won], (weights * finished.similarities)[won], k)
        self.mean_lengths_ = np.divide(cosines, self.masses_, out=np.zeros(k), where=self.masses_ > 0)

    def _start_stream(self, X: sp.csr_matrix, weights: np.ndarray) -> None:
        """First centers from the first batch; no weight behind them yet."""
        rows = unit_rows(X, n_threads=self.n_threads)
        seeds = self._first_centers(rows, weights, self._generator())
        nobody = np.full(rows.n_rows, -1, np.int32)
        self.features_kept_, self.algorithm_ = None, "partial_fit"
        self._remember(FitResult(seeds, nobody, np.zeros(rows.n_rows), nobody < 0), rows, weights)
        self.tree_ = self.leaves_ = self.node_centers_ = self.iteration_seconds_ = None
        self.converged_ = False
        self.n_iter_, self.objective_history_ = 0, np.zeros(0)

    # --- the steps of predict -----------------------------------------------------------------------------------------

    @property
    def _k(self) -> int:
        return int(self.cluster_centers_.shape[0])

    @property
    def _n_features_out(self) -> int:
        return self._k

    def _ready(self) -> PreparedCenters:
        check_is_fitted(self, "cluster_centers_")
        return prepared(self, self.cluster_centers_, self.features_kept_)
